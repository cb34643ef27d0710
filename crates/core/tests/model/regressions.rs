//! Shapes that once failed, written out. Each runs through every comparison that a random history goes through, and then says
//! what was wrong in its own words.

use leasehold_core::{
    Acquire, Answer, Applied, Command, CommandNumber, Config, Due, Ending, Entry, Event, ItemNumber, Label,
    LeaseTable, LogTime, Millis, Mode, Nonce, Offer, Op, Open, Operator, Policies, Reason, RenewalNumber,
    Reply, Request, ResourceName, Sequence, SessionCommand, SessionId, SessionKind, Successor, System, Token,
    Unavailable, Value,
};

use super::{bring_to_rest, compare};
use leasehold_oracle::Naive;

/// Far longer than anything here lasts.
const LONG: u64 = 60_000;

/// The table, the naive one, and a third that lives through a snapshot after every entry.
struct Trio {
    table: LeaseTable,
    naive: Naive,
    frozen: LeaseTable,
    at: u64,
}

impl Trio {
    fn new() -> Self {
        let table = LeaseTable::new(Config::default());
        Self { naive: Naive::new(Config::default()), frozen: table.clone(), table, at: 0 }
    }

    /// One command at `at`; what all three say about it.
    fn at(&mut self, at: u64, command: Command) -> Applied {
        self.at = at;
        let entry = Entry { at: LogTime::new(at), commands: vec![command] };
        let applied = self.table.apply(&entry);
        assert_eq!(applied, self.naive.apply(&entry), "the naive table differs on {entry:?}");
        assert_eq!(applied, self.frozen.apply(&entry), "the snapshot differs on {entry:?}");
        compare::same_state(&self.table, &self.naive).expect("the naive table shows the same");
        assert_eq!(self.table.encode(), self.frozen.encode(), "bytes after {entry:?}");
        self.frozen =
            LeaseTable::decode(&self.frozen.encode()).expect("a snapshot that was just written is whole");
        assert_eq!((self.table.check_invariants(), self.frozen.check_invariants()), (Ok(()), Ok(())));
        bring_to_rest(&mut self.table.clone(), entry.at).expect("a leader finds rest");
        applied
    }

    /// A plain session with this ttl and these policies (grace, hard, delay).
    fn open(&mut self, ttl: u64, policies: [u64; 3]) -> SessionId {
        let [grace, hard, delay] = policies.map(Millis::new);
        let open = Open {
            nonce: Nonce([u8::try_from(self.table.newest()).expect("few are opened"); 16]),
            label: Label::new("holder").expect("a word is a label"),
            ttl: Millis::new(ttl),
            policies: Policies { grace, hard, delay },
            kind: SessionKind::Plain,
        };
        match &self.at(self.at, Command::Open(open)).replies[..] {
            [Reply::Opened(opened)] => opened.session,
            other => panic!("not opened: {other:?}"),
        }
    }

    fn op(&mut self, at: u64, session: SessionId, op: Op) -> Answer {
        let applied =
            self.at(at, Command::Session(SessionCommand { session, sequence: Sequence::Plain, op }));
        match applied.replies.into_iter().next() {
            Some(Reply::Plain { answer, .. }) => answer,
            other => panic!("not answered: {other:?}"),
        }
    }

    fn acquire(&mut self, at: u64, session: SessionId, names: &[&str], mode: Mode, wait: u64) -> Answer {
        let requests = names.iter().map(|text| Request { resource: name(text), mode }).collect();
        let wait = Some(Millis::new(wait));
        self.op(at, session, Op::Acquire(Acquire { requests, value: Value::default(), wait }))
    }

    fn granted(&mut self, at: u64, session: SessionId, text: &str, mode: Mode) -> Token {
        match self.acquire(at, session, &[text], mode, 0) {
            Answer::Granted(grants) => grants[0].token,
            other => panic!("not granted: {other:?}"),
        }
    }

    fn renew(&mut self, at: u64, session: SessionId) {
        let number = RenewalNumber::new(at + 1);
        let applied = self.at(at, Command::Renew { session, number, seen: ItemNumber::NONE });
        assert!(matches!(applied.replies[..], [Reply::Renewed(_)]), "not renewed: {applied:?}");
    }

    fn tidy(&mut self, at: u64, text: &str) -> Applied {
        self.at(at, Command::Tidy(vec![Due::Resource(name(text))]))
    }

