//! What a running holder or service measures of itself, and which inequality of its [numbers](crate::numbers) that breaks.
//!
//! Promised: a quantile is an upper bound, never too small; figures are of the last minutes and not of all time, so that what was bad an
//! hour ago does not hide what is good now; nothing is allocated after the start, and adding costs the same however much was added.
//!
//! Not done here: no clock is read, and nothing is decided. A lease is held or not by its deadline alone; what stands here is for
//! metrics and for people. The time of day occurs here and nowhere else in this crate, and only as something that was found to move.

mod clocks;
mod judge;
mod pauses;
mod round_trips;
mod said;

pub use clocks::{ClockRates, Clocks, MIN_WALL_STEP, Rates, WallStep};
pub use judge::{Broken, Change, Measured, judge};
pub use pauses::Pauses;
pub use round_trips::RoundTrips;
pub use said::{SAY_AGAIN_AFTER, Said};

#[cfg(test)]
mod tests;
