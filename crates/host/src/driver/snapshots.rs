//! Snapshots: their bytes are made on a thread of their own, and nobody waits for them.
//!
//! For very many leases that takes seconds. In a turn of the loop, or on the disk's thread, it would cost a leader its leadership.

use std::sync::Arc;

use leasehold_node::SavedSnapshot;
use leasehold_node::payload::SnapshotImage;

use super::{Alarm, ToLoop};
use crate::inbox::Inbox;

/// Makes the bytes and gives them to the loop. One that has ended by then has no use for them.
pub(super) fn make(image: Box<SnapshotImage>, to_loop: &Inbox, then: fn(SavedSnapshot) -> ToLoop) {
    let inbox = to_loop.clone();
    let image: Arc<SnapshotImage> = image.into();
    let kept = Arc::clone(&image);
    let alarm = Alarm(to_loop.clone(), "the thread that makes snapshots panicked");
    let work = move || {
        let _alarm = alarm;
        let made = image.save();
        let _ = inbox.send(then(made));
    };
    let started = std::thread::Builder::new().name("leasehold-snapshot".into()).spawn(work);
    if let Err(error) = started {
        tracing::warn!(%error, "no thread can be started that makes a snapshot: everybody waits for it");
        let _ = to_loop.send(then(kept.save()));
    }
}
