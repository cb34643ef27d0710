//! Every test of the model, in one program.

mod rules;
mod whole;
