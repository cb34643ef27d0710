//! Judges what was tried by what was written.

use std::collections::BTreeSet;

use super::{Report, Violation, Written};
use crate::error::Outcome;

/// What was tried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Act {
    Seal,
    Write(String),
}

/// One attempt, with the moments between which it took effect, if it did.
#[derive(Debug, Clone)]
pub(super) struct Attempt {
    pub(super) act: Act,
    pub(super) token: u64,
    pub(super) began: u64,
    pub(super) ended: u64,
    pub(super) outcome: Outcome,
    /// What a refusal said of the highest token.
    pub(super) highest: Option<u64>,
    pub(super) words: String,
}

/// Judges all attempts under one name. `alone` says that they were made one after the other, so that nothing may fail.
pub(super) fn judge(
    name: &str,
    attempts: &[Attempt],
    written: &[Written],
    alone: bool,
) -> Result<Report, Violation> {
    never_falls(name, written)?;
    let mut report = Report { handovers: handovers(attempts), ..Report::default() };
    for attempt in attempts {
        let sure = certainly_stale(attempt, attempts);
        if let Act::Write(value) = &attempt.act {
            is_written_as_said(name, attempt, value, written)?;
            report.stale_tried += u64::from(sure.is_some());
            report.accepted += u64::from(attempt.outcome == Outcome::Accepted);
        }
        match attempt.outcome {
            Outcome::Accepted => {
                if let Some(greater) = sure {
                    let what = format!("{}, after {greater} was accepted or sealed", of(name, attempt));
                    return Err(Violation::broken("a stale token is refused", what));
                }
            }
            Outcome::Stale => {
                is_rightly_refused(name, attempt, attempts)?;
                report.refused += 1;
            }
            Outcome::Failed | Outcome::Unknown if !alone => {
                report.failed += u64::from(attempt.outcome == Outcome::Failed);
                report.unknown += u64::from(attempt.outcome == Outcome::Unknown);
            }
            Outcome::Failed | Outcome::Unknown | Outcome::Lapsed => {
                return Err(Violation::broken("nothing fails without a reason", of(name, attempt)));
            }
        }
    }
    Ok(report)
}

fn handovers(attempts: &[Attempt]) -> u64 {
    let is_accepted = |attempt: &&Attempt| attempt.outcome == Outcome::Accepted && attempt.act != Act::Seal;
    let tokens: BTreeSet<u64> = attempts.iter().filter(is_accepted).map(|attempt| attempt.token).collect();
    tokens.len().saturating_sub(1) as u64
}

fn of(name: &str, attempt: &Attempt) -> String {
    let Attempt { act, token, outcome, words, .. } = attempt;
    format!("{act:?} under {name} with {token}: {outcome} {words}")
}

/// Tokens in the order of effects never fall.
fn never_falls(name: &str, written: &[Written]) -> Result<(), Violation> {
    match written.windows(2).find(|pair| pair[1].token < pair[0].token) {
        Some(pair) => {
            let what = format!("under {name}, {:?} took effect after {:?}", pair[1], pair[0]);
            Err(Violation::broken("tokens never fall", what))
        }
        None => Ok(()),
    }
}

/// The greatest token that was accepted or sealed before this attempt began, if it is above this one's.
fn certainly_stale(attempt: &Attempt, attempts: &[Attempt]) -> Option<u64> {
    let before = attempts
        .iter()
        .filter(|other| other.outcome == Outcome::Accepted && other.ended < attempt.began)
        .map(|other| other.token);
    before.max().filter(|greatest| *greatest > attempt.token)
}

fn is_written_as_said(
    name: &str,
    attempt: &Attempt,
    value: &str,
    written: &[Written],
) -> Result<(), Violation> {
    let times = written.iter().filter(|one| one.token == attempt.token && one.value == value).count();
    let right = match attempt.outcome {
        Outcome::Accepted => times == 1,
        Outcome::Stale | Outcome::Failed | Outcome::Lapsed => times == 0,
        Outcome::Unknown => times <= 1,
    };
    if right {
        return Ok(());
    }
    let what = format!("{}, and it stands there {times} times", of(name, attempt));
    Err(Violation::broken("what is said is what was written", what))
}

/// A refusal needs somebody with a greater token who had begun, and names a token that somebody had.
fn is_rightly_refused(name: &str, attempt: &Attempt, attempts: &[Attempt]) -> Result<(), Violation> {
    let greater = attempts.iter().filter(|other| other.token > attempt.token && other.began < attempt.ended);
    let mut greater = greater.map(|other| other.token);
    let right = match attempt.highest {
        Some(highest) => greater.any(|token| token == highest),
        None => greater.next().is_some(),
    };
    if right {
        return Ok(());
    }
    let what = format!("{}, and no such token was there", of(name, attempt));
    Err(Violation::broken("only a stale token is refused", what))
}
