//! Every test of the core from outside, in one program.

mod alarms;
mod calls;
mod gaps;
mod properties;
mod scripts;
mod snapshots;
mod views;
