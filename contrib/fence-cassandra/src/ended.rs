//! Which errors prove that nothing was written.

use scylla::errors::{DbError, ExecutionError, RequestAttemptError};

/// Nothing left this process, or the server refused before it began. Everything else may have been made, or may be made later: a
/// transaction goes through rounds, and one that was proposed in an early round may be finished by somebody else, whatever went
/// wrong in a later one.
pub(super) fn nothing_was_sent(error: &ExecutionError) -> bool {
    match error {
        ExecutionError::BadQuery(_)
        | ExecutionError::EmptyPlan
        | ExecutionError::PrepareError(_)
        | ExecutionError::ConnectionPoolError(_) => true,
        ExecutionError::LastAttemptError(attempt) => match attempt {
            RequestAttemptError::SerializationError(_)
            | RequestAttemptError::CqlRequestSerialization(_)
            | RequestAttemptError::UnableToAllocStreamId => true,
            RequestAttemptError::DbError(error, _) => matches!(
                error,
                DbError::SyntaxError
                    | DbError::Invalid
                    | DbError::AuthenticationError
                    | DbError::Unauthorized
                    | DbError::ConfigError
                    | DbError::IsBootstrapping
                    | DbError::Unprepared { .. }
            ),
            _ => false,
        },
        _ => false,
    }
}
