//! Until when may a session believe in its leases? The holder's clocks, its belief, and the scheduler of its renewals.
//!
//! All leases of a session share one deadline: `t_send + ttl - margin`, where `t_send` is the sending of the last open or renewal
//! that the service confirmed, counted on whichever of the machine's two clocks has moved further. [`Scheduler`] moves it,
//! [`Belief`] is the part of it that other threads may look at.
//!
//! Promised: the deadline never moves because of a grant, a repetition, a hint or an arrival, only because of a numbered sending
//! that an answer names, and only once everything that the service said before that answer was processed. A time-out only sends
//! again; nothing is given up by count.
//!
//! Not done here: no clock is read, nothing is sent, and no lease is known. Which leases there are is the business of
//! [`client`](crate::client).

mod belief;
mod reading;
mod scheduler;

pub use belief::{Belief, NoGuard, Standing, Strictness};
pub use reading::{Elapsed, Reading};
pub use scheduler::{Fraction, Output, Scheduler};

#[cfg(test)]
mod tests;
