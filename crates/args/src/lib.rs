//! Command lines of programs that `cargo xtask` builds and starts.
//!
//! `xtask` answers `--help` and refuses what makes no sense before anything is built. So nothing here knows the programs: their tests
//! compare the names here with what there is.

pub mod fuzz;
#[cfg(feature = "clap")]
pub mod nemesis;
#[cfg(feature = "clap")]
pub mod simulate;
