//! Single calls to the service: what HTTP and unary gRPC have in common.
//!
//! [`Plain`] turns typed questions into requests of the node and its responses into typed answers or a [`ApiError`]. Sessions are
//! plain ones, named by their [`SessionKey`]; each call stands for itself and is sent once. Dropping the future of a call gives
//! it up; an acquire that is kept waiting is then cancelled through the log.
//!
//! What it does not do: it renews nothing, repeats nothing and remembers nothing. It knows neither HTTP nor protobuf.

mod cluster;

use leasehold_core::limits::MAX_WAIT;
use leasehold_core::protocol::{
    self, Failure, GapsOf, GapsView, Query, ReadAnswer, Response, Status, TokenCheck,
};
use leasehold_core::table::{AlarmView, LeaseView, PastView, SessionView};
use leasehold_core::{
    Acquire, Answer, CommandNumber, Label, Millis, Nonce, Op, Open, Operator, RegisterKey, Reply,
    ResourceName, SessionId, SessionKind, Token, Value,
};
use leasehold_host::Caller;

use leasehold_api::answer::Advice;
pub(crate) use leasehold_api::answer::{
    Acquired, Asked, AtRevision, Cancelled, ClearAlarm, OpenSession, OwnNumbers, Page, RegisterWrite, Revoke,
    SessionOpened, SessionRenewed,
};
pub(crate) use leasehold_api::{ApiError, SessionKey};

/// The node, for single calls.
#[derive(Debug, Clone)]
pub struct Plain {
    caller: Caller,
}

impl Plain {
    /// Speaks through this caller.
    pub const fn new(caller: Caller) -> Self {
        Self { caller }
    }

    /// What it speaks through.
    pub const fn caller(&self) -> &Caller {
        &self.caller
    }

    /// Opens a session, or finds it again by its nonce. Without a nonce one is drawn, and a lost answer cannot be asked for again.
    ///
    /// # Errors
    /// When the ttl, the numbers or the policies cannot be, or there are too many sessions.
    pub async fn open(&self, open: OpenSession) -> Result<SessionOpened, ApiError> {
        let OpenSession { label, ttl, numbers, policies, nonce } = open;
        let own = if numbers.is_empty() { None } else { self.judge(numbers, ttl).await? };
        let nonce = match nonce {
            Some(nonce) => nonce,
            None => draw_nonce()?,
        };
        let open = Open { nonce, label, ttl, policies, kind: SessionKind::Plain };
        match self.reply(protocol::Request::Open(open)).await? {
            Reply::Opened(opened) => Ok(SessionOpened::new(&opened, nonce, own)),
            _ => Err(misfit()),
        }
    }

    /// Whether a holder's own numbers fit the clocks that this service allows.
    async fn judge(&self, numbers: OwnNumbers, ttl: Millis) -> Result<Option<Advice>, ApiError> {
        let stopped = || Failure::Unavailable { why: "the service has stopped".into() };
        let rules = self.caller.inspect().await.ok_or_else(stopped)?;
        if !rules.ready {
            // What it goes by may not be what its cluster goes by.
            return Err(Failure::Unavailable { why: "this node knows no leader".into() }.into());
        }
        numbers.judge(ttl, rules.max_ttl, rules.drift).map_err(ApiError::Numbers)
    }

    /// Renews a session. The answer lists what it has; the renewal counts for these leases and no others.
    ///
    /// # Errors
    /// When the session is over or not the caller's own.
    pub async fn renew(&self, key: SessionKey) -> Result<SessionRenewed, ApiError> {
        match self.plain(key, protocol::Plain::Renew).await? {
            Reply::Renewed(renewed) => {
                let holdings = renewed.holdings.unwrap_or_default();
                Ok(SessionRenewed { renewal: renewed.number, holdings })
            }
            _ => Err(misfit()),
        }
    }

    /// Ends a session and all its leases.
    ///
    /// # Errors
    /// When the session is over already or not the caller's own.
    pub async fn close(&self, key: SessionKey) -> Result<(), ApiError> {
        match self.plain(key, protocol::Plain::Command { op: Op::Close, hold: false }).await? {
            Reply::Closed => Ok(()),
            _ => Err(misfit()),
        }
    }

