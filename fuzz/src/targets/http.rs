//! The fields of a request over HTTP: the JSON of a body and the parameters of a query, and typed fields read out of them.

use leasehold_core::{Label, Reason, RegisterKey, ResourceName};
use serde::Deserialize;

use crate::Shape;
use crate::fields::node::Node;
use crate::plain::Fault;

/// Fields of every type that requests have.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "that they can be read is what is tried")]
struct Fields {
    resource: Option<ResourceName>,
    resources: Option<Vec<Wanted>>,
    label: Option<Label>,
    reason: Option<Reason>,
    key: Option<RegisterKey>,
    value: Option<String>,
    wait_ms: Option<u64>,
    drained: Option<bool>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "that they can be read is what is tried")]
struct Wanted {
    resource: ResourceName,
    mode: Option<Mode>,
    slots: Option<u32>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Mode {
    Exclusive,
    Shared,
    Slots,
}

pub(super) fn seeds() -> Vec<Vec<u8>> {
    let seeds = [
        r#"{"resource":"jobs/night","value":"at \u00e4","wait_ms":1e4,"drained":true,"label":null}"#,
        r#"{"resources":[{"resource":"a","mode":"slots","slots":3},{"resource":"b","mode":"shared"}]}"#,
        r#"{"a":1,"a":-1,"b":[1.5,18446744073709551616,true,null,{"c":{}}]}"#,
        r#"{"reason":"it hangs","key":"cursor","wait_ms":0.5}"#,
        "resource=jobs%2Fnight+1&label=&drained=true&wait_ms=18446744073709551615&key=%C3%A4",
    ];
    seeds.iter().map(|seed| seed.as_bytes().to_vec()).collect()
}

pub(super) fn check(input: &[u8]) -> Shape {
    let body = Node::from_json(input);
    if let Ok(node) = &body {
        let mut text = String::new();
        if to_json(node, &mut text) {
            assert_eq!(
                Node::from_json(text.as_bytes()).ok().as_ref(),
                Some(node),
                "{text} says something else"
            );
        }
    }
    let query = match std::str::from_utf8(input) {
        Ok(text) => Node::from_query(text),
        Err(_) => Err(Fault::NoSuchPath),
    };
    if let Ok(node) = &query {
        let text = to_query(node);
        assert_eq!(Node::from_query(&text).ok().as_ref(), Some(node), "{text} says something else");
    }
    read(body).and(read(query))
}

fn read(node: Result<Node, Fault>) -> Shape {
    let fields = node.and_then(|node| Fields::deserialize(node).map_err(Fault::from));
    match fields {
        Ok(fields) => Shape::of(&fields),
        Err(fault) => {
            assert!(!fault.message().is_empty(), "a fault without words: {fault:?}");
            Shape::of(&fault)
        }
    }
}

/// Whether all of it can be written: a number that no field takes is kept as the words for it.
fn to_json(node: &Node, text: &mut String) -> bool {
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    let mut whole = true;
    match node {
        Node::Null => text.push_str("null"),
        Node::Bool(flag) => text.push_str(&flag.to_string()),
        Node::Number(number) => text.push_str(&number.to_string()),
        Node::OtherNumber(_) => return false,
        Node::Text(words) | Node::Raw(words) => text.push_str(&quoted(words)),
        Node::List(list) => {
            for (separator, node) in separators('[').zip(list) {
                text.push(separator);
                whole &= to_json(node, text);
            }
            text.push_str(if list.is_empty() { "[]" } else { "]" });
        }
        Node::Map(fields) => {
            for (separator, (name, node)) in separators('{').zip(fields) {
                text.push(separator);
                text.push_str(&quoted(name));
                text.push(':');
                whole &= to_json(node, text);
            }
            text.push_str(if fields.is_empty() { "{}" } else { "}" });
        }
    }
    whole
}

fn separators(first: char) -> impl Iterator<Item = char> {
    std::iter::once(first).chain(std::iter::repeat(','))
}

fn to_query(node: &Node) -> String {
    let Node::Map(fields) = node else { panic!("a query has fields: {node:?}") };
    let encoded = |text: &str| text.bytes().map(|byte| format!("%{byte:02x}")).collect::<String>();
    let pair = |(name, value): &(String, Node)| match value {
        Node::Raw(value) => format!("{}={}", encoded(name), encoded(value)),
        other => panic!("a query has texts alone: {other:?}"),
    };
    fields.iter().map(pair).collect::<Vec<_>>().join("&")
}
