//! Excerpts: code in the documentation that is taken from a file of the tree stands there letter by letter.
//!
//! The block comes right below a comment `<!-- from: PATH -->`.

use crate::{Complaint, File, Tree};

const FROM: &str = "<!-- from: ";

/// Excerpts that are not in their file any more, and files that are not there.
pub fn check(tree: &Tree) -> Vec<Complaint> {
    tree.ending(".md").flat_map(|document| check_document(tree, document)).collect()
}

fn check_document(tree: &Tree, document: &File) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    let lines: Vec<(usize, &str)> = document.lines().collect();
    for (place, (number, line)) in lines.iter().enumerate() {
        let Some(path) = line.strip_prefix(FROM).and_then(|rest| rest.strip_suffix(" -->")) else { continue };
        let mut below = lines[place + 1..].iter().map(|(_, line)| *line);
        let complaint = match (below.next(), tree.get(path)) {
            (Some(fence), Some(file)) if fence.starts_with("```") => {
                let excerpt: String =
                    below.take_while(|line| *line != "```").flat_map(|line| [line, "\n"]).collect();
                let stands = !excerpt.is_empty() && file.text.contains(&excerpt);
                (!stands).then(|| format!("this does not stand in {path}"))
            }
            (_, Some(_)) => Some("no block of code is below it".to_owned()),
            (_, None) => Some(format!("{path} is not there")),
        };
        complaints.extend(complaint.map(|why| format!("{}:{number}: {why}", document.path)));
    }
    complaints
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(below: &str) -> usize {
        let text = format!("Words.\n\n<!-- from: a.rs -->\n{below}");
        check(&Tree::of(&[("docs/a.md", text.as_str()), ("a.rs", "fn a() {\n    b();\n}\n\nfn c() {}\n")]))
            .len()
    }

    #[test]
    fn an_excerpt_stands_in_its_file_letter_by_letter() {
        assert_eq!(found("```rust\nfn a() {\n    b();\n}\n```\n"), 0);
        assert_eq!(found("```rust\nfn a() {\n  b();\n}\n```\n"), 1);
        assert_eq!(found("```rust\nfn b() {}\n```\n"), 1);
    }

    #[test]
    fn an_excerpt_of_nothing_or_from_nowhere_is_found() {
        assert_eq!(found("```rust\n```\n"), 1);
        assert_eq!(found("Words.\n"), 1);
        let tree = Tree::of(&[("docs/a.md", "<!-- from: b.rs -->\n```rust\nx\n```\n")]);
        assert_eq!(check(&tree).len(), 1);
    }
}
