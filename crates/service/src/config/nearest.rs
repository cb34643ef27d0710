//! Which of the known words somebody may have meant.

/// The known word that is nearest, if it is near: at most a third of its letters are wrong.
pub(super) fn nearest<'a>(given: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let near = known.map(|word| (distance(given, word), word)).min_by_key(|(distance, _)| *distance)?;
    (near.0 * 3 <= near.1.len()).then_some(near.1)
}

/// How many letters must be put in, taken out or changed to make one word of the other.
fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (i, letter) in from.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, other) in to.iter().enumerate() {
            let changed = diagonal + usize::from(letter != *other);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_counted() {
        for (from, to, count) in [("", "", 0), ("a", "", 1), ("listen", "lisen", 1), ("kitten", "sitting", 3)]
        {
            assert_eq!(distance(from, to), count, "{from} {to}");
            assert_eq!(distance(to, from), count, "{to} {from}");
        }
    }

    #[test]
    fn only_what_is_near_is_meant() {
        let known = || ["listen", "data", "http.max_body_bytes"].into_iter();
        assert_eq!(nearest("lisen", known()), Some("listen"));
        assert_eq!(nearest("http.max_bdy_byte", known()), Some("http.max_body_bytes"));
        assert_eq!(nearest("colour", known()), None);
        assert_eq!(nearest("", known()), None);
    }
}
