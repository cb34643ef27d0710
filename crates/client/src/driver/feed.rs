//! The events of a session, for whoever listens.

use std::sync::{Arc, OnceLock};

use tokio::sync::broadcast;

use crate::session::SessionEvent;

/// Events that a slow reader may be behind before it misses some.
const EVENTS_KEPT: usize = 1_024;

/// Made when somebody listens for the first time: the places for what a reader may be behind are a quarter of a megabyte, and most sessions
/// have no reader.
#[derive(Debug, Clone, Default)]
pub(crate) struct Feed {
    sender: Arc<OnceLock<broadcast::Sender<SessionEvent>>>,
}

impl Feed {
    /// Hears everything from now on.
    pub(crate) fn subscribe(&self) -> broadcast::Receiver<SessionEvent> {
        self.sender.get_or_init(|| broadcast::Sender::new(EVENTS_KEPT)).subscribe()
    }

    /// Whether anybody listens.
    pub(super) fn is_heard(&self) -> bool {
        self.sender.get().is_some_and(|sender| sender.receiver_count() > 0)
    }

    /// Tells whoever listens; nobody may.
    pub(super) fn send(&self, event: SessionEvent) {
        if let Some(sender) = self.sender.get() {
            let _ = sender.send(event);
        }
    }
}
