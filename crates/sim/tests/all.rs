//! Every test of the simulator from outside, in one program.

mod documents;
mod worlds;
