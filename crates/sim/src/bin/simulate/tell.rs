//! Results, for people and as one line of JSON.

use std::time::Duration;

use leasehold_sim::campaign::Summary;
use leasehold_sim::check::sometimes::{Situation, Sometimes};
use leasehold_sim::run::Outcome;
use leasehold_sim::trace::seconds;
use leasehold_sim::world::Totals;
use serde_json::{Value, json};

use crate::verdict::Verdict;

/// One seed, for people.
pub(crate) fn one(outcome: &Outcome, lists_situations: bool) {
    println!(
        "hash {:016x}, {} events, {:.3} simulated s",
        outcome.hash,
        outcome.events,
        seconds(outcome.simulated)
    );
    let totals: Vec<String> =
        outcome.totals.all().iter().map(|(name, number)| format!("{name} {number}")).collect();
    println!("{}, excused {}, not_judged {}", totals.join(", "), outcome.excused, outcome.not_judged);
    if lists_situations {
        list(&outcome.sometimes);
    }
}

/// A campaign, for people.
pub(crate) fn many(summary: &Summary, lists_situations: bool) {
    println!("{}", summary.line());
    println!(
        "{:.0} simulated s in {:.1} s, {} events ({:.0} per second)",
        summary.simulated_seconds(),
        summary.took.as_secs_f64(),
        summary.events,
        rate(summary.events, summary.took)
    );
    for (name, number) in summary.totals.all() {
        println!("  {name:<16} {number}");
    }
    println!("  {:<16} {}", "excused", summary.excused);
    println!("  {:<16} {}", "not_judged", summary.not_judged);
    if lists_situations {
        list(&summary.sometimes);
        return;
    }
    let all = Situation::ALL.len();
    let reached = all - summary.sometimes.missing().len();
    println!("{reached} of {all} situations reached; --situations lists them");
}

fn list(sometimes: &Sometimes) {
    for (situation, count) in sometimes.all() {
        println!("  sometimes {:<24} {count}", format!("{situation:?}"));
    }
    for situation in sometimes.missing() {
        println!("never reached: {situation:?}: {}", situation.sentence());
    }
}

/// Events in a second.
pub(crate) fn rate(events: u64, took: Duration) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "for people")]
    let events = events as f64;
    events / took.as_secs_f64().max(0.001)
}

/// One seed, for programs.
pub(crate) fn one_as_json(outcome: &Outcome, verdict: &Verdict) -> Value {
    let line = json!({
        "seed": outcome.seed,
        "verdict": verdict.word(),
        "hash": format!("{:016x}", outcome.hash),
        "events": outcome.events,
        "simulated_s": rounded(seconds(outcome.simulated), 1_000.0),
        "excused": outcome.excused,
        "not_judged": outcome.not_judged,
        "violations": outcome.violations,
    });
    with_counts(line, &outcome.totals, &outcome.sometimes)
}

/// A campaign, for programs.
pub(crate) fn many_as_json(first_seed: u64, summary: &Summary, verdict: &Verdict) -> Value {
    let line = json!({
        "first_seed": first_seed,
        "verdict": verdict.word(),
        "seeds": summary.seeds,
        "simulated_s": summary.simulated_seconds().round() as u64,
        "real_s": rounded(summary.took.as_secs_f64(), 10.0),
        "events": summary.events,
        "excused": summary.excused,
        "not_judged": summary.not_judged,
        "violating": summary.failures.iter().map(|outcome| outcome.seed).collect::<Vec<_>>(),
    });
    with_counts(line, &summary.totals, &summary.sometimes)
}

/// In so many parts of one.
fn rounded(number: f64, parts: f64) -> f64 {
    (number * parts).round() / parts
}

fn with_counts(mut line: Value, totals: &Totals, sometimes: &Sometimes) -> Value {
    for (name, number) in totals.all() {
        line[name] = number.into();
    }
    let name = |situation: &Situation| format!("{situation:?}");
    line["situations"] =
        sometimes.all().map(|(situation, count)| (name(&situation), Value::from(count))).collect();
    line["never_reached"] = sometimes.missing().iter().map(name).collect();
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_campaign_tells_programs_its_verdict_what_was_excused_and_what_was_reached() {
        let mut summary = Summary { seeds: 3, excused: 4, not_judged: 5, ..Summary::default() };
        summary.sometimes.add(Situation::NoRoom, 6);
        let line = many_as_json(7, &summary, &Verdict::Kept(3)).to_string();
        for part in
            ["\"verdict\":\"kept\"", "\"excused\":4", "\"not_judged\":5", "\"NoRoom\":6", "\"violating\":[]"]
        {
            assert!(line.contains(part), "{part} in {line}");
        }
        assert!(!line.contains("[\"NoRoom\""), "{line}");
    }
}
