//! A store: where leases live, chosen by URL.

mod connecting;

use std::sync::Arc;
use std::time::Duration;

use leasehold_core::gap::NameGaps;
use leasehold_core::protocol::{
    Failure, GapsOf, GapsView, Query, ReadAnswer, Request, Response, Status, TokenCheck,
};
use leasehold_core::table::{AlarmView, LeaseView, PastView, SessionView};
use leasehold_core::{
    Label, Millis, Operator, Reason, Reply, ResourceName, Revision, SessionId, Successor, Token,
};
use tokio::sync::oneshot;

use crate::driver::meter::Meter;
use crate::driver::{self, DriverHandle, Started, ToDriver, Visitor};
use crate::error::{Error, Unreachable};
use crate::figures::{Figures, Warnings};
use crate::options::SessionOptions;
use crate::session::Session;
use crate::time::Time;
use crate::watch::{Sharing, WatchBuilder};
pub(crate) use connecting::Report;
pub use connecting::{ConnectOptions, DEFAULT_PATIENCE};

/// A connection to a store. Clones share it. Its sessions are renewed by a thread of its own, so that a busy application cannot
/// starve them.
#[derive(Debug, Clone)]
pub struct Store {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    url: String,
    /// The process that has the driver: a fork leaves it behind.
    pid: u32,
    to_driver: DriverHandle,
    /// The clocks that the driver lives by.
    time: Time,
    /// For connections beside the driver's. A store in memory has none.
    visitor: Option<Visitor>,
    /// What the driver measures.
    meter: Meter,
    /// Connections that watches share.
    sharing: Sharing,
}

impl Store {
    /// Connects to a store: `dir:PATH` is a directory that processes of this machine share, `leasehold://HOST:PORT[,HOST:PORT...]`
    /// a service on the network. Any of its addresses will do; the port is 7420 where none is given. Members that the service itself
    /// names are tried when none of these answers.
    ///
    /// # Errors
    /// When the address is not understood, or the store cannot be reached within 10 s.
    pub async fn connect(url: &str) -> Result<Self, Error> {
        Self::connect_with(url, ConnectOptions::default()).await
    }

    /// Connects to a store with options.
    ///
    /// # Errors
    /// As [`connect`](Self::connect).
    pub async fn connect_with(url: &str, options: ConnectOptions) -> Result<Self, Error> {
        let Started { to_driver, connected, visitor, meter } = driver::connect(url, options)?;
        let (url_kept, pid) = (url.to_owned(), std::process::id());
        let (time, visitor) = (Time::Machine, Some(visitor));
        let inner = Arc::new(Inner {
            url: url_kept,
            pid,
            to_driver,
            time,
            visitor,
            meter,
            sharing: Sharing::default(),
        });
        connected.await.map_err(|_| driver_gone(url))??;
        Ok(Self { inner })
    }

    #[cfg(feature = "testing")]
    pub(crate) fn from_driver(url: &str, to_driver: DriverHandle, time: Time, meter: Meter) -> Self {
        let (url, pid) = (url.to_owned(), std::process::id());
        Self {
            inner: Arc::new(Inner {
                url,
                pid,
                to_driver,
                time,
                visitor: None,
                meter,
                sharing: Sharing::default(),
            }),
        }
    }

    /// The address that was connected to.
    pub fn url(&self) -> &str {
        &self.inner.url
    }

    /// Opens a session with a ttl of 10 s and the name of this process.
    ///
    /// # Errors
    /// When the service refuses, or cannot be reached.
    pub async fn session(&self) -> Result<Session, Error> {
        self.session_with(&SessionOptions::default()).await
    }

    /// Opens a session with options.
    ///
    /// # Errors
    /// When the options do not fit together, the service refuses, or cannot be reached.
    pub async fn session_with(&self, options: &SessionOptions) -> Result<Session, Error> {
        let profile = options.profile()?;
        let (reply, answer) = oneshot::channel();
        let strictness = options.strictness();
        self.tell(ToDriver::Open { profile: Box::new(profile), strictness, reply })?;
        let session = answer.await.map_err(|_| self.closed())??;
        Ok(session.sealing_at(options.receivers()))
    }

