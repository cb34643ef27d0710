//! A leader that warms up when it has won: the one in docs/guides/leader-election.md.

use std::future::Future;
use std::time::Duration;

use leasehold::testing::World;
use leasehold::{Election, Error, Leadership, ResourceName, Store};

fn candidate(store: &Store) -> Result<Election, Error> {
    store.election("controllers/payments").warms_up().build()
}

async fn term<F: Future<Output = ()>>(leadership: Leadership, take_over: F) {
    take_over.await; // seal the token at the receivers, read what is there
    leadership.ready();
    // ... the work ...
}

#[test]
fn a_leader_is_warming_up_until_it_says_that_it_is_ready() {
    let world = World::new();
    let store = world.store();
    let name = ResourceName::new("controllers/payments").unwrap();
    let readiness = || {
        // Neither word is waited for.
        world.advance(Duration::from_millis(10));
        let view = world.run(store.lease(&name)).unwrap().unwrap();
        view.holders.first().and_then(|holder| holder.readiness)
    };
    let election = candidate(&store).unwrap();
    let leadership = world.run(election.campaign()).unwrap();
    let kept = leadership.clone();
    assert!(matches!(readiness(), Some(leasehold::core::table::ReadinessView::WarmingUp)));
    world.run(term(leadership, async {}));
    assert!(matches!(readiness(), Some(leasehold::core::table::ReadinessView::ReadyAfter(_))));
    drop(kept);
}
