//! The examples, in a world whose clock is moved by hand. This is also how programs that hold leases are tested: copy from here.

#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

#[path = "examples/controller.rs"]
mod controller;
#[path = "examples/cron.rs"]
mod cron;
#[path = "examples/replica.rs"]
mod replica;
#[path = "examples/shards.rs"]
mod shards;

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use leasehold::testing::World;

pub(crate) const SECOND: Duration = Duration::from_secs(1);
pub(crate) const MOMENT: Duration = Duration::from_millis(10);

/// A call that goes on beside others.
pub(crate) struct Running<'a, T> {
    world: &'a World,
    call: Pin<Box<dyn Future<Output = T> + 'a>>,
}

impl<'a, T> Running<'a, T> {
    pub(crate) fn new(world: &'a World, call: impl Future<Output = T> + 'a) -> Self {
        Self { world, call: Box::pin(call) }
    }

    /// Lets it go on for so long; what it came to, if it has ended.
    pub(crate) fn go_on(&mut self, length: Duration) -> Option<T> {
        self.world.run_for(length, self.call.as_mut())
    }
}

/// Lets several calls go on together, none of which ends.
pub(crate) fn together<T>(world: &World, calls: &mut [&mut Running<'_, T>], length: Duration) {
    let mut left = length;
    while !left.is_zero() {
        for call in calls.iter_mut() {
            assert!(call.go_on(Duration::ZERO).is_none(), "a call ended");
        }
        world.advance(MOMENT);
        left = left.saturating_sub(MOMENT);
    }
}
