//! Results, for people and as one line of JSON.

use std::time::Duration;

use leasehold_sim::campaign::Summary;
use leasehold_sim::check::sometimes::{Situation, Sometimes};
use leasehold_sim::run::Outcome;
use leasehold_sim::trace::seconds;
use leasehold_sim::world::Totals;

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
pub(crate) fn one_as_json(outcome: &Outcome, verdict: &Verdict) -> String {
    let violations: Vec<String> = outcome.violations.iter().map(|words| text(words)).collect();
    format!(
        "{{\"seed\":{},\"verdict\":\"{}\",\"hash\":\"{:016x}\",\"events\":{},\"simulated_s\":{:.3},{},\"excused\":{},\"not_judged\":{},{},\"violations\":[{}]}}",
        outcome.seed,
        verdict.word(),
        outcome.hash,
        outcome.events,
        seconds(outcome.simulated),
        numbers(&outcome.totals),
        outcome.excused,
        outcome.not_judged,
        situations(&outcome.sometimes),
        violations.join(",")
    )
}

/// A campaign, for programs.
pub(crate) fn many_as_json(first_seed: u64, summary: &Summary, verdict: &Verdict) -> String {
    let seeds: Vec<String> = summary.failures.iter().map(|outcome| outcome.seed.to_string()).collect();
    format!(
        "{{\"first_seed\":{first_seed},\"verdict\":\"{}\",\"seeds\":{},\"simulated_s\":{:.0},\"real_s\":{:.1},\"events\":{},{},\"excused\":{},\"not_judged\":{},{},\"violating\":[{}]}}",
        verdict.word(),
        summary.seeds,
        summary.simulated_seconds(),
        summary.took.as_secs_f64(),
        summary.events,
        numbers(&summary.totals),
        summary.excused,
        summary.not_judged,
        situations(&summary.sometimes),
        seeds.join(",")
    )
}

fn numbers(totals: &Totals) -> String {
    let fields: Vec<String> =
        totals.all().iter().map(|(name, number)| format!("\"{name}\":{number}")).collect();
    fields.join(",")
}

fn situations(sometimes: &Sometimes) -> String {
    let counts: Vec<String> =
        sometimes.all().map(|(situation, count)| format!("\"{situation:?}\":{count}")).collect();
    let missing: Vec<String> =
        sometimes.missing().iter().map(|situation| format!("\"{situation:?}\"")).collect();
    format!("\"situations\":{{{}}},\"never_reached\":[{}]", counts.join(","), missing.join(","))
}

/// Words as a string of JSON.
fn text(words: &str) -> String {
    let mut quoted = String::from("\"");
    for character in words.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            control if control.is_control() => quoted.push_str(&format!("\\u{:04x}", u32::from(control))),
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_become_strings_of_json() {
        assert_eq!(text("I1: \"a\" \\ b\n'c'"), "\"I1: \\\"a\\\" \\\\ b\\u000a'c'\"");
    }

    #[test]
    fn a_campaign_tells_programs_its_verdict_what_was_excused_and_what_was_reached() {
        let mut summary = Summary { seeds: 3, excused: 4, not_judged: 5, ..Summary::default() };
        summary.sometimes.add(Situation::NoRoom, 6);
        let line = many_as_json(7, &summary, &Verdict::Kept(3));
        for part in
            ["\"verdict\":\"kept\"", "\"excused\":4", "\"not_judged\":5", "\"NoRoom\":6", "\"violating\":[]"]
        {
            assert!(line.contains(part), "{part} in {line}");
        }
        assert!(!line.contains("[\"NoRoom\""), "{line}");
    }
}
