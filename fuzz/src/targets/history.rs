//! The history of a run: lines of JSON that other programs write.

use std::time::Duration;

use leasehold_history::check::{self, Knowledge};
use leasehold_history::{KINDS, Line, Story, parse, read};

use crate::Shape;

/// What a person could have written: every kind of line.
const LINES: [&str; 16] = [
    r#"{"at_ns":1,"what":"asked","client":"a","resource":"r","ttl_ms":1000}"#,
    r#"{"at_ns":2,"what":"queued","client":"a"}"#,
    r#"{"at_ns":3,"what":"granted","client":"a","resource":"r","token":"7","until_ns":900000003,"promised_ns":1000000003}"#,
    r#"{"at_ns":4,"what":"confirmed","client":"a","token":"7","until_ns":900000004,"promised_ns":1000000004}"#,
    r#"{"at_ns":5,"what":"looked","asked_ns":4,"resource":"r","token":"7"}"#,
    r#"{"at_ns":6,"what":"wrote","client":"a","resource":"r","token":"7","asked_ns":5,"receiver":"d","register":true}"#,
    r#"{"at_ns":7,"what":"giving-back","client":"a","token":"7"}"#,
    r#"{"at_ns":8,"what":"gave-back","client":"a","token":"7","trouble":"late"}"#,
    r#"{"at_ns":9,"clock":"m1","process":"p","what":"granted","client":"b","call":"2","resource":"r","token":"8","fence":"8","shared":true,"until_ns":900000009}"#,
    r#"{"at_ns":10,"what":"lost","client":"b","token":"8","why":"over","revoked":true}"#,
    r#"{"at_ns":11,"what":"refused","client":"b","call":"3","why":"held"}"#,
    r#"{"at_ns":12,"what":"unknown","client":"b","why":"no answer"}"#,
    r#"{"at_ns":13,"what":"fault","text":"kill"}"#,
    r#"{"at_ns":14,"what":"healed","text":"kill"}"#,
    r#"{"at_ns":15,"what":"all-healed"}"#,
    r#"{"at_ns":16,"what":"finishing"}"#,
];

/// Every field that any line has. A line passes over what is not its own.
const FIELDS: &str = r#""clock":"m","process":"p","client":"a","call":"c","resource":"r","token":"7","fence":"6","shared":true,"handed_over":true,"revoked":true,"register":true,"receiver":"d","why":"w","trouble":"t","refused":"f","text":"x""#;

/// A line of this kind with every field, and with this number wherever one can stand. Changed bytes seldom come to a long number.
fn full(kind: &str, number: u64) -> String {
    let numbers =
        format!(r#""at_ns":{number},"until_ns":{number},"promised_ns":{number},"asked_ns":{number}"#);
    format!(r#"{{"what":"{kind}",{numbers},"ttl_ms":{},{FIELDS}}}"#, number.min(u32::MAX.into()))
}

pub(super) fn seeds() -> Vec<Vec<u8>> {
    let mut seeds: Vec<Vec<u8>> = LINES.iter().map(|line| line.as_bytes().to_vec()).collect();
    seeds.push(LINES.join("\n").into_bytes());
    for number in [0, u64::from(u32::MAX), u64::MAX] {
        seeds.extend(KINDS.iter().map(|kind| full(kind, number).into_bytes()));
        seeds.push(KINDS.map(|kind| full(kind, number)).join("\n").into_bytes());
    }
    // As the writer of this project has them.
    let written = LINES.map(|line| parse(line.as_bytes()).expect("a line that is good").to_json());
    seeds.push(written.join("\n").into_bytes());
    seeds
}

pub(super) fn check(input: &[u8]) -> Shape {
    let mut story = Story::default();
    let told = read(input, |number, line| {
        same_again(line);
        story.take(number, line)
    });
    // Without knowledge, and with clocks that can be compared.
    let mut knowledge = [Knowledge::default(); 2];
    knowledge[1].skew = Some(Duration::from_millis(1));
    let verdicts = knowledge.map(|knowledge| check::all(&story, knowledge));
    let judged: Vec<_> =
        verdicts.iter().flatten().map(|verdict| (verdict.judged > 0, verdict.is_good())).collect();
    let shape = Shape::of(&judged);
    match told {
        Ok(()) => shape,
        Err(why) => shape.and(Shape::of_words(&why.to_string())),
    }
}

fn same_again(line: &Line<'_>) {
    let written = line.to_json();
    let again = parse(written.as_bytes())
        .unwrap_or_else(|why| panic!("what was written is refused: {why}\n{written}"));
    assert_eq!(again, *line, "a line comes out as another");
}
