//! The HTTP door: every call of the service as JSON, watches as server-sent events, health, metrics and an OpenAPI document.
//!
//! It turns requests into calls of [`Operations`] and decides nothing about leases. Every request is bounded: its head, its body, and the
//! time in which the body must arrive. Every answer that is not what was asked for has one form, with a code of a closed list. A caller
//! that hangs up drops its call, and with it a wait that was kept for it.
//!
//! What it does not do: no listening and no connections (limits of those are the listener's), no rights, and no answer that a page of
//! another origin could read: no header allows it.

mod answer;
mod read;
mod request;
mod side;
mod watch;

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::handler::Handler;
use axum::http::{StatusCode, Uri};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodFilter, on};
use leasehold_api::call::{CALLS, Method, at_path};
use leasehold_api::{ApiError, request as ask, view};
use leasehold_host::{Repeats, Served};

use self::answer::{Answered, Refused, shown};
use self::read::{Fields, ForSession};
use crate::config::{Config, HttpConfig};
use crate::metrics::Metrics;
use crate::ops::Operations;
use crate::running::Counts;

/// Everything that requests share. Clones share it too.
#[derive(Debug, Clone)]
pub(crate) struct HttpState {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    ops: Operations,
    limits: HttpConfig,
    max_watches: usize,
    metrics: Arc<Metrics>,
    counts: Arc<Counts>,
    /// Failures by operation and code, which whoever asks all the time gets all the time.
    repeats: Repeats<(&'static str, &'static str)>,
}

impl HttpState {
    /// Requests go to the node that is served.
    pub(crate) fn new(config: &Config, served: &Served, metrics: Arc<Metrics>, counts: Arc<Counts>) -> Self {
        let ops = Operations::new(
            served.caller().clone(),
            served.peers().asking(),
            "http",
            Some(config.http.max_wait),
        );
        let (limits, max_watches) = (config.http.clone(), config.limits.max_watches);
        let repeats = Repeats::default();
        Self { shared: Arc::new(Shared { ops, limits, max_watches, metrics, counts, repeats }) }
    }
}

/// One operation as a handler: its request in, its view out.
macro_rules! op {
    ($op:ident() -> $view:ident) => {
        |State(state): State<HttpState>, Fields(ask::Nothing {}): Fields<ask::Nothing>| async move {
            shown::<_, view::$view>(state.shared.ops.$op().await)
        }
    };
    ($op:ident(key) -> $view:ident) => {
        |State(state): State<HttpState>,
         ForSession(key): ForSession,
         Fields(ask::Nothing {}): Fields<ask::Nothing>| async move {
            shown::<_, view::$view>(state.shared.ops.$op(key).await)
        }
    };
    ($op:ident($request:ident) -> $view:ident) => {
        |State(state): State<HttpState>, Fields(request): Fields<ask::$request>| async move {
            shown::<_, view::$view>(state.shared.ops.$op(request).await)
        }
    };
    ($op:ident(key, $request:ident) -> $view:ident) => {
        |State(state): State<HttpState>,
         ForSession(key): ForSession,
         Fields(request): Fields<ask::$request>| async move {
            shown::<_, view::$view>(state.shared.ops.$op(key, request).await)
        }
    };
}

/// Every call, with its limits and its form of errors.
pub(crate) fn router(state: HttpState) -> Router {
    let calls = Calls(Router::new(), 0)
        .add("open", op!(open(Open) -> Opened))
        .add("sessions", op!(sessions(Sessions) -> Sessions))
        .add("renew", op!(renew(key) -> Renewed))
        .add("close", op!(close(key, Close) -> Done))
        .add("acquire", acquire)
        .add("release", op!(release(key, Release) -> Done))
        .add("set-value", op!(set_value(key, SetValue) -> Done))
        .add("drain", op!(drain(key, Drain) -> Done))
        .add("set-ready", op!(ready(key, Ready) -> Done))
        .add("cancel", op!(cancel(key, Cancel) -> Cancelled))
        .add("get", op!(get(Resource) -> LeaseAnswer))
        .add("list", op!(list(Leases) -> Leases))
        .add("check", op!(check(Check) -> Check))
        .add("history", op!(history(Resource) -> History))
        .add("gaps", op!(gaps(Gaps) -> Gaps))
        .add("revoke", op!(revoke(Revoke) -> Revoked))
        .add("ask-release", op!(ask_release(AskRelease) -> Asked))
        .add("alarms", op!(alarms() -> Alarms))
        .add("clear-alarm", op!(clear_alarm(ClearAlarm) -> Done))
        .add("write-register", op!(write_register(key, WriteRegister) -> Done))
        .add("read-register", op!(read_register(Register) -> RegisterAnswer))
        .add("status", op!(status() -> Status))
        .add("watch", watch::watch)
        .add("cluster-status", op!(cluster() -> Cluster))
        .add("cluster-local", op!(local() -> LocalCluster))
        .add("cluster-add", op!(add_member(AddMember) -> Changed))
        .add("cluster-promote", op!(promote(Member) -> Changed))
        .add("cluster-remove", op!(remove(Member) -> Changed))
        .add("cluster-transfer", op!(transfer(Transfer) -> Transferred))
        .add("backup", side::backup)
        .add("openapi", side::openapi)
        .add("health", side::health)
        .add("ready", side::readiness)
        .add("metrics", side::numbers);
    assert_eq!(calls.1, CALLS.len(), "every call of the table has a handler");
    calls
        .0
        .fallback(|| async { Refused(ApiError::NoSuchPath) })
        .method_not_allowed_fallback(wrong_method)
        .layer(from_fn_with_state(state.clone(), request::every))
        .with_state(state)
}

/// Routes by the table of calls, and how many there are.
struct Calls(Router<HttpState>, usize);

impl Calls {
    fn add<H: Handler<T, HttpState>, T: 'static>(self, name: &str, handler: H) -> Self {
        let call = CALLS.iter().find(|call| call.name == name).expect("every handler is of a call");
        let filter = match call.method {
            Method::Get => MethodFilter::GET,
            Method::Post => MethodFilter::POST,
        };
        Self(self.0.route(call.path, on(filter, handler)), self.1 + 1)
    }
}

/// An acquire that meant to be kept waiting, and waits still, is accepted and not done.
async fn acquire(
    State(state): State<HttpState>,
    ForSession(key): ForSession,
    Fields(request): Fields<ask::Acquire>,
) -> Result<Response, Refused> {
    let waits = request.when_queued != Some(ask::WhenQueued::Return);
    let acquired = view::Acquired::from(state.shared.ops.acquire(key, request).await?);
    let status = if waits && acquired.is_queued() { StatusCode::ACCEPTED } else { StatusCode::OK };
    Ok((status, Answered(acquired)).into_response())
}

async fn wrong_method(uri: Uri) -> Refused {
    let methods = at_path(uri.path()).map(|call| match call.method {
        Method::Get => "GET, HEAD",
        Method::Post => "POST",
    });
    let mut methods: Vec<&str> = methods.collect();
    methods.sort_unstable();
    Refused(ApiError::WrongMethod { allowed: methods.join(", ") })
}
