//! The names that somebody must always act on, as an operator writes them.

use leasehold_core::ResourceName;
use leasehold_node::GapPattern;

/// Most patterns: each is a handful of series in every scrape, and every name that falls idle is held against all of them.
pub const MAX_GAP_PATTERNS: usize = 64;

/// Reads patterns in the order in which names are held against them.
pub(super) fn patterns(texts: &[String]) -> Result<Vec<GapPattern>, String> {
    if texts.len() > MAX_GAP_PATTERNS {
        return Err(format!(
            "{} patterns are more than the limit of {MAX_GAP_PATTERNS}; take names together with *, such as jobs/*",
            texts.len()
        ));
    }
    let mut read = Vec::with_capacity(texts.len());
    for (at, text) in texts.iter().enumerate() {
        let pattern = GapPattern::new(text)?;
        let beginning = text.strip_suffix('*').unwrap_or(text);
        // A star alone is every name; any other beginning must be able to begin one.
        if !beginning.is_empty() {
            ResourceName::new(beginning).map_err(|why| {
                format!("pattern {} fits no name: {why}; correct it, or leave it out", shown(text))
            })?;
        }
        if let Some(before) = texts[..at].iter().find(|before| covers(before, text)) {
            return Err(format!(
                "pattern {text:?} stands behind {before:?}, which takes every name of it; put it in front of that one, or leave it out"
            ));
        }
        read.push(pattern);
    }
    Ok(read)
}

/// Whether a pattern takes every name that the other could.
fn covers(before: &str, text: &str) -> bool {
    match before.strip_suffix('*') {
        Some(beginning) => text.strip_suffix('*').unwrap_or(text).starts_with(beginning),
        None => before == text,
    }
}

/// A pattern that is too long would make a message that nobody reads.
fn shown(text: &str) -> String {
    const SHOWN: usize = 40;
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{:?}...", &text[..end]),
        None => format!("{text:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(texts: &[&str]) -> Result<Vec<String>, String> {
        let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
        patterns(&texts).map(|read| read.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn patterns_keep_their_order() {
        for good in [&[][..], &["leader"], &["jobs/night", "jobs/*", "*"], &["a,b"]] {
            assert_eq!(read(good).unwrap(), good);
        }
    }

    #[test]
    fn there_are_64_at_most() {
        let named = |count: usize| (0..count).map(|at| format!("n{at}")).collect::<Vec<_>>();
        for count in [63, 64] {
            assert_eq!(patterns(&named(count)).unwrap().len(), count);
        }
        let why = patterns(&named(65)).unwrap_err();
        assert_eq!(
            why,
            "65 patterns are more than the limit of 64; take names together with *, such as jobs/*"
        );
    }

    #[test]
    fn what_fits_no_name_or_is_never_reached_is_refused_with_the_next_step() {
        for (texts, word) in [
            (&[""][..], "such as jobs/*"),
            (&["a*b"], "\"a*b\""),
            (&["a#1"], "\"a#1\" fits no name"),
            (&["a", "a"], "stands behind \"a\""),
            (&["jobs/*", "jobs/night"], "stands behind \"jobs/*\""),
            (&["*", "jobs/*"], "put it in front"),
        ] {
            let why = read(texts).unwrap_err();
            assert!(why.contains(word), "{why}");
        }
        assert!(read(&[&"n".repeat(512)]).is_ok() && read(&[&format!("{}*", "n".repeat(512))]).is_ok());
        let why = read(&[&"n".repeat(513)]).unwrap_err();
        assert!(why.contains("513 bytes") && why.contains("512") && why.len() < 200, "{why}");
    }
}
