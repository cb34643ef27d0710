//! The holder's craft, in a world whose clock is moved by hand: election, guards, drain, resignation, seals.

#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

#[path = "craft/drains.rs"]
mod drains;
#[path = "craft/elections.rs"]
mod elections;
#[path = "craft/guards.rs"]
mod guards;
#[path = "craft/handovers.rs"]
mod handovers;
#[path = "craft/losses.rs"]
mod losses;
#[path = "craft/registers.rs"]
mod registers;
#[path = "craft/scripted.rs"]
mod scripted;
#[path = "craft/sealed_terms.rs"]
mod sealed_terms;
#[path = "craft/seals.rs"]
mod seals;

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use leasehold::SessionOptions;
use leasehold::testing::World;

pub(crate) const SECOND: Duration = Duration::from_secs(1);
pub(crate) const MOMENT: Duration = Duration::from_millis(10);

pub(crate) fn named(label: &str) -> SessionOptions {
    SessionOptions::new().label(label)
}

/// A call that goes on in the background: it is polled whenever the world is.
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
