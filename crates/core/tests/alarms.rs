//! Alarms harm only their cause: how many names a session can stop, and all of them together.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails, and unwrap says where")]

use leasehold_core::table::GAPS_HAVE_TWO_LENGTHS;
use leasehold_core::{
    Acquire, Answer, Applied, Command, Config, Entry, Label, LeaseTable, LogTime, Millis, Mode, Nonce, Op,
    Open, Policies, Refusal, Reply, Request, ResourceName, Sequence, SessionCommand, SessionId, SessionKind,
    System, Token, Value,
};

struct World {
    table: LeaseTable,
}

impl World {
    fn new(version: u32) -> Self {
        let mut world = Self { table: LeaseTable::new(Config::default()) };
        world.raise(version);
        world
    }

    fn apply(&mut self, command: Command) -> Applied {
        let at = LogTime::new(self.table.last_at().get() + 1);
        self.table.apply(&Entry { at, commands: vec![command] })
    }

    fn raise(&mut self, version: u32) {
        self.apply(Command::System(System::ClusterVersion { version }));
    }

    fn open(&mut self, nonce: u8) -> SessionId {
        let opened = self.apply(Command::Open(Open {
            nonce: Nonce([nonce; 16]),
            label: Label::new("a").unwrap(),
            ttl: Millis::new(60_000),
            policies: Policies::default(),
            kind: SessionKind::Plain,
        }));
        let Reply::Opened(opened) = &opened.replies[0] else { panic!("{opened:?}") };
        opened.session
    }

    fn ask(&mut self, session: SessionId, op: Op) -> Answer {
        let command = SessionCommand { session, sequence: Sequence::Plain, op };
        let applied = self.apply(Command::Session(command));
        let Reply::Plain { answer, .. } = &applied.replies[0] else { panic!("{applied:?}") };
        answer.clone()
    }

    /// A release with a token that was never granted. Says how many alarms there are then.
    fn show(&mut self, session: SessionId, resource: &str, token: u64) -> usize {
        let op = Op::Release { resource: name(resource), token: Token::from_u64(token), drained: false };
        let answer = self.ask(session, op);
        assert!(matches!(answer, Answer::Refused(Refusal::TokenAhead { .. })), "{answer:?}");
        self.table.alarms().count()
    }

    fn acquire(&mut self, session: SessionId, resource: &str, wait: Option<u64>) -> Answer {
        let requests = vec![Request { resource: name(resource), mode: Mode::Exclusive }];
        let acquire = Acquire { requests, value: Value::default(), wait: wait.map(Millis::new) };
        self.ask(session, Op::Acquire(acquire))
    }

    fn is_free(&mut self, session: SessionId, resource: &str) -> bool {
        matches!(self.acquire(session, resource, None), Answer::Granted(_))
    }
}

fn name(text: &str) -> ResourceName {
    ResourceName::new(text).unwrap()
}

const AHEAD: u64 = 1 << 40;

#[test]
fn a_session_stops_sixteen_names_and_no_other_one() {
    let mut world = World::new(GAPS_HAVE_TWO_LENGTHS);
    let (slip, other) = (world.open(1), world.open(2));
    for number in 0..16 {
        assert_eq!(world.show(slip, &format!("job-{number}"), AHEAD), number + 1);
    }
    assert_eq!(world.show(slip, "job-16", AHEAD), 16);
    assert!(world.is_free(other, "job-16"), "what was shown beyond the limit stops nothing");
    assert!(!world.is_free(other, "job-15"));
    // A greater token of a name that it has stopped is noted, and a snapshot knows how many it has stopped.
    assert_eq!(world.show(slip, "job-15", AHEAD + 1), 16);
    assert_eq!(world.table.alarm(&name("job-15")).unwrap().token.get(), AHEAD + 1);
    world.table = LeaseTable::decode(&world.table.encode()).unwrap();
    assert_eq!(world.show(slip, "job-17", AHEAD), 16);
    assert_eq!(world.show(other, "job-17", AHEAD), 17);
}

#[test]
fn all_sessions_together_stop_as_many_names_as_are_kept_and_no_other_one() {
    let mut world = World::new(GAPS_HAVE_TWO_LENGTHS);
    for nonce in 0..64 {
        let session = world.open(nonce);
        (0..16).for_each(|number| _ = world.show(session, &format!("job-{nonce}-{number}"), AHEAD));
    }
    let last = world.open(64);
    assert_eq!(world.show(last, "one-too-many", AHEAD), 1_024);
    assert!(world.is_free(last, "one-too-many"));
    assert!(world.is_free(last, "elsewhere"));
}

/// There to find: 1,024 alarms of one session that go on keeping every name from everybody, and one that no door takes an answer to.
#[test]
fn alarms_of_before_stop_their_own_names_from_the_version_on_and_impossible_ones_none() {
    let mut world = World::new(GAPS_HAVE_TWO_LENGTHS - 1);
    let (slip, waiter) = (world.open(1), world.open(2));
    world.show(slip, "odd", u64::MAX);
    for number in 1..1_024 {
        assert_eq!(world.show(slip, &format!("job-{number}"), AHEAD), number + 1);
    }
    assert!(!world.is_free(waiter, "elsewhere"), "as releases of before have it");
    for resource in ["elsewhere", "odd", "job-7"] {
        assert!(matches!(world.acquire(waiter, resource, Some(60_000)), Answer::Queued { .. }));
    }
    world.raise(GAPS_HAVE_TWO_LENGTHS);
    let holder = |resource: &str| world.table.lease(&name(resource)).unwrap().holders.len();
    assert_eq!(["elsewhere", "odd", "job-7"].map(holder), [1, 1, 0]);
    assert_eq!(world.table.alarms().count(), 1_023);
    assert_eq!(world.show(slip, "never", u64::MAX), 1_023, "such a number is no token");
}
