//! Calls that are kept waiting: acquires of plain sessions whose wait is not over.
//!
//! A call that goes away takes its wait with it, by a cancel through the log, unless it has a number: then another call may go on with the
//! wait, also while the first one is still here. Nothing is ever released on behalf of a caller: it may
//! have learnt of its lease in another way, and act on it.

use std::collections::{BTreeMap, BTreeSet};

use leasehold_core::protocol::RequestId;
use leasehold_core::{Command, CommandNumber, Op, Sequence, SessionCommand, SessionId};

use crate::routes::ConnectionId;

/// Names a call.
pub(crate) type Call = (ConnectionId, RequestId);
/// Names a wait.
pub(crate) type WaitId = (SessionId, CommandNumber);

/// Before and behind all calls.
const FIRST: Call = (ConnectionId(0), RequestId(0));
const LAST: Call = (ConnectionId(u64::MAX), RequestId(u64::MAX));

/// The calls that are kept waiting.
#[derive(Debug, Default)]
pub(crate) struct Holds {
    calls: BTreeMap<Call, Hold>,
    /// Of a numbered acquire there can be several.
    waits: BTreeSet<(WaitId, Call)>,
}

/// How an acquire was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asks {
    /// Without a number: its wait is the caller's own.
    Once,
    /// With a number: its wait goes on without the caller.
    Numbered,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hold {
    /// Its acquire is on its way; whether the caller has gone away since.
    Asked { asks: Asks, gone: bool },
    /// Its wait runs; whether it had been asked for before.
    Waiting { asks: Asks, wait: WaitId, again: bool },
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
    pub(crate) fn ask(&mut self, call: Call, asks: Asks) -> bool {
        let free = !self.calls.contains_key(&call);
        if free {
            self.calls.insert(call, Hold::Asked { asks, gone: false });
        }
        free
    }

    /// The acquire of this call was queued, now or when it was asked for before.
    pub(crate) fn queued(&mut self, call: Call, wait: WaitId, again: bool) -> Queued {
        match self.calls.get_mut(&call) {
            Some(hold @ Hold::Asked { gone: false, .. }) => {
                let Hold::Asked { asks, .. } = *hold else { return Queued::NotHeld };
                *hold = Hold::Waiting { asks, wait, again };
                self.waits.insert((wait, call));
                Queued::Held
            }
            Some(Hold::Asked { gone: true, asks: Asks::Once }) => {
                self.calls.remove(&call);
                Queued::Cancel(cancel(wait))
            }
            Some(Hold::Asked { asks: Asks::Numbered, .. } | Hold::Waiting { .. }) | None => Queued::NotHeld,
        }
    }

    /// The call is answered in another way: granted or refused at once, or lost.
    pub(crate) fn forget(&mut self, call: Call) {
        if let Some(Hold::Waiting { wait, .. }) = self.calls.remove(&call) {
            self.waits.remove(&(wait, call));
        }
    }

    /// A wait is over: who waits for it, and whether it had been asked for before they asked.
    pub(crate) fn end(&mut self, wait: WaitId) -> Vec<(Call, bool)> {
        self.end_range((wait, FIRST)..=(wait, LAST))
    }

    /// A session is over: who waits for any of its waits.
    pub(crate) fn end_session(&mut self, session: SessionId) -> Vec<Call> {
        let all = ((session, CommandNumber::NONE), FIRST)..=((session, CommandNumber::new(u64::MAX)), LAST);
        self.end_range(all).into_iter().map(|(call, _)| call).collect()
    }

    fn end_range(&mut self, range: std::ops::RangeInclusive<(WaitId, Call)>) -> Vec<(Call, bool)> {
        let ended: Vec<(WaitId, Call)> = self.waits.range(range).copied().collect();
        let end = |(wait, call): (WaitId, Call)| {
            self.waits.remove(&(wait, call));
            let again = matches!(self.calls.remove(&call), Some(Hold::Waiting { again: true, .. }));
            (call, again)
        };
        ended.into_iter().map(end).collect()
    }

    /// A caller has gone away: what is to be proposed, if its wait runs.
    pub(crate) fn abandon(&mut self, call: Call) -> Option<Command> {
        match self.calls.get_mut(&call)? {
            Hold::Asked { gone, .. } => {
                *gone = true;
                None
            }
            Hold::Waiting { asks, wait, .. } => {
                let (asks, wait) = (*asks, *wait);
                self.forget(call);
                (asks == Asks::Once).then(|| cancel(wait))
            }
        }
    }

    /// A connection is gone, and with it all its calls.
    pub(crate) fn abandon_all(&mut self, connection: ConnectionId) -> Vec<Command> {
        let all = (connection, RequestId(0))..=(connection, RequestId(u64::MAX));
        let calls: Vec<Call> = self.calls.range(all).map(|(call, _)| *call).collect();
        calls.into_iter().filter_map(|call| self.abandon(call)).collect()
    }

    /// Cancels for all waits that go with their callers. Those calls are still kept, to be answered when the cancels are applied.
    pub(crate) fn withdraw_all(&self) -> Vec<Command> {
        let once = |call: &Call| matches!(self.calls.get(call), Some(Hold::Waiting { asks: Asks::Once, .. }));
        self.waits.iter().filter(|(_, call)| once(call)).map(|(wait, _)| cancel(*wait)).collect()
    }

    /// The calls whose waits go on without them: they are kept no longer.
    pub(crate) fn let_go_numbered(&mut self) -> Vec<(WaitId, Call)> {
        let numbered =
            |call: &Call| matches!(self.calls.get(call), Some(Hold::Waiting { asks: Asks::Numbered, .. }));
        let gone: Vec<(WaitId, Call)> =
            self.waits.iter().filter(|(_, call)| numbered(call)).copied().collect();
        for (_, call) in &gone {
            self.forget(*call);
        }
        gone
    }

    /// Everything is lost with the leadership: who waits.
    pub(crate) fn clear(&mut self) -> Vec<Call> {
        self.calls.clear();
        std::mem::take(&mut self.waits).into_iter().map(|(_, call)| call).collect()
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
        holds.ask(call(id), Asks::Once);
        assert_eq!(holds.queued(call(id), of, false), Queued::Held);
    }

    #[test]
    fn a_call_is_held_only_if_that_was_asked_for() {
        let mut holds = Holds::default();
        assert_eq!(holds.queued(call(1), wait(7, 1), false), Queued::NotHeld);
        assert!(holds.is_empty());
        waits(&mut holds, 2, wait(7, 2));
        assert_eq!((holds.end(wait(7, 2)), holds.end(wait(7, 2))), (vec![(call(2), false)], vec![]));
    }

    #[test]
    fn a_caller_that_goes_before_it_is_queued_is_remembered_until_then() {
        let mut holds = Holds::default();
        holds.ask(call(1), Asks::Once);
        assert_eq!(holds.abandon(call(1)), None);
        assert_eq!(holds.len(), 1);
        assert_eq!(holds.queued(call(1), wait(7, 1), false), Queued::Cancel(cancel(wait(7, 1))));
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
        holds.ask(call(2), Asks::Once);
        assert_eq!(holds.withdraw_all(), [cancel(wait(7, 1))]);
        assert_eq!(holds.len(), 2);
        assert_eq!(holds.end(wait(7, 1)), [(call(1), false)]);
    }

    #[test]
    fn a_numbered_wait_has_several_callers_and_goes_on_without_any() {
        let mut holds = Holds::default();
        for id in 1..=3 {
            holds.ask(call(id), Asks::Numbered);
            assert_eq!(holds.queued(call(id), wait(7, 1), id > 1), Queued::Held);
        }
        assert_eq!(holds.abandon(call(1)), None);
        assert_eq!(holds.withdraw_all(), []);
        assert_eq!(holds.end(wait(7, 1)), [(call(2), true), (call(3), true)]);
        holds.ask(call(4), Asks::Numbered);
        assert_eq!(holds.abandon(call(4)), None);
        assert_eq!(holds.queued(call(4), wait(7, 2), false), Queued::NotHeld);
        holds.forget(call(4));
        assert!(holds.is_empty() && holds.waits.is_empty());
    }

    #[test]
    fn nothing_is_left_whatever_way_a_call_goes() {
        let mut holds = Holds::default();
        for id in 1..=6 {
            waits(&mut holds, id, wait(7, id));
        }
        holds.ask(call(7), Asks::Once);
        holds.forget(call(1));
        holds.end(wait(7, 2));
        assert_eq!(holds.abandon(call(3)), Some(cancel(wait(7, 3))));
        assert_eq!(holds.abandon_all(CONNECTION).len(), 3, "one of the four is only asked for");
        holds.forget(call(7));
        assert!(holds.calls.is_empty() && holds.waits.is_empty());
    }
}
