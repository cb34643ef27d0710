//! What watchers see: one batch for each entry that changed something, under its index, before any answer, also after a restart.
//!
//! That order, completeness and contents are right is checked by the oracle after every turn of every test.

use leasehold_core::protocol::{Change, Query, Request, Response, ToClient};
use leasehold_core::{Answer, Config, Op, RegisterKey, Reply, Revision, Value};
use leasehold_node::payload::{NodeSnapshot, PayloadError};
use leasehold_node::{ConnectionId, Options, Place};

use crate::actor::{Actor, name, plain_grant};
use crate::disk::Crash;
use crate::world::{Happening, World, millis};

const CALLS: ConnectionId = ConnectionId(900);

/// Resources that changed, by revision.
fn kept(world: &World) -> Vec<(u64, Vec<String>)> {
    let resources =
        |changes: &[Change]| changes.iter().map(|change| change.resource().as_str().to_owned()).collect();
    world.node.changes().kept().map(|kept| (kept.revision.get(), resources(&kept.changes))).collect()
}

fn with_snapshots(every: u64) -> World {
    let options = Options { snapshot_entries: every, ..Options::default() };
    World::begin(Place::Served, Config::default(), options).up()
}

#[test]
fn the_changes_of_an_entry_are_one_batch_under_its_index() {
    let mut world = World::served();
    let actor = Actor::plain(&mut world, 1, 10_000);
    assert!(kept(&world).is_empty(), "sessions are not watched");
    let before = world.node.applied();
    let taken = ["a", "b"].map(|resource| world.ask(CALLS, actor.held_acquire(resource, 1)));
    world.rest();
    assert_eq!(kept(&world), [(before + 1, vec!["a".to_owned(), "b".to_owned()])]);
    world.reply_to(CALLS, actor.plain_renew());
    world.run(millis(3_000));
    let token = plain_grant(world.response(taken[0])).1;
    let before = world.node.applied();
    world.reply_to(CALLS, actor.plain_release("a", token));
    assert_eq!(
        kept(&world).last(),
        Some(&(before + 1, vec!["a".to_owned()])),
        "time and renewals change nothing"
    );
    assert_eq!(kept(&world).len(), 2);
}

#[test]
fn values_and_registers_are_watched_and_refusals_are_not() {
    let mut world = World::served();
    let actor = Actor::plain(&mut world, 1, 10_000);
    let token = actor.take(&mut world, "a");
    let before = world.node.applied();
    let value = Value::new(vec![7; 10]).unwrap();
    let set = |token| Op::SetValue { resource: name("a"), token, value: value.clone() };
    let write = Op::WriteRegister {
        resource: name("a"),
        token,
        key: RegisterKey::new("cursor").unwrap(),
        value: Some(value.clone()),
        with_lease: true,
    };
    world.reply_to(CALLS, actor.plain_op(set(token)));
    let refused = world.reply_to(CALLS, actor.plain_op(set(leasehold_core::Token::from_u64(1 << 40))));
    assert!(matches!(refused, Reply::Plain { answer: Answer::Refused(_), .. }), "{refused:?}");
    world.reply_to(CALLS, actor.plain_op(write));
    let revisions: Vec<u64> = kept(&world).into_iter().map(|(revision, _)| revision).collect();
    assert_eq!(revisions[1..], [before + 1, before + 3]);
}

#[test]
fn watchers_are_told_before_the_answer_and_after_the_sync() {
    let mut world = World::served();
    let (holder, waiter) = (Actor::plain(&mut world, 1, 10_000), Actor::plain(&mut world, 2, 10_000));
    let token = holder.take(&mut world, "a");
    let id = world.ask(CALLS, waiter.held_acquire("a", 60_000));
    world.rest();
    world.ask(CALLS, holder.plain_release("a", token));
    world.turn();
    world.journal.clear();
    world.turn();
    assert!(world.journal.is_empty(), "nothing is told of what is not synced");
    world.sync_and_turn();
    let happened: Vec<&str> = world
        .journal
        .iter()
        .map(|happening| match happening {
            Happening::Changed(changes) => {
                assert_eq!((changes.revision.get(), changes.changes.len()), (world.node.applied(), 2));
                "changed"
            }
            Happening::Sent(_, ToClient::Response { id: answered, .. }) if *answered == id => "granted",
            Happening::Sent(..) => "released",
            Happening::Wrote(_) | Happening::SavesSnapshot(_) => "something else",
        })
        .collect();
    assert_eq!(happened, ["changed", "released", "granted"]);
}

