//! The lease protocol as a model for the checker of crate `stateright`, at small scope.
//!
//! A [`Protocol`] is a [`Scope`] (how much of everything may happen) and [`Rules`] (all, or all but one). The checker goes through every order in which
//! things can happen within the scope and looks at the [`invariants`] in each state. With all rules kept none is ever broken; without
//! any one of them, one is: that is what shows that the rule is needed and the invariant has teeth.
//!
//! What it deliberately does not do: it does not run the product's code. The simulator does, under random schedules; this goes through all
//! schedules of something much smaller.

pub mod client;
pub mod invariants;
pub mod protocol;
pub mod rules;
pub mod scope;
pub mod state;
pub mod story;
pub mod table;
pub mod time;

pub use protocol::Protocol;
pub use rules::{Rules, WrongRule};
pub use scope::Scope;
