//! What docs/internals/simulation.md lists is what there is.

use leasehold_sim::check::sometimes::Situation;

const PAGE: &str = include_str!("../../../docs/internals/simulation.md");

/// The ids of the checkers are an enum: its variants, as text.
const CHECKERS: &str = include_str!("../src/check.rs");

#[test]
fn every_checker_has_its_row() {
    let (_, variants) = CHECKERS.split_once("\npub enum Id {\n").expect("there is an enum of ids");
    let variants = variants.lines().take_while(|line| *line != "}").map(str::trim);
    let ids: Vec<&str> = variants.filter_map(|line| line.strip_suffix(',')).collect();
    assert!(ids.len() > 20, "{ids:?}");
    let (_, table) =
        PAGE.split_once("\n| id | what must be so | promise |\n|---|---|---|\n").expect("a table");
    let first = |line: &'static str| line.strip_prefix("| ")?.split(" |").next();
    let listed: Vec<&str> = table.lines().map_while(first).collect();
    assert_eq!(listed, ids);
}

#[test]
fn every_situation_has_its_row() {
    let row = |situation: &Situation| format!("| `{situation:?}` | {} |", situation.sentence());
    let expected: Vec<String> = Situation::ALL.iter().map(row).collect();
    let (_, table) = PAGE.split_once("\n| situation | what happened |\n|---|---|\n").expect("a table");
    let listed: Vec<&str> = table.lines().take_while(|line| line.starts_with('|')).collect();
    assert_eq!(listed, expected);
}
