//! Every test of the core from outside, in one program.

mod gaps;
mod properties;
mod scripts;
mod snapshots;
mod views;
