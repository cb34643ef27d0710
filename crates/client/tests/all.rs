//! Tests of the library that neither change nor measure their process, in one program.

mod craft;
mod figures;
mod holder;
mod service;
