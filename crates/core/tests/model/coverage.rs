//! Whether random histories reach what they are meant to reach. A property that holds because nothing happens is worth nothing.

use std::collections::BTreeMap;

use leasehold_core::{Answer, Applied, Event, ItemKind, LeaseTable, Reply};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;

use super::steps::script;
use super::{LONGEST, entries};

/// Histories looked at: the same ones every time.
const HISTORIES: usize = 150;

/// What must happen, with a number of times that a healthy mix reaches several times over.
const WANTED: [(&str, usize); 37] = [
    ("answer AlreadyGranted", 5),
    ("answer Cancelled", 8),
    ("answer Granted", 200),
    ("answer Queued", 100),
    ("answer Accepted", 20),
    ("answer Offered", 50),
    ("answer RegisterWritten", 12),
    ("answer Released", 80),
    ("answer ValueSet", 12),
    ("answer DrainingShown", 12),
    ("item OfferAccepted", 8),
    ("refused NotYetInUse", 5),
    ("ended Drained", 30),
    ("ended Expired", 60),
    ("ended HandedOver", 3),
    ("ended Rebooted", 1),
    ("ended Released", 30),
    ("ended Restored", 5),
    ("ended Revoked", 50),
    ("ended SessionClosed", 12),
    ("ended Taken", 6),
    ("refused CommandGap", 50),
    ("refused NotFree", 30),
    ("refused SeenAhead", 20),
    ("refused TokenAhead", 5),
    ("reply AlarmCleared", 3),
    ("refused OlderAttach", 50),
    ("reply Repeated", 50),
    ("reply StaleRenewal", 100),
    ("wait Granted", 20),
    ("wait TimedOut", 30),
    ("wait Granted unit", 10),
    ("wait OfferEnded", 5),
    ("wait Cancelled", 5),
    ("reply PlainRepeated", 50),
    ("reply NumberSettled", 10),
    ("refused NumberReused", 20),
];

#[test]
fn histories_reach_what_they_are_meant_to_reach() {
    let mut runner = TestRunner::deterministic();
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for _ in 0..HISTORIES {
        let script = script(LONGEST).new_tree(&mut runner).expect("every script is possible").current();
        let (config, entries) = entries(&script);
        let mut table = LeaseTable::new(config);
        for entry in &entries {
            for what in kinds(&table.apply(entry)) {
                *seen.entry(what).or_default() += 1;
            }
        }
    }
    for (what, least) in WANTED {
        let times = seen.get(what).copied().unwrap_or(0);
        assert!(times >= least, "{what} happened {times} times, at least {least} are wanted; all: {seen:#?}");
    }
}

/// Everything in an outcome, each by the name of its variant.
fn kinds(applied: &Applied) -> Vec<String> {
    let mut kinds = Vec::new();
    let answer = |answer: &Answer| match answer {
        Answer::Refused(refusal) => format!("refused {}", variant(refusal)),
        other => format!("answer {}", variant(other)),
    };
    for reply in &applied.replies {
        kinds.push(match reply {
            Reply::Refused(refusal) => format!("refused {}", variant(refusal)),
            Reply::Plain { answer: given, .. } => answer(given),
            other => format!("reply {}", variant(other)),
        });
    }
    for (_, item) in &applied.items {
        if let ItemKind::Answer { answer: given, .. } = &item.kind {
            kinds.push(answer(given));
        } else {
            kinds.push(format!("item {}", variant(&item.kind)));
        }
    }
    for event in &applied.events {
        match event {
            Event::Ended { how, .. } => kinds.push(format!("ended {}", variant(how))),
            Event::WaitGranted { grants, .. } if grants.len() > 1 => kinds.push("wait Granted unit".into()),
            Event::WaitGranted { .. } => kinds.push("wait Granted".into()),
            Event::WaitEnded { why, .. } => kinds.push(format!("wait {}", variant(why))),
            _ => {}
        }
    }
    kinds
}

fn variant(value: &impl std::fmt::Debug) -> String {
    let text = format!("{value:?}");
    text.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default().to_owned()
}
