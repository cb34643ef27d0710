//! A session: one renewal keeps all its leases.

use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use leasehold_core::client::SessionEnd;
use leasehold_core::{Acquire, Millis, Mode, Op, Request, ResourceName, SessionId, Token, Value};
use leasehold_fence::Receiver;
use tokio::sync::{broadcast, oneshot};

use crate::driver::{Accept, SessionRef, ToDriver};
use crate::error::Error;
use crate::lease::Lease;
use crate::seal::{Seals, give_out};

/// Something that happened to a session or its leases.
pub use leasehold_core::client::Event as SessionEvent;

/// A session. All its leases share one renewal and one deadline. Dropping it closes it without waiting.
#[derive(Debug)]
pub struct Session {
    pub(crate) inner: SessionRef,
    id: SessionId,
    /// Every lease of the session is sealed at these.
    receivers: Vec<Arc<dyn Receiver>>,
    closed: bool,
}

impl Session {
    pub(crate) fn new(inner: SessionRef, id: SessionId) -> Self {
        Self { inner, id, receivers: Vec::new(), closed: false }
    }

    pub(crate) fn sealing_at(mut self, receivers: &[Arc<dyn Receiver>]) -> Self {
        self.receivers = receivers.to_vec();
        self
    }

    /// Its id, as the service shows it.
    pub fn id(&self) -> SessionId {
        self.id
    }

    /// Asks for a lease. Await the result, or refine it first: [`wait`](AcquireRequest::wait), [`shared`](AcquireRequest::shared),
    /// [`slots`](AcquireRequest::slots), [`value`](AcquireRequest::value).
    pub fn acquire(&self, resource: &str) -> AcquireRequest<'_> {
        AcquireRequest { all: self.acquire_all([resource]) }
    }

    /// Asks for several leases at once: all or none.
    pub fn acquire_all<'a>(&self, resources: impl IntoIterator<Item = &'a str>) -> AcquireAll<'_> {
        AcquireAll {
            session: self,
            resources: resources.into_iter().map(str::to_owned).collect(),
            mode: Mode::Exclusive,
            value: Vec::new(),
            wait: None,
            seals: Seals { receivers: self.receivers.clone(), warms_up: false },
        }
    }

    /// Takes up an offer that a holder made to this session ([`SessionEvent::Offered`]), and waits until the holder lets go. A session
    /// that waits for the resource takes up offers of it by itself.
    ///
    /// # Errors
    /// When there is no such offer, it ended before the holder let go, or a receiver [could not be sealed](Error::NotSealed).
    pub async fn accept(&self, resource: &ResourceName, token: Token, value: &[u8]) -> Result<Lease, Error> {
        let accept = Accept { resource: resource.clone(), token, value: Value::new(value.to_vec())? };
        let (reply, answer) = oneshot::channel();
        let ticket = self.inner.ticket();
        self.inner.send(|key| ToDriver::Accept { key, ticket, accept, reply });
        let mut guard = CancelOnDrop { session: &self.inner, ticket, armed: true };
        let granted = answer.await;
        guard.armed = false;
        let leases = granted.unwrap_or_else(|_| Err(self.inner.over()))?;
        let seals = Seals { receivers: self.receivers.clone(), warms_up: false };
        let mut leases = give_out(leases, seals).await?;
        Ok(leases.pop().expect("an offer is of one resource, so one lease was granted"))
    }

    /// Sends a renewal now and not when it is due, unless one is unanswered already: for programs that measure how long it takes. Renewals
    /// come by themselves; no lease is held any better by this.
    pub fn renew_now(&self) {
        self.inner.send(|key| ToDriver::RenewNow { key });
    }

    /// Sends a renewal now and not when it is due, and waits until it was confirmed, or a later one: from then on the deadline of all leases
    /// counts from a sending after this call. If one is unanswered already, this one is sent when that one is answered.
    ///
    /// Renewals come by themselves, and are sent again by themselves when they are lost. This is for programs that want to know that the
    /// service is there, or all of their time before something long.
    ///
    /// # Errors
    /// When the session has [ended](Error::SessionEnded) or is being closed; when the store was [out of reach](Error::Unreachable) for as long as
    /// its patience, and nothing was sent; or when it was sent and [no answer came](Error::OutcomeUnknown) for as long. The leases are held as
    /// before in the last two cases, until their deadline.
    pub async fn renew(&self) -> Result<(), Error> {
        let (reply, answer) = oneshot::channel();
        self.inner.send(|key| ToDriver::Renew { key, reply });
        answer.await.unwrap_or_else(|_| Err(self.inner.over()))
    }

    /// Everything that happens to this session from now on.
    pub fn events(&self) -> Events {
        Events { receiver: self.inner.events.subscribe(), over: false }
    }

    /// Closes the session and ends all its leases. Belief in them ends with this call.
    ///
    /// # Errors
    /// When the answer is not known; the session then ends after its ttl at the latest.
    pub async fn close(mut self) -> Result<(), Error> {
        self.closed = true;
        match self.inner.submit(Op::Close).await {
            Ok(_) | Err(Error::SessionEnded(SessionEnd::Closed | SessionEnd::ByService(_))) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if !self.closed {
            self.inner.send(|key| ToDriver::Submit { key, op: Op::Close, reply: None });
        }
    }
}

/// Events of a session, in order.
#[derive(Debug)]
pub struct Events {
    receiver: broadcast::Receiver<SessionEvent>,
    /// Handles keep the sender alive; the last event is the end.
    over: bool,
}

