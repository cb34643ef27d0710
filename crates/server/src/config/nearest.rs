//! Which of the known words somebody may have meant.

/// The known word that is nearest, if it is near: at most a third of its letters are wrong.
pub(super) fn nearest<'a>(given: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let near = known.map(|word| (distance(given, word), word)).min_by_key(|(distance, _)| *distance)?;
    (near.0 * 3 <= near.1.len()).then_some(near.1)
}

/// How many letters must be put in, taken out, changed or swapped with their neighbour to make one word of the other.
fn distance(from: &str, to: &str) -> usize {
    let (from, to): (Vec<char>, Vec<char>) = (from.chars().collect(), to.chars().collect());
    // The last row and the one before it: a swap looks back over two letters.
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=to.len()).collect();
    for i in 0..from.len() {
        let mut row = vec![i + 1];
        for j in 0..to.len() {
            let changed = last[j] + usize::from(from[i] != to[j]);
            let mut least = changed.min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && from[i] == to[j - 1] && from[i - 1] == to[j] {
                least = least.min(before[j - 1] + 1);
            }
            row.push(least);
        }
        before = std::mem::replace(&mut last, row);
    }
    last[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_counted() {
        let words = [
            ("", "", 0),
            ("a", "", 1),
            ("listen", "lisen", 1),
            ("nmae", "name", 1),
            ("htpp", "http", 1),
            ("kitten", "sitting", 3),
        ];
        for (from, to, count) in words {
            assert_eq!(distance(from, to), count, "{from} {to}");
            assert_eq!(distance(to, from), count, "{to} {from}");
        }
    }

    #[test]
    fn only_what_is_near_is_meant() {
        let known = || ["listen", "data", "name", "http.max_body_bytes"].into_iter();
        assert_eq!(nearest("nmae", known()), Some("name"));
        assert_eq!(nearest("lisen", known()), Some("listen"));
        assert_eq!(nearest("http.max_bdy_byte", known()), Some("http.max_body_bytes"));
        assert_eq!(nearest("colour", known()), None);
        assert_eq!(nearest("", known()), None);
    }
}
