//! Everything that can come back instead of what was asked for, over HTTP and gRPC alike.
//!
//! Refused, failed and unknown are different answers and stay so: a refusal had no effect and never will have one, a failure was
//! not taken in, and of what is unknown nobody here can say. Codes are an interface; messages are for people.

mod details;

use std::fmt::Display;
use std::time::Duration;

use leasehold_core::numbers::NumbersError;
use leasehold_core::protocol::{ClusterRefusal, Failure};
use leasehold_core::{CallNumber, CommandNumber, Refusal, WaitEnding};

use crate::code::{CODES, Code, GrpcCode, Kind};
use crate::word::{not_free, wait_ended};

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ApiError {
    /// The table said no.
    #[error("{}", refused(.0))]
    Refused(#[from] Refusal),
    /// The wait ended without a lease.
    #[error("the wait ended without a lease: {}", wait_ended(*why))]
    WaitEnded {
        /// The number of the acquire.
        acquire: CommandNumber,
        /// Why.
        why: WaitEnding,
    },
    /// The number of the call, or the one that it would cancel, is settled: nothing was done now, what was done before is forgotten.
    #[error(
        "number {call} is settled, as are all below {settled}: nothing was done now, and what came of it before is not known"
    )]
    NumberSettled {
        /// The number.
        call: CallNumber,
        /// No number below this one is wanted any more.
        settled: CallNumber,
    },
    /// The table was not asked, or its word is not known.
    #[error("{}", failed(.0))]
    Failed(#[from] Failure),
    /// The cluster said no to a change of its nodes.
    #[error("{0}")]
    Cluster(ClusterRefusal),
    /// A node that was to be added does not answer as one.
    #[error("the node at {address} was asked who it is: {why}; start it with `serve --join` first")]
    NodeUnreachable {
        /// Where it was looked for.
        address: String,
        /// What came instead.
        why: String,
    },
    /// Another node than the one that was meant is there.
    #[error(
        "the node at {address} is called {found:?}, not {asked:?}; add it by that name, or name the address of {asked:?}"
    )]
    WrongNode {
        /// Where.
        address: String,
        /// Which one was meant.
        asked: String,
        /// Which one is there.
        found: String,
    },
    /// A node that was to be added belongs to another cluster.
    #[error(
        "{name:?} at {address} belongs to another cluster; start it with an empty directory and `serve --join`"
    )]
    NodeNotBlank {
        /// Which one.
        name: String,
        /// Where.
        address: String,
    },
    /// The node that was asked is recorded at another address than it is reached at.
    #[error(
        "this node is recorded at {recorded} and says that it is reached at {advertised}: a new node would look for it at \
         {recorded}. If that leads here, start it with --advertise {recorded}; if not, stop it and record the other one with \
         `leasehold data recover --data DIR --only-survivor --listen-address {advertised}`, which ends all leases"
    )]
    AddressDiffers {
        /// Where its cluster has it.
        recorded: String,
        /// Where it says that it is.
        advertised: String,
    },
    /// Not JSON, or not in the form that is expected.
    #[error("the body is not a JSON object that is understood: {why}")]
    BadJson {
        /// What is wrong with it.
        why: String,
    },
    /// A field that this request does not have.
    #[error("field {field:?} is not known; {}", there_are(known))]
    UnknownField {
        /// Its name.
        field: String,
        /// The names that there are.
        known: Vec<String>,
    },
    /// A field that is missing, given twice, or whose value cannot be.
    #[error("{field}: {why}")]
    BadField {
        /// Its name.
        field: String,
        /// What is wrong with it.
        why: String,
    },
    /// Numbers that do not fit together.
    #[error("{0}")]
    Numbers(NumbersError),
    /// What the table would refuse in any state, seen where the name of the field is known.
    #[error("{field}: {why}")]
    Impossible {
        /// Its name.
        field: String,
        /// The value and its limit.
        why: String,
    },
    /// More than is taken.
    #[error("the body is above the limit of {limit} bytes")]
    BodyTooLarge {
        /// The limit in bytes.
        limit: usize,
    },
    /// More than is taken.
    #[error("path and headers are above the limit of {limit} bytes")]
    HeadersTooLarge {
        /// The limit in bytes.
        limit: usize,
    },
    /// The request did not arrive whole in time.
    #[error("the body did not arrive whole within {} ms", limit.as_millis())]
    RequestTimeout {
        /// The limit.
        limit: Duration,
    },
    /// Nothing is there.
    #[error("nothing is at this path; /openapi.json lists all")]
    NoSuchPath,
    /// Something is there, but not for this method.
    #[error("this path takes {allowed}")]
    WrongMethod {
        /// The methods that it takes, as in the header `Allow`.
        allowed: String,
    },
    /// The body is not said to be JSON.
    #[error("content type {found:?} is not taken; send application/json")]
    WrongContentType {
        /// What it is said to be, if that can be shown.
        found: String,
    },
    /// More requests at once than are taken.
    #[error("limit of {limit} requests at once is reached; ask again later")]
    TooManyRequests {
        /// The limit.
        limit: usize,
    },
}

