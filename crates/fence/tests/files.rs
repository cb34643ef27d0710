//! The fence of a file, with real processes that are killed and stopped at every step: `cargo test -p leasehold-fence files::`.

mod child;
mod conformance;
mod crashes;
mod order;
mod wrong_ways;

use leasehold_fence::files::Fence;
use leasehold_fence::{Error, Stamp};
use tempfile::TempDir;

/// A fence for a file in a directory of its own.
fn fence() -> (TempDir, Fence) {
    let directory = tempfile::tempdir().unwrap();
    let fence = Fence::new(directory.path().join("data")).unwrap();
    (directory, fence)
}

fn stamp(name: &str, token: u64) -> Stamp {
    Stamp::new(name, token).unwrap().held_by(format!("holder-{token}")).unwrap()
}

/// The highest token that a refusal names.
fn highest<T: std::fmt::Debug>(result: Result<T, Error>) -> Option<u64> {
    match result {
        Err(Error::Stale(stale)) => stale.highest,
        other => panic!("{other:?}"),
    }
}

fn contents(directory: &TempDir) -> Option<String> {
    std::fs::read_to_string(directory.path().join("data")).ok()
}
