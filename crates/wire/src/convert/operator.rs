//! What operators do without a session.

use leasehold_core::Operator;

use super::variants;
use crate::proto as pb;

variants! {
    Operator => Operator { operator: operator::Operator } at "operator";
    AskRelease { resource, token, successor, by } => AskRelease(AskRelease) at "ask_release",
    Revoke { resource, token, by, reason, now } => Revoke(Revoke) at "revoke",
    ChangeKind { resource, mode, by } => ChangeKind(ChangeKind) at "change_kind",
    ClearAlarm { resource, token, by, reason } => ClearAlarm(ClearAlarm) at "clear_alarm",
}
