//! The command line that asks for given numbers.

use leasehold::core::limits::DEFAULT_MAX_TTL;
use leasehold::core::numbers::{Ask, Schedule};
use leasehold::core::plan::Changed;
use leasehold::core::{Drift, Millis, Policies};

use super::exact;
use crate::args::Percent;

/// Everything that is not left to its default, as one command.
pub(in crate::commands) fn command(ask: &Ask, policies: &Policies) -> String {
    let mut words = vec!["leasehold plan --ttl".to_owned(), exact(ask.ttl)];
    let mut add = |option: &str, value: Option<String>| {
        words.extend(value.map(|value| format!("{option} {value}")));
    };
    let length = |length: Option<Millis>| length.map(exact);
    add("--schedule", (ask.schedule != Schedule::Even).then(|| ask.schedule.word().to_owned()));
    add("--renew-every", length(ask.renew_every));
    add("--margin", length(ask.margin));
    add("--rtt", length(ask.round_trip));
    add("--drift", (ask.drift != Drift::DEFAULT).then(|| Percent(ask.drift).to_string()));
    add("--clock-bound", length(ask.clock_bound));
    add("--in-flight", length(ask.in_flight));
    add("--pause", length(ask.pause));
    add("--grace", (policies.grace > Millis::ZERO).then(|| exact(policies.grace)));
    add("--delay", (policies.delay > Millis::ZERO).then(|| exact(policies.delay)));
    add("--max-ttl", (ask.max_ttl != DEFAULT_MAX_TTL).then(|| exact(ask.max_ttl)));
    words.join(" ")
}

/// What is different, in words.
pub(in crate::commands) fn changes(changed: &[Changed]) -> String {
    let words: Vec<String> = changed.iter().map(change).collect();
    words.join(", ")
}

fn change(changed: &Changed) -> String {
    match changed {
        Changed::Ttl(ttl) => format!("ttl {}", exact(*ttl)),
        Changed::RenewEvery(Some(every)) => format!("renew every {}", exact(*every)),
        Changed::RenewEvery(None) => "no renewal interval".to_owned(),
        Changed::Margin(margin) => format!("margin {}", exact(*margin)),
        Changed::RoundTrip(bound) => format!("round trip {}", exact(*bound)),
        Changed::Schedule(schedule) => format!("schedule {}", schedule.word()),
    }
}
