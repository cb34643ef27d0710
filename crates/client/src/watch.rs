//! Watches: every change of the leases under a prefix, in order, each once.
//!
//! A watch has a connection beside that of its store, which is made again when it breaks and goes on where it was. Watches of one store
//! that have the same prefix and begin now share one. An application that reads slowly makes the service wait, up to what the service keeps;
//! then the watch is over and says so. What a watch deliberately does not do: it does not tell the present state. List first, then watch
//! after the revision of the list.

mod position;
mod sharing;
mod task;

use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::Arc;

use leasehold_core::Revision;
use leasehold_core::protocol::Changes;
use tokio::sync::mpsc;

use crate::error::Error;
use crate::store::Store;
pub(crate) use sharing::Sharing;
use sharing::{Joined, Shared};
use task::{Listener, Over, Task};

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
        if self.after.is_none()
            && let Some(watch) = self.shared().await?
        {
            return Ok(watch);
        }
        let (application, receiver) = mpsc::channel(MAX_WAITING);
        let visitor = self.store.visitor()?;
        let listener = Listener::One(application);
        visitor.spawn(Task::new(visitor, self.store.url(), &self.prefix, self.after, listener).run());
        let revision = self.after.unwrap_or(Revision::NONE);
        let (store, prefix) = (self.store, self.prefix);
        let mut watch = Watch { store, receiver, revision, over: None, prefix, shared: None };
        watch.revision = watch.receive().await?.revision;
        Ok(watch)
    }

    /// On a connection with others. Nothing if theirs does not do: what became of it before this one came is none of its business.
    async fn shared(&self) -> Result<Option<Watch>, Error> {
        let (application, receiver) = mpsc::channel(MAX_WAITING);
        let visitor = self.store.visitor()?;
        let (shared, at) = self.store.sharing().join(self.store.url(), visitor, &self.prefix, application);
        let (store, prefix, shared) = (self.store.clone(), self.prefix.clone(), Some(shared));
        let mut watch = Watch { store, receiver, revision: Revision::NONE, over: None, prefix, shared };
        match at {
            Joined::First => watch.revision = watch.receive().await?.revision,
            Joined::Early => match watch.receive().await {
                Ok(beginning) => watch.revision = beginning.revision,
                // Those before it may have had no patience left.
                Err(_) => return Ok(None),
            },
            Joined::Underway(told) => watch.revision = told,
        }
        if at != Joined::First {
            // What others were told before this one was asked for, or are about to be told, is not from now on.
            let now = watch.store.revision().await?;
            if now < watch.revision && at != Joined::Early {
                // The store was set back behind that connection.
                return Ok(None);
            }
            watch.revision = watch.revision.max(now);
        }
        Ok(Some(watch))
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
    prefix: String,
    /// Its connection ends with the last that has it.
    shared: Option<Arc<Shared>>,
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
            // What those that it shares a connection with were still to be told when it began.
            if changes.revision <= self.revision {
                continue;
            }
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
        loop {
            match self.receiver.recv().await {
                Some(Ok(changes)) => return Ok(changes),
                // It was told to all that share the connection, and this one came later than what was missed.
                Some(Err(Over::TooOld { after, .. })) if self.shared.is_some() && after < self.revision => {
                    self.part()?;
                }
                Some(Err(over)) => {
                    self.over = Some(over.clone());
                    return Err(over.into());
                }
                None => return Err(self.store.closed()),
            }
        }
    }

    /// Goes on by itself, behind what it was told.
    fn part(&mut self) -> Result<(), Error> {
        self.shared = None;
        let (application, receiver) = mpsc::channel(MAX_WAITING);
        let visitor = self.store.visitor()?;
        let listener = Listener::One(application);
        let after = Some(self.revision);
        visitor.spawn(Task::new(visitor, self.store.url(), &self.prefix, after, listener).run());
        self.receiver = receiver;
        Ok(())
    }
}