    /// Asks for leases. With `hold`, whoever is queued is answered when the wait is over.
    ///
    /// # Errors
    /// When something is not free and there is no wait, when the wait ends without a lease, or the request cannot be.
    pub async fn acquire(&self, key: SessionKey, acquire: Acquire, hold: bool) -> Result<Acquired, ApiError> {
        let command = protocol::Plain::Command { op: Op::Acquire(acquire), hold };
        match self.plain(key, command).await? {
            Reply::Plain { number, answer: Answer::Granted(grants), renewal } => {
                Ok(Acquired::Granted { acquire: number, renewal, grants })
            }
            Reply::Plain { number, answer: Answer::Queued { ahead }, renewal } => {
                Ok(Acquired::Queued { acquire: number, renewal, ahead })
            }
            Reply::Plain { answer: Answer::Refused(refusal), .. } => Err(refusal.into()),
            Reply::PlainWaitEnded { number, why } => Err(ApiError::WaitEnded { acquire: number, why }),
            _ => Err(misfit()),
        }
    }

    /// Gives a lease back; also the acknowledgement of a revoke.
    ///
    /// # Errors
    /// When the session does not hold that token.
    pub async fn release(
        &self,
        key: SessionKey,
        resource: ResourceName,
        token: Token,
        drained: bool,
    ) -> Result<(), ApiError> {
        match self.command(key, Op::Release { resource, token, drained }).await? {
            Answer::Released => Ok(()),
            _ => Err(misfit()),
        }
    }

    /// Shows another value with a lease held.
    ///
    /// # Errors
    /// When the session does not hold that token.
    pub async fn set_value(
        &self,
        key: SessionKey,
        resource: ResourceName,
        token: Token,
        value: Value,
    ) -> Result<(), ApiError> {
        match self.command(key, Op::SetValue { resource, token, value }).await? {
            Answer::ValueSet => Ok(()),
            _ => Err(misfit()),
        }
    }

    /// Shows that the work under a lease is being drained.
    ///
    /// # Errors
    /// When the session does not hold that token, the length is above a day, or a member does not know the command yet.
    pub async fn drain(
        &self,
        key: SessionKey,
        resource: ResourceName,
        token: Token,
        (in_flight, within): (u32, Millis),
    ) -> Result<(), ApiError> {
        if within > MAX_WAIT {
            let why = format!("drain of {within} is above the maximum of {MAX_WAIT}");
            return Err(ApiError::Impossible { field: "within_ms".to_owned(), why });
        }
        match self.command(key, Op::SetDraining { resource, token, in_flight, within }).await? {
            Answer::DrainingShown => Ok(()),
            _ => Err(misfit()),
        }
    }

    /// Says that the holder is warming up, or that it is ready. Decides nothing about who is granted what: it moves the end of a gap.
    ///
    /// # Errors
    /// When the session does not hold that token, or a member does not know the command yet.
    pub async fn ready(
        &self,
        key: SessionKey,
        resource: ResourceName,
        token: Token,
        ready: bool,
    ) -> Result<(), ApiError> {
        match self.command(key, Op::SetReady { resource, token, ready }).await? {
            Answer::ReadySet => Ok(()),
            _ => Err(misfit()),
        }
    }

    /// Gives up a wait.
    ///
    /// # Errors
    /// When there is no such wait of this session.
    pub async fn cancel(&self, key: SessionKey, acquire: CommandNumber) -> Result<Cancelled, ApiError> {
        match self.command(key, Op::Cancel { acquire }).await? {
            Answer::Cancelled => Ok(Cancelled::Cancelled),
            Answer::AlreadyGranted(grants) => Ok(Cancelled::AlreadyGranted(grants)),
            _ => Err(misfit()),
        }
    }