    fn revoke(&mut self, at: u64, text: &str, token: Token, now: bool) -> Applied {
        let (by, reason) = (Label::new("op").expect("a label"), Reason::new("test").expect("a reason"));
        self.at(at, Command::Operator(Operator::Revoke { resource: name(text), token, by, reason, now }))
    }

    fn change_kind(&mut self, at: u64, text: &str, mode: Mode) {
        let by = Label::new("op").expect("a label");
        self.at(at, Command::Operator(Operator::ChangeKind { resource: name(text), mode, by }));
    }
}

fn name(text: &str) -> ResourceName {
    ResourceName::new(text).expect("a letter is a name")
}

fn is_granted_to(applied: &Applied, waiter: SessionId) -> bool {
    applied.events.iter().any(|event| matches!(event, Event::Granted { session, .. } if *session == waiter))
}

#[test]
fn one_of_two_shared_holders_that_can_be_taken_keeps_nobody_busy() {
    let mut trio = Trio::new();
    let (dead, alive, waiter) =
        (trio.open(500, [0, LONG, 0]), trio.open(30_000, [0; 3]), trio.open(30_000, [0; 3]));
    trio.granted(0, dead, "a", Mode::Shared);
    trio.granted(0, alive, "a", Mode::Shared);
    trio.acquire(0, waiter, &["a"], Mode::Exclusive, LONG);
    // Serving went round for ever here, and so did the leader's tidying.
    assert_eq!(trio.tidy(600, "a").events, []);
}

#[test]
fn holder_that_came_back_can_be_taken_at_its_new_point() {
    let mut trio = Trio::new();
    let (short, long, waiter) =
        (trio.open(500, [0, LONG, 0]), trio.open(50_000, [0; 3]), trio.open(50_000, [0; 3]));
    trio.granted(0, short, "a", Mode::Shared);
    let token = trio.granted(0, long, "a", Mode::Shared);
    trio.acquire(0, waiter, &["a"], Mode::Exclusive, LONG);
    trio.tidy(600, "a");
    trio.renew(700, short);
    trio.op(710, long, Op::Release { resource: name("a"), token, drained: false });
    let mut leader = trio.table.clone();
    assert_eq!(leader.due(LogTime::new(1_203)), vec![Due::Resource(name("a"))], "700 + 502 has passed");
    assert!(is_granted_to(&trio.tidy(1_203, "a"), waiter));
}

#[test]
fn snapshot_between_an_overdue_waiter_and_the_next_one_loses_nothing() {
    let mut trio = Trio::new();
    let (holder, first, second) =
        (trio.open(30_000, [0; 3]), trio.open(500, [0, LONG, 0]), trio.open(30_000, [0; 3]));
    trio.granted(0, holder, "a", Mode::Shared);
    trio.acquire(0, first, &["a"], Mode::Exclusive, LONG);
    trio.acquire(0, second, &["a"], Mode::Shared, LONG);
    // The first waiter is overdue, and nobody has looked yet when the snapshot is taken.
    trio.renew(600, holder);
    assert!(is_granted_to(&trio.tidy(601, "a"), second));
}

#[test]
fn unit_is_served_through_either_of_its_resources_whatever_the_hints_say() {
    let mut trio = Trio::new();
    let (dead, unit, newcomer) =
        (trio.open(500, [0; 3]), trio.open(1_000, [0; 3]), trio.open(30_000, [0; 3]));
    trio.granted(0, dead, "b", Mode::Exclusive);
    trio.acquire(0, unit, &["a", "b"], Mode::Exclusive, LONG);
    // The table still has an early hint for `a` from before this renewal; one that comes from a snapshot has not.
    trio.renew(400, unit);
    trio.acquire(1_100, newcomer, &["a"], Mode::Exclusive, 0);
    assert_eq!(trio.naive.leases_on(&name("a")).next().map(|lease| lease.session), Some(unit));
}

#[test]
fn revoking_at_once_starts_no_cool_down_in_grace_either() {
    let mut trio = Trio::new();
    let (holder, next) = (trio.open(500, [1_000, LONG, 5_000]), trio.open(30_000, [0; 3]));
    let token = trio.granted(0, holder, "a", Mode::Exclusive);
    trio.revoke(600, "a", token, true);
    trio.granted(600, next, "a", Mode::Exclusive);
}

