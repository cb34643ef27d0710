//! The leasehold command.

use std::process::ExitCode;

/// A service makes and drops many small things, from several threads at once, which this one is made for.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    leasehold_cli::main()
}
