//! The code of every error: one kebab-case word that scripts compare, and that the reference explains.

use leasehold::core::client::SubmitError;
use leasehold::{Error, Unreachable};
use leasehold_api::code::{self, Kind};
use leasehold_api::refusal_code;

use crate::supervise::StartError;

/// The code of an error.
pub(crate) fn of_error(error: &Error) -> &'static str {
    match error {
        Error::Refused(refusal) => refusal_code(refusal),
        Error::NotFree { .. } => "not-free",
        Error::WaitEnded(_) => "wait-ended",
        Error::SessionEnded(_) => "session-ended",
        Error::OutcomeUnknown => "outcome-unknown",
        Error::Cancelled => "cancelled",
        Error::AlreadyWaiting => "already-waiting",
        Error::NotTakenUp { .. } => "not-taken-up",
        // Also when the receiver refused: a lease was granted and given back, which others may have seen.
        Error::NotSealed { .. } => "not-sealed",
        Error::NoGuard(_) => "no-guard",
        Error::Unfinished(_) => "unfinished",
        Error::GraceTooShort { .. } => "grace-too-short",
        Error::RevisionTooOld { .. } => "revision-too-old",
        Error::RevisionAhead { .. } => "revision-ahead",
        Error::Unreachable(why) => of_unreachable(why),
        Error::Unavailable(_) => "unavailable",
        Error::Text(_) => "bad-text",
        Error::Numbers(_) => "bad-numbers",
        Error::Policies(_) => "bad-policies",
        Error::BadUrl { .. } => "bad-url",
        Error::Submit(SubmitError::SessionEnded) => "session-ended",
        Error::Submit(SubmitError::Closing) => "session-closing",
        Error::Submit(SubmitError::Backlog { .. }) => "backlog",
        Error::System(_) => "system",
        // Codes are given to new errors when they are made; until then nothing is claimed.
        _ => "failed",
    }
}

/// The code for a command that could not be started.
pub(crate) fn of_start(error: &StartError) -> &'static str {
    match error {
        StartError::NotFound(_) => "command-not-found",
        StartError::NotExecutable(..) => "command-not-executable",
        StartError::TooLate => "lost",
        StartError::NoCommand | StartError::Guardian(_) => "guardian-failed",
    }
}

/// The kind of a code: that of the interface, or failed if only the command or the library has it.
pub(crate) fn kind(code: &str) -> Kind {
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

#[cfg(test)]
mod tests {
    use leasehold::Revision;
    use leasehold::core::client::SessionEnd;

    use super::*;
    use crate::trouble::Trouble;

    #[test]
    fn no_code_has_two_kinds() {
        let after = Revision::new(9);
        for error in [
            Error::SessionEnded(SessionEnd::Closed),
            Error::Submit(SubmitError::SessionEnded),
            Error::RevisionTooOld { after, oldest: after },
            Error::RevisionAhead { after, newest: after },
            Error::Unavailable(String::new()),
            Error::OutcomeUnknown,
        ] {
            let trouble = Trouble::from(error);
            let (name, kind) = trouble.code();
            assert_eq!(code::find(name).unwrap().kind, kind, "{name}");
        }
    }
}
