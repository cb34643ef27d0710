//! What all of these tests say.

use leasehold_fence::object_store::Fence;
use leasehold_fence::{Error, Stamp};

pub(crate) fn stamp(name: &str, token: u64) -> Stamp {
    Stamp::new(name, token).unwrap().held_by(format!("holder-{token}")).unwrap()
}

/// The highest token that a refusal names.
pub(crate) fn highest<T: std::fmt::Debug>(result: Result<T, Error>) -> Option<u64> {
    match result {
        Err(Error::Stale(stale)) => stale.highest,
        other => panic!("{other:?}"),
    }
}

/// Why nothing was written.
pub(crate) fn failed<T: std::fmt::Debug>(result: Result<T, Error>) -> String {
    match result {
        Err(Error::Failed { source, .. }) => source.to_string(),
        other => panic!("{other:?}"),
    }
}

pub(crate) async fn contents(fence: &Fence) -> Option<String> {
    let object = fence.read().await.unwrap()?;
    Some(String::from_utf8(object.contents.to_vec()).unwrap())
}
