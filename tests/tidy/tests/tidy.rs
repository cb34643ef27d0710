//! The rules of the source tree, on the source tree.

use std::path::Path;

use leasehold_tidy::{RULES, Tree, sizes};

#[test]
fn the_tree_keeps_every_rule() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let tree = Tree::read(&root).expect("the tree can be read");
    // Fewer would mean that something else was read.
    assert!(tree.ending(".rs").count() > 50 && tree.ending(".md").count() > 5, "this is not the tree");
    for file in sizes::long(&tree) {
        println!("long: {file}");
    }
    let mut broken = 0;
    for (name, check) in RULES {
        for complaint in check(&tree) {
            println!("{name}: {complaint}");
            broken += 1;
        }
    }
    assert_eq!(broken, 0, "the complaints are above");
}
