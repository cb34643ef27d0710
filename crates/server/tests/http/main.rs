//! The HTTP door over real connections: every call, every refusal that can be brought about, its limits, and its watches.

mod alarms;
mod client;
mod cluster;
mod ending;
mod golden;
mod hostile;
mod leases;
mod limits;
mod looks;
mod numbers;
mod openapi;
mod operators;
mod sessions;
mod stage;
mod waits;
mod watches;
