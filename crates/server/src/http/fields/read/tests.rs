use leasehold_core::ResourceName;
use serde::Deserialize;

use super::*;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Outer {
    resource: ResourceName,
    limit: Option<u64>,
    #[serde(default)]
    inner: Vec<Inner>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Inner {
    small: u32,
    mode: Option<Word>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Word {
    Shared,
    Exclusive,
}

fn read(node: Node) -> Result<Outer, ApiError> {
    Outer::deserialize(node).map_err(ApiError::from)
}

fn json(text: &str) -> Result<Outer, ApiError> {
    read(Node::from_json(text.as_bytes()).unwrap())
}

#[test]
fn json_and_query_give_the_same() {
    let outer = json(r#"{"resource":"a","limit":5,"inner":[{"small":1,"mode":"shared"}]}"#).unwrap();
    assert_eq!((outer.resource.as_str(), outer.limit), ("a", Some(5)));
    assert!(matches!(outer.inner[0], Inner { small: 1, mode: Some(Word::Shared) }));
    let outer = read(Node::from_query("limit=5&resource=a").unwrap()).unwrap();
    assert_eq!((outer.resource.as_str(), outer.limit), ("a", Some(5)));
}

#[test]
fn nothing_and_null_are_the_same_for_what_may_be_left_out() {
    assert_eq!(json(r#"{"resource":"a","limit":null}"#).unwrap().limit, None);
    assert_eq!(json(r#"{"resource":"a"}"#).unwrap().limit, None);
    assert!(json(r#"{"resource":null}"#).is_err());
}

#[test]
fn every_error_names_its_field() {
    for (text, message) in [
        ("{}", "resource: it is missing"),
        (r#"{"resource":"a","resource":"b"}"#, "resource: it is given twice"),
        (r#"{"resource":""}"#, "resource: resource name is empty; give at least 1 byte"),
        (
            r#"{"resource":"a","limit":"5"}"#,
            "limit: the text \"5\" is not a whole number from 0 to 18446744073709551615",
        ),
        (r#"{"resource":"a","limit":-5}"#, "limit: -5 is not a whole number from 0 to 18446744073709551615"),
        (
            r#"{"resource":"a","limit":1.5}"#,
            "limit: 1.5 is not a whole number from 0 to 18446744073709551615",
        ),
        (
            r#"{"resource":"a","limit":18446744073709551616}"#,
            "limit: a number near 1.8446744073709552e19 is not a whole number from 0 to 18446744073709551615",
        ),
        (r#"{"resource":2}"#, "resource: 2 is not a text in quotes"),
        (r#"{"resource":"a","inner":"x"}"#, "inner: the text \"x\" is not a list"),
        (
            r#"{"resource":"a","inner":["7-000102030405060708090a0b0c0d0e0f"]}"#,
            "inner[0]: a text of 34 bytes is not an object with the fields small, mode",
        ),
        (
            r#"{"resource":"a","inner":[[1,"shared"]]}"#,
            "inner[0]: a list is not an object with the fields small, mode",
        ),
        (
            r#"{"resource":"a","inner":[{"small":1,"mode":5}]}"#,
            "inner[0].mode: 5 is not one of the texts shared, exclusive",
        ),
        (r#"{"resource":"a","x":1}"#, "field \"x\" is not known; there are: resource, limit, inner"),
        (r#"{"resource":"a","inner":[{"small":1},{}]}"#, "inner[1].small: it is missing"),
        (
            r#"{"resource":"a","inner":[{"small":4294967296}]}"#,
            "inner[0].small: 4294967296 is not a whole number from 0 to 4294967295",
        ),
        (
            r#"{"resource":"a","inner":[{"small":1,"mode":"x"}]}"#,
            "inner[0].mode: \"x\" is none of shared, exclusive",
        ),
        (
            r#"{"resource":"a","inner":[{"y":1}]}"#,
            "field \"inner[0].y\" is not known; there are: small, mode",
        ),
    ] {
        assert_eq!(json(text).unwrap_err().message(), message, "{text}");
    }
}

#[test]
fn queries_are_held_to_the_same() {
    for (query, message) in [
        ("resource=a&resource=a", "resource: it is given twice"),
        ("resource=a&limit=", "limit: \"\" is not a whole number from 0 to 18446744073709551615"),
        ("resource=a&limit=%2B5", "limit: \"+5\" is not a whole number from 0 to 18446744073709551615"),
        (
            "resource=a&limit=18446744073709551616",
            "limit: \"18446744073709551616\" is not a whole number from 0 to 18446744073709551615",
        ),
        ("resource=a&x=1", "field \"x\" is not known; there are: resource, limit, inner"),
    ] {
        assert_eq!(read(Node::from_query(query).unwrap()).unwrap_err().message(), message, "{query}");
    }
}

#[test]
fn a_name_that_somebody_made_up_is_not_repeated_at_full_length() {
    let message = json(&format!(r#"{{"{}":1}}"#, "n".repeat(10_000))).unwrap_err().message();
    assert!(message.len() < 300, "{}", message.len());
}
