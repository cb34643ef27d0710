//! Four programs that hold leases, to copy from: a [job of cron](cron), a [controller with a warm standby](controller), [owners of
//! shards](shards), and a [replica in a rolling deploy](replica). Each is a module with what matters and a short program in `src/bin`;
//! each has a test in a world whose clock is moved by hand, in `tests`.
//!
//! [`ledger`] is what they write to: a receiver that compares tokens. [`deploys`] is no example: it deploys the replica again and again as
//! real processes, and measures for how long nobody leads. Neither is [`gap`]: it stages an incident, and compares what `leasehold gaps` says of
//! it with the truth.

pub mod controller;
pub mod cron;
pub mod deploys;
pub mod gap;
pub mod ledger;
pub mod replica;
pub mod shards;
