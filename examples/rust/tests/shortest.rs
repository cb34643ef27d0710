//! The shortest test of a holder: the one in docs/guides/test-your-holder.md.

use std::future::IntoFuture;
use std::time::Duration;

use leasehold::testing::World;
use leasehold::{LeaseState, NoGuard};

#[test]
fn a_holder_that_is_cut_off_stops_believing_in_time() {
    let world = World::new();
    let store = world.store();
    let session = world.run(store.session()).unwrap();
    let lease = world.run(session.acquire("job").into_future()).unwrap();
    store.cut();
    world.advance(Duration::from_secs(9));
    assert!(matches!(lease.state(), LeaseState::Lapsed { .. }));
    assert_eq!(lease.token().unwrap_err(), NoGuard::Lapsed);
}
