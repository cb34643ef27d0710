//! The operations: one function each, with a request of `api` in and an answer of `api` or an [`ApiError`] out.
//!
//! HTTP and unary gRPC decode into these requests and encode these answers; everything else about a call is in here. Sessions are plain ones, named
//! by their [`SessionKey`]; each call stands for itself and is sent once. Dropping the future of a call gives it up; an acquire that is kept waiting
//! without a number is then cancelled through the log.
//!
//! What it does not do: it renews nothing, repeats nothing and remembers nothing. It knows neither HTTP nor protobuf.

mod cluster;

use std::time::Duration;

use leasehold_api::answer::{
    AcquireOutcome, Acquired, Advice, Asked, AtRevision, CancelAnswer, Cancelled, OwnNumbers, Page,
    SessionOpened, SessionRenewed,
};
use leasehold_api::request::numbered;
use leasehold_api::{ApiError, SessionKey, request};
use leasehold_core::protocol::{self, Failure, GapsView, Query, ReadAnswer, Response, Status, TokenCheck};
use leasehold_core::table::{AlarmView, LeaseView, PastView, SessionView};
use leasehold_core::{
    Answer, Label, Millis, Nonce, Numbered, Op, Open, Operator, Reply, SessionKind, Token, Value,
};
use leasehold_host::{Asking, Caller};

use crate::paced;

pub(crate) use self::cluster::not_now;

/// What comes of an operation.
pub(crate) type Outcome<T> = Result<T, ApiError>;

/// Picks what an answer of one kind says; an answer of another kind says nothing.
macro_rules! pick {
    ($answer:pat => $said:expr) => {
        |answer| match answer {
            $answer => Some($said),
            _ => None,
        }
    };
}
use pick;

/// The node, for single calls.
#[derive(Debug, Clone)]
pub(crate) struct Operations {
    caller: Caller,
    asking: Asking,
    /// Who does what an operator does, if the request names none: the interface that it came by.
    by: &'static str,
    /// How long a call that waits is kept open, if its interface has an end to that.
    patience: Option<Duration>,
}

impl Operations {
    /// Speaks through this caller.
    pub(crate) const fn new(
        caller: Caller,
        asking: Asking,
        by: &'static str,
        patience: Option<Duration>,
    ) -> Self {
        Self { caller, asking, by, patience }
    }

    /// What it speaks through.
    pub(crate) const fn caller(&self) -> &Caller {
        &self.caller
    }

    /// For who the other nodes are.
    pub(crate) const fn asking(&self) -> &Asking {
        &self.asking
    }

    fn by(&self, named: Option<Label>) -> Label {
        named.unwrap_or_else(|| request::label(self.by))
    }

