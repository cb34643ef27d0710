//! Tests of the examples in simulated time, in one program.

mod examples;
mod shortest;
mod warm_up;
