//! How many numbered calls of a plain session are remembered, and what becomes of those that find no room.

use leasehold_core::limits::MAX_CALLS_REMEMBERED;
use leasehold_core::table::NUMBERS_CALLS;
use leasehold_core::{
    Acquire, Answer, CallNumber, Command, Entry, Label, LeaseTable, LogTime, Millis, Mode, Nonce, Numbered,
    Op, Open, Policies, Refusal, Reply, Request, ResourceName, Sequence, SessionCommand, SessionId,
    SessionKind, System, Token, Value,
};

/// A table with one plain session, in a log of the newest version.
struct Stage(LeaseTable);

const SESSION: SessionId = SessionId::from_u64(1);
/// As a client sees it: room for so many.
const ROOM: u64 = MAX_CALLS_REMEMBERED as u64;

impl Stage {
    fn new() -> Self {
        let mut stage = Self(LeaseTable::new(Default::default()));
        stage.apply(Command::System(System::ClusterVersion { version: NUMBERS_CALLS }));
        let (nonce, label) = (Nonce([1; 16]), Label::new("a").unwrap());
        let (policies, kind) = (Policies::default(), SessionKind::Plain);
        stage.apply(Command::Open(Open { nonce, label, ttl: Millis::new(10_000), policies, kind }));
        stage
    }

    fn apply(&mut self, command: Command) -> Reply {
        let entry = Entry { at: LogTime::new(10), commands: vec![command] };
        let reply = self.0.apply(&entry).replies.remove(0);
        assert_eq!(self.0.check_invariants(), Ok(()));
        reply
    }

    fn call(&mut self, number: u64, settled: u64, op: Op) -> Reply {
        let (number, settled) = (CallNumber::new(number), CallNumber::new(settled));
        let sequence = Sequence::Numbered(Numbered { number, settled });
        self.apply(Command::Session(SessionCommand { session: SESSION, sequence, op }))
    }

    /// A session that has acquired under so many numbers, and holds as many leases.
    fn with_acquires(count: u64) -> Self {
        let mut stage = Self::new();
        for number in 1..=count {
            let reply = stage.call(number, 0, acquire(number));
            assert!(matches!(reply, Reply::Plain { answer: Answer::Granted(_), .. }), "{number}: {reply:?}");
        }
        stage
    }
}

fn name(nth: u64) -> ResourceName {
    ResourceName::new(&format!("r{nth}")).unwrap()
}

fn acquire(nth: u64) -> Op {
    let requests = vec![Request { resource: name(nth), mode: Mode::Exclusive }];
    Op::Acquire(Acquire { requests, value: Value::default(), wait: None })
}

/// The first token is 2: the session has drawn 1.
fn release(nth: u64) -> Op {
    Op::Release { resource: name(nth), token: Token::from_u64(nth + 1), drained: false }
}

const fn is_full(reply: &Reply) -> bool {
    matches!(reply, Reply::Plain { answer: Answer::Refused(Refusal::LimitReached { limit: 64, .. }), .. })
}

#[test]
fn as_many_calls_as_the_limit_are_remembered_and_one_more_acquire_is_refused() {
    let mut stage = Stage::with_acquires(ROOM);
    let again = stage.call(ROOM, 0, acquire(ROOM));
    assert!(matches!(again, Reply::PlainRepeated { answer: Answer::Granted(_), .. }), "{again:?}");
    assert!(is_full(&stage.call(ROOM + 1, 0, acquire(ROOM + 1))));
}

#[test]
fn what_found_no_room_is_refused_for_good_and_a_later_number_is_taken() {
    let mut stage = Stage::with_acquires(ROOM);
    assert!(is_full(&stage.call(ROOM + 2, 0, acquire(ROOM + 2))));
    let settled = stage.call(ROOM + 3, ROOM, acquire(ROOM + 3));
    assert!(matches!(settled, Reply::Plain { answer: Answer::Granted(_), .. }), "{settled:?}");
    // Both were sent when there was no room; one of them arrived then.
    assert!(is_full(&stage.call(ROOM + 2, 0, acquire(ROOM + 2))));
    assert!(is_full(&stage.call(ROOM + 1, 0, acquire(ROOM + 1))));
}

#[test]
fn what_lets_go_of_something_needs_no_room() {
    let mut stage = Stage::with_acquires(ROOM);
    let released = stage.call(ROOM + 1, 0, release(1));
    assert!(matches!(released, Reply::Plain { answer: Answer::Released, .. }), "{released:?}");
    // It is not remembered; it ends nothing that came later all the same.
    let again = stage.call(ROOM + 1, 0, release(1));
    let not_holder = matches!(again, Reply::Plain { answer: Answer::Refused(Refusal::NotHolder { .. }), .. });
    assert!(not_holder, "{again:?}");
    let cancelled = stage.call(ROOM + 2, 0, Op::CancelCall { call: CallNumber::new(ROOM + 5) });
    assert!(matches!(cancelled, Reply::Plain { answer: Answer::Cancelled, .. }), "{cancelled:?}");
    // There is room by now, and what was cancelled is not applied all the same.
    assert!(is_full(&stage.call(ROOM + 5, ROOM, acquire(ROOM + 5))));
    assert!(matches!(stage.call(ROOM + 6, 0, Op::Close), Reply::Closed));
}

#[test]
fn what_is_remembered_lives_through_a_snapshot() {
    let mut stage = Stage::with_acquires(2);
    let bytes = stage.0.encode();
    stage.0 = LeaseTable::decode(&bytes).unwrap();
    assert_eq!(stage.0.encode(), bytes);
    let again = stage.call(1, 0, acquire(1));
    assert!(matches!(again, Reply::PlainRepeated { answer: Answer::Granted(_), .. }), "{again:?}");
}
