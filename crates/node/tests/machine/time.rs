//! Log time in a service: what counts, what is cut, and when it moves by itself.

use leasehold_core::protocol::{Query, ReadAnswer, TokenCheck};
use leasehold_core::{Millis, Policies, Token};
use leasehold_node::ConnectionId;

use crate::actor::{Actor, granted, name};
use crate::disk::Crash;
use crate::world::{World, millis};

/// A ttl of a second with the default drift, as the service counts it.
const SECOND_STRETCHED: u64 = 1_003;
/// The loop sleeps 20 ms at most, and a thing is due one millisecond after its point.
const WAKE: u64 = 21;

fn is_current(world: &mut World, resource: &str, token: Token) -> bool {
    world.read(Query::Check { resource: name(resource), token }) == ReadAnswer::Check(TokenCheck::Current)
}

/// Stamps of the entries handed over while `run` runs.
fn stamps_while(world: &mut World, run: impl FnOnce(&mut World)) -> Vec<u64> {
    let before = world.oracle.stamps().count();
    run(world);
    world.oracle.stamps().skip(before).collect()
}

#[test]
fn turns_of_microseconds_add_up() {
    let mut world = World::served();
    let mut actor = Actor::up(&mut world, 1, 60_000);
    let before = world.last_at().get();
    for _ in 0..20_000 {
        world.pass(std::time::Duration::from_micros(1));
        world.turn();
    }
    actor.renewed(&mut world);
    assert_eq!(world.last_at().get(), before + 20);
}

#[test]
fn a_stall_adds_a_tenth_of_a_second_and_the_rest_is_reported_as_cut() {
    let mut world = World::served();
    let mut actor = Actor::up(&mut world, 1, 60_000);
    let before = world.last_at().get();
    world.pass(millis(5_000));
    actor.renewed(&mut world);
    assert_eq!(world.last_at().get(), before + 100);
    assert_eq!(world.node.cut(), Millis::new(4_900));
    // What was cut stays cut: the next turns add what passes in them.
    world.pass(millis(30));
    actor.renewed(&mut world);
    assert_eq!(world.last_at().get(), before + 130);
    assert_eq!(world.node.cut(), Millis::new(4_900));
}

#[test]
fn a_suspend_that_one_clock_does_not_see_counts_for_nothing() {
    let mut world = World::served();
    let mut actor = Actor::up(&mut world, 1, 60_000);
    let before = world.last_at().get();
    world.clock.boot += 3_600_000_000_000;
    world.pass(millis(10));
    actor.renewed(&mut world);
    assert_eq!(world.last_at().get(), before + 10);
    assert_eq!(world.node.cut(), Millis::ZERO);
    // Nor does it make up for a stall later.
    world.pass(millis(2_000));
    actor.renewed(&mut world);
    assert_eq!(world.last_at().get(), before + 110);
}

#[test]
fn a_stall_is_cut_from_both_clocks() {
    let mut world = World::served();
    let mut actor = Actor::up(&mut world, 1, 60_000);
    let before = world.last_at().get();
    world.pass(millis(2_000));
    actor.renewed(&mut world);
    // One of the clocks moves faster than the other, then the other: had the cut been taken from one of them only, the other
    // would still hold the stall.
    for faster_boot in [true, false] {
        for _ in 0..10 {
            world.pass(millis(10));
            if faster_boot {
                world.clock.boot += 90_000_000;
            } else {
                world.clock.raw += 90_000_000;
            }
            actor.renewed(&mut world);
        }
    }
    assert_eq!(world.last_at().get(), before + 300);
}

#[test]
fn a_clock_that_was_slewed_slow_and_then_fast_does_not_catch_up() {
    let mut world = World::served();
    let mut actor = Actor::up(&mut world, 1, 60_000);
    for _ in 0..500 {
        world.clock.boot += 9_170_000;
        world.clock.raw += 10_000_000;
        world.turn();
    }
    actor.renewed(&mut world);
    let before = world.last_at().get();
    for _ in 0..100 {
        world.clock.boot += 10_830_000;
        world.clock.raw += 10_000_000;
        world.turn();
    }
    actor.renewed(&mut world);
    assert!(world.last_at().get() <= before + 1_001, "{before} {}", world.last_at());
}

#[test]
fn time_without_a_service_does_not_count() {
    let mut world = World::served();
    let mut actor = Actor::up(&mut world, 1, 1_000);
    let token = actor.hold(&mut world, "a");
    let before = world.last_at().get();
    world.restart(Crash::KeepsAcknowledged, millis(3_600_000));
    assert_eq!(world.last_at().get(), before);
    assert!(is_current(&mut world, "a", token));
    let attach = actor.attach();
    actor.send(&mut world, attach);
    world.pass(millis(50));
    world.rest();
    assert_eq!(world.last_at().get(), before + 50);
}

