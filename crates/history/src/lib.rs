//! Histories: what clients asked, were told and believed, as lines of JSON that any program can write, and checkers of them.
//!
//! The format is described for people in `docs/reference/history.md`. A line is parsed by [`parse`], a file by [`read()`]; a
//! [`Story`] puts lines together into grants and what became of them; [`check::all`] judges it. All of it is pure: no clock, no
//! files, no randomness.
//!
//! A checker never guesses. Where a history leaves open in which order two things happened, or whether a call took effect, it takes
//! the order in which nothing is wrong. So a violation that is reported is one, provided that clients told the truth. The other way
//! round is not promised: what nobody saw, nobody can judge, and each checker says how much it has judged.

pub mod check;
mod event;
mod names;
mod parse;
mod read;
mod story;
mod time;

pub use event::{Event, KINDS, Line};
pub use names::Name;
pub use parse::parse;
pub use read::{MAX_LINE_BYTES, Mistake, ReadError, read};
pub use story::{End, Grant, LineNumber, Look, Moment, Outcome, Story, Window, Write};
pub use time::At;

#[cfg(test)]
mod tests {
    pub(crate) mod planted;
}
