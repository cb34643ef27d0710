//! Leases: time-bounded, exclusive authority over a named resource, each with a fencing token.
//!
//! ```
//! # async fn example() -> Result<(), leasehold::Error> {
//! # let directory = tempfile::tempdir().expect("a directory");
//! # let url = format!("dir:{}", directory.path().display());
//! use std::time::Duration;
//!
//! let store = leasehold::Store::connect(&url).await?;
//! let session = store.session().await?;
//! let lease = session.acquire("reports/nightly").wait(Duration::from_secs(30)).await?;
//!
//! // Leave to act for two seconds, and the token that every write carries.
//! let guard = lease.guard(Duration::from_secs(2)).expect("the lease was just granted");
//! println!("writing with token {}", guard.token().expect("two seconds are not over yet"));
//!
//! lease.release().await?;
//! session.close().await?;
//! store.close().await;
//! # Ok(())
//! # }
//! # tokio::runtime::Runtime::new().unwrap().block_on(example()).unwrap();
//! ```
//!
//! A holder believes in its lease until `t_send + ttl - margin`, counted from when its last confirmed renewal was *sent*, on the
//! clock of the machine that has moved further. A guard is given only for what fits before that moment. What no clock can see
//! (a paused virtual machine) is the receiver's to refuse, by the token: send it with every write. Adapters for receivers are in
//! `leasehold-fence`; its contract is [`fence`] here. A [`Guard`] is what they ask for a stamp, and [`SessionOptions::seal_at`] makes them refuse
//! older tokens before a lease is given out.
//!
//! Refused, failed and unknown are different answers: see [`Error`].

mod aside;
pub mod blocking;
mod drain;
mod driver;
mod election;
mod error;
mod figures;
mod guard;
mod lease;
mod options;
mod registers;
mod seal;
mod session;
mod store;
mod successor;
mod termination;
#[cfg(feature = "testing")]
pub mod testing;
mod time;
mod watch;

pub use drain::{Drain, Draining, Unfinished, Work};
pub use driver::link::DEFAULT_PORT;
pub use election::{Election, ElectionBuilder, Leadership, Observer, StepDown};
pub use error::{Error, Unreachable};
pub use figures::{Figures, Quantiles, Warnings};
pub use guard::Guard;
pub use lease::{EndedWhy, Lease, LeaseState, ReleaseRequest, Taker};
pub use leasehold_core as core;
pub use leasehold_core::holder::NoGuard;
pub use leasehold_core::measure::Broken;
pub use leasehold_core::numbers::Schedule;
pub use leasehold_core::protocol::{Change, Changes};
pub use leasehold_core::{
    Ending, Label, Reason, Refusal, ResourceName, Revision, SessionId, Successor, Token,
};
pub use leasehold_fence as fence;
pub use options::SessionOptions;
pub use registers::{Register, RegisterView};
pub use session::{AcquireAll, AcquireRequest, Events, Session, SessionEvent};
pub use store::{ConnectOptions, DEFAULT_PATIENCE, Store};
pub use successor::{Leader, Resigned};
pub use termination::{RESERVED_FOR_RELEASE, Termination};
pub use watch::{Watch, WatchBuilder};
