//! Watches: every change of the leases under a prefix, in order, each once.
//!
//! A watch has a connection of its own, which is made again when it breaks and goes on where it was. An application that reads
//! slowly makes the service wait, up to what the service keeps; then the watch is over and says so. What a watch deliberately
//! does not do: it does not tell the present state. List first, then watch after the revision of the list.

mod position;
mod task;

use std::future::{Future, IntoFuture};
use std::pin::Pin;

use leasehold_core::Revision;
use leasehold_core::protocol::Changes;
use tokio::sync::mpsc;

use crate::error::Error;
use crate::store::Store;
use position::Position;
use task::{Over, Task};

/// Changes that wait for the application. While there are so many, no more are read.
const MAX_WAITING: usize = 64;

/// A watch that is being put together. Await it.
#[derive(Debug)]
#[must_use = "await it"]
pub struct WatchBuilder {
    store: Store,
    prefix: String,
    after: Option<Revision>,
}

impl WatchBuilder {
    pub(crate) fn new(store: Store, prefix: &str) -> Self {
        Self { store, prefix: prefix.to_owned(), after: None }
    }

    /// Begins after this revision instead of with what happens from now on: that of an earlier watch, or of
    /// [`Store::revision`].
    pub fn after(mut self, revision: Revision) -> Self {
        self.after = Some(revision);
        self
    }

    /// Begins the watch. When this is done, no later change is missed.
    ///
    /// # Errors
    /// When the changes after the revision are not kept any more, when there is no such revision yet, or when the store cannot
    /// be reached.
    pub async fn start(self) -> Result<Watch, Error> {
        let (application, receiver) = mpsc::channel(MAX_WAITING);
        let visitor = self.store.visitor()?;
        let task = Task {
            home: visitor.home(),
            store: self.store.url().to_owned(),
            prefix: self.prefix,
            position: Position::new(self.after),
            patience: visitor.patience(),
            application,
        };
        visitor.spawn(task.run());
        let mut watch =
            Watch { store: self.store, receiver, revision: self.after.unwrap_or(Revision::NONE), over: None };
        let beginning = watch.receive().await?;
        watch.revision = beginning.revision;
        Ok(watch)
    }
}

impl IntoFuture for WatchBuilder {
    type Output = Result<Watch, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.start())
    }
}

/// Changes as they happen. Dropping it ends the watch. It keeps its store connected.
#[derive(Debug)]
pub struct Watch {
    store: Store,
    receiver: mpsc::Receiver<Result<Changes, Over>>,
    revision: Revision,
    over: Option<Over>,
}

impl Watch {
    /// The next changes: all those of one revision. Connections are made again for as long as it takes, up to the patience of the
    /// store for each. Giving up a call loses nothing.
    ///
    /// # Errors
    /// When changes were missed because this program was too slow or too long away, when the store was set back, or when it could
    /// not be reached for as long as its patience. The watch is over then, and every later call says the same.
    pub async fn next(&mut self) -> Result<Changes, Error> {
        loop {
            let changes = self.receive().await?;
            self.revision = changes.revision;
            // Without changes it says how far the log has come.
            if !changes.changes.is_empty() {
                return Ok(changes);
            }
        }
    }

    /// Up to where everything was given out: the place to begin [after](WatchBuilder::after) when this program starts again.
    pub fn revision(&self) -> Revision {
        self.revision
    }

    async fn receive(&mut self) -> Result<Changes, Error> {
        if let Some(over) = &self.over {
            return Err(over.clone().into());
        }
        match self.receiver.recv().await {
            Some(Ok(changes)) => Ok(changes),
            Some(Err(over)) => {
                self.over = Some(over.clone());
                Err(over.into())
            }
            None => Err(self.store.closed()),
        }
    }
}
