//! The rules of the source tree, on the source tree.

use std::path::Path;
use std::process::Command;

use leasehold_tidy::{RULES, Tree, licences, sizes};

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

#[test]
fn dependencies_have_the_licences_and_sources_that_are_allowed() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let deny = std::fs::read_to_string(root.join("deny.toml")).expect("the file is there");
    let deny = deny.parse().expect("it is TOML");
    let mut complaints = Vec::new();
    for manifest in ["Cargo.toml", "fuzz/Cargo.toml"] {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut metadata = Command::new(cargo);
        metadata.current_dir(&root).args(["metadata", "--format-version=1", "--locked", "--all-features"]);
        for platform in ["x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"] {
            metadata.args(["--filter-platform", platform]);
        }
        let output = metadata.args(["--manifest-path", manifest]).output().expect("cargo starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let metadata = serde_json::from_slice(&output.stdout).expect("cargo prints JSON");
        complaints.extend(licences::check(&metadata, &deny));
    }
    assert!(complaints.is_empty(), "{complaints:#?}");
}
