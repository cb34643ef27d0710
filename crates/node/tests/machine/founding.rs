//! The choices made when a log begins hold for its whole life.

use leasehold_core::{Command, Config, Millis, Reply, System};
use leasehold_node::members::CLUSTER_VERSION;
use leasehold_node::{Options, Place};

use crate::actor::Actor;
use crate::disk::Crash;
use crate::world::{World, millis};

fn config(max_ttl: u64) -> Config {
    Config { max_ttl: Millis::new(max_ttl), ..Config::default() }
}

#[test]
fn the_first_stamped_entry_carries_the_choices() {
    let mut world = World::begin(Place::Served, config(60_000), Options::default());
    world.turn();
    world.sync_and_turn();
    let entry = world.entry_in_flight().expect("the opening entry").entry;
    // Nobody else has to know what may stand in this log: its version is raised at once.
    let version = System::ClusterVersion { version: CLUSTER_VERSION };
    let expected = [System::Found(config(60_000)), version].map(Command::System);
    assert_eq!(entry.commands, expected);
}

#[test]
fn a_crash_before_the_first_stamped_entry_does_not_lose_the_choices() {
    let mut world = World::begin(Place::Served, config(60_000), Options::default());
    world.turn();
    // The vote and raft's own entry are synced, the opening entry is not.
    world.sync_and_turn();
    world.restart(Crash::KeepsAcknowledged, millis(1));
    let actor = Actor::up(&mut world, 1, 60_000);
    // Another process brings other choices: the log's own hold, or what was said before would be replayed otherwise.
    world.config = config(10_000);
    world.restart(Crash::KeepsAcknowledged, millis(1));
    assert_eq!(world.node.table().config(), &config(60_000));
    assert_eq!(world.node.table().nonce(actor.session), Some(actor.nonce));
}

#[test]
fn choices_of_a_later_process_change_nothing() {
    let mut world = World::begin(Place::Served, config(60_000), Options::default()).up();
    world.config = config(300_000);
    world.restart(Crash::KeepsAcknowledged, millis(1));
    let actor = Actor::new(1, 60_001);
    let reply = world.reply_to(actor.connection, actor.open());
    assert!(matches!(reply, Reply::Refused(_)), "{reply:?}");
}
