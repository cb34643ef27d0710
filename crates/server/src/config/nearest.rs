//! Which of the known words somebody may have meant.

/// The known word that is nearest, if it is near: at most a third of its letters must be put in, taken out, changed or swapped with their
/// neighbour.
pub(super) fn nearest<'a>(given: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let near =
        known.map(|word| (strsim::osa_distance(given, word), word)).min_by_key(|(distance, _)| *distance)?;
    (near.0 * 3 <= near.1.len()).then_some(near.1)
}

#[cfg(test)]
mod tests {
    use super::*;

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