#[test]
fn elapsed_is_counted_from_the_opening_entry_and_not_from_the_start_of_the_process() {
    let mut world = World::served();
    Actor::up(&mut world, 1, 10_000);
    let before = world.last_at().get();
    world.crash(Crash::KeepsAcknowledged);
    // The vote takes its time to the disk.
    for _ in 0..8 {
        world.turn();
        world.pass(millis(10));
    }
    world.sync_and_turn();
    assert_eq!(world.entry_in_flight().unwrap().entry.at.get(), before);
    world.pass(millis(15));
    world.sync_and_turn();
    world.reply_to(ConnectionId(2), Actor::new(2, 10_000).open());
    assert_eq!(world.last_at().get(), before + 15);
}

#[test]
fn an_entry_that_was_written_and_never_acknowledged_is_where_time_goes_on() {
    let mut world = World::served();
    let mut actor = Actor::up(&mut world, 1, 10_000);
    world.pass(millis(90));
    let renew = actor.renew();
    actor.send(&mut world, renew);
    world.turn();
    let written = world.last_at();
    world.restart(Crash::KeepsWritten(1), millis(500));
    assert_eq!(world.last_at(), written);
}

#[test]
fn a_write_that_hangs_costs_nobody_more_than_the_cap() {
    let mut world = World::served();
    let mut actor = Actor::up(&mut world, 1, 10_000);
    let before = world.last_at().get();
    for _ in 0..20 {
        let renew = actor.renew();
        actor.send(&mut world, renew);
        world.pass(millis(20));
        world.turn();
    }
    world.sync_and_turn();
    // The first turn counted before the write was handed out.
    assert_eq!(world.last_at().get(), before + 20 + 100);
    assert_eq!(world.node.cut().get(), 400 - 120);
}

/// A disk that stands still for three ttl: the renewals that wait for it count, because log time stood still too.
#[test]
fn a_disk_that_stands_still_ends_no_session_whose_renewals_wait_for_it() {
    let mut world = World::served();
    let mut actor = Actor::up(&mut world, 1, 1_000);
    let token = actor.hold(&mut world, "a");
    let stuck = actor.renew();
    actor.send(&mut world, stuck);
    world.turn();
    for _ in 0..150 {
        let renew = actor.renew();
        actor.send(&mut world, renew);
        world.pass(millis(20));
        world.turn();
    }
    world.rest();
    let view = world.node.table().lease(&leasehold_core::ResourceName::new("a").unwrap()).unwrap();
    assert_eq!(view.holders[0].token, token);
}

#[test]
fn bare_entries_move_time_at_an_eighth_of_the_smallest_ttl() {
    let mut world = World::served();
    let long = Actor::up(&mut world, 1, 4_000);
    let mut short = Actor::up(&mut world, 2, 800);
    let gap = |stamps: &[u64]| stamps.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(0);
    let fast = stamps_while(&mut world, |world| world.run(millis(600)));
    assert!(gap(&fast) >= 100 && gap(&fast) <= 120 && fast.len() >= 5, "{fast:?}");
    let close = short.close();
    short.send(&mut world, close);
    world.rest();
    let slow = stamps_while(&mut world, |world| world.run(millis(2_600)));
    assert!(gap(&slow) >= 500 && gap(&slow) <= 520 && slow.len() >= 4, "{slow:?}");
    assert!(world.node.table().nonce(long.session).is_some());
}

#[test]
fn bare_entries_are_a_second_apart_at_most() {
    let mut world = World::served();
    Actor::up(&mut world, 1, 300_000);
    let stamps = stamps_while(&mut world, |world| world.run(millis(5_100)));
    assert_eq!(stamps.len(), 5, "{stamps:?}");
}

#[test]
fn an_idle_node_writes_nothing_but_a_stamp_every_ten_seconds() {
    let mut world = World::served();
    let mut actor = Actor::up(&mut world, 1, 1_000);
    let token = actor.hold(&mut world, "a");
    let release = actor.release("a", token);
    actor.send(&mut world, release);
    let close = actor.close();
    actor.send(&mut world, close);
    // What was noted as due for the session is looked at once more, and dropped.
    world.run(millis(3_000));
    let writes = world.disk.writes;
    world.run(millis(30_000));
    assert_eq!(world.disk.writes, writes + 3);
}

#[test]
fn a_node_whose_clients_all_died_comes_to_rest() {
    let mut world = World::served();
    let mut holder = Actor::new(1, 1_000);
    holder.policies =
        Policies { grace: Millis::new(500), hard: Millis::new(2_000), delay: Millis::new(3_000) };
    let mut holder = holder.opened(&mut world);
    holder.hold(&mut world, "a");
    let mut waiter = Actor::up(&mut world, 2, 1_000);
    let acquire = waiter.acquire("a", Some(86_400_000));
    waiter.send(&mut world, acquire);
    world.run(millis(10_000));
    assert_eq!(world.node.table().sizes().0, 0);
    let writes = world.disk.writes;
    world.run(millis(30_000));
    assert_eq!(world.disk.writes, writes + 3, "one stamp every ten seconds");
}