impl Events {
    /// The next event; nothing when the session is over. Whoever reads too slowly misses the oldest ones.
    pub async fn next(&mut self) -> Option<SessionEvent> {
        while !self.over {
            match self.receiver.recv().await {
                Ok(event) => {
                    self.over = matches!(event, SessionEvent::SessionEnded { .. });
                    return Some(event);
                }
                Err(broadcast::error::RecvError::Lagged(_)) => {}
                Err(broadcast::error::RecvError::Closed) => self.over = true,
            }
        }
        None
    }
}

/// An acquire of one resource that is being put together.
#[derive(Debug)]
#[must_use = "await it"]
pub struct AcquireRequest<'a> {
    all: AcquireAll<'a>,
}

impl<'a> AcquireRequest<'a> {
    /// Waits in the queue for so long if the resource is not free. Without this, the answer comes at once.
    pub fn wait(mut self, length: Duration) -> Self {
        self.all = self.all.wait(length);
        self
    }

    /// Shares the resource with others that do.
    pub fn shared(mut self) -> Self {
        self.all.mode = Mode::Shared;
        self
    }

    /// Takes one of `of` slots.
    pub fn slots(mut self, of: u32) -> Self {
        self.all.mode = Mode::Slot { of };
        self
    }

    /// Shows a value with the lease: an address, for example. Text or bytes, owned or borrowed:
    ///
    /// ```no_run
    /// # async fn example(session: &leasehold::Session) -> Result<(), leasehold::Error> {
    /// let address = String::from("10.0.0.7:80");
    /// let lease = session.acquire("web").value(&address).await?;
    /// let bytes = session.acquire("blob").value([1, 2, 3]).await?;
    /// # drop((lease, bytes));
    /// # let texts = session.acquire("a").value("text").value(address).value(b"bytes").value(vec![1]).value(&[1_u8][..]);
    /// # drop(texts);
    /// # Ok(())
    /// # }
    /// ```
    pub fn value(mut self, value: impl AsRef<[u8]>) -> Self {
        self.all = self.all.value(value);
        self
    }

    /// Seals this receiver too, beside those of the [session](crate::SessionOptions::seal_at), before the lease is given out.
    pub fn seal_at(mut self, receiver: Arc<dyn Receiver>) -> Self {
        self.all = self.all.seal_at(receiver);
        self
    }

    /// The application has more to do before it acts: whoever looks is told at the grant that it warms up, until [`Lease::ready`] is said.
    /// Without this a lease that has receivers to seal is ready when they are, and any other at its grant.
    pub fn warms_up(mut self) -> Self {
        self.all = self.all.warms_up();
        self
    }
}

type BoxedFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

impl<'a> IntoFuture for AcquireRequest<'a> {
    type Output = Result<Lease, Error>;
    type IntoFuture = BoxedFuture<'a, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let mut leases = self.all.run().await?;
            Ok(leases.pop().expect("one resource was asked for, so one lease was granted"))
        })
    }
}

/// An acquire of several resources that is being put together.
#[derive(Debug)]
#[must_use = "await it"]
pub struct AcquireAll<'a> {
    session: &'a Session,
    resources: Vec<String>,
    mode: Mode,
    value: Vec<u8>,
    wait: Option<Duration>,
    seals: Seals,
}

impl<'a> AcquireAll<'a> {
    /// Waits in the queues for so long if not all are free.
    pub fn wait(mut self, length: Duration) -> Self {
        self.wait = Some(length);
        self
    }

    /// Shares each resource with others that do.
    pub fn shared(mut self) -> Self {
        self.mode = Mode::Shared;
        self
    }

    /// Takes one of `of` slots of each.
    pub fn slots(mut self, of: u32) -> Self {
        self.mode = Mode::Slot { of };
        self
    }

    /// Shows a value with each lease.
    pub fn value(mut self, value: impl AsRef<[u8]>) -> Self {
        self.value = value.as_ref().to_vec();
        self
    }

    /// Seals this receiver with the token of each, beside those of the [session](crate::SessionOptions::seal_at), before any is given
    /// out. If one cannot be sealed, all are given back.
    pub fn seal_at(mut self, receiver: Arc<dyn Receiver>) -> Self {
        self.seals.receivers.push(receiver);
        self
    }

    /// As [`AcquireRequest::warms_up`], for each.
    pub fn warms_up(mut self) -> Self {
        self.seals.warms_up = true;
        self
    }

    async fn run(self) -> Result<Vec<Lease>, Error> {
        let mode = self.mode;
        let requests: Result<Vec<Request>, Error> = self
            .resources
            .iter()
            .map(|name| Ok(Request { resource: ResourceName::new(name)?, mode }))
            .collect();
        let acquire = Acquire {
            requests: requests?,
            value: Value::new(self.value)?,
            wait: self.wait.map(Millis::from_duration),
        };
        let (reply, answer) = oneshot::channel();
        let ticket = self.session.inner.ticket();
        let inner = &self.session.inner;
        inner.send(|key| ToDriver::Acquire { key, ticket, acquire, reply });
        // Whoever drops this future gives up the wait, and gets nothing that it would have to give back.
        let mut guard = CancelOnDrop { session: inner, ticket, armed: true };
        let granted = answer.await;
        guard.armed = false;
        let leases = granted.unwrap_or_else(|_| Err(inner.over()))?;
        // From here on whoever drops this future drops the leases, which gives them back.
        give_out(leases, self.seals).await
    }
}

impl<'a> IntoFuture for AcquireAll<'a> {
    type Output = Result<Vec<Lease>, Error>;
    type IntoFuture = BoxedFuture<'a, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.run())
    }
}

struct CancelOnDrop<'a> {
    session: &'a SessionRef,
    ticket: u64,
    armed: bool,
}

impl Drop for CancelOnDrop<'_> {
    fn drop(&mut self) {
        if self.armed {
            let ticket = self.ticket;
            self.session.send(|key| ToDriver::GiveUp { key, ticket });
        }
    }
}