    /// One resource, if the store knows it.
    ///
    /// # Errors
    /// When the store cannot be reached.
    pub async fn lease(&self, resource: &ResourceName) -> Result<Option<LeaseView>, Error> {
        match self.read(Query::Lease(resource.clone())).await? {
            ReadAnswer::Lease(lease) => Ok(lease.map(|lease| *lease)),
            other => Err(unexpected(&other)),
        }
    }

    /// A page of resources whose names begin with `prefix`, and whether there are more after it.
    ///
    /// # Errors
    /// When the store cannot be reached.
    pub async fn leases(
        &self,
        prefix: &str,
        after: Option<ResourceName>,
        limit: usize,
    ) -> Result<(Vec<LeaseView>, bool), Error> {
        match self.read(Query::Leases { prefix: prefix.to_owned(), after, limit }).await? {
            ReadAnswer::Leases { leases, more } => Ok((leases, more)),
            other => Err(unexpected(&other)),
        }
    }

    /// A page of sessions, and whether there are more after it.
    ///
    /// # Errors
    /// When the store cannot be reached.
    pub async fn sessions(
        &self,
        after: Option<SessionId>,
        limit: usize,
    ) -> Result<(Vec<SessionView>, bool), Error> {
        match self.read(Query::Sessions { after, limit }).await? {
            ReadAnswer::Sessions { sessions, more } => Ok((sessions, more)),
            other => Err(unexpected(&other)),
        }
    }

    /// The leases of the past on a resource, newest first.
    ///
    /// # Errors
    /// When the store cannot be reached.
    pub async fn history(&self, resource: &ResourceName) -> Result<Vec<PastView>, Error> {
        match self.read(Query::History(resource.clone())).await? {
            ReadAnswer::History(past) => Ok(past),
            other => Err(unexpected(&other)),
        }
    }

    /// The gaps of a resource that ended no longer ago than `last`, newest first: for how long nobody was known to act on it, and why.
    /// Nothing if the store does not know the name.
    ///
    /// # Errors
    /// When the store cannot be reached.
    pub async fn gaps(
        &self,
        resource: &ResourceName,
        last: Option<Duration>,
    ) -> Result<Option<NameGaps>, Error> {
        let view = self.ask_gaps(GapsOf::Name(resource.clone()), last).await?;
        Ok(view.names.into_iter().next())
    }

    /// A page of resources that have gaps, whose names begin with `prefix`, with the times in which nobody led. Ask again after
    /// [`next`](GapsView::next) while there is one, also if a page is empty.
    ///
    /// # Errors
    /// When the store cannot be reached.
    pub async fn gaps_of_all(
        &self,
        prefix: &str,
        after: Option<ResourceName>,
        last: Option<Duration>,
        limit: usize,
    ) -> Result<GapsView, Error> {
        self.ask_gaps(GapsOf::Page { prefix: prefix.to_owned(), after, limit }, last).await
    }

    async fn ask_gaps(&self, of: GapsOf, last: Option<Duration>) -> Result<GapsView, Error> {
        match self.read(Query::Gaps { of, last: last.map(Millis::from_duration) }).await? {
            ReadAnswer::Gaps(view) => Ok(view),
            other => Err(unexpected(&other)),
        }
    }

    /// Whether a token is that of a present lease.
    ///
    /// # Errors
    /// When the store cannot be reached.
    pub async fn check(&self, resource: &ResourceName, token: Token) -> Result<TokenCheck, Error> {
        match self.read(Query::Check { resource: resource.clone(), token }).await? {
            ReadAnswer::Check(check) => Ok(check),
            other => Err(unexpected(&other)),
        }
    }

    /// The alarms that are raised, in the order of their names: tokens were shown that were never granted here, and their
    /// resources go to nobody until an operator has looked.
    ///
    /// # Errors
    /// When the store cannot be reached.
    pub async fn alarms(&self) -> Result<Vec<AlarmView>, Error> {
        match self.read(Query::Alarms).await? {
            ReadAnswer::Alarms(alarms) => Ok(alarms),
            other => Err(unexpected(&other)),
        }
    }