#[test]
fn a_dead_holder_with_a_dead_waiter_does_not_make_the_node_write_without_end() {
    let mut world = World::served();
    let patient = Policies { hard: Millis::new(60_000), ..Policies::default() };
    let [mut holder, mut waiter] = [1, 2].map(|number| {
        let mut actor = Actor::new(number, 1_000);
        actor.policies = patient;
        actor.opened(&mut world)
    });
    holder.hold(&mut world, "a");
    let acquire = waiter.acquire("a", Some(86_400_000));
    waiter.send(&mut world, acquire);
    let writes = world.disk.writes;
    world.run(millis(10_000));
    // Eight bare entries a second, and a few to tidy.
    let made = world.disk.writes - writes;
    assert!(made <= 100, "{made} writes in ten seconds in which nothing happens");
}

#[test]
fn a_dead_session_is_ended_within_one_wake_of_its_point() {
    let mut world = World::served();
    let actor = Actor::up(&mut world, 1, 1_000);
    let opened = world.clock;
    while world.node.table().sizes().0 > 0 {
        assert!(world.clock.since(opened).greater() < millis(2_000), "the session was never ended");
        world.run(millis(1));
    }
    let lived = world.clock.since(opened).greater();
    assert!(lived > millis(SECOND_STRETCHED) && lived <= millis(SECOND_STRETCHED + WAKE), "{lived:?}");
    assert_eq!(world.node.table().nonce(actor.session), None);
}

#[test]
fn a_dead_holders_lease_passes_to_a_waiter_on_time() {
    let mut world = World::served();
    let mut holder = Actor::up(&mut world, 1, 1_000);
    holder.hold(&mut world, "a");
    holder.renewed(&mut world);
    let renewed = world.last_at().get();
    let mut waiter = Actor::up(&mut world, 2, 60_000);
    let acquire = waiter.acquire("a", Some(60_000));
    waiter.send(&mut world, acquire);
    world.rest();
    while granted(&world.items(waiter.connection)).is_empty() {
        assert!(world.last_at().get() < renewed + 2_000, "the lease never passed");
        world.run(millis(1));
    }
    let took = world.last_at().get() - renewed;
    assert!(took > SECOND_STRETCHED && took <= SECOND_STRETCHED + WAKE, "{took}");
}

#[test]
fn a_holder_that_renews_after_a_stall_of_three_ttl_keeps_its_lease_and_a_dead_one_loses_it() {
    let mut world = World::served();
    let mut alive = Actor::up(&mut world, 1, 1_000);
    let mut dead = Actor::up(&mut world, 2, 1_000);
    let mut waiter = Actor::up(&mut world, 3, 60_000);
    let kept = alive.hold(&mut world, "a");
    dead.hold(&mut world, "b");
    for resource in ["a", "b"] {
        let acquire = waiter.acquire(resource, Some(60_000));
        waiter.send(&mut world, acquire);
    }
    world.rest();
    world.run(millis(600));
    alive.renewed(&mut world);
    let stalled_at = world.last_at().get();
    // The loop stands still. Its first turn afterwards finds nothing; the renewal comes a little later.
    world.pass(millis(3_000));
    world.rest();
    world.run(millis(40));
    alive.renewed(&mut world);
    assert!(is_current(&mut world, "a", kept));
    world.received(waiter.connection);
    let mut passed = Vec::new();
    while passed.is_empty() {
        assert!(world.last_at().get() < stalled_at + 1_000, "the dead holder's lease never passed");
        world.run(millis(1));
        passed = granted(&world.items(waiter.connection));
    }
    // 600 ms had passed before the stall, at most a tenth of a second was counted for it.
    let took = world.last_at().get() - stalled_at;
    assert!(took > SECOND_STRETCHED - 620 && took <= SECOND_STRETCHED - 600 + WAKE, "{took}");
    assert!(is_current(&mut world, "a", kept) && is_current(&mut world, "b", passed[0]));
}

#[test]
fn restarts_lengthen_a_dead_holders_lease_by_an_eighth_of_a_ttl_each_at_most() {
    const RESTARTS: u64 = 5;
    let mut world = World::served();
    let mut holder = Actor::up(&mut world, 1, 1_000);
    holder.hold(&mut world, "a");
    let opened = world.clock;
    for _ in 0..RESTARTS {
        world.run(millis(150));
        world.restart(Crash::KeepsAcknowledged, millis(0));
    }
    while world.node.table().sizes().0 > 0 {
        assert!(world.clock.since(opened).greater() < millis(3_000), "the session was never ended");
        world.run(millis(1));
    }
    let lived = world.clock.since(opened).greater();
    let latest = SECOND_STRETCHED + WAKE + RESTARTS * (125 + WAKE);
    assert!(lived <= millis(latest), "{lived:?}");
}
