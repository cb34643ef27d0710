//! What the log is told about silence, and what is counted of it.

use leasehold_core::gap::{GapCause, GapView, OutageView};
use leasehold_core::{Command, Config, LogTime, Millis, System};
use leasehold_node::{GapPattern, Input, Options, Place};

use crate::actor::{Actor, name};
use crate::disk::Crash;
use crate::world::{World, machine, millis};

fn gaps(world: &World, resource: &str) -> Vec<GapView> {
    world.node.table().gaps(&name(resource), None, LogTime::ZERO).map_or_else(Vec::new, |of| of.gaps)
}

fn outages(world: &World) -> Vec<OutageView> {
    world.node.table().outages(LogTime::ZERO)
}

fn served_on(boot: u8, patterns: &[&str]) -> World {
    let gap_patterns = patterns.iter().map(|text| GapPattern::new(text).expect("a pattern")).collect();
    let options = Options { machine: Some(machine(boot, 7)), gap_patterns, ..Options::default() };
    World::begin(Place::Served, Config::default(), options).up()
}

/// Dies with its sockets.
fn hangs_up(world: &mut World, actor: &Actor) {
    world.inbox.push(Input::HungUp(actor.connection));
    world.inbox.push(Input::Disconnected(actor.connection));
    world.rest();
}

#[test]
fn a_client_that_hangs_up_gave_its_last_sign_of_life_then() {
    let mut world = World::served();
    let mut actor = Actor::up(&mut world, 1, 3_000);
    actor.hold(&mut world, "job");
    world.run(millis(700));
    actor.renewed(&mut world);
    world.run(millis(500));
    hangs_up(&mut world, &actor);
    world.run(millis(6_000));
    let [gap] = &gaps(&world, "job")[..] else { panic!("one gap") };
    // Overdue 3007 ms after the renewal, of which 500 were before it hung up.
    let detection = gap.caused_by(GapCause::Detection).get();
    assert!((2_500..=2_515).contains(&detection), "{gap:?}");
}

#[test]
fn a_connection_that_is_lost_otherwise_says_nothing() {
    let mut world = World::served();
    let mut actor = Actor::up(&mut world, 1, 3_000);
    actor.hold(&mut world, "job");
    world.run(millis(500));
    world.inbox.push(Input::Disconnected(actor.connection));
    world.run(millis(6_000));
    let [gap] = &gaps(&world, "job")[..] else { panic!("one gap") };
    let detection = gap.caused_by(GapCause::Detection).get();
    assert!((2_995..=3_010).contains(&detection), "since the acquire: {gap:?}");
}

#[test]
fn a_session_that_has_attached_anew_is_not_silent() {
    let mut world = World::served();
    let mut actor = Actor::up(&mut world, 1, 3_000);
    let old = actor.connection;
    actor.hold(&mut world, "job");
    actor.connection = leasehold_node::ConnectionId(77);
    let attach = actor.attach();
    world.reply_to(actor.connection, attach);
    world.inbox.push(Input::HungUp(old));
    world.rest();
    let noted = world.journal.iter().any(|happening| match happening {
        crate::world::Happening::Wrote(write) => write.entries.iter().any(|entry| {
            leasehold_node::payload::Payload::decode(&entry.payload).is_ok_and(|payload| {
                payload.entry.commands.iter().any(|c| matches!(c, Command::Detached { .. }))
            })
        }),
        _ => false,
    });
    assert!(!noted);
}

#[test]
fn hanging_up_does_not_keep_a_node_from_stopping() {
    let mut world = World::served();
    let mut actor = Actor::up(&mut world, 1, 3_000);
    actor.hold(&mut world, "job");
    world.inbox.push(Input::Drain);
    world.turn();
    assert!(world.node.is_drained());
    world.inbox.push(Input::HungUp(actor.connection));
    world.turn();
    assert!(world.node.is_drained() && world.disk.in_flight.is_empty());
}

#[test]
fn a_service_that_starts_again_in_the_same_boot_says_for_how_long_it_was_away() {
    let mut world = served_on(1, &[]);
    let mut actor = Actor::up(&mut world, 1, 10_000);
    let token = actor.hold(&mut world, "job");
    world.run(millis(2_000));
    let release = actor.release("job", token);
    actor.send(&mut world, release);
    world.rest();
    world.restart(Crash::KeepsAcknowledged, millis(45_000));
    let [outage] = outages(&world)[..] else { panic!("one outage: {:?}", outages(&world)) };
    let length = outage.length.expect("the clocks can be compared").get();
    assert!((44_990..=46_300).contains(&length), "{length}");
    let [gap] = &gaps(&world, "job")[..] else { panic!("one gap") };
    assert_eq!(gap.caused_by(GapCause::Outage), Millis::new(length));
    assert!(gap.ended_ago.is_none());
}

