//! Tests of the command that a busy machine does not disturb, in one program: linking it takes longer than most of them.

mod cli;
mod examples;
mod fence_proxy;
mod files;
mod serve;
