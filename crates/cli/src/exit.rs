//! Exit codes: all of them, and nothing else that decides one.
//!
//! Codes of `leasehold run` lie at 119 to 123 and at 125 because the command's own pass through: commands rarely use these. 125 to 127 mean what
//! they mean of `env` and `timeout`.

use std::process::ExitCode;

use leasehold::{Error, Refusal};

use crate::supervise::StartError;

/// An exit code of this program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exit(u8);

impl Exit {
    /// It was done, or the answer is yes.
    pub const OK: Self = Self(0);
    /// A failure of another kind, or the answer is no: not held, not current.
    pub const FAILURE: Self = Self(1);
    /// The command line makes no sense.
    pub const MISUSE: Self = Self(2);
    /// A history shows that a promise was not kept.
    pub const VIOLATED: Self = Self(3);
    /// A history cannot be judged.
    pub const UNJUDGED: Self = Self(4);
    /// A receiver could not be sealed with the token of a lease that was granted: it was given back, and nothing was run.
    pub const NOT_SEALED: Self = Self(119);
    /// Somebody else holds the resource.
    pub const HELD: Self = Self(120);
    /// The lease was lost while it was needed.
    pub const LOST: Self = Self(121);
    /// The store cannot be reached or used.
    pub const UNREACHABLE: Self = Self(122);
    /// Asked for, and nobody can say whether it was done.
    pub const UNKNOWN: Self = Self(123);
    /// `run` itself failed, or was used wrongly: 1 and 2 would look like the command's own.
    pub const RUN_FAILED: Self = Self(125);
    /// The command to run cannot be executed.
    pub const NOT_EXECUTABLE: Self = Self(126);
    /// The command to run was not found.
    pub const NOT_FOUND: Self = Self(127);

    /// What a command that ran to its end leaves: its own code, or 128 and the signal.
    pub fn of_command(code: i32) -> Self {
        // The kernel keeps 8 bits of a code, and there are fewer than 127 signals.
        u8::try_from(code).map_or(Self::FAILURE, Self)
    }

    /// What is left when a signal ends this program while it waits.
    pub fn of_signal(signal: i32) -> Self {
        Self::of_command(128 + signal)
    }

    /// The same of `run`, whose own failures must not look like the command's.
    pub fn of_run(self) -> Self {
        match self {
            Self::FAILURE | Self::MISUSE | Self::UNJUDGED => Self::RUN_FAILED,
            other => other,
        }
    }

    /// The number.
    pub const fn get(self) -> u8 {
        self.0
    }

    /// The code for what a store said.
    pub fn of_error(error: &Error) -> Self {
        match error {
            Error::NotFree { .. } | Error::WaitEnded(_) => Self::HELD,
            Error::Refused(refusal) => Self::of_refusal(refusal),
            Error::NotSealed { .. } => Self::NOT_SEALED,
            Error::OutcomeUnknown => Self::UNKNOWN,
            Error::Unreachable(_) | Error::Unavailable(_) => Self::UNREACHABLE,
            Error::Text(_) | Error::Numbers(_) | Error::Policies(_) | Error::BadUrl { .. } => Self::MISUSE,
            _ => Self::FAILURE,
        }
    }

    fn of_refusal(refusal: &Refusal) -> Self {
        match refusal {
            // What was asked for on the command line is outside the limits of this store.
            Refusal::TtlOutOfRange { .. } | Refusal::BadPolicies | Refusal::BadRequest { .. } => Self::MISUSE,
            _ => Self::FAILURE,
        }
    }

    /// The code for a command that could not be started.
    pub fn of_start(error: &StartError) -> Self {
        match error {
            StartError::NotFound(_) => Self::NOT_FOUND,
            StartError::NotExecutable(..) => Self::NOT_EXECUTABLE,
            StartError::TooLate => Self::LOST,
            StartError::NoCommand => Self::MISUSE,
            StartError::Guardian(_) => Self::FAILURE,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_codes_of_a_command_pass_through() {
        assert_eq!(Exit::of_command(0), Exit::OK);
        assert_eq!(Exit::of_command(255).get(), 255);
        assert_eq!(Exit::of_signal(15).get(), 143);
    }

    #[test]
    fn the_reference_explains_every_code() {
        let reference = include_str!("../../../docs/reference/cli.md");
        let own = [
            Exit::OK,
            Exit::FAILURE,
            Exit::MISUSE,
            Exit::VIOLATED,
            Exit::UNJUDGED,
            Exit::NOT_SEALED,
            Exit::HELD,
            Exit::LOST,
            Exit::UNREACHABLE,
            Exit::UNKNOWN,
            Exit::RUN_FAILED,
            Exit::NOT_EXECUTABLE,
            Exit::NOT_FOUND,
        ];
        for code in own.map(Exit::get) {
            assert_eq!(reference.matches(&format!("\n| {code} | ")).count(), 1, "{code}");
        }
    }

    #[test]
    fn failures_of_run_do_not_look_like_those_of_its_command() {
        for own in [Exit::FAILURE, Exit::MISUSE, Exit::UNJUDGED] {
            assert_eq!(own.of_run(), Exit::RUN_FAILED);
        }
        for kept in [
            Exit::OK,
            Exit::NOT_SEALED,
            Exit::HELD,
            Exit::LOST,
            Exit::UNREACHABLE,
            Exit::UNKNOWN,
            Exit::NOT_FOUND,
        ] {
            assert_eq!(kept.of_run(), kept);
        }
    }

    #[test]
    fn refused_failed_and_unknown_have_different_codes() {
        use leasehold::core::{Unavailable, WaitEnding};
        use leasehold::{ResourceName, Unreachable};
        let resource = ResourceName::new("job").unwrap();
        let not_free = Error::NotFree { resource, why: Unavailable::Queue { waiting: 1 } };
        for (error, code) in [
            (not_free, Exit::HELD),
            (Error::WaitEnded(WaitEnding::TimedOut), Exit::HELD),
            (Error::Refused(Refusal::NoSuchSuccessor), Exit::FAILURE),
            (Error::Refused(Refusal::BadPolicies), Exit::MISUSE),
            (Error::OutcomeUnknown, Exit::UNKNOWN),
            (Error::Unreachable(Unreachable::Directory(String::new())), Exit::UNREACHABLE),
            (Error::Unavailable(String::new()), Exit::UNREACHABLE),
            (Error::Cancelled, Exit::FAILURE),
        ] {
            assert_eq!(Exit::of_error(&error), code, "{error}");
        }
    }

    #[test]
    fn a_command_that_cannot_be_started_gives_what_a_shell_would() {
        use rustix::io::Errno;
        assert_eq!(Exit::of_start(&StartError::NotFound("x".into())).get(), 127);
        assert_eq!(Exit::of_start(&StartError::NotExecutable("x".into(), Errno::ACCESS)).get(), 126);
        assert_eq!(Exit::of_start(&StartError::TooLate), Exit::LOST);
    }
}