#[test]
fn where_nothing_was_stamped_nobody_knows_for_how_long_it_was_away() {
    let mut world = served_on(1, &[]);
    // Nobody lives: nothing moves time, and a day of service would look like a day without.
    world.run(millis(1_000));
    world.restart(Crash::KeepsAcknowledged, millis(45_000));
    assert_eq!(outages(&world).iter().map(|outage| outage.length).collect::<Vec<_>>(), [None]);
}

/// Held for a moment and given back by a client that is gone: from here on no session lives, and a gap lasts.
fn left_alone(world: &mut World) {
    let mut actor = Actor::up(world, 1, 10_000);
    let token = actor.hold(world, "job");
    let release = actor.release("job", token);
    actor.send(world, release);
    let close = actor.close();
    actor.send(world, close);
    world.rest();
    assert_eq!(world.node.table().sizes(), (0, 1));
}

/// Everything is as it would be for whoever looks right behind the restart.
fn gap_and_outage(world: &World) -> (u64, u64) {
    let [gap] = &gaps(world, "job")[..] else { panic!("one gap: {:?}", gaps(world, "job")) };
    let [outage] = outages(world)[..] else { panic!("one outage: {:?}", outages(world)) };
    (gap.length().get(), outage.length.expect("the clocks can be compared").get())
}

/// There to find: a gap of 42 s that reads 1 s behind a restart of a service that nobody used meanwhile.
#[test]
fn an_idle_service_that_stops_in_order_loses_no_time_of_a_gap() {
    let mut world = served_on(1, &[]);
    left_alone(&mut world);
    world.run(millis(42_000));
    world.inbox.push(Input::Drain);
    world.turn();
    assert!(!world.node.is_drained(), "the last stamp is not written yet");
    world.rest();
    assert!(world.node.is_drained());
    world.restart(Crash::KeepsAcknowledged, millis(3_000));
    let (gap, outage) = gap_and_outage(&world);
    assert!((44_980..=45_020).contains(&gap), "{gap}");
    assert!((2_980..=3_020).contains(&outage), "{outage}");
}

#[test]
fn an_idle_service_that_is_killed_loses_no_time_of_a_gap() {
    let mut world = served_on(1, &[]);
    left_alone(&mut world);
    world.run(millis(42_000));
    world.restart(Crash::KeepsAcknowledged, millis(3_000));
    let (gap, outage) = gap_and_outage(&world);
    assert!((44_980..=45_020).contains(&gap), "{gap}");
    // What passed between the last stamp and its end cannot be told from the time without it.
    assert!((3_000..=13_020).contains(&outage), "{outage}");
}

#[test]
fn an_idle_service_stamps_every_ten_seconds_and_only_if_it_knows_a_name() {
    let entries = |world: &mut World| {
        let before = world.node.stats().entries;
        world.run(millis(600_000));
        world.node.stats().entries - before
    };
    let mut world = served_on(1, &[]);
    assert_eq!(entries(&mut world), 0, "it knows no name");
    left_alone(&mut world);
    let stamps = entries(&mut world);
    assert!((58..=60).contains(&stamps), "{stamps} in ten minutes");
    let mut world = World::embedded();
    left_alone(&mut world);
    assert_eq!(entries(&mut world), 0, "there time without a server counts anyway");
    let options = Options { cluster_version: 2, ..Options::default() };
    let mut world = World::begin(Place::Served, Config::default(), options).up();
    left_alone(&mut world);
    assert_eq!(entries(&mut world), 0, "nothing is measured");
}

/// There to find: a log that did not count gaps has no stamps of idle time, and a month of service would look like a month without.
#[test]
fn the_first_start_that_counts_gaps_does_not_trust_the_last_stamp() {
    let machine = Some(machine(1, 7));
    let options = Options { cluster_version: 2, machine, ..Options::default() };
    let mut world = World::begin(Place::Served, Config::default(), options).up();
    left_alone(&mut world);
    world.run(millis(60_000));
    world.upgrade(3);
    world.restart(Crash::KeepsAcknowledged, millis(3_000));
    assert_eq!(outages(&world).iter().map(|outage| outage.length).collect::<Vec<_>>(), [None]);
}

#[test]
fn the_last_stamp_is_written_once_however_slow_the_disk() {
    let mut world = served_on(1, &[]);
    left_alone(&mut world);
    world.run(millis(5_000));
    let before = world.node.stats().entries;
    world.inbox.push(Input::Drain);
    for _ in 0..5 {
        world.turn();
        world.pass(millis(500));
        world.sync();
    }
    world.turn();
    assert!(world.node.is_drained());
    assert_eq!(world.node.stats().entries - before, 1);
}