impl ApiError {
    /// One word for programs: the name of one of [`CODES`].
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Refused(refusal) => refusal_code(refusal),
            Self::WaitEnded { .. } => "wait-ended",
            Self::NumberSettled { .. } => "number-settled",
            Self::Failed(failure) => of_failure(failure),
            Self::Cluster(refusal) => of_cluster(refusal),
            Self::NodeUnreachable { .. } => "node-unreachable",
            Self::WrongNode { .. } => "wrong-node",
            Self::NodeNotBlank { .. } => "node-not-blank",
            Self::AddressDiffers { .. } => "address-differs",
            Self::BadJson { .. } => "bad-json",
            Self::UnknownField { .. } => "unknown-field",
            Self::BadField { .. } => "bad-field",
            Self::Numbers(_) => "bad-numbers",
            Self::Impossible { .. } => "bad-request",
            Self::BodyTooLarge { .. } => "body-too-large",
            Self::HeadersTooLarge { .. } => "headers-too-large",
            Self::RequestTimeout { .. } => "request-timeout",
            Self::NoSuchPath => "no-such-path",
            Self::WrongMethod { .. } => "wrong-method",
            Self::WrongContentType { .. } => "wrong-content-type",
            Self::TooManyRequests { .. } => "too-many-requests",
        }
    }

    /// The status of an HTTP response.
    pub fn http_status(&self) -> u16 {
        self.entry().http
    }

    /// The status of a gRPC call.
    pub fn grpc_code(&self) -> GrpcCode {
        self.entry().grpc
    }

    fn entry(&self) -> &'static Code {
        let code = self.code();
        CODES.iter().find(|entry| entry.name == code).expect("every code is in the list")
    }

    /// Which of the three kinds it is.
    pub fn kind(&self) -> Kind {
        self.entry().kind
    }

    /// One sentence for people.
    pub fn message(&self) -> String {
        self.to_string()
    }
}

/// A field that cannot be.
pub fn bad_field(field: impl Into<String>, why: impl Display) -> ApiError {
    ApiError::BadField { field: field.into(), why: why.to_string() }
}

fn refused(refusal: &Refusal) -> String {
    match refusal {
        Refusal::NotFree { resource, why } => format!("resource {resource} is not free: {}", not_free(why)),
        refusal => refusal.to_string(),
    }
}

fn failed(failure: &Failure) -> String {
    match failure {
        Failure::NotYourSession { session } => format!("this is not the key of session {session}"),
        failure => failure.to_string(),
    }
}

fn there_are(known: &[String]) -> String {
    if known.is_empty() {
        "this request has none".to_owned()
    } else {
        format!("there are: {}", known.join(", "))
    }
}

/// The code of a refusal.
pub const fn refusal_code(refusal: &Refusal) -> &'static str {
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
        Refusal::NoRoom => "no-room",
        Refusal::NotYetInUse => "not-yet-in-use",
        Refusal::NumberReused { .. } => "number-reused",
        Refusal::TokenAhead { .. } => "token-ahead",
        Refusal::NoSuchAlarm { .. } => "no-such-alarm",
    }
}

const fn of_failure(failure: &Failure) -> &'static str {
    match failure {
        Failure::OutcomeUnknown => "outcome-unknown",
        Failure::Unavailable { .. } => "unavailable",
        Failure::NotYourSession { .. } => "not-your-session",
        Failure::RevisionTooOld { .. } => "revision-too-old",
        Failure::RevisionAhead { .. } => "revision-ahead",
        Failure::TooManyWatches { .. } => "too-many-watches",
        Failure::TooMuchUnread { .. } => "too-much-unread",
        Failure::BadRequest { .. } => "bad-request",
    }
}

const fn of_cluster(refusal: &ClusterRefusal) -> &'static str {
    match refusal {
        ClusterRefusal::NoSuchMember { .. } => "no-such-member",
        ClusterRefusal::Taken { .. } => "member-taken",
        ClusterRefusal::WasRemoved { .. } => "was-removed",
        ClusterRefusal::TooManyMembers { .. } => "too-many-members",
        ClusterRefusal::NotCaughtUp { .. } => "not-caught-up",
        ClusterRefusal::IsVoter { .. } => "is-voter",
        ClusterRefusal::IsLearner { .. } => "is-learner",
        ClusterRefusal::LastVoter { .. } => "last-voter",
        ClusterRefusal::NoMajorityLeft { .. } => "no-majority-left",
        ClusterRefusal::ChangeUnderWay => "change-under-way",
        ClusterRefusal::HandingOver { .. } => "handing-over",
        ClusterRefusal::NobodyToTakeOver => "nobody-to-take-over",
    }
}

#[cfg(test)]
mod tests;
