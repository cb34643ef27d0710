//! The owners of shards: fair shares, drained before they move, taken over from the dead, and never owned twice.

use std::collections::BTreeSet;

use leasehold::SessionOptions;
use leasehold::testing::{TestStore, World};
use leasehold_examples::shards::Owner;

use super::SECOND;

const SHARDS: u32 = 8;

fn join(world: &World, store: &TestStore) -> Owner {
    world.run(Owner::join(store, "shards", SHARDS, &SessionOptions::new())).unwrap()
}

/// Lets everybody take a few turns, and checks after each that no shard is owned twice. Gives back how many each owns.
fn turns(world: &World, owners: &mut [&mut Owner], rounds: u32) -> Vec<usize> {
    for _ in 0..rounds {
        for turning in 0..owners.len() {
            let _ = world.run(owners[turning].turn()).unwrap();
            let mut seen = BTreeSet::new();
            for shard in owners.iter().flat_map(|owner| owner.owned()) {
                assert!(seen.insert(shard), "shard {shard} is owned twice");
            }
        }
        world.advance(SECOND);
    }
    owners.iter().map(|owner| owner.owned().count()).collect()
}

#[test]
fn whoever_joins_gets_its_share_and_the_shares_of_the_dead_are_taken_over() {
    let world = World::new();
    let stores = [world.store(), world.store(), world.store()];
    let mut first = join(&world, &stores[0]);
    assert_eq!(turns(&world, &mut [&mut first], 1), [8]);
    let mut second = join(&world, &stores[1]);
    assert_eq!(turns(&world, &mut [&mut first, &mut second], 2), [4, 4]);
    let mut third = join(&world, &stores[2]);
    assert_eq!(turns(&world, &mut [&mut first, &mut second, &mut third], 2), [3, 3, 2]);
    assert_eq!(
        turns(&world, &mut [&mut first, &mut second, &mut third], 3),
        [3, 3, 2],
        "nothing moves any more"
    );

    // The second one dies. Until its ttl is over its shards are its own; then they are shared by those that are left.
    stores[1].cut();
    drop(second);
    assert_eq!(turns(&world, &mut [&mut first, &mut third], 5), [3, 2]);
    assert_eq!(turns(&world, &mut [&mut first, &mut third], 8), [4, 4]);

    // The first one leaves in order.
    world.run(first.leave()).unwrap();
    assert_eq!(turns(&world, &mut [&mut third], 1), [8]);
}

#[test]
fn a_shard_moves_only_after_its_work_in_flight_is_finished() {
    let world = World::new();
    let stores = [world.store(), world.store()];
    let mut first = join(&world, &stores[0]);
    assert_eq!(turns(&world, &mut [&mut first], 1), [8]);
    let (work, token) = first.begin(7).unwrap();
    let mut second = join(&world, &stores[1]);
    assert_eq!(turns(&world, &mut [&mut first, &mut second], 3), [4, 3], "one is being worked on");
    assert!(first.begin(7).is_none(), "no new work is let in");
    assert!(second.begin(7).is_none());
    drop(work);
    assert_eq!(turns(&world, &mut [&mut first, &mut second], 2), [4, 4]);
    let (_, later) = second.begin(7).unwrap();
    assert!(later > token);
}