    /// Opens a session, or finds it again by its nonce. Without a nonce one is drawn, and a lost answer cannot be asked for again.
    pub(crate) async fn open(&self, open: request::Open) -> Outcome<SessionOpened> {
        let leasehold_api::answer::OpenSession { label, ttl, numbers, policies, nonce } = open.check();
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
    async fn judge(&self, numbers: OwnNumbers, ttl: Millis) -> Outcome<Option<Advice>> {
        let rules = self.look().await?;
        if !rules.ready {
            // What it goes by may not be what its cluster goes by.
            return Err(not_now("this node knows no leader"));
        }
        numbers.judge(ttl, rules.max_ttl, rules.drift).map_err(ApiError::Numbers)
    }

    /// Renews a session. The answer lists what it has; the renewal counts for these leases and no others.
    pub(crate) async fn renew(&self, key: SessionKey) -> Outcome<SessionRenewed> {
        match self.plain(key, protocol::Plain::Renew).await? {
            Reply::Renewed(renewed) => {
                let holdings = renewed.holdings.unwrap_or_default();
                Ok(SessionRenewed { renewal: renewed.number, holdings })
            }
            _ => Err(misfit()),
        }
    }

    /// Ends a session and all its leases.
    pub(crate) async fn close(&self, key: SessionKey, close: request::Close) -> Outcome<()> {
        let numbered = numbered(close.number, close.settled)?;
        match self.plain(key, protocol::Plain::Command { op: Op::Close, hold: false, numbered }).await? {
            Reply::Closed => Ok(()),
            _ => Err(misfit()),
        }
    }

    /// Asks for leases. A call that is queued is answered when its wait is over, or at once if it wants that; or when it has been kept open
    /// long enough, and then its number goes on.
    pub(crate) async fn acquire(&self, key: SessionKey, acquire: request::Acquire) -> Outcome<Acquired> {
        let numbered = numbered(acquire.number, acquire.settled)?;
        let (acquire, hold) = acquire.check()?;
        let wait = acquire.wait.unwrap_or_default();
        let op = Op::Acquire(acquire);
        let ask = |hold| self.plain(key, protocol::Plain::Command { op: op.clone(), hold, numbered });
        let reply = match self.patience.filter(|patience| hold && wait.get() > millis(*patience)) {
            None => ask(hold).await?,
            Some(patience) if numbered.is_none() => return Err(too_long(wait, patience)),
            Some(patience) => match tokio::time::timeout(patience, ask(true)).await {
                Ok(reply) => reply?,
                // Nothing is told twice here: this caller has heard nothing yet.
                Err(_) => said_first(ask(false).await?),
            },
        };
        let (acquire, renewal, repeated, answer, held) = match reply {
            Reply::Plain { number, answer, renewal } => (number, renewal, false, answer, None),
            Reply::PlainRepeated { number, answer, renewal, held } => {
                (number, renewal, true, answer, Some(held))
            }
            Reply::PlainWaitEnded { number, why } => {
                return Err(ApiError::WaitEnded { acquire: number, why });
            }
            _ => return Err(misfit()),
        };
        let is_held = |token: Token| held.as_ref().is_none_or(|held| held.contains(&token));
        let outcome = match answer {
            Answer::Granted(grants) => {
                let grants = grants.into_iter().map(|grant| (is_held(grant.token), grant));
                AcquireOutcome::Granted(grants.map(|(held, grant)| (grant, held)).collect())
            }
            Answer::Queued { ahead } => AcquireOutcome::Queued { ahead },
            Answer::Refused(refusal) => return Err(refusal.into()),
            _ => return Err(misfit()),
        };
        Ok(Acquired { acquire, renewal, repeated, outcome })
    }

    /// Gives a lease back; also the acknowledgement of a revoke.
    pub(crate) async fn release(&self, key: SessionKey, release: request::Release) -> Outcome<()> {
        let numbered = numbered(release.number, release.settled)?;
        let request::Release { resource, token, drained, .. } = release;
        let (token, drained) = (token.token(), drained.unwrap_or(false));
        self.done(key, numbered, Op::Release { resource, token, drained }, &Answer::Released).await
    }

    /// Shows another value with a lease held.
    pub(crate) async fn set_value(&self, key: SessionKey, set: request::SetValue) -> Outcome<()> {
        let numbered = numbered(set.number, set.settled)?;
        let (resource, token, value) = set.check()?;
        self.done(key, numbered, Op::SetValue { resource, token, value }, &Answer::ValueSet).await
    }

    /// Shows that the work under a lease is being drained.
    pub(crate) async fn drain(&self, key: SessionKey, drain: request::Drain) -> Outcome<()> {
        let (numbered, within) = (numbered(drain.number, drain.settled)?, drain.within()?);
        let request::Drain { resource, token, in_flight, .. } = drain;
        let token = token.token();
        let op = Op::SetDraining { resource, token, in_flight, within };
        self.done(key, numbered, op, &Answer::DrainingShown).await
    }

    /// Says that the holder is warming up, or that it is ready. Decides nothing about who is granted what: it moves the end of a gap.
    pub(crate) async fn ready(&self, key: SessionKey, ready: request::Ready) -> Outcome<()> {
        let numbered = numbered(ready.number, ready.settled)?;
        let request::Ready { resource, token, ready, .. } = ready;
        let (token, ready) = (token.token(), ready.unwrap_or(true));
        self.done(key, numbered, Op::SetReady { resource, token, ready }, &Answer::ReadySet).await
    }

    /// Gives up a wait.
    pub(crate) async fn cancel(&self, key: SessionKey, cancel: request::Cancel) -> Outcome<CancelAnswer> {
        let numbered = numbered(cancel.number, cancel.settled)?;
        let (answer, repeated) = self.command(key, numbered, cancel.check()?).await?;
        let outcome = match answer {
            Answer::Cancelled => Cancelled::Cancelled,
            Answer::AlreadyGranted(grants) => Cancelled::AlreadyGranted(grants),
            _ => return Err(misfit()),
        };
        Ok(CancelAnswer { outcome, repeated })
    }

    /// Writes or removes a register of a resource. The token decides, not the session: whoever was given the token may write.
    pub(crate) async fn write_register(
        &self,
        key: SessionKey,
        mut write: request::WriteRegister,
    ) -> Outcome<()> {
        let (numbered, value) = (numbered(write.number, write.settled)?, write.value()?);
        let request::WriteRegister { resource, token, key: register, with_lease, .. } = write;
        let (token, with_lease) = (token.token(), with_lease.unwrap_or(false));
        let op = Op::WriteRegister { resource, token, key: register, value, with_lease };
        self.done(key, numbered, op, &Answer::RegisterWritten).await
    }

    /// Ends somebody's lease. Gives back for how long at most the resource still goes to nobody.
    pub(crate) async fn revoke(&self, revoke: request::Revoke) -> Outcome<Millis> {
        let request::Revoke { resource, token, reason, by, now } = revoke;
        let (token, by, now) = (token.token(), self.by(by), now.unwrap_or(false));
        let operator = Operator::Revoke { resource, token, by, reason, now };
        self.operator(operator, pick!(Reply::Revoked { held_back } => held_back)).await
    }

    /// Answers an alarm: the resource is granted again.
    pub(crate) async fn clear_alarm(&self, clear: request::ClearAlarm) -> Outcome<()> {
        let request::ClearAlarm { resource, token, reason, by } = clear;
        let (token, by) = (token.token(), self.by(by));
        let operator = Operator::ClearAlarm { resource, token, by, reason };
        self.operator(operator, pick!(Reply::AlarmCleared => ())).await
    }

    /// Asks whoever holds a resource to release it. A plain session learns of it with its next renewal.
    pub(crate) async fn ask_release(&self, ask: request::AskRelease) -> Outcome<Asked> {
        let request::AskRelease { resource, token, by } = ask;
        let (token, by) = (token.map(leasehold_api::TokenNumber::token), self.by(by));
        let operator = Operator::AskRelease { resource, token, successor: None, by };
        self.operator(operator, pick!(Reply::Asked { token, holder } => Asked { token, holder })).await
    }

    /// One resource; nothing if it was never held or is forgotten.
    pub(crate) async fn get(&self, asked: request::Resource) -> Outcome<AtRevision<Option<LeaseView>>> {
        let lease = pick!(ReadAnswer::Lease(lease) => lease.map(|lease| *lease));
        self.read(Query::Lease(asked.resource), lease).await
    }

    /// A page of resources, in order of their names.
    pub(crate) async fn list(&self, asked: request::Leases) -> Outcome<AtRevision<Page<LeaseView>>> {
        let (prefix, after, limit) = asked.check()?;
        let page = pick!(ReadAnswer::Leases { leases, more } => Page { items: leases, more });
        self.read(Query::Leases { prefix, after, limit }, page).await
    }

    /// A page of sessions, in order of their ids.
    pub(crate) async fn sessions(&self, asked: request::Sessions) -> Outcome<AtRevision<Page<SessionView>>> {
        let (after, limit) = asked.check()?;
        let page = pick!(ReadAnswer::Sessions { sessions, more } => Page { items: sessions, more });
        self.read(Query::Sessions { after, limit }, page).await
    }

    /// Whether a token is that of a present lease.
    pub(crate) async fn check(&self, asked: request::Check) -> Outcome<AtRevision<TokenCheck>> {
        let request::Check { resource, token } = asked;
        let token = token.token();
        self.read(Query::Check { resource, token }, pick!(ReadAnswer::Check(check) => check)).await
    }

    /// The leases of the past on a resource, newest first.
    pub(crate) async fn history(&self, asked: request::Resource) -> Outcome<AtRevision<Vec<PastView>>> {
        self.read(Query::History(asked.resource), pick!(ReadAnswer::History(history) => history)).await
    }

    /// The times in which nobody was known to act: of one name, or of a page of them.
    pub(crate) async fn gaps(&self, asked: request::Gaps) -> Outcome<AtRevision<GapsView>> {
        let (of, last) = asked.check()?;
        self.read(Query::Gaps { of, last }, pick!(ReadAnswer::Gaps(gaps) => gaps)).await
    }

    /// The alarms that are raised, in order of their names.
    pub(crate) async fn alarms(&self) -> Outcome<AtRevision<Vec<AlarmView>>> {
        self.read(Query::Alarms, pick!(ReadAnswer::Alarms(alarms) => alarms)).await
    }

    /// A register and the token it was written with.
    pub(crate) async fn read_register(
        &self,
        asked: request::Register,
    ) -> Outcome<AtRevision<Option<(Value, Token)>>> {
        let request::Register { resource, key } = asked;
        let register = pick!(ReadAnswer::Register(register) => register);
        self.read(Query::Register { resource, key }, register).await
    }

    /// The service itself.
    pub(crate) async fn status(&self) -> Outcome<Status> {
        let seen = self.read(Query::Status, pick!(ReadAnswer::Status(status) => status)).await?;
        Ok(seen.answer)
    }

    /// A command that is answered with nothing but that it is done.
    async fn done(
        &self,
        key: SessionKey,
        numbered: Option<Numbered>,
        op: Op,
        expected: &Answer,
    ) -> Outcome<()> {
        if self.command(key, numbered, op).await?.0 == *expected { Ok(()) } else { Err(misfit()) }
    }

    /// The answer to a command, and whether it is the recorded one of a call that had arrived before.
    async fn command(&self, key: SessionKey, numbered: Option<Numbered>, op: Op) -> Outcome<(Answer, bool)> {
        match self.plain(key, protocol::Plain::Command { op, hold: false, numbered }).await? {
            Reply::Plain { answer: Answer::Refused(refusal), .. }
            | Reply::PlainRepeated { answer: Answer::Refused(refusal), .. } => Err(refusal.into()),
            Reply::Plain { answer, .. } => Ok((answer, false)),
            Reply::PlainRepeated { answer, .. } => Ok((answer, true)),
            _ => Err(misfit()),
        }
    }

    async fn operator<T>(&self, operator: Operator, pick: impl FnOnce(Reply) -> Option<T>) -> Outcome<T> {
        pick(self.reply(protocol::Request::Operator(operator)).await?).ok_or_else(misfit)
    }

    async fn plain(&self, key: SessionKey, plain: protocol::Plain) -> Outcome<Reply> {
        self.reply(protocol::Request::Plain { session: key.id, nonce: key.nonce, plain }).await
    }

    async fn reply(&self, request: protocol::Request) -> Outcome<Reply> {
        match self.caller.call(request).await {
            Response::Reply(Reply::Refused(refusal)) => Err(refusal.into()),
            Response::Reply(Reply::NumberSettled { call, settled }) => {
                Err(ApiError::NumberSettled { call, settled })
            }
            Response::Reply(reply) => Ok(reply),
            Response::Failed(failure) => Err(failure.into()),
            Response::Read { .. } | Response::Cluster(_) => Err(misfit()),
        }
    }

    async fn read<T>(
        &self,
        query: Query,
        pick: impl FnOnce(ReadAnswer) -> Option<T>,
    ) -> Outcome<AtRevision<T>> {
        let (response, page) = self.caller.read(query).await;
        paced::keep(page);
        match response {
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

/// A wait that outlasts a call, and could not be gone on with.
fn too_long(wait: Millis, patience: Duration) -> ApiError {
    let limit = millis(patience);
    let why = format!(
        "wait of {wait} is above {limit} ms, for which one call is kept open; give it a number, and send it again with that when it is \
         answered with 202"
    );
    ApiError::Impossible { field: "wait_ms".into(), why }
}

fn millis(length: Duration) -> u64 {
    u64::try_from(length.as_millis()).unwrap_or(u64::MAX)
}

/// A recorded answer that its caller gets for the first time.
fn said_first(reply: Reply) -> Reply {
    match reply {
        Reply::PlainRepeated { number, answer: answer @ Answer::Queued { .. }, renewal, .. } => {
            Reply::Plain { number, answer, renewal }
        }
        other => other,
    }
}

fn draw_nonce() -> Outcome<Nonce> {
    let mut nonce = [0; 16];
    let drawn = getrandom::fill(&mut nonce);
    drawn.map_err(|error| not_now(&format!("the machine gives no randomness: {error}")))?;
    Ok(Nonce(nonce))
}