#[test]
fn an_embedded_directory_counts_the_time_without_a_server_and_has_no_outage() {
    let mut world = World::embedded();
    let mut actor = Actor::up(&mut world, 1, 10_000);
    actor.hold(&mut world, "job");
    world.restart(Crash::KeepsAcknowledged, millis(45_000));
    world.run(millis(100));
    assert_eq!(outages(&world), []);
    let [gap] = &gaps(&world, "job")[..] else { panic!("one gap") };
    assert!((45_000..45_500).contains(&gap.length().get()), "{gap:?}");
}

#[test]
fn a_loop_that_stood_still_is_an_outage() {
    let mut world = World::served();
    let mut actor = Actor::up(&mut world, 1, 60_000);
    actor.hold(&mut world, "job");
    world.run(millis(100));
    world.pass(millis(5_000));
    world.run(millis(1_000));
    let [outage] = outages(&world)[..] else { panic!("one outage: {:?}", outages(&world)) };
    assert!((4_850..=5_000).contains(&outage.length.unwrap().get()), "{outage:?}");
}

#[test]
fn a_log_of_an_earlier_version_hears_nothing_of_silence() {
    let options = Options { cluster_version: 2, ..Options::default() };
    let mut world = World::begin(Place::Served, Config::default(), options).up();
    let mut actor = Actor::up(&mut world, 1, 3_000);
    actor.hold(&mut world, "job");
    hangs_up(&mut world, &actor);
    world.pass(millis(5_000));
    world.run(millis(1_000));
    world.restart(Crash::KeepsAcknowledged, millis(5_000));
    world.run(millis(6_000));
    let is_new = |command: &Command| {
        matches!(command, Command::Detached { .. } | Command::System(System::Unserved { .. }))
    };
    for happening in &world.journal {
        let crate::world::Happening::Wrote(write) = happening else { continue };
        for entry in write.entries.iter().filter(|entry| entry.kind == 0 && !entry.payload.is_empty()) {
            let payload = leasehold_node::payload::Payload::decode(&entry.payload).unwrap();
            assert!(!payload.entry.commands.iter().any(is_new), "{payload:?}");
        }
    }
    assert!(gaps(&world, "job").is_empty() && outages(&world).is_empty());
}

#[test]
fn leaderless_time_is_counted_by_pattern_and_not_again_by_the_next_process() {
    let mut world = served_on(1, &["job*", "other"]);
    let mut actor = Actor::up(&mut world, 1, 60_000);
    let token = actor.hold(&mut world, "job/a");
    let release = actor.release("job/a", token);
    actor.send(&mut world, release);
    world.run(millis(3_000));
    let totals = |world: &World| {
        let patterns = world.node.leaderless();
        patterns
            .into_iter()
            .map(|(_, leaderless)| (leaderless.total.get(), leaderless.names))
            .collect::<Vec<_>>()
    };
    let [(total, 1), (0, 0)] = totals(&world)[..] else { panic!("{:?}", totals(&world)) };
    assert!((2_000..=3_000).contains(&total), "{total}");
    actor.hold(&mut world, "job/a");
    let [(settled, 0), (0, 0)] = totals(&world)[..] else { panic!("{:?}", totals(&world)) };
    assert!(settled >= total && settled <= 3_100, "{settled}");
    let queue =
        world.node.stats().gaps.causes().map(|(cause, buckets)| (cause, buckets.count())).collect::<Vec<_>>();
    assert_eq!(queue, [(GapCause::Queue, 1)]);
    world.restart(Crash::KeepsAcknowledged, millis(0));
    let [(again, 0), (0, 0)] = totals(&world)[..] else { panic!("{:?}", totals(&world)) };
    assert_eq!(again, 0, "the process before has counted it");
}

#[test]
fn expiries_are_counted_with_their_lateness() {
    let mut world = World::served();
    let mut actor = Actor::up(&mut world, 1, 1_000);
    actor.hold(&mut world, "job");
    world.run(millis(3_000));
    let late = world.node.stats().expiry_late_millis;
    assert_eq!(late.count(), 1);
    assert!(late.sum() <= 25, "{} ms", late.sum());
}

/// There to find: a note of a slow write that is an entry of its own, whose write is as slow, and is noted.
#[test]
fn a_disk_that_is_always_slow_fills_no_log_with_notes_of_it() {
    let mut world = World::served();
    let entries = |world: &World| world.node.stats().entries;
    let before = entries(&world);
    let mut actor = Actor::up(&mut world, 1, 60_000);
    actor.hold(&mut world, "job");
    let close = actor.close();
    actor.send(&mut world, close);
    for _ in 0..20 {
        world.turn();
        for _ in 0..120 {
            world.pass(millis(20));
            world.turn();
        }
        world.sync();
    }
    assert!(
        entries(&world) - before < 12,
        "{} entries in 48 s in which nobody asked for anything",
        entries(&world) - before
    );
}