    /// The service itself.
    ///
    /// # Errors
    /// When the store cannot be reached.
    pub async fn status(&self) -> Result<Status, Error> {
        match self.read(Query::Status).await? {
            ReadAnswer::Status(status) => Ok(status),
            other => Err(unexpected(&other)),
        }
    }

    /// How far the log of the store has come. Whatever was answered before this call is not after it.
    ///
    /// # Errors
    /// When the store cannot be reached.
    pub async fn revision(&self) -> Result<Revision, Error> {
        self.read_at(Query::Status).await.map(|(revision, _)| revision)
    }

    /// Every change of the resources whose names begin with `prefix`: leases that are granted and end, the values they show, and
    /// registers. To miss nothing between a look and the watch, take the revision before the look:
    ///
    /// ```no_run
    /// # async fn example() -> Result<(), leasehold::Error> {
    /// let store = leasehold::Store::connect("leasehold://db-1:7420,db-2:7420").await?;
    /// let revision = store.revision().await?;
    /// let (present, _more) = store.leases("jobs/", None, 100).await?;
    /// println!("{} jobs at least as new as revision {revision}", present.len());
    ///
    /// let mut watch = store.watch("jobs/").after(revision).await?;
    /// loop {
    ///     let batch = watch.next().await?;
    ///     for change in batch.changes {
    ///         println!("revision {}: {change:?}", batch.revision);
    ///     }
    /// }
    /// # }
    /// ```
    pub fn watch(&self, prefix: &str) -> WatchBuilder {
        WatchBuilder::new(self.clone(), prefix)
    }

    /// Asks the holder to drain and release, or to hand over. Gives back its token and label; it may take its time.
    ///
    /// # Errors
    /// When nobody holds the resource, or the store cannot be reached.
    pub async fn ask_release(
        &self,
        resource: &ResourceName,
        token: Option<Token>,
        successor: Option<Successor>,
        by: Label,
    ) -> Result<(Token, Label), Error> {
        let operator = Operator::AskRelease { resource: resource.clone(), token, successor, by };
        match self.operate(operator).await? {
            Reply::Asked { token, holder } => Ok((token, holder)),
            other => Err(unexpected(&other)),
        }
    }

    /// Ends a lease. The resource goes to nobody until its holder has acknowledged or cannot believe in it any more: gives back
    /// how long that takes at most. With `now` it is granted at once, and only a fence protects against the old holder.
    ///
    /// # Errors
    /// When the token is not current, or the store cannot be reached.
    pub async fn revoke(
        &self,
        resource: &ResourceName,
        token: Token,
        by: Label,
        reason: Reason,
        now: bool,
    ) -> Result<Duration, Error> {
        match self.operate(Operator::Revoke { resource: resource.clone(), token, by, reason, now }).await? {
            Reply::Revoked { held_back } => Ok(held_back.duration()),
            other => Err(unexpected(&other)),
        }
    }

    /// Answers an alarm: the resource is granted again. `token` is the one that was shown; an alarm of another is not answered.
    ///
    /// # Errors
    /// When no such alarm is raised, or the store cannot be reached.
    pub async fn clear_alarm(
        &self,
        resource: &ResourceName,
        token: Token,
        by: Label,
        reason: Reason,
    ) -> Result<(), Error> {
        match self.operate(Operator::ClearAlarm { resource: resource.clone(), token, by, reason }).await? {
            Reply::AlarmCleared => Ok(()),
            other => Err(unexpected(&other)),
        }
    }

    /// Sleeps on the clock that this store lives by: the machine's, or the one that a [test](crate::testing) moves by hand. Waits of a program
    /// that is tested there are made with this.
    pub async fn sleep(&self, length: Duration) {
        self.inner.time.nap(length).await;
    }

    /// What was measured: round trips, pauses of this process, clocks, and for how long sessions did not stand well.
    pub fn figures(&self) -> Figures {
        self.inner.meter.figures()
    }