#[test]
fn cool_down_of_a_lock_holds_for_every_slot_after_a_change_of_kind() {
    let mut trio = Trio::new();
    let (holder, next) = (trio.open(500, [0, LONG, 5_000]), trio.open(30_000, [0; 3]));
    let token = trio.granted(0, holder, "a", Mode::Exclusive);
    trio.revoke(600, "a", token, false);
    trio.change_kind(601, "a", Mode::Slot { of: 2 });
    let answer = trio.acquire(602, next, &["a"], Mode::Slot { of: 2 }, 0);
    let why = Unavailable::CoolDown { remaining: Millis::new(4_998) };
    let refusal = leasehold_core::Refusal::NotFree { resource: name("a"), why };
    assert_eq!(answer, Answer::Refused(refusal));
}

#[test]
fn revoked_shared_lease_is_joined_by_nobody() {
    let mut trio = Trio::new();
    let (reader, next) = (trio.open(1_000, [0; 3]), trio.open(30_000, [0; 3]));
    let token = trio.granted(0, reader, "a", Mode::Shared);
    trio.revoke(1, "a", token, false);
    assert!(matches!(trio.acquire(2, next, &["a"], Mode::Shared, 0), Answer::Refused(_)));
    let answer = trio.acquire(1_004, next, &["a"], Mode::Shared, 0);
    assert!(matches!(&answer, Answer::Granted(grants) if grants[0].fence > token), "{answer:?}");
}

#[test]
fn session_that_was_over_before_the_reboot_has_expired() {
    let mut trio = Trio::new();
    let holder = trio.open(500, [0; 3]);
    trio.granted(0, holder, "a", Mode::Exclusive);
    let applied = trio.at(503, Command::System(System::Rebooted));
    assert!(
        matches!(&applied.events[0], Event::Ended { how: Ending::Expired, when, .. } if when.get() == 502)
    );
}

#[test]
fn accepting_again_after_the_wait_was_cancelled_makes_ready_again() {
    let mut trio = Trio::new();
    let (holder, next) = (trio.open(30_000, [0; 3]), trio.open(30_000, [0; 3]));
    let token = trio.granted(0, holder, "a", Mode::Exclusive);
    trio.acquire(0, next, &["a"], Mode::Exclusive, LONG);
    let (resource, to, length) = (name("a"), Successor::FirstWaiter, Millis::new(LONG));
    trio.op(0, holder, Op::Offer(Offer { resource, token, to, length }));
    let accept = || Op::Accept { resource: name("a"), token, value: Value::default() };
    trio.op(1, next, accept());
    trio.op(2, next, Op::Cancel { acquire: CommandNumber::new(1) });
    assert_eq!(trio.op(3, next, accept()), Answer::Accepted { wait: CommandNumber::new(4) });
    trio.op(4, holder, Op::Release { resource: name("a"), token, drained: false });
    assert_eq!(trio.naive.leases_on(&name("a")).next().map(|lease| lease.session), Some(next));
}

#[test]
fn offer_to_a_session_that_closes_is_the_same_with_and_without_a_snapshot() {
    let mut trio = Trio::new();
    let (holder, next) = (trio.open(1_000, [0, LONG, 0]), trio.open(30_000, [0; 3]));
    let token = trio.granted(0, holder, "a", Mode::Exclusive);
    let (resource, to, length) = (name("a"), Successor::Session(next), Millis::new(2_000));
    trio.op(0, holder, Op::Offer(Offer { resource, token, to, length }));
    trio.op(1, next, Op::Accept { resource: name("a"), token, value: Value::default() });
    let close = SessionCommand { session: next, sequence: Sequence::Plain, op: Op::Close };
    trio.at(2, Command::Session(close));
    trio.tidy(1_500, "a");
    assert_eq!(trio.tidy(2_001, "a").events, [], "nobody is left who could hear that the wait is over");
}

#[test]
fn renewals_that_stand_behind_a_waiters_still_rescue() {
    let mut trio = Trio::new();
    let (holder, waiter) = (trio.open(500, [0, LONG, 0]), trio.open(500, [0, LONG, 0]));
    let token = trio.granted(0, holder, "a", Mode::Exclusive);
    trio.acquire(0, waiter, &["a"], Mode::Exclusive, LONG);
    let renew = |session| Command::Renew { session, number: RenewalNumber::new(1), seen: ItemNumber::NONE };
    let entry = Entry { at: LogTime::new(600), commands: vec![renew(waiter), renew(holder)] };
    assert_eq!(trio.table.apply(&entry), trio.naive.apply(&entry));
    assert_eq!(trio.table.check(&name("a"), token), Ok(()));
}
