//! The proxy in front of a plain HTTP store, over real sockets. Processes that are killed are tried with the command, in its package.

#![cfg(feature = "proxy")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails, and unwrap says where")]

#[path = "proxy/basics.rs"]
mod basics;
#[path = "proxy/contract.rs"]
mod contract;
#[path = "proxy/cost.rs"]
mod cost;
#[path = "proxy/held_back.rs"]
mod held_back;
#[path = "proxy/odd.rs"]
mod odd;
#[path = "proxy/order.rs"]
mod order;
#[path = "proxy/stage.rs"]
mod stage;
#[path = "proxy/streams.rs"]
mod streams;
