//! How much memory an input takes. Of the whole process: only one input is tried at a time.

use peak_alloc::PeakAlloc;

#[cfg(not(feature = "libfuzzer"))]
#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// Under libFuzzer nobody counts here: it has limits of its own.
#[cfg(feature = "libfuzzer")]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// Begins to count. Gives back what is taken already.
pub(crate) fn begin() -> usize {
    ALLOCATOR.reset_peak_usage();
    ALLOCATOR.current_usage()
}

/// The most that was taken at once since then.
pub(crate) fn most_since(before: usize) -> usize {
    ALLOCATOR.peak_usage().saturating_sub(before)
}
