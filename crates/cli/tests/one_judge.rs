//! `leasehold plan` asks the function that the library asks: when it is changed, both say so, in the same words.
//!
//! The change is for the whole process, so this is a test of its own. One of the service has HTTP and gRPC beside the library.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails, and unwrap says where")]

use std::time::Duration;

use leasehold::SessionOptions;
use leasehold_core::planted::{Bug, choose};

const TTL: u64 = 10_000;
const EVERY: u64 = 3_000;
const MARGIN: u64 = 1_500;
const ROUND_TRIP: u64 = 50;

fn by_library(every: u64) -> Option<String> {
    let options = SessionOptions::new()
        .ttl(Duration::from_millis(TTL))
        .renew_every(Duration::from_millis(every))
        .margin(Duration::from_millis(MARGIN))
        .round_trip(Duration::from_millis(ROUND_TRIP));
    options.numbers().err().map(|error| error.to_string())
}

/// Without what `plan` says before and after it.
fn by_plan(every: u64) -> Option<String> {
    let [ttl, every, margin, trip] = [TTL, every, MARGIN, ROUND_TRIP].map(|length| format!("{length}ms"));
    let asked = ["--ttl", &ttl, "--renew-every", &every, "--margin", &margin, "--rtt", &trip];
    leasehold_cli::plan_refusal(&asked).map(|text| {
        let line = text.lines().next().unwrap_or_default();
        line.split_once("does not hold: ").unwrap().1.to_owned()
    })
}

#[test]
fn the_plan_and_the_library_ask_the_same_function() {
    assert_eq!((by_library(EVERY), by_plan(EVERY)), (None, None));
    let half = by_library(TTL / 2).unwrap();
    assert!(half.contains("2 x 5000 ms + 50 ms = 10050 ms is not below"), "{half}");
    assert_eq!(by_plan(TTL / 2), Some(half));
    choose(Some(Bug::StrictNumbers));
    let (library, plan) = (by_library(EVERY).unwrap(), by_plan(EVERY));
    choose(None);
    assert!(library.starts_with("margin of 1500 ms is below"), "{library}");
    assert_eq!(plan, Some(library));
}