    /// Writes or removes a register of a resource. The token decides, not the session: whoever was given the token may write.
    ///
    /// # Errors
    /// When the token is not current, or there are too many registers.
    pub async fn write_register(&self, key: SessionKey, write: RegisterWrite) -> Result<(), ApiError> {
        let RegisterWrite { resource, token, register, value, with_lease } = write;
        let op = Op::WriteRegister { resource, token, key: register, value, with_lease };
        match self.command(key, op).await? {
            Answer::RegisterWritten => Ok(()),
            _ => Err(misfit()),
        }
    }

    /// Ends somebody's lease. Gives back for how long at most the resource still goes to nobody.
    ///
    /// # Errors
    /// When the token is not current.
    pub async fn revoke(&self, revoke: Revoke) -> Result<Millis, ApiError> {
        let Revoke { resource, token, by, reason, now } = revoke;
        let operator = Operator::Revoke { resource, token, by, reason, now };
        match self.reply(protocol::Request::Operator(operator)).await? {
            Reply::Revoked { held_back } => Ok(held_back),
            _ => Err(misfit()),
        }
    }

    /// Answers an alarm: the resource is granted again.
    ///
    /// # Errors
    /// When no alarm of that token is raised for it.
    pub async fn clear_alarm(&self, clear: ClearAlarm) -> Result<(), ApiError> {
        let ClearAlarm { resource, token, by, reason } = clear;
        let operator = Operator::ClearAlarm { resource, token, by, reason };
        match self.reply(protocol::Request::Operator(operator)).await? {
            Reply::AlarmCleared => Ok(()),
            _ => Err(misfit()),
        }
    }

    /// Asks whoever holds a resource to release it. A plain session learns of it with its next renewal.
    ///
    /// # Errors
    /// When nobody holds it, or not with that token.
    pub async fn ask_release(
        &self,
        resource: ResourceName,
        token: Option<Token>,
        by: Label,
    ) -> Result<Asked, ApiError> {
        let operator = Operator::AskRelease { resource, token, successor: None, by };
        match self.reply(protocol::Request::Operator(operator)).await? {
            Reply::Asked { token, holder } => Ok(Asked { token, holder }),
            _ => Err(misfit()),
        }
    }

    /// One resource; nothing if it was never held or is forgotten.
    ///
    /// # Errors
    /// When the service cannot answer.
    pub async fn get(&self, resource: ResourceName) -> Result<AtRevision<Option<LeaseView>>, ApiError> {
        self.read(Query::Lease(resource), |answer| match answer {
            ReadAnswer::Lease(lease) => Some(lease.map(|lease| *lease)),
            _ => None,
        })
        .await
    }

    /// A page of resources, in order of their names.
    ///
    /// # Errors
    /// When the service cannot answer.
    pub async fn list(
        &self,
        prefix: String,
        after: Option<ResourceName>,
        limit: usize,
    ) -> Result<AtRevision<Page<LeaseView>>, ApiError> {
        self.read(Query::Leases { prefix, after, limit }, |answer| match answer {
            ReadAnswer::Leases { leases, more } => Some(Page { items: leases, more }),
            _ => None,
        })
        .await
    }

    /// A page of sessions, in order of their ids.
    ///
    /// # Errors
    /// When the service cannot answer.
    pub async fn sessions(
        &self,
        after: Option<SessionId>,
        limit: usize,
    ) -> Result<AtRevision<Page<SessionView>>, ApiError> {
        self.read(Query::Sessions { after, limit }, |answer| match answer {
            ReadAnswer::Sessions { sessions, more } => Some(Page { items: sessions, more }),
            _ => None,
        })
        .await
    }

    /// Whether a token is that of a present lease.
    ///
    /// # Errors
    /// When the service cannot answer.
    pub async fn check(
        &self,
        resource: ResourceName,
        token: Token,
    ) -> Result<AtRevision<TokenCheck>, ApiError> {
        self.read(Query::Check { resource, token }, |answer| match answer {
            ReadAnswer::Check(check) => Some(check),
            _ => None,
        })
        .await
    }

