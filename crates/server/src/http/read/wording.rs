//! What serde says of a request, in words that name the field and the value: a long text is not repeated, for it may be a session key in the wrong field.

use leasehold_api::{ApiError, quoted};
use serde_path_to_error::Error as PathError;

/// Names of fields are shown up to this length: a made-up one may be as long as a body.
const SHOWN: usize = 100;

/// Why fields could not be read.
#[derive(Debug)]
pub(super) enum Wrong {
    /// What is no JSON, or no object.
    Json(String),
    /// A field that is not known, in which object.
    Unknown { place: String, name: String, known: Vec<String> },
    /// A field that is missing, doubled, or cannot be.
    Bad { field: String, why: String },
}

impl From<Wrong> for ApiError {
    fn from(wrong: Wrong) -> Self {
        match wrong {
            Wrong::Json(why) => Self::BadJson { why },
            Wrong::Unknown { place, name, known } => {
                Self::UnknownField { field: shortened(&inside(&place, &name)), known }
            }
            Wrong::Bad { field, why } => Self::BadField { field: shortened(&field), why },
        }
    }
}

impl From<PathError<serde_json::Error>> for Wrong {
    fn from(error: PathError<serde_json::Error>) -> Self {
        let said = error.inner().to_string();
        if !error.inner().is_data() {
            return Self::Json(said);
        }
        // Where in the text is no help once the field is named.
        let words = said.rsplit_once(" at line ").map_or(said.as_str(), |(words, _)| words);
        Self::of(&place(error.path()), words)
    }
}

impl From<PathError<serde::de::value::Error>> for Wrong {
    fn from(error: PathError<serde::de::value::Error>) -> Self {
        Self::of(&place(error.path()), &error.inner().to_string())
    }
}

impl Wrong {
    fn of(place: &str, words: &str) -> Self {
        let named = |kind: &str| words.strip_prefix(kind).and_then(|rest| rest.strip_prefix(" field `"));
        if let Some(name) = named("unknown").and_then(|rest| rest.strip_suffix("`, there are no fields")) {
            return Self::Unknown { place: parent(place, name), name: name.to_owned(), known: Vec::new() };
        }
        if let Some((name, known)) = named("unknown").and_then(|rest| rest.rsplit_once("`, expected ")) {
            let known = known.split('`').skip(1).step_by(2).map(str::to_owned).collect();
            return Self::Unknown { place: parent(place, name), name: name.to_owned(), known };
        }
        if let Some(name) = named("missing").and_then(|rest| rest.strip_suffix('`')) {
            return Self::Bad { field: inside(place, name), why: "it is missing".to_owned() };
        }
        if let Some(name) = named("duplicate").and_then(|rest| rest.strip_suffix('`')) {
            let field = inside(&parent(place, name), name);
            return Self::Bad { field, why: "it is given twice".to_owned() };
        }
        let invalid = words.strip_prefix("invalid type: ").or_else(|| words.strip_prefix("invalid value: "));
        let why = match invalid.and_then(|rest| rest.rsplit_once(", expected ")) {
            Some((found, wanted)) => format!("{} is not {}", found_in_words(found), wanted_in_words(wanted)),
            None => variant_in_words(words).unwrap_or_else(|| words.to_owned()),
        };
        if place.is_empty() {
            Self::Json("it is not an object".to_owned())
        } else {
            Self::Bad { field: place.to_owned(), why }
        }
    }
}

/// `resources[1].slots`; nothing for the request as a whole.
fn place(path: &serde_path_to_error::Path) -> String {
    let path = path.to_string();
    if path == "." { String::new() } else { path }
}

/// A field that is refused by its name may be the end of the path already.
fn parent(place: &str, name: &str) -> String {
    let own = [name, "?"].into_iter().find_map(|end| {
        let rest = place.strip_suffix(end)?;
        if rest.is_empty() { Some(rest) } else { rest.strip_suffix('.') }
    });
    own.unwrap_or(place).to_owned()
}

fn inside(place: &str, name: &str) -> String {
    if place.is_empty() { name.to_owned() } else { format!("{place}.{name}") }
}

fn shortened(text: &str) -> String {
    if text.chars().nth(SHOWN).is_none() {
        return text.to_owned();
    }
    text.chars().take(SHOWN).chain("...".chars()).collect()
}

fn found_in_words(found: &str) -> String {
    let text = found.strip_prefix("string \"").and_then(|rest| rest.strip_suffix('"'));
    match (text, found) {
        (Some(text), _) => match quoted(text) {
            shown if shown.starts_with('"') => format!("the text {shown}"),
            long => long,
        },
        (None, "sequence") => "a list".to_owned(),
        (None, "map") => "an object".to_owned(),
        (None, "unit value") => "null".to_owned(),
        (None, found) => match found.split_once('`') {
            Some((_, value)) => value.trim_end_matches('`').to_owned(),
            None => found.to_owned(),
        },
    }
}

fn wanted_in_words(wanted: &str) -> &str {
    match wanted {
        "a string" | "string or map" => "a text in quotes",
        "a boolean" => "true or false",
        "a sequence" => "a list",
        wanted => wanted,
    }
}

fn variant_in_words(words: &str) -> Option<String> {
    let (found, known) = words.strip_prefix("unknown variant `")?.rsplit_once("`, expected ")?;
    let known: Vec<&str> = known.split('`').skip(1).step_by(2).collect();
    Some(format!("{} is none of {}", quoted(found), known.join(", ")))
}

#[cfg(test)]
mod tests {
    use leasehold_api::request;

