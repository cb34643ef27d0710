//! What an error knows beyond its code, for programs. Numbers that may need 64 bits are strings, lengths are milliseconds.

use leasehold_core::protocol::{ClusterRefusal, Failure};
use leasehold_core::{Mode, Refusal, Unavailable};
use serde_json::{Value, json};

use super::ApiError;
use crate::word::{ending, wait_ending};

impl ApiError {
    /// The facts of this error as a JSON object, or null when its code says all.
    pub fn details(&self) -> Value {
        match self {
            Self::Refused(refusal) => of_refusal(refusal),
            Self::WaitEnded { acquire, why } => {
                json!({ "acquire": acquire.to_string(), "why": wait_ending(*why) })
            }
            Self::NumberSettled { call, settled } => {
                json!({ "number": call.to_string(), "settled": settled.to_string() })
            }
            Self::Failed(failure) => of_failure(failure),
            Self::Cluster(refusal) => of_cluster(refusal),
            Self::NodeUnreachable { address, .. } => json!({ "address": address }),
            Self::WrongNode { address, asked, found } => {
                json!({ "address": address, "name": asked, "found": found })
            }
            Self::NodeNotBlank { name, address } => json!({ "address": address, "name": name }),
            Self::AddressDiffers { recorded, advertised } => {
                json!({ "recorded": recorded, "advertised": advertised })
            }
            Self::UnknownField { field, .. }
            | Self::BadField { field, .. }
            | Self::Impossible { field, .. } => {
                json!({ "field": field })
            }
            Self::BodyTooLarge { limit }
            | Self::HeadersTooLarge { limit }
            | Self::TooManyRequests { limit } => json!({ "limit": limit }),
            Self::RequestTimeout { limit } => json!({ "limit_ms": limit.as_millis() }),
            Self::WrongMethod { allowed } => json!({ "allowed": allowed }),
            Self::Numbers(error) => {
                json!({ "inequality": error.inequality().map(leasehold_core::numbers::Inequality::word) })
            }
            Self::BadJson { .. } | Self::NoSuchPath | Self::WrongContentType { .. } => Value::Null,
        }
    }
}

fn of_refusal(refusal: &Refusal) -> Value {
    match refusal {
        Refusal::SessionEnded { session } => json!({ "session": session.to_string() }),
        Refusal::TtlOutOfRange { ttl, min, max } => {
            json!({ "ttl_ms": ttl.get(), "min_ms": min.get(), "max_ms": max.get() })
        }
        Refusal::WrongKind { has } => match has {
            Mode::Slot { of } => json!({ "has": "slots", "slots": of }),
            Mode::Exclusive | Mode::Shared => json!({ "has": "exclusive or shared", "slots": null }),
        },
        Refusal::NotFree { resource, why } => {
            let mut details = not_free(why);
            details["resource"] = resource.as_str().into();
            details
        }
        Refusal::NotHolder { resource, token, ended } | Refusal::NotCurrent { resource, token, ended } => {
            json!({
                "resource": resource.as_str(),
                "token": token.to_string(),
                "ended": ended.as_ref().map(ending),
            })
        }
        Refusal::TokenAhead { resource, token, newest } => json!({
            "resource": resource.as_str(),
            "token": token.to_string(),
            "newest": newest.to_string(),
        }),
        Refusal::NoSuchAlarm { resource, token, raised } => json!({
            "resource": resource.as_str(),
            "token": token.to_string(),
            "raised": raised.map(|token| token.to_string()),
        }),
        Refusal::NotHeld { resource } | Refusal::NoOffer { resource } => {
            json!({ "resource": resource.as_str() })
        }
        Refusal::NumberReused { call } => json!({ "number": call.to_string() }),
        Refusal::NoSuchWait { acquire } => json!({ "acquire": acquire.to_string() }),
        Refusal::LimitReached { what, limit } => json!({ "of": what.to_string(), "limit": limit }),
        Refusal::TooManyUnseen { limit } => json!({ "limit": limit }),
        Refusal::OlderAttach { attach, current } => {
            json!({ "attach": attach.to_string(), "current": current.to_string() })
        }
        Refusal::CommandGap { number, expected } => {
            json!({ "number": number.to_string(), "expected": expected.to_string() })
        }
        Refusal::SeenAhead { seen, newest } => {
            json!({ "seen": seen.to_string(), "newest": newest.to_string() })
        }
        Refusal::SessionOverdue
        | Refusal::WrongSessionKind
        | Refusal::BadPolicies
        | Refusal::BadRequest { .. }
        | Refusal::NoSuchSuccessor
        | Refusal::TokensExhausted
        | Refusal::NoRoom
        | Refusal::NotYetInUse => Value::Null,
    }
}

fn not_free(why: &Unavailable) -> Value {
    match why {
        Unavailable::Held { holder, token, overdue } => {
            json!({ "why": "held", "label": holder.as_str(), "token": token.to_string(), "overdue": overdue })
        }
        Unavailable::Queue { waiting } => json!({ "why": "queue", "waiting": waiting }),
        Unavailable::RevokePending { token, remaining } => {
            json!({ "why": "revoke-pending", "token": token.to_string(), "remaining_ms": remaining.get() })
        }
        Unavailable::CoolDown { remaining } => json!({ "why": "cool-down", "remaining_ms": remaining.get() }),
        Unavailable::RestoreWait { remaining } => {
            json!({ "why": "restore-wait", "remaining_ms": remaining.get() })
        }
        Unavailable::Alarm { token } => json!({ "why": "alarm", "token": token.to_string() }),
    }
}

fn of_failure(failure: &Failure) -> Value {
    match failure {
        Failure::NotYourSession { session } => json!({ "session": session.to_string() }),
        Failure::RevisionTooOld { after, oldest } => {
            json!({ "after": after.to_string(), "oldest": oldest.to_string() })
        }
        Failure::RevisionAhead { after, newest } => {
            json!({ "after": after.to_string(), "newest": newest.to_string() })
        }
        Failure::TooManyWatches { limit } | Failure::TooMuchUnread { limit } => json!({ "limit": limit }),
        Failure::OutcomeUnknown | Failure::Unavailable { .. } | Failure::BadRequest { .. } => Value::Null,
    }
}

fn of_cluster(refusal: &ClusterRefusal) -> Value {
    match refusal {
        ClusterRefusal::NoSuchMember { name }
        | ClusterRefusal::WasRemoved { name }
        | ClusterRefusal::IsVoter { name }
        | ClusterRefusal::IsLearner { name }
        | ClusterRefusal::LastVoter { name }
        | ClusterRefusal::HandingOver { name } => json!({ "name": name }),
        ClusterRefusal::Taken { what, value, name } => json!({ "what": what, "value": value, "name": name }),
        ClusterRefusal::TooManyMembers { limit } => json!({ "limit": limit }),
        ClusterRefusal::NotCaughtUp { name, behind } => json!({ "name": name, "behind": behind }),
        ClusterRefusal::NoMajorityLeft { name, reachable, voters } => {
            json!({ "name": name, "reachable": reachable, "voters": voters })
        }
        ClusterRefusal::ChangeUnderWay | ClusterRefusal::NobodyToTakeOver => Value::Null,
    }
}
