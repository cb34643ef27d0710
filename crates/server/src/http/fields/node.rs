//! What a request says, before it is known what it should say: JSON of a body or parameters of a query.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

use crate::plain::ApiError;

/// A value as it came. Fields that are given twice are there twice, so that whoever reads them notices.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Node {
    Null,
    Bool(bool),
    Number(u64),
    /// A number that no field takes: negative, broken, or too large.
    OtherNumber(String),
    Text(String),
    /// A value of a query: what it is depends on who reads it.
    Raw(String),
    List(Vec<Self>),
    Map(Vec<(String, Self)>),
}

impl Node {
    /// Reads a body. No body at all says as much as an empty object.
    pub(crate) fn from_json(body: &[u8]) -> Result<Self, ApiError> {
        if body.is_empty() {
            return Ok(Self::Map(Vec::new()));
        }
        match serde_json::from_slice(body) {
            Ok(node @ Self::Map(_)) => Ok(node),
            Ok(_) => Err(ApiError::BadJson { why: "it is not an object".to_owned() }),
            Err(error) => Err(ApiError::BadJson { why: error.to_string() }),
        }
    }

    /// Reads a query: `name=value` joined by `&`, with percent signs and plus signs as forms have them.
    pub(crate) fn from_query(query: &str) -> Result<Self, ApiError> {
        let pairs = query.split('&').filter(|pair| !pair.is_empty());
        let fields = pairs.map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let name = decode(name).ok_or_else(|| badly_encoded(name))?;
            let value = decode(value).ok_or_else(|| badly_encoded(&name))?;
            Ok((name, Self::Raw(value)))
        });
        fields.collect::<Result<_, ApiError>>().map(Self::Map)
    }
}

fn badly_encoded(field: &str) -> ApiError {
    ApiError::BadField { field: field.to_owned(), why: "it is not percent-encoded UTF-8".to_owned() }
}

fn decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, behind @ ..] = rest {
        rest = behind;
        match (*first, behind) {
            (b'+', _) => bytes.push(b' '),
            (b'%', [high, low, behind @ ..]) => {
                let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|d| u8::try_from(d).ok());
                bytes.push(digit(*high)? << 4 | digit(*low)?);
                rest = behind;
            }
            (b'%', _) => return None,
            (byte, _) => bytes.push(byte),
        }
    }
    String::from_utf8(bytes).ok()
}

/// A double is exact up to here.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// What a number that no field takes is called in a message. Of a very large one the last digits are lost: it is not shown as if they
/// were those that were sent.
fn shown(value: f64) -> String {
    if value.abs() > EXACT { format!("a number near {value:e}") } else { value.to_string() }
}

/// `10000.0` and `1e4` are whole numbers too, and some writers of JSON know no others.
fn whole(value: f64) -> Option<u64> {
    let whole = value.fract() == 0.0 && (0.0..=EXACT).contains(&value);
    whole.then(|| format!("{value:.0}").trim_start_matches('-').parse().ok()).flatten()
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Taker)
    }
}

/// Takes whatever comes.
struct Taker;

impl<'de> Visitor<'de> for Taker {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Node, E> {
        Ok(Node::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Node, E> {
        Ok(Node::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Node, E> {
        Ok(Node::Number(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Node, E> {
        Ok(u64::try_from(value).map_or_else(|_| Node::OtherNumber(value.to_string()), Node::Number))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Node, E> {
        Ok(whole(value).map_or_else(|| Node::OtherNumber(shown(value)), Node::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Node, E> {
        Ok(Node::Text(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Node, E> {
        Ok(Node::Text(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<Node, A::Error> {
        let mut list = Vec::new();
        while let Some(value) = values.next_element()? {
            list.push(value);
        }
        Ok(Node::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Node, A::Error> {
        let mut map = Vec::new();
        while let Some(field) = fields.next_entry()? {
            map.push(field);
        }
        Ok(Node::Map(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(fields: &[(&str, &str)]) -> Node {
        let field = |(name, value): &(&str, &str)| ((*name).to_owned(), Node::Raw((*value).to_owned()));
        Node::Map(fields.iter().map(field).collect())
    }

    #[test]
    fn a_query_is_decoded_and_repeats_are_kept() {
        let node = Node::from_query("resource=jobs%2Fnight+1&a=&b&resource=%C3%A4").unwrap();
        assert_eq!(node, raw(&[("resource", "jobs/night 1"), ("a", ""), ("b", ""), ("resource", "ä")]));
        assert_eq!(Node::from_query("").unwrap(), raw(&[]));
    }

    #[test]
    fn a_query_that_is_no_text_is_refused_with_its_field() {
        for query in ["a=%", "a=%2", "a=%zz", "a=%ff", "a=%C3%28"] {
            let fault = Node::from_query(query).expect_err(query);
            assert_eq!(fault.message(), "a: it is not percent-encoded UTF-8");
        }
    }

    #[test]
    fn json_must_be_one_object() {
        assert_eq!(Node::from_json(b"").unwrap(), Node::Map(Vec::new()));
        for body in ["[]", "1", "null", "\"x\"", "{", "{}{}", "{\"a\":}", "\u{feff}{}", "{\"a\":\"\\ud800\"}"]
        {
            assert_eq!(Node::from_json(body.as_bytes()).expect_err(body).code(), "bad-json");
        }
        assert!(Node::from_json(b"{\"a\":\"\xff\"}").is_err());
    }

    #[test]
    fn depth_is_bounded() {
        let deep = format!("{{\"a\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
        let fault = Node::from_json(deep.as_bytes()).unwrap_err();
        assert!(fault.message().contains("recursion limit"), "{}", fault.message());
    }

    #[test]
    fn a_whole_number_is_whole_however_it_is_written() {
        for (text, number) in
            [("1e4", 10_000), ("867.0", 867), ("0.0", 0), ("-0.0", 0), ("9007199254740992.0", 1 << 53)]
        {
            assert_eq!(serde_json::from_str::<Node>(text).unwrap(), Node::Number(number), "{text}");
        }
        for text in ["-1.0", "0.5", "1e300", "18446744073709551616", "9007199254740994.0"] {
            assert!(matches!(serde_json::from_str::<Node>(text).unwrap(), Node::OtherNumber(_)), "{text}");
        }
    }

    #[test]
    fn digits_that_were_not_sent_are_not_shown() {
        let text = |json: &str| match serde_json::from_str(json).unwrap() {
            Node::OtherNumber(shown) => shown,
            other => panic!("{other:?}"),
        };
        assert_eq!(text("18446744073709551616"), "a number near 1.8446744073709552e19");
        assert_eq!(text("1e300"), "a number near 1e300");
        assert_eq!((text("-1"), text("0.5")), ("-1".to_owned(), "0.5".to_owned()));
    }

    #[test]
    fn fields_given_twice_stay_twice_and_odd_numbers_stay_apart() {
        let node = Node::from_json(br#"{"a":1,"a":-1,"b":[1.5,18446744073709551616,true,null]}"#).unwrap();
        let Node::Map(fields) = node else { panic!("an object is a map") };
        assert_eq!(fields.len(), 3);
        assert_eq!(fields[1].1, Node::OtherNumber("-1".into()));
        let Node::List(list) = &fields[2].1 else { panic!("an array is a list") };
        assert!(matches!(
            list[..],
            [Node::OtherNumber(_), Node::OtherNumber(_), Node::Bool(true), Node::Null]
        ));
    }
}
