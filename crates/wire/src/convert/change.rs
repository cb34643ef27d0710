//! What watchers see.

use leasehold_core::protocol::{Change, Changes};

use super::{needed, record, variants};
use crate::proto as pb;

record!(Changes => Changes at "changes"; revision, changes);

variants! {
    Change => Change { change: change::Change } at "change";
    Granted { grant, shared, session, label, value at "change.value" } => Granted(GrantedChange) at "granted",
    ValueSet { resource, token, session, value at "change.value" } => ValueSet(ValueChange) at "value_set",
    RegisterWritten { resource, key, token, removed } => RegisterWritten(RegisterChange) at "register_written",
    Ended { resource, token, session, label, how } => Ended(EndedChange) at "ended",
    AlarmRaised { resource, token, by } => AlarmRaised(AlarmRaisedChange) at "alarm_raised",
    AlarmCleared { resource, token, by, reason } => AlarmCleared(AlarmClearedChange) at "alarm_cleared",
    ReadySet { resource, token, session, ready } => ReadySet(ReadyChange) at "ready_set",
    DrainingShown { resource, token, session, in_flight, within_ms as within }
        => DrainingShown(DrainingChange) at "draining_shown",
}

needed!(Changes);
