//! The library on directories, with real files, sockets and clocks.
#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

#[path = "embedded/blocking.rs"]
mod blocking;
#[path = "embedded/closing.rs"]
mod closing;
#[path = "embedded/handover.rs"]
mod handover;
#[path = "embedded/impostor.rs"]
mod impostor;
#[path = "embedded/many.rs"]
mod many;
#[path = "embedded/place.rs"]
mod place;
#[path = "embedded/trouble.rs"]
mod trouble;
#[path = "embedded/watching.rs"]
mod watching;
