//! Fences: the receiver of writes refuses the write of a holder that was paused and came back.
//!
//! A lease tells its holder that it may act. It cannot stop one that stood still between looking and acting. The receiver can: it keeps
//! the highest token that it has seen under a fence name, and refuses a smaller one **in the same atomic step as the write**.
//!
//! Every adapter is behind a feature of its own and says which step is atomic, what isolation that needs, and what it does not cover.
//! All of them share this contract:
//!
//! - a write carries a [`Stamp`], handed out by an [`Authority`] at the moment of the write;
//! - a token below the highest is [`Stale`]: nothing was written, now or later. Equal ones pass;
//! - whoever is granted a lease [seals](Receiver::seal) its receivers before it acts, so that stale writes that arrive before its
//!   first one are refused too;
//! - *stale*, *failed* and *unknown* are different errors: see [`Error`].
//!
//! Nothing here knows Leasehold. A token may come from anywhere, as long as a later holder has a greater one; the library `leasehold`
//! hands out stamps by its guards, and seals at the grant.
//!
//! ```
//! use leasehold_fence::{Authority, Stamp};
//!
//! let stamp = Stamp::new("reports/nightly", 34)?.held_by("worker-3")?;
//! assert_eq!(stamp.token(), 34);
//! assert_eq!(stamp.stamp()?, stamp); // a stamp vouches for itself; a guard of a lease looks at its clock first
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! What this deliberately does not do: it grants nothing, renews nothing, and reads no clock.

#[cfg(feature = "conformance")]
pub mod conformance;
mod counts;
mod error;
#[cfg(feature = "files")]
pub mod files;
#[cfg(feature = "http")]
pub mod http;
pub mod migration;
#[cfg(any(feature = "files", feature = "redis"))]
mod moment;
#[cfg(feature = "mysql")]
pub mod mysql;
#[cfg(feature = "object-store")]
pub mod object_store;
mod pending;
#[cfg(feature = "postgres")]
pub mod postgres;
#[cfg(feature = "proxy")]
pub mod proxy;
#[cfg(any(feature = "mysql", feature = "postgres"))]
mod reach;
mod receiver;
#[cfg(feature = "redis")]
pub mod redis;
#[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
mod sql;
#[cfg(feature = "sqlite")]
pub mod sqlite;
mod stamp;

pub use counts::Counts;
pub use error::{Cause, Error, NoAuthority, Outcome, Stale, Trouble};
pub use pending::Pending;
pub use receiver::{Answer, Hazard, KEPT_REFUSALS, Mark, Receiver, Refused, Seen};
pub use stamp::{Authority, BadStamp, LARGEST_TOKEN, MAX_FENCE_NAME_BYTES, MAX_HOLDER_BYTES, Stamp};
