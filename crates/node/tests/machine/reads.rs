//! Reads: what is applied, at once, in pages that fit.

use leasehold_core::protocol::{MAX_PAGE, Query, ReadAnswer, Request, Response};
use leasehold_core::{Acquire, Millis, Mode, Op, Revision, Value, command};
use leasehold_node::ConnectionId;

use crate::actor::{Actor, name};
use crate::disk::Crash;
use crate::world::{World, millis};

const READER: ConnectionId = ConnectionId(1_000);

fn status(answer: Option<Response>) -> leasehold_core::protocol::Status {
    match answer {
        Some(Response::Read { answer: ReadAnswer::Status(status), .. }) => status,
        other => panic!("{other:?}"),
    }
}

fn leases(prefix: &str, after: Option<&str>, limit: usize) -> Query {
    Query::Leases { prefix: prefix.to_owned(), after: after.map(name), limit }
}

#[test]
fn a_read_is_answered_while_a_write_is_in_flight_and_does_not_see_it() {
    let mut world = World::served();
    let mut actor = Actor::up(&mut world, 1, 10_000);
    let acquire = actor.acquire("a", None);
    actor.send(&mut world, acquire);
    world.turn();
    let writes = world.disk.writes;
    let revision = Revision::new(world.node.applied());
    let query = || Request::Read(Query::Lease(name("a")));
    let ids = [world.ask(READER, query()), world.ask(READER, query())];
    world.turn();
    for id in ids {
        assert_eq!(world.response(id), Some(Response::Read { revision, answer: ReadAnswer::Lease(None) }));
    }
    assert_eq!(world.disk.writes, writes, "a read writes nothing");
    world.sync();
    let id = world.ask(READER, query());
    world.turn();
    assert!(matches!(world.response(id), Some(Response::Read { answer: ReadAnswer::Lease(Some(_)), .. })));
}

#[test]
fn a_read_that_arrives_before_the_opening_entry_sees_all_that_was_said_before() {
    let mut world = World::served();
    let mut actor = Actor::up(&mut world, 1, 10_000);
    actor.hold(&mut world, "a");
    world.crash(Crash::KeepsAcknowledged);
    let id = world.ask(READER, Request::Read(Query::Lease(name("a"))));
    world.turn();
    assert!(world.sent.is_empty());
    world.rest();
    assert!(matches!(world.response(id), Some(Response::Read { answer: ReadAnswer::Lease(Some(_)), .. })));
}

#[test]
fn the_status_says_what_is_applied_and_what_was_cut() {
    let mut world = World::served();
    let actor = Actor::up(&mut world, 1, 10_000);
    world.pass(millis(3_100));
    let id = world.ask(READER, Request::Read(Query::Status));
    world.turn();
    let status = status(world.response(id));
    assert_eq!((status.sessions, status.resources, status.pid), (1, 0, 7));
    assert_eq!(status.applied, world.node.applied());
    assert_eq!(status.cut, Millis::new(3_000));
    assert_eq!(status.version, "test");
    // The session of the actor is the only one, and its log time is that of the last entry applied.
    assert!(world.node.table().nonce(actor.session).is_some());
    assert_eq!(status.log_time.get(), world.node.table().last_at().get());
}

#[test]
fn pages_follow_one_another_without_gap_or_repetition() {
    let mut world = World::served();
    let mut actor = Actor::up(&mut world, 1, 60_000);
    for number in 0..25 {
        actor.hold(&mut world, &format!("p/{number:02}"));
    }
    actor.hold(&mut world, "q");
    let (mut seen, mut after): (Vec<String>, Option<String>) = (Vec::new(), None);
    loop {
        let ReadAnswer::Leases { leases, more } = world.read(leases("p/", after.as_deref(), 10)) else {
            panic!("not a page");
        };
        assert!(leases.len() <= 10);
        seen.extend(leases.iter().map(|lease| lease.resource.as_str().to_owned()));
        after = seen.last().cloned();
        if !more {
            break;
        }
    }
    let expected: Vec<String> = (0..25).map(|number| format!("p/{number:02}")).collect();
    assert_eq!(seen, expected);
}

#[test]
fn a_page_of_large_values_is_cut_by_bytes() {
    let mut world = World::served();
    let mut actor = Actor::up(&mut world, 1, 60_000);
    let value = Value::new(vec![7; 64 * 1024]).unwrap();
    for number in 0..40 {
        let acquire = actor.acquire_with(&format!("v{number:02}"), None, value.clone());
        actor.send(&mut world, acquire);
    }
    world.rest();
    let ReadAnswer::Leases { leases, more } = world.read(leases("", None, usize::MAX)) else {
        panic!("not a page")
    };
    assert!(more && !leases.is_empty());
    let bytes: usize = leases
        .iter()
        .map(|lease| lease.holders[0].value.as_ref().map_or(0, |value| value.as_bytes().len()))
        .sum();
    assert!(bytes <= 1024 * 1024, "{bytes}");
}

#[test]
fn a_page_has_at_most_a_thousand_rows_whatever_was_asked_for() {
    let mut world = World::served();
    let mut actor = Actor::up(&mut world, 1, 60_000);
    for batch in 0..16 {
        let requests = (0..64).map(|slot| command::Request {
            resource: name(&format!("{batch:02}-{slot:02}")),
            mode: Mode::Exclusive,
        });
        let acquire = Acquire { requests: requests.collect(), value: Value::default(), wait: None };
        let request = actor.op(Op::Acquire(acquire));
        actor.send(&mut world, request);
    }
    world.rest();
    let ReadAnswer::Leases { leases, more } = world.read(leases("", None, usize::MAX)) else {
        panic!("not a page")
    };
    assert_eq!((leases.len(), more), (MAX_PAGE, true));
    let ReadAnswer::Sessions { sessions, more } = world.read(Query::Sessions { after: None, limit: 0 })
    else {
        panic!("not a page");
    };
    assert_eq!((sessions.len(), more), (0, true));
}

/// As `MAX_READS` and `MAX_PAGES_PER_TURN` of the node, which are its own business.
const MOST_READS: usize = 4_096;
const PAGES_PER_TURN: usize = 1;

#[test]
fn reads_under_way_are_bounded_and_the_one_too_many_is_refused() {
    for (count, refused) in [(MOST_READS - 1, 0), (MOST_READS, 0), (MOST_READS + 1, 1)] {
        let mut world = World::served();
        let ids: Vec<_> = (0..count).map(|_| world.ask(READER, Request::Read(Query::Status))).collect();
        world.rest();
        let failed =
            ids.into_iter().filter(|id| matches!(world.response(*id), Some(Response::Failed(_)))).count();
        assert_eq!(failed, refused, "of {count} reads");
    }
}

#[test]
fn a_turn_answers_a_bounded_number_of_listings_and_the_rest_follow() {
    let mut world = World::served();
    let count = 2 * PAGES_PER_TURN + 1;
    let ids: Vec<_> = (0..count).map(|_| world.ask(READER, Request::Read(leases("", None, 1)))).collect();
    let small = world.ask(READER, Request::Read(Query::Status));
    let mut answered = Vec::new();
    for _ in 0..3 {
        world.turn();
        answered.push(ids.iter().filter(|id| world.response(**id).is_some()).count());
    }
    assert_eq!(answered, [PAGES_PER_TURN, PAGES_PER_TURN, 1]);
    assert!(world.response(small).is_some(), "a small question does not wait behind them");
}
