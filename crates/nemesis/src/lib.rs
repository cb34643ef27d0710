//! Clusters of real processes under faults, and checkers of what their clients saw.
//!
//! Every node is the shipped program in a network namespace of its own, with a directory of its own. Clients are the shipped
//! library. A scenario breaks things on purpose, in an order decided by a seed, and heals them. Everything that clients asked,
//! were told and believed is a history of JSON lines on one clock; the checkers are pure functions over such a history.
//!
//! Promised: a run that ends well was checked, and everything that a run made (namespaces, mounts, processes) is gone when it
//! ends, also after a panic or Ctrl-C. What a run that was killed left behind is swept up by the next.
//!
//! Deliberately not done: a seed decides which faults come when and what clients ask for, but real processes are scheduled by a
//! real kernel, so the same seed gives a similar history and not the same one.

pub mod check;
pub mod cleanup;
pub mod clock_shim;
pub mod cluster;
pub mod disk;
pub mod figures;
pub mod history;
pub mod net;
pub mod node;
pub mod numbers;
pub mod pile;
pub mod progress;
pub mod proxy;
pub mod random;
pub mod replicas;
pub mod report;
pub mod scenario;
pub mod shell;
pub mod stage;
pub mod summary;
pub mod vandal;
pub mod workload;
