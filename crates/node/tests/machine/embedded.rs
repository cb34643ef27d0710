//! Embedded directories: time without a server counts, once, and only between clocks that can be compared.

use leasehold_core::protocol::{Query, ReadAnswer, TokenCheck};
use leasehold_core::{Answer, ItemKind, Millis, Refusal, Unavailable};
use leasehold_node::ResumeError;

use crate::actor::{Actor, granted, name};
use crate::disk::Crash;
use crate::world::{World, embedded, machine, millis};

#[test]
fn time_without_a_server_counts_in_full() {
    let mut world = World::embedded();
    let before = {
        let mut actor = Actor::up(&mut world, 1, 1_000);
        actor.hold(&mut world, "a");
        world.last_at().get()
    };
    world.restart(Crash::KeepsAcknowledged, millis(3_600_000));
    // The opening entry says so, and the tidying behind it, at the same point.
    assert_eq!(world.last_at().get(), before + 3_600_000);
    assert_eq!(world.node.cut(), Millis::ZERO);
    assert_eq!(world.node.table().sizes().0, 0);
}

#[test]
fn a_session_survives_a_server_that_is_replaced_quickly() {
    let mut world = World::embedded();
    let mut actor = Actor::up(&mut world, 1, 1_000);
    let token = actor.hold(&mut world, "a");
    world.restart(Crash::KeepsAcknowledged, millis(900));
    let query = Query::Check { resource: name("a"), token };
    assert_eq!(world.read(query), ReadAnswer::Check(TokenCheck::Current));
}

#[test]
fn time_is_counted_once() {
    let mut world = World::embedded();
    Actor::up(&mut world, 1, 60_000);
    let before = world.last_at().get();
    world.restart(Crash::KeepsAcknowledged, millis(5_000));
    assert_eq!(world.last_at().get(), before + 5_000);
    world.restart(Crash::KeepsAcknowledged, millis(0));
    assert_eq!(world.last_at().get(), before + 5_000);
    world.restart(Crash::KeepsAcknowledged, millis(70));
    assert_eq!(world.last_at().get(), before + 5_070);
}

#[test]
fn a_crash_in_the_opening_entry_counts_the_time_once() {
    for crash in [Crash::KeepsAcknowledged, Crash::KeepsWritten(1)] {
        let mut world = World::embedded();
        Actor::up(&mut world, 1, 60_000);
        let before = world.last_at().get();
        world.pass(millis(5_000));
        world.crash(Crash::KeepsAcknowledged);
        world.turn();
        world.sync_and_turn();
        assert_eq!(world.entry_in_flight().unwrap().entry.at.get(), before + 5_000);
        world.restart(crash, millis(300));
        assert_eq!(world.last_at().get(), before + 5_300, "{crash:?}");
    }
}

#[test]
fn the_smaller_elapsed_of_both_clocks_counts() {
    let mut world = World::embedded();
    Actor::up(&mut world, 1, 60_000);
    let before = world.last_at().get();
    world.clock.boot += 3_600_000_000_000;
    world.restart(Crash::KeepsAcknowledged, millis(2_000));
    assert_eq!(world.last_at().get(), before + 2_000);
}

#[test]
fn a_stall_of_a_server_that_goes_on_is_cut_as_in_a_service() {
    let mut world = World::embedded();
    let mut actor = Actor::up(&mut world, 1, 60_000);
    let before = world.last_at().get();
    world.pass(millis(5_000));
    actor.renewed(&mut world);
    assert_eq!(world.last_at().get(), before + 100);
    // The next server counts from there: the stall is not brought back by its anchor.
    world.restart(Crash::KeepsAcknowledged, millis(1_000));
    assert_eq!(world.last_at().get(), before + 1_100);
}

#[test]
fn another_boot_ends_every_session_and_moves_no_time() {
    let mut world = World::embedded();
    let mut actor = Actor::up(&mut world, 1, 60_000);
    let token = actor.hold(&mut world, "a");
    let before = world.last_at();
    world.place = embedded(machine(2, 9), false);
    world.clock = leasehold_core::holder::Reading { boot: 1_000, raw: 2_000 };
    world.oracle.forget_readings();
    world.crash(Crash::KeepsAcknowledged);
    world.turn();
    world.sync_and_turn();
    assert_eq!(world.entry_in_flight().unwrap().entry.at, before);
    world.rest();
    assert_eq!(world.node.table().sizes().0, 0);
    // Nothing is held back: whoever held it is gone.
    let greater = Actor::up(&mut world, 2, 1_000).hold(&mut world, "a");
    assert!(greater > token);
    world.restart(Crash::KeepsAcknowledged, millis(700));
    assert_eq!(world.last_at().get(), before.get() + 700);
    assert_eq!(world.node.table().sizes().0, 1, "one reboot ends sessions once");
}