    /// The leases of the past on a resource, newest first.
    ///
    /// # Errors
    /// When the service cannot answer.
    pub async fn history(&self, resource: ResourceName) -> Result<AtRevision<Vec<PastView>>, ApiError> {
        self.read(Query::History(resource), |answer| match answer {
            ReadAnswer::History(history) => Some(history),
            _ => None,
        })
        .await
    }

    /// The times in which nobody was known to act: of one name, or of a page of them.
    ///
    /// # Errors
    /// When the service cannot answer.
    pub async fn gaps(&self, of: GapsOf, last: Option<Millis>) -> Result<AtRevision<GapsView>, ApiError> {
        self.read(Query::Gaps { of, last }, |answer| match answer {
            ReadAnswer::Gaps(gaps) => Some(gaps),
            _ => None,
        })
        .await
    }

    /// The alarms that are raised, in order of their names.
    ///
    /// # Errors
    /// When the service cannot answer.
    pub async fn alarms(&self) -> Result<AtRevision<Vec<AlarmView>>, ApiError> {
        self.read(Query::Alarms, |answer| match answer {
            ReadAnswer::Alarms(alarms) => Some(alarms),
            _ => None,
        })
        .await
    }

    /// A register and the token it was written with.
    ///
    /// # Errors
    /// When the service cannot answer.
    pub async fn read_register(
        &self,
        resource: ResourceName,
        key: RegisterKey,
    ) -> Result<AtRevision<Option<(Value, Token)>>, ApiError> {
        self.read(Query::Register { resource, key }, |answer| match answer {
            ReadAnswer::Register(register) => Some(register),
            _ => None,
        })
        .await
    }

    /// The service itself.
    ///
    /// # Errors
    /// When the service cannot answer.
    pub async fn status(&self) -> Result<Status, ApiError> {
        let seen = self.read(Query::Status, |answer| match answer {
            ReadAnswer::Status(status) => Some(status),
            _ => None,
        });
        seen.await.map(|seen| seen.answer)
    }

    async fn command(&self, key: SessionKey, op: Op) -> Result<Answer, ApiError> {
        match self.plain(key, protocol::Plain::Command { op, hold: false }).await? {
            Reply::Plain { answer: Answer::Refused(refusal), .. } => Err(refusal.into()),
            Reply::Plain { answer, .. } => Ok(answer),
            _ => Err(misfit()),
        }
    }

    async fn plain(&self, key: SessionKey, plain: protocol::Plain) -> Result<Reply, ApiError> {
        self.reply(protocol::Request::Plain { session: key.id, nonce: key.nonce, plain }).await
    }

    async fn reply(&self, request: protocol::Request) -> Result<Reply, ApiError> {
        match self.caller.call(request).await {
            Response::Reply(Reply::Refused(refusal)) => Err(refusal.into()),
            Response::Reply(reply) => Ok(reply),
            Response::Failed(failure) => Err(failure.into()),
            Response::Read { .. } | Response::Cluster(_) => Err(misfit()),
        }
    }

    async fn read<T>(
        &self,
        query: Query,
        pick: impl FnOnce(ReadAnswer) -> Option<T>,
    ) -> Result<AtRevision<T>, ApiError> {
        match self.caller.call(protocol::Request::Read(query)).await {
            Response::Read { revision, answer } => {
                pick(answer).map(|answer| AtRevision { revision, answer }).ok_or_else(misfit)
            }
            Response::Failed(failure) => Err(failure.into()),
            Response::Reply(_) | Response::Cluster(_) => Err(misfit()),
        }
    }
}

/// An answer that does not fit its question. Something was done, and this release cannot say what.
const fn misfit() -> ApiError {
    ApiError::Failed(Failure::OutcomeUnknown)
}

fn draw_nonce() -> Result<Nonce, ApiError> {
    let mut nonce = [0; 16];
    match getrandom::fill(&mut nonce) {
        Ok(()) => Ok(Nonce(nonce)),
        Err(error) => {
            Err(Failure::Unavailable { why: format!("the machine gives no randomness: {error}") }.into())
        }
    }
}
