//! A simulated world for the whole of Leasehold: one thread, one seed, virtual time.
//!
//! A [`Plan`](plan::Plan) follows from a seed; a [`World`](world::World) runs it; [`check`] judges what it left behind in its
//! [`record`]. The same seed gives the same world, event for event.

pub mod campaign;
pub mod changes;
pub mod check;
pub mod clock;
pub mod plan;
pub mod queue;
pub mod random;
pub mod record;
pub mod run;
pub mod shrink;
pub mod trace;
pub mod world;
