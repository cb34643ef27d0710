//! Faults as gRPC knows them: a status code, a message for people, and metadata for programs.

use leasehold_core::answer::Reply;
use leasehold_wire::Wire;
use leasehold_wire::messages as pb;
use prost::Message;
use tonic::metadata::{BinaryMetadataKey, BinaryMetadataValue, MetadataMap, MetadataValue};
use tonic::{Code, Status};

use leasehold_api::ApiError;
use leasehold_api::code::Kind;

/// The fault's code, one word.
pub(super) const CODE: &str = "leasehold-code";
/// Refused, failed or unknown.
pub(super) const KIND: &str = "leasehold-kind";
/// A `Refusal`, when the table said no.
const REFUSAL: &str = "leasehold-refusal-bin";
/// A `Failure`, when the table was not asked, or its word is not known.
const FAILURE: &str = "leasehold-failure-bin";
/// A `PlainWaitEnded`, when a wait ended without a lease.
const WAIT_ENDED: &str = "leasehold-wait-ended-bin";

/// The status that a call ends with, told to the log as well.
pub(super) fn of(call: &'static str, fault: &ApiError) -> Status {
    let (code, message) = (fault.code(), fault.message());
    match fault.kind() {
        Kind::Refused => tracing::info!(call, code, "refused"),
        // What the caller did wrong is not worth more than what the table refuses.
        Kind::Failed if fault.http_status() < 500 => tracing::info!(call, code, "not taken in"),
        Kind::Failed | Kind::Unknown => tracing::warn!(call, code, message, "failed"),
    }
    let mut metadata = words(code, fault.kind());
    if let Some((key, bytes)) = facts(fault) {
        metadata.insert_bin(BinaryMetadataKey::from_static(key), BinaryMetadataValue::from_bytes(&bytes));
    }
    Status::with_metadata(Code::from_i32(fault.grpc_code().number()), message, metadata)
}

/// The status of a call whose deadline has passed. Whatever it had asked for may have been done.
pub(super) fn too_late(call: &'static str) -> Status {
    tracing::info!(call, "the deadline has passed");
    let message = "the deadline has passed before an answer came: the outcome is unknown";
    let metadata = words("outcome-unknown", Kind::Unknown);
    Status::with_metadata(Code::DeadlineExceeded, message, metadata)
}

/// The machine's words for a fault.
fn words(code: &'static str, kind: Kind) -> MetadataMap {
    let mut metadata = MetadataMap::new();
    metadata.insert(CODE, MetadataValue::from_static(code));
    metadata.insert(KIND, MetadataValue::from_static(kind.as_str()));
    metadata
}

/// What a fault knows beyond its code, and under which key it travels.
fn facts(fault: &ApiError) -> Option<(&'static str, Vec<u8>)> {
    match fault {
        ApiError::Refused(refusal) => Some((REFUSAL, refusal.to_wire().encode_to_vec())),
        ApiError::Failed(failure) => Some((FAILURE, failure.to_wire().encode_to_vec())),
        ApiError::WaitEnded { acquire, why } => {
            match (Reply::PlainWaitEnded { number: *acquire, why: *why }).to_wire().reply {
                Some(pb::reply::Reply::PlainWaitEnded(ended)) => Some((WAIT_ENDED, ended.encode_to_vec())),
                _ => None,
            }
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use leasehold_core::protocol::Failure;
    use leasehold_core::{CommandNumber, Refusal, Revision, WaitEnding};

    fn word<'a>(status: &'a Status, key: &str) -> &'a str {
        status.metadata().get(key).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    fn fact(status: &Status, key: &str) -> Vec<u8> {
        status.metadata().get_bin(key).unwrap().to_bytes().unwrap().to_vec()
    }

    #[test]
    fn a_refusal_is_told_to_people_and_to_programs() {
        let refusal = Refusal::SessionOverdue;
        let status = of("acquire", &ApiError::Refused(refusal.clone()));
        assert_eq!(status.code(), Code::FailedPrecondition);
        assert_eq!(status.message(), refusal.to_string());
        assert_eq!((word(&status, CODE), word(&status, KIND)), ("session-overdue", "refused"));
        let told = pb::Refusal::decode(&fact(&status, REFUSAL)[..]).unwrap();
        assert_eq!(Refusal::from_wire(told), Ok(refusal));
    }

    #[test]
    fn a_failure_carries_its_numbers() {
        let failure = Failure::RevisionTooOld { after: Revision::new(3), oldest: Revision::new(7) };
        let status = of("watch", &ApiError::Failed(failure.clone()));
        assert_eq!((word(&status, CODE), word(&status, KIND)), ("revision-too-old", "failed"));
        let told = pb::Failure::decode(&fact(&status, FAILURE)[..]).unwrap();
        assert_eq!(Failure::from_wire(told), Ok(failure));
    }

    #[test]
    fn a_wait_that_ended_carries_why() {
        let fault = ApiError::WaitEnded { acquire: CommandNumber::new(4), why: WaitEnding::TimedOut };
        let status = of("acquire", &fault);
        assert_eq!((status.code(), word(&status, CODE)), (Code::Aborted, "wait-ended"));
        let told = pb::PlainWaitEnded::decode(&fact(&status, WAIT_ENDED)[..]).unwrap();
        assert_eq!((told.number, told.why()), (4, pb::WaitEnding::TimedOut));
    }

    #[test]
    fn a_call_that_took_too_long_is_unknown_and_not_refused() {
        let status = too_late("acquire");
        assert_eq!((status.code(), word(&status, KIND)), (Code::DeadlineExceeded, "unknown"));
    }
}
