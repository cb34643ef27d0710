//! The code of every error: one kebab-case word that scripts compare, and that the reference explains.

use leasehold::core::client::SubmitError;
use leasehold::{Error, Unreachable};
use leasehold_api::code::{self, Kind};
use leasehold_api::refusal_code;

/// The code and the kind of an error.
pub(crate) fn of_error(error: &Error) -> (&'static str, Kind) {
    match error {
        Error::Refused(refusal) => (refusal_code(refusal), Kind::Refused),
        Error::NotFree { .. } => ("not-free", Kind::Refused),
        Error::WaitEnded(_) => ("wait-ended", Kind::Refused),
        Error::SessionEnded(_) => ("session-ended", Kind::Failed),
        Error::OutcomeUnknown => ("outcome-unknown", Kind::Unknown),
        Error::Cancelled => ("cancelled", Kind::Failed),
        Error::AlreadyWaiting => ("already-waiting", Kind::Failed),
        Error::NotTakenUp { .. } => ("not-taken-up", Kind::Failed),
        // Also when the receiver refused: a lease was granted and given back, which others may have seen.
        Error::NotSealed { .. } => ("not-sealed", Kind::Failed),
        Error::NoGuard(_) => ("no-guard", Kind::Failed),
        Error::Unfinished(_) => ("unfinished", Kind::Failed),
        Error::GraceTooShort { .. } => ("grace-too-short", Kind::Failed),
        Error::RevisionTooOld { .. } => ("revision-too-old", Kind::Failed),
        Error::RevisionAhead { .. } => ("revision-ahead", Kind::Failed),
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

/// The kind of what a service says over HTTP about its nodes. What it could not do is refused, unless it could not even ask.
pub(crate) fn of_answer(code: &str) -> Kind {
    code::find(code).map_or(Kind::Failed, |known| known.kind)
}

fn of_unreachable(why: &Unreachable) -> &'static str {
    match why {
        Unreachable::Directory(_) => "directory-unusable",
        Unreachable::ServerSilent { .. } => "server-silent",
        Unreachable::NoConnection { .. } => "no-connection",
        Unreachable::NoLeader { .. } => "no-leader",
        Unreachable::OtherLife { .. } => "other-life",
        Unreachable::Protocol(_) => "protocol",
        _ => "unreachable",
    }
}
