//! The program for libFuzzer. One for all targets, since each would be linked on its own: the variable `LEASEHOLD_FUZZ_TARGET` chooses.

#![no_main]

use std::sync::LazyLock;

use leasehold_fuzz::{Target, target};
use libfuzzer_sys::fuzz_target;

static TARGET: LazyLock<&Target> = LazyLock::new(|| {
    let name = std::env::var("LEASEHOLD_FUZZ_TARGET").unwrap_or_default();
    target(&name).unwrap_or_else(|| panic!("LEASEHOLD_FUZZ_TARGET names no target: {name:?}"))
});

fuzz_target!(|input: &[u8]| {
    (TARGET.check)(input);
});