#[test]
fn a_read_names_the_last_entry_that_it_takes_into_account() {
    let mut world = World::served();
    let actor = Actor::plain(&mut world, 1, 10_000);
    actor.take(&mut world, "a");
    let newest = *kept(&world).last().map(|(revision, _)| revision).expect("something was granted");
    // One more is on its way: the read does not see it.
    world.ask(CALLS, actor.held_acquire("b", 1));
    world.turn();
    let id = world.ask(CALLS, Request::Read(Query::Lease(name("b"))));
    world.turn();
    let Some(Response::Read { revision, .. }) = world.response(id) else { panic!("a read is answered") };
    assert_eq!(revision.get(), newest);
    world.rest();
    let (first_not_seen, resources) = kept(&world).pop().expect("something was granted");
    assert_eq!((first_not_seen > revision.get(), resources), (true, vec!["b".to_owned()]));
}

#[test]
fn changes_survive_a_restart_from_the_log() {
    let mut world = World::served();
    let actor = Actor::plain(&mut world, 1, 60_000);
    for number in 0..5 {
        actor.take(&mut world, &format!("r{number}"));
    }
    let before = kept(&world);
    world.restart(Crash::KeepsAcknowledged, millis(100));
    assert_eq!(kept(&world), before);
    assert_eq!(world.node.changes().oldest(), Revision::default());
}

#[test]
fn changes_survive_a_restart_from_a_snapshot_with_entries_behind_it_or_without() {
    for behind in 0..3 {
        let mut world = with_snapshots(10);
        let actor = Actor::plain(&mut world, 1, 60_000);
        let mut number = 0;
        while world.disk.saving.is_none() {
            actor.take(&mut world, &format!("r{number}"));
            number += 1;
        }
        world.save_snapshot();
        world.rest();
        for more in 0..behind {
            actor.take(&mut world, &format!("s{more}"));
        }
        let before = kept(&world);
        world.restart(Crash::KeepsAcknowledged, millis(100));
        assert_eq!(kept(&world), before);
        // And once more, from a snapshot of what came from a snapshot.
        while world.disk.saving.is_none() {
            world.reply_to(CALLS, actor.plain_renew());
        }
        world.save_snapshot();
        world.rest();
        world.restart(Crash::KeepsAcknowledged, millis(100));
        assert_eq!(kept(&world), before);
    }
}

/// As release 1 wrote it: head and table, without changes.
fn of_version_1(bytes: &[u8]) -> Vec<u8> {
    let snapshot = NodeSnapshot::decode(bytes).expect("the node wrote it");
    let head = (snapshot.voters.voters, snapshot.voters.learners, snapshot.stamped);
    let mut old = postcard::to_extend(&head, vec![1]).expect("a vector grows as needed");
    old.extend_from_slice(&snapshot.table.encode());
    old
}

#[test]
fn after_a_snapshot_of_version_1_what_came_before_it_is_said_to_be_forgotten() {
    let mut world = with_snapshots(10);
    let actor = Actor::plain(&mut world, 1, 60_000);
    let mut number = 0;
    while world.disk.saving.is_none() {
        actor.take(&mut world, &format!("r{number}"));
        number += 1;
    }
    world.save_snapshot();
    world.rest();
    actor.take(&mut world, "behind");
    let saved = world.disk.saved.as_mut().expect("it was saved");
    saved.2 = of_version_1(&saved.2);
    let covered = Revision::new(saved.0);
    world.oracle.forgotten = covered;
    world.restart(Crash::KeepsAcknowledged, millis(100));
    assert_eq!(world.node.changes().oldest(), covered);
    let left: Vec<Vec<String>> = kept(&world).into_iter().map(|(_, resources)| resources).collect();
    assert_eq!(left, [["behind"]]);
    assert!(world.oracle.changes().len() > left.len(), "something was forgotten");
    // The next snapshot says the same.
    while world.disk.saving.is_none() {
        world.reply_to(CALLS, actor.plain_renew());
    }
    world.save_snapshot();
    world.rest();
    world.restart(Crash::KeepsAcknowledged, millis(100));
    assert_eq!(world.node.changes().oldest(), covered);
}

#[test]
fn a_snapshot_that_is_cut_short_or_of_a_later_version_is_refused() {
    let mut world = with_snapshots(10);
    let actor = Actor::plain(&mut world, 1, 60_000);
    let mut number = 0;
    while world.disk.saving.is_none() {
        actor.take(&mut world, &format!("r{number}"));
        number += 1;
    }
    let bytes = world.disk.saving.as_ref().expect("it is being saved").save().bytes;
    assert_eq!(NodeSnapshot::decode(&bytes).unwrap().changes.expect("it has them").kept().count(), number);
    for length in 0..bytes.len() {
        assert!(NodeSnapshot::decode(&bytes[..length]).is_err(), "{length} of {} bytes", bytes.len());
    }
    let mut later = bytes;
    later[0] = 4;
    let error = NodeSnapshot::decode(&later).err();
    assert_eq!(error, Some(PayloadError::NewerVersion { what: "snapshot", found: 4, known: 3 }));
}