#[test]
fn another_time_namespace_is_refused() {
    let mut world = World::embedded();
    Actor::up(&mut world, 1, 60_000);
    world.place = embedded(machine(1, 8), false);
    assert_eq!(world.refused_restart(), ResumeError::OtherNamespace { theirs: 7, ours: 8 });
    // Back in its own namespace the directory is as it was.
    world.place = embedded(machine(1, 7), false);
    world.restart(Crash::KeepsAcknowledged, millis(100));
    assert_eq!(world.node.table().sizes().0, 1);
}

#[test]
fn other_offsets_of_the_same_time_namespace_are_refused() {
    let mut world = World::embedded();
    let mut moved = machine(1, 7);
    moved.offsets[2] = 3_600;
    world.place = embedded(moved, false);
    assert_eq!(world.refused_restart(), ResumeError::OtherNamespace { theirs: 7, ours: 7 });
}

#[test]
fn clocks_that_went_back_are_refused() {
    for (boot, raw) in [(2_000_000_000, 0), (0, 2_000_000_000)] {
        let mut world = World::embedded();
        Actor::up(&mut world, 1, 60_000);
        world.clock.boot -= boot;
        world.clock.raw -= raw;
        assert_eq!(world.refused_restart(), ResumeError::WentBack { behind: Millis::new(2_000) });
    }
}

#[test]
fn ending_everything_waits_the_longest_ttl_with_its_drift() {
    // Five minutes and the drift of both sides.
    const WAIT: u64 = 300_601;
    let mut world = World::embedded();
    let token = Actor::up(&mut world, 1, 60_000).hold(&mut world, "a");
    let before = world.last_at();
    world.place = embedded(machine(1, 8), true);
    world.restart(Crash::KeepsAcknowledged, millis(50));
    assert_eq!(world.last_at(), before, "no time is counted");
    assert_eq!(world.node.table().sizes().0, 0);
    let mut actor = Actor::up(&mut world, 2, 300_000);
    let acquire = actor.acquire("a", None);
    actor.send(&mut world, acquire);
    world.rest();
    let items = world.items(actor.connection);
    let ItemKind::Answer { answer: Answer::Refused(Refusal::NotFree { why, .. }), .. } = &items[0].kind
    else {
        panic!("{items:?}");
    };
    assert_eq!(*why, Unavailable::RestoreWait { remaining: Millis::new(WAIT) });
    // The wait goes on through a restart, although the switch is still there: these clocks can be compared.
    world.restart(Crash::KeepsAcknowledged, millis(200_000));
    let attach = actor.attach();
    actor.send(&mut world, attach);
    let acquire = actor.acquire("a", Some(300_000));
    actor.send(&mut world, acquire);
    world.rest();
    assert!(granted(&world.items(actor.connection)).is_empty());
    let mut grants = Vec::new();
    while grants.is_empty() {
        assert!(world.last_at().get() < before.get() + WAIT + 1_000, "nothing is ever granted");
        actor.renewed(&mut world);
        world.run(millis(500));
        grants = granted(&world.items(actor.connection));
    }
    assert!(grants[0] > token);
    assert!(world.last_at().get() > before.get() + WAIT);
}

#[test]
fn ending_everything_is_for_clocks_that_cannot_be_compared_and_changes_nothing_otherwise() {
    let mut world = World::embedded();
    let mut actor = Actor::up(&mut world, 1, 60_000);
    let token = actor.hold(&mut world, "a");
    world.place = embedded(machine(1, 7), true);
    world.restart(Crash::KeepsAcknowledged, millis(1_000));
    let query = Query::Check { resource: name("a"), token };
    assert_eq!(world.read(query), ReadAnswer::Check(TokenCheck::Current));
}

#[test]
fn every_stamped_entry_carries_the_readings_of_its_stamp() {
    let mut world = World::embedded();
    let mut actor = Actor::up(&mut world, 1, 60_000);
    for step in 1..5 {
        world.pass(std::time::Duration::from_micros(step * 777));
        let renew = actor.renew();
        actor.send(&mut world, renew);
        world.turn();
        let anchor = world.entry_in_flight().unwrap().anchor.expect("embedded entries are anchored");
        assert_eq!((anchor.boot, anchor.raw), (world.clock.boot, world.clock.raw));
        assert_eq!(anchor.machine, machine(1, 7));
        world.rest();
    }
    let mut served = World::served();
    let actor = Actor::new(1, 1_000);
    actor.send(&mut served, actor.open());
    served.turn();
    assert_eq!(served.entry_in_flight().unwrap().anchor, None);
}
