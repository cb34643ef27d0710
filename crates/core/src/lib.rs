//! The pure core of Leasehold.
//!
//! Everything that decides who may act lives here: names and tokens, log time, the [`LeaseTable`] that a log drives, the
//! holder's [`scheduler`](holder), and the client's [`session machine`](client). Nothing here reads a clock, does I/O, draws a
//! random number or iterates a hash map: the crate is `no_std` so that the compiler refuses most of those outright. The same
//! table and the same entry give the same result on every machine, always.
//!
//! What this crate does not do: it does not replicate, persist or transmit anything. See `leasehold-node`, `leasehold-wal` and
//! `leasehold-wire`.
#![no_std]

extern crate alloc;

pub mod answer;
pub mod change;
pub mod client;
pub mod cluster;
pub mod command;
pub mod gap;
pub mod holder;
pub mod id;
pub mod limits;
pub mod measure;
pub mod name;
pub mod numbers;
pub mod plan;
#[doc(hidden)]
pub mod planted;
pub mod protocol;
pub mod refusal;
pub mod table;
pub mod time;

pub use answer::{
    Answer, Applied, Ending, Event, Grant, HeldLease, Holdings, Item, ItemKind, Refusal, Reply, Unavailable,
    WaitEnding, Waited,
};
pub use command::{
    Acquire, Attach, Command, Due, Entry, Mode, Numbered, Offer, Op, Open, Operator, Policies, Request,
    Sequence, SessionCommand, SessionKind, Successor, System,
};
pub use id::{
    AttachNumber, CallNumber, CommandNumber, Epoch, ItemNumber, Nonce, RenewalNumber, Revision, SessionId,
    Token, TokensExhausted,
};
pub use limits::Limits;
pub use name::{Label, Reason, RegisterKey, ResourceName, TextError, Value};
pub use table::{Config, LeaseTable, TableImage};
pub use time::{Drift, LogTime, Millis};
