//! The code of every error: one kebab-case word that scripts compare, and that the reference explains.

use leasehold::core::client::SubmitError;
use leasehold::{Error, Refusal, Unreachable};
use serde::Serialize;

/// The three kinds of answer that are not what was asked for. They are never mixed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    /// The service said no: no effect, now or later.
    Refused,
    /// Not asked, or not taken in: no effect.
    Failed,
    /// Sent, and nobody can say.
    Unknown,
}

/// The code and the kind of an error.
pub(crate) fn of_error(error: &Error) -> (&'static str, Kind) {
    match error {
        Error::Refused(refusal) => (of_refusal(refusal), Kind::Refused),
        Error::NotFree { .. } => ("not-free", Kind::Refused),
        Error::WaitEnded(_) => ("wait-ended", Kind::Refused),
        Error::SessionEnded(_) => ("session-ended", Kind::Failed),
        Error::OutcomeUnknown => ("outcome-unknown", Kind::Unknown),
        Error::Cancelled => ("cancelled", Kind::Failed),
        Error::Unreachable(why) => (of_unreachable(why), Kind::Failed),
        Error::Unavailable(_) => ("unavailable", Kind::Failed),
        Error::Text(_) => ("bad-text", Kind::Failed),
        Error::Numbers(_) => ("bad-numbers", Kind::Failed),
        Error::Policies(_) => ("bad-policies", Kind::Failed),
        Error::BadUrl { .. } => ("bad-url", Kind::Failed),
        Error::Submit(SubmitError::SessionEnded) => ("session-ended", Kind::Failed),
        Error::Submit(SubmitError::Closing) => ("session-closing", Kind::Failed),
        Error::Submit(SubmitError::Backlog { .. }) => ("backlog", Kind::Failed),
        Error::System(_) => ("system", Kind::Failed),
        // Codes are given to new errors when they are made; until then nothing is claimed.
        _ => ("failed", Kind::Failed),
    }
}

/// The code of a refusal.
pub(crate) fn of_refusal(refusal: &Refusal) -> &'static str {
    match refusal {
        Refusal::SessionEnded { .. } => "session-ended",
        Refusal::SessionOverdue => "session-overdue",
        Refusal::OlderAttach { .. } => "older-attach",
        Refusal::CommandGap { .. } => "command-gap",
        Refusal::SeenAhead { .. } => "seen-ahead",
        Refusal::TooManyUnseen { .. } => "too-many-unseen",
        Refusal::WrongSessionKind => "wrong-session-kind",
        Refusal::TtlOutOfRange { .. } => "ttl-out-of-range",
        Refusal::BadPolicies => "bad-policies",
        Refusal::BadRequest { .. } => "bad-request",
        Refusal::WrongKind { .. } => "wrong-kind",
        Refusal::NotFree { .. } => "not-free",
        Refusal::NotHolder { .. } => "not-holder",
        Refusal::NotCurrent { .. } => "not-current",
        Refusal::NotHeld { .. } => "not-held",
        Refusal::NoSuchWait { .. } => "no-such-wait",
        Refusal::NoSuchSuccessor => "no-such-successor",
        Refusal::NoOffer { .. } => "no-offer",
        Refusal::LimitReached { .. } => "limit-reached",
        Refusal::TokensExhausted => "tokens-exhausted",
    }
}

fn of_unreachable(why: &Unreachable) -> &'static str {
    match why {
        Unreachable::Directory(_) => "directory-unusable",
        Unreachable::ServerSilent { .. } => "server-silent",
        Unreachable::NoConnection { .. } => "no-connection",
        Unreachable::Protocol(_) => "protocol",
        _ => "unreachable",
    }
}