    /// Warnings from now on: what is measured breaks an inequality of the numbers of a session, and which number to change.
    pub fn warnings(&self) -> Warnings {
        Warnings::new(self.inner.meter.warnings())
    }

    /// How often the state behind this store was restored, as it was met last; nothing if that is not known. Where it rises, the
    /// sessions from before have ended, whatever was promised to them.
    pub fn epoch(&self) -> Option<u32> {
        self.inner.visitor.as_ref().and_then(Visitor::epoch)
    }

    /// Ends the connection: sessions that are still open are closed, and a directory served by this process is handed to the
    /// next. Other clones of this store find it closed. A store that cannot be reached is not waited for longer than its patience:
    /// the ttl then ends the sessions.
    pub async fn close(self) {
        let (reply, done) = oneshot::channel();
        if self.tell(ToDriver::Close { reply }).is_ok() {
            let _ = done.await;
        }
    }

    pub(crate) async fn read(&self, query: Query) -> Result<ReadAnswer, Error> {
        self.read_at(query).await.map(|(_, answer)| answer)
    }

    async fn read_at(&self, query: Query) -> Result<(Revision, ReadAnswer), Error> {
        match self.request(Request::Read(query)).await? {
            Response::Read { revision, answer } => Ok((revision, answer)),
            other => Err(failed(other)),
        }
    }

    async fn operate(&self, operator: Operator) -> Result<Reply, Error> {
        match self.request(Request::Operator(operator)).await? {
            Response::Reply(Reply::Refused(refusal)) => Err(refusal.into()),
            Response::Reply(reply) => Ok(reply),
            other => Err(failed(other)),
        }
    }

    async fn request(&self, request: Request) -> Result<Response, Error> {
        let (reply, answer) = oneshot::channel();
        self.tell(ToDriver::Request { request: Box::new(request), reply })?;
        answer.await.map_err(|_| self.closed())?
    }

    fn tell(&self, message: ToDriver) -> Result<(), Error> {
        self.not_forked()?;
        self.inner.to_driver.send(message).map_err(|_| self.closed())
    }

    /// The clocks that the driver lives by.
    pub(crate) fn time(&self) -> &Time {
        &self.inner.time
    }

    /// Whether nobody serves this store any more: it was closed.
    pub(crate) fn is_closed(&self) -> bool {
        self.inner.to_driver.is_closed() || self.not_forked().is_err()
    }

    /// Whether changes can be watched: a store in memory has none.
    pub(crate) fn has_watches(&self) -> bool {
        self.inner.visitor.is_some()
    }

    /// For a connection beside the driver's.
    pub(crate) fn visitor(&self) -> Result<&Visitor, Error> {
        self.not_forked()?;
        let none = || Error::Unavailable("a store in memory has no watches".to_owned());
        self.inner.visitor.as_ref().ok_or_else(none)
    }

    pub(crate) fn sharing(&self) -> &Sharing {
        &self.inner.sharing
    }

    fn not_forked(&self) -> Result<(), Error> {
        if std::process::id() == self.inner.pid {
            return Ok(());
        }
        let last = Some("this process is a copy of the one that connected".to_owned());
        let store = self.url().to_owned();
        Err(Unreachable::NoConnection { store, waited: Duration::ZERO, last }.into())
    }

    /// What whoever asks is told when the driver is gone.
    pub(crate) fn closed(&self) -> Error {
        driver_gone(self.url())
    }
}

pub(crate) fn failed(response: Response) -> Error {
    match response {
        Response::Failed(Failure::OutcomeUnknown) => Error::OutcomeUnknown,
        Response::Failed(failure) => Error::Unavailable(failure.to_string()),
        other => unexpected(&other),
    }
}

pub(crate) fn unexpected(what: &impl std::fmt::Debug) -> Error {
    Error::Unreachable(Unreachable::Protocol(format!("the service answered another question: {what:?}")))
}

fn driver_gone(url: &str) -> Error {
    let last = Some("the connection was closed".to_owned());
    Unreachable::NoConnection { store: url.to_owned(), waited: Duration::ZERO, last }.into()
}
