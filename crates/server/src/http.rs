//! The HTTP door: every call of the service as JSON, watches as server-sent events, health, metrics and an OpenAPI document.
//!
//! It turns requests into calls of [`Plain`] and decides nothing about leases. Every request is bounded: its head, its body, and the
//! time in which the body must arrive. Every answer that is not what was asked for has one form, with a code of a closed list. A caller
//! that hangs up drops its call, and with it a wait that was kept for it.
//!
//! What it does not do: no listening and no connections (limits of those are the listener's), no rights, and no answer that a page of
//! another origin could read: no header allows it.

mod answer;
mod calls;
mod cluster;
mod fields;
mod input;
mod openapi;
mod request;
mod side;
mod watch;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::Router;
use axum::handler::Handler;
use axum::middleware::from_fn_with_state;
use axum::routing::{MethodRouter, get, post};
use leasehold_core::protocol::Failure;
use leasehold_host::{Asking, Repeats, Served};

use self::answer::Refused;
use crate::config::{Config, HttpConfig};
use crate::metrics::Metrics;
use crate::plain::{ApiError, Plain};
use crate::running::Counts;
use crate::tcp::Counted;

/// Everything that requests share. Clones share it too.
#[derive(Debug, Clone)]
pub(crate) struct HttpState {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    plain: Plain,
    asking: Asking,
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
        let plain = Plain::new(served.caller().clone());
        let asking = served.peers().asking();
        let (limits, max_watches) = (config.http.clone(), config.limits.max_watches);
        let repeats = Repeats::default();
        Self { shared: Arc::new(Shared { plain, asking, limits, max_watches, metrics, counts, repeats }) }
    }

    fn plain(&self) -> &Plain {
        &self.shared.plain
    }

    /// For who the other nodes are.
    fn asking(&self) -> &Asking {
        &self.shared.asking
    }

    fn limits(&self) -> &HttpConfig {
        &self.shared.limits
    }

    fn metrics(&self) -> &Metrics {
        &self.shared.metrics
    }

    fn repeats(&self) -> &Repeats<(&'static str, &'static str)> {
        &self.shared.repeats
    }

    /// Counts one more watch, if there may be one more. gRPC has its watches in the same count.
    fn count_watch(&self) -> Result<Counted, ApiError> {
        let counted = Counted::new(&self.shared.counts, |counts| &counts.watches);
        let limit = self.shared.max_watches;
        if self.shared.counts.watches.load(Ordering::Relaxed) > limit {
            return Err(ApiError::Failed(Failure::TooManyWatches { limit }));
        }
        Ok(counted)
    }
}

/// Every path, with its limits and its form of errors.
pub(crate) fn router(state: HttpState) -> Router {
    Router::new()
        .route("/v1/session/open", posted(calls::open))
        .route("/v1/session/renew", posted(calls::renew))
        .route("/v1/session/close", posted(calls::close))
        .route("/v1/session/list", asked(calls::sessions))
        .route("/v1/lease/acquire", posted(calls::acquire))
        .route("/v1/lease/release", posted(calls::release))
        .route("/v1/lease/set-value", posted(calls::set_value))
        .route("/v1/lease/drain", posted(calls::drain))
        .route("/v1/lease/ready", posted(calls::ready))
        .route("/v1/lease/cancel", posted(calls::cancel))
        .route("/v1/lease/get", asked(calls::get))
        .route("/v1/lease/list", asked(calls::list))
        .route("/v1/lease/check", asked(calls::check))
        .route("/v1/lease/history", asked(calls::history))
        .route("/v1/lease/gaps", asked(calls::gaps))
        .route("/v1/lease/revoke", posted(calls::revoke))
        .route("/v1/lease/alarms", asked(calls::alarms))
        .route("/v1/lease/clear-alarm", posted(calls::clear_alarm))
        .route("/v1/lease/ask-release", posted(calls::ask_release))
        .route("/v1/register/write", posted(calls::write_register))
        .route("/v1/register/read", asked(calls::read_register))
        .route("/v1/status", looked_at(calls::status))
        .route("/v1/watch", looked_at(watch::watch))
        .route("/v1/backup", looked_at(cluster::backup))
        .route("/v1/cluster/status", asked(cluster::status))
        .route("/v1/cluster/local", asked(cluster::local))
        .route("/v1/cluster/add", posted(cluster::add))
        .route("/v1/cluster/promote", posted(cluster::promote))
        .route("/v1/cluster/remove", posted(cluster::remove))
        .route("/v1/cluster/transfer", posted(cluster::transfer))
        .route("/openapi.json", looked_at(side::openapi))
        .route("/healthz", looked_at(side::health))
        .route("/readyz", looked_at(side::readiness))
        .route("/metrics", looked_at(side::numbers))
        .fallback(|| async { Refused(ApiError::NoSuchPath) })
        .layer(from_fn_with_state(state.clone(), request::every))
        .with_state(state)
}

/// For what changes something: a GET must not.
fn posted<H: Handler<T, HttpState>, T: 'static>(handler: H) -> MethodRouter<HttpState> {
    post(handler).fallback(wrong_method("POST"))
}

/// For what is only looked at and has no fields to speak of.
fn looked_at<H: Handler<T, HttpState>, T: 'static>(handler: H) -> MethodRouter<HttpState> {
    get(handler).fallback(wrong_method("GET, HEAD"))
}

/// For questions: fields in the query or in a body.
fn asked<H: Handler<T, HttpState>, T: 'static>(handler: H) -> MethodRouter<HttpState> {
    get(handler.clone()).post(handler).fallback(wrong_method("GET, HEAD, POST"))
}

fn wrong_method(
    allowed: &'static str,
) -> impl Fn() -> std::future::Ready<Refused> + Clone + Send + Sync + 'static {
    move || std::future::ready(Refused(ApiError::WrongMethod { allowed }))
}