    use super::super::from_body;
    use super::*;

    fn acquire(text: &str) -> Result<request::Acquire, ApiError> {
        from_body(text.as_bytes(), false)
    }

    #[test]
    fn every_error_names_its_field() {
        let number = "is not a whole number from 0 to 18446744073709551615";
        for (text, message) in [
            (r#"{"resource":"a","resource":"b"}"#, "resource: it is given twice".to_owned()),
            (r#"{"resource":""}"#, "resource: resource name is empty; give at least 1 byte".to_owned()),
            (r#"{"wait_ms":"5"}"#, format!("wait_ms: the text \"5\" {number}")),
            (r#"{"wait_ms":-5}"#, format!("wait_ms: -5 {number}")),
            (r#"{"wait_ms":1.5}"#, format!("wait_ms: 1.5 {number}")),
            (r#"{"wait_ms":18446744073709551616}"#, format!("wait_ms: a number near 1.8446744073709552e19 {number}")),
            (r#"{"resource":2}"#, "resource: 2 is not a text in quotes".to_owned()),
            (r#"{"resources":"x"}"#, "resources: the text \"x\" is not a list".to_owned()),
            (
                r#"{"resources":["7-000102030405060708090a0b0c0d0e0f"]}"#,
                "resources[0]: a text of 34 bytes is not an object".to_owned(),
            ),
            (r#"{"resources":[["a"]]}"#, "resources[0]: a list is not an object".to_owned()),
            (r#"{"x":1}"#, "field \"x\" is not known; there are: resource, resources, mode, slots, value, value_hex, wait_ms, when_queued, number, settled".to_owned()),
            (r#"{"resources":[{"resource":"a"},{}]}"#, "resources[1].resource: it is missing".to_owned()),
            (
                r#"{"resources":[{"resource":"a","slots":4294967296}]}"#,
                "resources[0].slots: 4294967296 is not a whole number from 0 to 4294967295".to_owned(),
            ),
            (
                r#"{"resources":[{"resource":"a","mode":"x"}]}"#,
                "resources[0].mode: \"x\" is none of exclusive, shared, slots".to_owned(),
            ),
            (
                r#"{"resources":[{"y":1}]}"#,
                "field \"resources[0].y\" is not known; there are: resource, mode, slots".to_owned(),
            ),
        ] {
            assert_eq!(acquire(text).unwrap_err().message(), message, "{text}");
        }
    }

    #[test]
    fn nothing_and_null_are_the_same_for_what_may_be_left_out() {
        assert!(acquire(r#"{"resource":null,"wait_ms":null,"mode":null}"#).unwrap().wait_ms.is_none());
        assert!(from_body::<request::Resource>(br#"{"resource":null}"#, false).is_err());
    }

    #[test]
    fn json_must_be_one_object() {
        assert!(acquire("").is_ok());
        for body in ["[]", "1", "null", "\"x\"", "{", "{}{}", "{\"mode\":}", "\u{feff}{}"] {
            assert_eq!(acquire(body).expect_err(body).code(), "bad-json", "{body}");
        }
    }

    #[test]
    fn a_key_in_the_wrong_field_is_not_repeated() {
        let key = "7-000102030405060708090a0b0c0d0e0f";
        for field in ["wait_ms", "mode", "resources", "slots", "when_queued", "value_hex"] {
            let message = acquire(&format!(r#"{{"{field}":"{key}"}}"#)).unwrap_err().message();
            assert!(!message.contains("0d0e0f"), "{message}");
        }
    }

    #[test]
    fn a_name_that_was_made_up_is_not_repeated_at_full_length() {
        let message = acquire(&format!(r#"{{"{}":1}}"#, "n".repeat(10_000))).unwrap_err().message();
        assert!(message.len() < 300, "{}", message.len());
    }

    #[test]
    fn what_is_not_known_is_left_out_if_that_is_asked_for() {
        let body = br#"{"new":[1],"resources":[{"resource":"a","newer":{}}],"wait_ms":5}"#;
        let read: request::Acquire = from_body(body, true).unwrap();
        assert_eq!((read.wait_ms, read.resources.unwrap().len()), (Some(5), 1));
        assert!(from_body::<request::Acquire>(br#"{"new":1,"wait_ms":"x"}"#, true).is_err());
        let many: Vec<String> = (0..100).map(|i| format!("\"f{i}\":1")).collect();
        let many = format!("{{{}}}", many.join(","));
        assert_eq!(from_body::<request::Nothing>(many.as_bytes(), true).unwrap_err().code(), "unknown-field");
    }

    #[test]
    fn what_is_not_known_may_have_any_name() {
        let names = "|.|/|~1|?|a.b|0]|[0]|s[0]|resources[0]|`|x`, expected `y|x`, there are no fields";
        for name in names.split('|') {
            let body = format!(r#"{{"{name}":1,"resources":[{{"resource":"a","{name}":1}}]}}"#);
            from_body::<request::Acquire>(body.as_bytes(), true).expect(name);
            from_body::<request::Nothing>(body.as_bytes(), true).expect(name);
        }
    }

    #[test]
    fn a_field_given_twice_is_named_where_it_is() {
        for (body, field) in [
            (r#"{"new":{"w":1,"w":2}}"#, "new.w"),
            (r#"{"new":1,"resources":[{"resource":"a"},{"]":1,"]":2}]}"#, "resources[1].]"),
        ] {
            let error = from_body::<request::Acquire>(body.as_bytes(), true).unwrap_err();
            assert_eq!(error.message(), format!("{field}: it is given twice"));
        }
    }
}
