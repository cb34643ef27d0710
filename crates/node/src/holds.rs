//! Calls that are kept waiting: acquires of plain sessions whose wait is not over.
//!
//! A call that goes away takes its wait with it, by a cancel through the log. Nothing is ever released on behalf of a caller: it may
//! have learnt of its lease in another way, and act on it.

use std::collections::BTreeMap;

use leasehold_core::protocol::RequestId;
use leasehold_core::{Command, CommandNumber, Op, Sequence, SessionCommand, SessionId};

use crate::routes::ConnectionId;

/// Names a call.
pub(crate) type Call = (ConnectionId, RequestId);
/// Names a wait.
pub(crate) type WaitId = (SessionId, CommandNumber);

/// The calls that are kept waiting.
#[derive(Debug, Default)]
pub(crate) struct Holds {
    calls: BTreeMap<Call, Hold>,
    waits: BTreeMap<WaitId, Call>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hold {
    /// Its acquire is on its way; whether the caller has gone away since.
    Asked { gone: bool },
    /// Its wait runs.
    Waiting(WaitId),
}

/// What becomes of a call whose acquire was queued.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Queued {
    /// Nobody asked for it to be held: it is answered at once.
    NotHeld,
    /// It is kept waiting.
    Held,
    /// The caller is gone: this is to be proposed.
    Cancel(Command),
}

impl Holds {
    pub(crate) fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.calls.len()
    }

    /// The acquire of this call was taken in, and is to be held if it is queued. Says no if another call has this name.
    pub(crate) fn ask(&mut self, call: Call) -> bool {
        let free = !self.calls.contains_key(&call);
        if free {
            self.calls.insert(call, Hold::Asked { gone: false });
        }
        free
    }

    /// The acquire of this call was queued.
    pub(crate) fn queued(&mut self, call: Call, wait: WaitId) -> Queued {
        match self.calls.get_mut(&call) {
            Some(hold @ Hold::Asked { gone: false }) => {
                *hold = Hold::Waiting(wait);
                self.waits.insert(wait, call);
                Queued::Held
            }
            Some(Hold::Asked { gone: true }) => {
                self.calls.remove(&call);
                Queued::Cancel(cancel(wait))
            }
            Some(Hold::Waiting(_)) | None => Queued::NotHeld,
        }
    }

    /// The call is answered in another way: granted or refused at once, or lost.
    pub(crate) fn forget(&mut self, call: Call) {
        if let Some(Hold::Waiting(wait)) = self.calls.remove(&call) {
            self.waits.remove(&wait);
        }
    }

    /// A wait is over: who waits for it.
    pub(crate) fn end(&mut self, wait: WaitId) -> Option<Call> {
        let call = self.waits.remove(&wait)?;
        self.calls.remove(&call);
        Some(call)
    }

    /// A session is over: who waits for any of its waits.
    pub(crate) fn end_session(&mut self, session: SessionId) -> Vec<Call> {
        let all = (session, CommandNumber::NONE)..=(session, CommandNumber::new(u64::MAX));
        let waits: Vec<WaitId> = self.waits.range(all).map(|(wait, _)| *wait).collect();
        waits.into_iter().filter_map(|wait| self.end(wait)).collect()
    }

    /// A caller has gone away: what is to be proposed, if its wait runs.
    pub(crate) fn abandon(&mut self, call: Call) -> Option<Command> {
        match self.calls.get_mut(&call)? {
            Hold::Asked { gone } => {
                *gone = true;
                None
            }
            Hold::Waiting(wait) => {
                let wait = *wait;
                self.end(wait);
                Some(cancel(wait))
            }
        }
    }

    /// A connection is gone, and with it all its calls.
    pub(crate) fn abandon_all(&mut self, connection: ConnectionId) -> Vec<Command> {
        let all = (connection, RequestId(0))..=(connection, RequestId(u64::MAX));
        let calls: Vec<Call> = self.calls.range(all).map(|(call, _)| *call).collect();
        calls.into_iter().filter_map(|call| self.abandon(call)).collect()
    }

    /// Cancels for all waits that run. Their calls are still kept, to be answered when the cancels are applied.
    pub(crate) fn withdraw_all(&self) -> Vec<Command> {
        self.waits.keys().map(|wait| cancel(*wait)).collect()
    }

    /// Everything is lost with the leadership: who waits.
    pub(crate) fn clear(&mut self) -> Vec<Call> {
        self.calls.clear();
        std::mem::take(&mut self.waits).into_values().collect()
    }
}

/// Gives up a wait.
pub(crate) fn cancel((session, acquire): WaitId) -> Command {
    let op = Op::Cancel { acquire };
    Command::Session(SessionCommand { session, sequence: Sequence::Plain, op })
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONNECTION: ConnectionId = ConnectionId(1);

    fn call(id: u64) -> Call {
        (CONNECTION, RequestId(id))
    }

    fn wait(session: u64, acquire: u64) -> WaitId {
        (SessionId::from_u64(session), CommandNumber::new(acquire))
    }

    /// A call whose wait runs.
    fn waits(holds: &mut Holds, id: u64, of: WaitId) {
        holds.ask(call(id));
        assert_eq!(holds.queued(call(id), of), Queued::Held);
    }

    #[test]
    fn a_call_is_held_only_if_that_was_asked_for() {
        let mut holds = Holds::default();
        assert_eq!(holds.queued(call(1), wait(7, 1)), Queued::NotHeld);
        assert!(holds.is_empty());
        waits(&mut holds, 2, wait(7, 2));
        assert_eq!((holds.end(wait(7, 2)), holds.end(wait(7, 2))), (Some(call(2)), None));
    }

    #[test]
    fn a_caller_that_goes_before_it_is_queued_is_remembered_until_then() {
        let mut holds = Holds::default();
        holds.ask(call(1));
        assert_eq!(holds.abandon(call(1)), None);
        assert_eq!(holds.len(), 1);
        assert_eq!(holds.queued(call(1), wait(7, 1)), Queued::Cancel(cancel(wait(7, 1))));
        assert!(holds.is_empty());
    }

    #[test]
    fn a_session_ends_its_own_calls_and_no_others() {
        let mut holds = Holds::default();
        for (id, of) in [(1, wait(6, 9)), (2, wait(7, 1)), (3, wait(7, u64::MAX)), (4, wait(8, 1))] {
            waits(&mut holds, id, of);
        }
        assert_eq!(holds.end_session(SessionId::from_u64(7)), [call(2), call(3)]);
        assert_eq!(holds.len(), 2);
    }

    #[test]
    fn waits_that_are_withdrawn_are_kept_until_that_is_applied() {
        let mut holds = Holds::default();
        waits(&mut holds, 1, wait(7, 1));
        holds.ask(call(2));
        assert_eq!(holds.withdraw_all(), [cancel(wait(7, 1))]);
        assert_eq!(holds.len(), 2);
        assert_eq!(holds.end(wait(7, 1)), Some(call(1)));
    }

    #[test]
    fn nothing_is_left_whatever_way_a_call_goes() {
        let mut holds = Holds::default();
        for id in 1..=6 {
            waits(&mut holds, id, wait(7, id));
        }
        holds.ask(call(7));
        holds.forget(call(1));
        holds.end(wait(7, 2));
        assert_eq!(holds.abandon(call(3)), Some(cancel(wait(7, 3))));
        assert_eq!(holds.abandon_all(CONNECTION).len(), 3, "one of the four is only asked for");
        holds.forget(call(7));
        assert!(holds.calls.is_empty() && holds.waits.is_empty());
    }
}
