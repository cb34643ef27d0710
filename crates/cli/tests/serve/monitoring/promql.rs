//! Which metrics a query names, and which ones a scrape has.

use std::collections::BTreeSet;
use std::fmt::Write as _;

/// Words of the language that a list of labels follows.
const BEFORE_LABELS: [&str; 6] = ["by", "without", "on", "ignoring", "group_left", "group_right"];
/// Other words of the language.
const WORDS: [&str; 6] = ["and", "or", "unless", "bool", "offset", "atan2"];

/// The metrics that a query names. What stands before a parenthesis is a function; that it is one is the business of Prometheus.
pub(super) fn metrics_of(query: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut rest = query;
    while let Some(first) = rest.chars().next() {
        if let Some(close) = closing(first) {
            rest = behind(&rest[first.len_utf8()..], close);
            continue;
        }
        let end =
            rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == ':')).unwrap_or(rest.len());
        if end == 0 {
            rest = &rest[first.len_utf8()..];
            continue;
        }
        let (word, after) = rest.split_at(end);
        let next = after.trim_start();
        // An aggregation may name its labels first.
        let called = ["(", "by (", "without ("].iter().any(|start| next.starts_with(start));
        rest = after;
        if BEFORE_LABELS.contains(&word) {
            if called {
                rest = behind(after, ')');
            }
        } else if !(called || WORDS.contains(&word) || first.is_ascii_digit()) {
            found.insert(word.to_owned());
        }
    }
    found
}

/// What ends a part in which no metrics are named: labels, lengths of time, texts.
const fn closing(first: char) -> Option<char> {
    match first {
        '{' => Some('}'),
        '[' => Some(']'),
        '"' => Some('"'),
        _ => None,
    }
}

/// What follows that character; the texts of these queries have none of them in them.
fn behind(text: &str, close: char) -> &str {
    text.split_once(close).map_or("", |(_, rest)| rest)
}

/// Names and types of a scrape.
fn types(scrape: &str) -> impl Iterator<Item = (&str, &str)> {
    scrape.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '))
}

/// The names of all series that a scrape has or may have: a family that has counted nothing yet has none.
pub(super) fn exported(scrape: &str) -> BTreeSet<String> {
    let named = types(scrape).flat_map(|(name, kind)| {
        let endings: &[&str] = match kind {
            "counter" => &["_total"],
            "info" => &["_info"],
            "histogram" => &["_bucket", "_sum", "_count"],
            _ => &[""],
        };
        endings.iter().map(move |ending| format!("{name}{ending}"))
    });
    named.chain(["up".to_owned()]).collect()
}

/// A scrape in the format from before OpenMetrics, the only one that promtool checks: counters have their ending in the name.
pub(super) fn older_format(scrape: &str) -> String {
    let mut text = String::new();
    for line in scrape.lines().filter(|line| !line.starts_with("# UNIT ") && *line != "# EOF") {
        let told = ["# TYPE ", "# HELP "].iter().find_map(|start| Some((*start, line.strip_prefix(start)?)));
        let Some((start, rest)) = told else {
            writeln!(text, "{line}").unwrap();
            continue;
        };
        let (name, said) = rest.split_once(' ').unwrap();
        let (_, kind) = types(scrape).find(|(typed, _)| *typed == name).unwrap();
        let (ending, older) = match kind {
            "counter" => ("_total", "counter"),
            "info" => ("_info", "gauge"),
            other => ("", other),
        };
        let said = if start == "# TYPE " { older } else { said };
        writeln!(text, "{start}{name}{ending} {said}").unwrap();
    }
    text
}

#[test]
fn only_metrics_are_taken_for_metrics() {
    let named = |query: &str| metrics_of(query).into_iter().collect::<Vec<_>>().join(" ");
    assert_eq!(named("up"), "up");
    assert_eq!(named("max by (job, le) (rate(a_bucket{job=\"x\", le!=\"y\"}[5m])) > 0.5"), "a_bucket");
    assert_eq!(named("histogram_quantile(0.99, sum without (x) (a:b:c))"), "a:b:c");
    assert_eq!(named("2 * (a offset 1h) and on (job, b) c == bool 1 or vector(1e3)"), "a c");
    assert_eq!(named("label_replace(a, \"b\", \"$1\", \"c\", \"(.*)\")"), "a");
}
