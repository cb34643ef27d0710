//! What it all comes to, in one line and an exit code.

use std::process::ExitCode;

use leasehold_sim::campaign::{Summary, counted};
use leasehold_sim::check::sometimes::Situation;
use leasehold_sim::run::Outcome;

/// What it all comes to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Nothing was run, so nothing is known.
    NothingRan,
    /// Every promise was kept in so many seeds.
    Kept(u64),
    /// Every promise was kept in so many seeds, but they never reached what a long campaign must reach.
    KeptButUnreached(u64, Vec<Situation>),
    /// These seeds violate a promise.
    Violated(Vec<u64>),
}

impl Verdict {
    pub(crate) fn of_one(outcome: &Outcome) -> Self {
        if outcome.violations.is_empty() { Self::Kept(1) } else { Self::Violated(vec![outcome.seed]) }
    }

    /// A short campaign cannot reach everything, and neither can one whose plans somebody changed: they need not.
    pub(crate) fn of_many(summary: &Summary, must_reach_all: bool) -> Self {
        let missing = summary.sometimes.missing();
        if !summary.failures.is_empty() {
            Self::Violated(summary.failures.iter().map(|outcome| outcome.seed).collect())
        } else if summary.seeds == 0 {
            Self::NothingRan
        } else if must_reach_all && !missing.is_empty() {
            Self::KeptButUnreached(summary.seeds, missing)
        } else {
            Self::Kept(summary.seeds)
        }
    }

    /// For programs.
    pub(crate) const fn word(&self) -> &'static str {
        match self {
            Self::NothingRan => "nothing-ran",
            Self::Kept(_) => "kept",
            Self::KeptButUnreached(..) => "kept-but-unreached",
            Self::Violated(_) => "violated",
        }
    }

    /// For people.
    pub(crate) fn line(&self) -> String {
        match self {
            Self::NothingRan => "no seed was run: nothing is known; give more --minutes".to_owned(),
            Self::Kept(seeds) => format!("every promise was kept, in {}", counted(*seeds, "seed")),
            Self::KeptButUnreached(seeds, missing) => {
                let names: Vec<String> = missing.iter().map(|situation| format!("{situation:?}")).collect();
                let were = if missing.len() == 1 { "was" } else { "were" };
                format!(
                    "kept, in {}, but {} {were} never reached: {}",
                    counted(*seeds, "seed"),
                    counted(missing.len() as u64, "situation"),
                    names.join(", ")
                )
            }
            Self::Violated(seeds) => {
                let numbers: Vec<String> = seeds.iter().map(u64::to_string).collect();
                let verb = if seeds.len() == 1 { "violates" } else { "violate" };
                format!("{} {verb}: {}", counted(seeds.len() as u64, "seed"), numbers.join(", "))
            }
        }
    }

    /// The last line, and the exit code that agrees with it. Where standard output is for programs, people read it beside.
    pub(crate) fn end(&self, json: bool) -> ExitCode {
        if json {
            eprintln!("{}", self.line());
        } else {
            println!("{}", self.line());
        }
        match self {
            Self::Kept(_) => ExitCode::SUCCESS,
            Self::NothingRan | Self::KeptButUnreached(..) | Self::Violated(_) => ExitCode::FAILURE,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reached_all_but(left_out: &[Situation]) -> Summary {
        let mut summary = Summary { seeds: 2, ..Summary::default() };
        for situation in Situation::ALL.iter().filter(|situation| !left_out.contains(situation)) {
            summary.sometimes.reach(*situation);
        }
        summary
    }

    #[test]
    fn a_campaign_without_a_seed_has_shown_nothing() {
        let verdict = Verdict::of_many(&Summary::default(), false);
        assert_eq!(verdict, Verdict::NothingRan);
        assert_eq!(verdict.end(true), ExitCode::FAILURE);
    }

    #[test]
    fn only_a_long_campaign_must_reach_every_situation() {
        let summary = reached_all_but(&[Situation::NoRoom]);
        assert_eq!(Verdict::of_many(&summary, false), Verdict::Kept(2));
        let long = Verdict::of_many(&summary, true);
        assert_eq!(long.line(), "kept, in 2 seeds, but 1 situation was never reached: NoRoom");
        assert_eq!(long.end(true), ExitCode::FAILURE);
        let whole = Verdict::of_many(&reached_all_but(&[]), true);
        assert_eq!(whole.line(), "every promise was kept, in 2 seeds");
        assert_eq!(whole.end(true), ExitCode::SUCCESS);
    }

    #[test]
    fn seeds_that_violate_are_named() {
        assert_eq!(Verdict::Violated(vec![7]).line(), "1 seed violates: 7");
        assert_eq!(Verdict::Violated(vec![7, 9]).line(), "2 seeds violate: 7, 9");
        assert_eq!(Verdict::Violated(vec![7]).end(true), ExitCode::FAILURE);
    }
}
