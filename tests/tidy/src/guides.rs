//! Guides to fences: whoever copies an example has to know what it depends on and what it imports.
//!
//! A guide has the lines of the manifest: of the fence with its feature or of the crate aside, and of the library whose guards it asks. Both lie in this repository and in
//! no registry, so a version would not be found. An example in Rust has its `use` lines in it, or the words above it say which they are.

use crate::{Complaint, File, Tree};

const GUIDES: &str = "docs/guides/fence-";
const DEPENDS: &str = "leasehold-fence = { path = \"crates/fence\", ";
/// Of an adapter that is a crate of its own.
const ASIDE: &str = " = { path = \"contrib/fence-";
const LIBRARY: &str = "leasehold = { path = \"crates/client\" }";

/// Guides without a dependency, and examples without imports.
pub fn check(tree: &Tree) -> Vec<Complaint> {
    tree.ending(".md").filter(|file| file.path.starts_with(GUIDES)).flat_map(check_guide).collect()
}

fn check_guide(guide: &File) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    let depends = |line: &str| {
        (line.starts_with(DEPENDS) && line.contains("features = [\""))
            || (line.starts_with("leasehold-fence-") && line.contains(ASIDE))
    };
    if !guide.lines().any(|(_, line)| depends(line)) {
        complaints.push(format!("{}: no line says `{DEPENDS}..., features = [...] }}`", guide.path));
    }
    if !guide.lines().any(|(_, line)| line == LIBRARY) {
        complaints.push(format!("{}: no line says `{LIBRARY}`", guide.path));
    }
    // Words since the last block, and the block that is open: where it began, and whether it imports.
    let (mut says, mut open) = (false, None);
    for (number, line) in guide.lines() {
        match (line.strip_prefix("```"), open) {
            (Some(language), None) => open = Some((number, language != "rust" || says)),
            (Some(_), Some((began, imports))) => {
                if !imports {
                    complaints.push(format!("{}:{began}: which `use` lines does it need?", guide.path));
                }
                (says, open) = (false, None);
            }
            (None, None) => says |= line.contains("`use"),
            (None, Some((began, imports))) => {
                open = Some((began, imports || line.starts_with("use leasehold_fence")));
            }
        }
    }
    complaints
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(guide: &str) -> usize {
        check(&Tree::of(&[("docs/guides/fence-a.md", guide), ("docs/guides/b.md", "```rust\nx\n```\n")]))
            .len()
    }

    const MANIFEST: &str = "```text\nleasehold = { path = \"crates/client\" }\n\
        leasehold-fence = { path = \"crates/fence\", features = [\"a\"] }\n```\n";

    #[test]
    fn an_example_imports_or_the_words_above_it_say_what() {
        let imports = "```rust\nuse leasehold_fence::a::Fence;\n\nx();\n```\n";
        assert_eq!(found(&format!("{MANIFEST}{imports}")), 0);
        assert_eq!(found(&format!("{MANIFEST}With the same `use` lines:\n```rust\nx();\n```\n")), 0);
        assert_eq!(found(&format!("{MANIFEST}{imports}```rust\nx();\n```\n")), 1);
        assert_eq!(found(&format!("{MANIFEST}Words.\n```rust\nx();\n```\n")), 1);
    }

    #[test]
    fn a_guide_has_the_line_of_the_manifest_with_the_feature() {
        assert_eq!(found("Words.\n"), 2);
        assert_eq!(found(&MANIFEST.replace(", features = [\"a\"]", "")), 1);
        // Nothing is in a registry.
        assert_eq!(found(&MANIFEST.replace("path = \"crates/fence\"", "version = \"0.1\"")), 1);
        assert_eq!(found(&MANIFEST.replace(LIBRARY, "")), 1);
        assert_eq!(found(MANIFEST), 0);
        let aside = "leasehold-fence-a = { path = \"contrib/fence-a\" }\n";
        assert_eq!(found(&format!("```text\n{LIBRARY}\n{aside}```\n")), 0);
    }
}
