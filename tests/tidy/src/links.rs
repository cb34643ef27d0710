//! Links between documents: the file must be there, and in it the heading.

use crate::{Complaint, File, Tree};

/// Links that lead nowhere.
pub fn check(tree: &Tree) -> Vec<Complaint> {
    let links = tree.ending(".md").flat_map(|file| links(file).map(move |link| (file, link)));
    links
        .filter_map(|(file, (number, target))| {
            let why = broken(tree, file, &target)?;
            Some(format!("{}:{number}: link to {target}: {why}", file.path))
        })
        .collect()
}

/// Why a link leads nowhere, if it does.
fn broken(tree: &Tree, from: &File, target: &str) -> Option<String> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (path, heading) =
        target.split_once('#').map_or((target, None), |(path, heading)| (path, Some(heading)));
    let Some(path) = resolve(&from.path, path) else { return Some("leads out of the project".into()) };
    if !tree.has(&path) {
        return Some(format!("there is no {path}"));
    }
    let heading = heading?;
    let headings = tree.get(&path).map(headings).unwrap_or_default();
    (!headings.iter().any(|has| has == heading)).then(|| format!("{path} has no heading #{heading}"))
}

/// The path of a link from the root. A link without a path leads to its own document.
pub(crate) fn resolve(from: &str, link: &str) -> Option<String> {
    if link.is_empty() {
        return Some(from.into());
    }
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in link.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// Targets of links outside of code, with their lines.
fn links(file: &File) -> impl Iterator<Item = (usize, String)> {
    prose(file).flat_map(|(number, line)| {
        let line = without_code(line);
        let targets: Vec<String> = line
            .split("](")
            .skip(1)
            .filter_map(|rest| rest.split_once(')'))
            .map(|(target, _)| target.split(' ').next().unwrap_or_default().to_owned())
            .collect();
        targets.into_iter().map(move |target| (number, target))
    })
}

/// Anchors of the headings of a document, as they are made for it.
fn headings(file: &File) -> Vec<String> {
    let headings = prose(file).filter(|(_, line)| line.starts_with('#'));
    headings.map(|(_, line)| anchor(line.trim_start_matches('#').trim())).collect()
}

fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || [' ', '-', '_'].contains(c));
    kept.map(|c| if c == ' ' { '-' } else { c.to_ascii_lowercase() }).collect()
}

/// Lines that are not in a block of code.
fn prose(file: &File) -> impl Iterator<Item = (usize, &str)> {
    let mut in_code = false;
    file.lines().filter(move |(_, line)| {
        let fence = line.trim_start().starts_with("```");
        in_code ^= fence;
        !fence && !in_code
    })
}

/// A line without what stands between backticks.
fn without_code(line: &str) -> String {
    line.split('`').step_by(2).collect::<Vec<_>>().join("`")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(link: &str) -> Vec<Complaint> {
        let from = format!("# Here\n\nSee [there]({link}).\n");
        let there = "# There\n\n## What it *does not* do\n";
        check(&Tree::of(&[("docs/a/from.md", from.as_str()), ("docs/there.md", there), ("x.rs", "")]))
    }

    #[test]
    fn links_to_files_directories_and_headings_are_good() {
        for link in [
            "../there.md",
            "../there.md#what-it-does-not-do",
            "../../x.rs",
            "..",
            "#here",
            "https://example.org/a",
            "../there.md#there",
        ] {
            assert!(found(link).is_empty(), "{link}: {:?}", found(link));
        }
    }

    #[test]
    fn links_that_lead_nowhere_are_found() {
        for link in ["there.md", "../there.md#nothing", "../../../x.rs", "#there", "../nothing"] {
            assert_eq!(found(link).len(), 1, "{link}");
        }
    }

    #[test]
    fn code_has_no_links() {
        let text = "`a[0](b)` and\n```\n[x](y)\n```\n";
        assert!(check(&Tree::of(&[("a.md", text)])).is_empty());
    }
}
