//! Bytes that nobody meant to send, for every decoder.
//!
//! A [`Target`] takes any bytes and hands them to a decoder. It must come back: no panic in any thread, no memory without bound, and what
//! was decoded must come out the same when it is encoded and decoded again. The targets know nothing of who makes the bytes: libFuzzer on
//! a nightly toolchain, or the [stable fuzzer](driver) of this package.
//!
//! Where a checksum stands before the decoder, a target also tries the bytes with the checksum made right: rot is found by checksums, and
//! what is behind them has to stand what they let through.

pub mod driver;
mod memory;
pub mod mutate;
pub mod random;
mod shape;
mod targets;

pub use shape::Shape;
pub use targets::TARGETS;

/// A decoder, with what it should be tried on.
#[derive(Debug)]
pub struct Target {
    /// What it is called.
    pub name: &'static str,
    /// What it decodes.
    pub what: &'static str,
    /// Good inputs, made by the encoders.
    pub seeds: fn() -> Vec<Vec<u8>>,
    /// Tries one input; panics if something is wrong with the decoder.
    pub check: fn(&[u8]) -> Shape,
}

/// The target with this name.
pub fn target(name: &str) -> Option<&'static Target> {
    const { &TARGETS }.iter().find(|target| target.name == name)
}
