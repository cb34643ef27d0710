//! Watches as server-sent events.
//!
//! The stream pulls: a watcher takes from the hub what comes after its position whenever its client has read the last piece, so no
//! watch holds more than one piece in memory, however slow its client is. All matching changes of a revision are one message, so
//! every `id` is a point to resume from.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::header::{CONTENT_TYPE, HeaderName};
use axum::http::{HeaderMap, HeaderValue};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use leasehold_api::view::Event;
use leasehold_api::{ApiError, Number, bad_field, request};
use leasehold_core::Revision;
use leasehold_host::{Kept, Texts, Watcher};

use super::HttpState;
use super::answer::{Refused, problem};
use super::read::Fields;
use super::request::RequestName;
use crate::tcp::Counted;
use crate::web::{ConnectionWatch, ConnectionWatches};

/// So long without anything to tell, a watcher is told how far the log has come. It also keeps the connection from looking dead.
const PROGRESS_EVERY: Duration = Duration::from_secs(10);
/// A piece of text is about so long: what a client has not read is not in memory beyond it.
const PIECE_BYTES: usize = 16 * 1024;
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// Asks proxies not to collect what should be seen at once.
const NO_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

pub(super) async fn watch(
    State(state): State<HttpState>,
    Extension(name): Extension<RequestName>,
    Extension(of_connection): Extension<ConnectionWatches>,
    headers: HeaderMap,
    Fields(fields): Fields<request::Watch>,
) -> Result<Response, Refused> {
    let watch = fields.check(resume(&headers)?)?;
    let counted = (Counted::watch(&state.shared.counts, state.shared.max_watches)?, of_connection.count()?);
    let watcher = state.shared.ops.caller().hub().watch(&watch).map_err(ApiError::from)?;
    let telling = Telling { watcher, name, begun: false, taken: VecDeque::new(), at: 0, _counted: counted };
    let pieces = stream::unfold(Some(telling), |telling| async move {
        let (piece, telling) = telling?.tell().await;
        Some((Ok::<_, std::convert::Infallible>(piece), telling))
    });
    let kind = HeaderValue::from_static("text/event-stream");
    let unbuffered = HeaderValue::from_static("no");
    Ok(([(CONTENT_TYPE, kind), (NO_BUFFERING, unbuffered)], Body::from_stream(pieces)).into_response())
}

/// What a client that connects again says it has seen.
fn resume(headers: &HeaderMap) -> Result<Option<Number>, ApiError> {
    let Some(given) = headers.get(LAST_EVENT_ID) else { return Ok(None) };
    let number = given.to_str().map_err(|_| "it is not a text".to_owned()).and_then(Number::parse);
    number.map(Some).map_err(|why| bad_field(LAST_EVENT_ID.as_str(), why))
}

/// A watch under way.
struct Telling {
    watcher: Watcher,
    name: RequestName,
    begun: bool,
    /// Entries that are still to be told, the first of them perhaps in part.
    taken: VecDeque<Arc<Kept>>,
    /// How many changes of the first entry were looked at.
    at: usize,
    _counted: (Counted, ConnectionWatch),
}

impl Telling {
    /// The next piece of text, and how to go on, if there is a way.
    async fn tell(mut self) -> (Bytes, Option<Self>) {
        let mut piece = String::new();
        if !self.begun {
            self.begun = true;
            position(&mut piece, "started", self.watcher.position());
            return (piece.into(), Some(self));
        }
        if self.taken.is_empty() {
            match self.watcher.next(PROGRESS_EVERY).await {
                Ok(taken) => self.taken = taken.into(),
                Err(failure) => {
                    let error = problem(&ApiError::Failed(failure), self.name.as_str());
                    message(&mut piece, "error", None, &error);
                    return (piece.into(), None);
                }
            }
        }
        if self.taken.is_empty() {
            position(&mut piece, "progress", self.watcher.position());
        }
        while piece.len() < PIECE_BYTES
            && let Some(kept) = self.taken.front().map(Arc::clone)
        {
            if self.add(&mut piece, &kept) {
                self.taken.pop_front();
                self.at = 0;
            }
        }
        (piece.into(), Some(self))
    }

    /// Adds changes of one entry until the piece is long enough. Says whether all of them are told: a message may be cut into
    /// pieces anywhere, and its client still gets it whole. The texts are made once for all watchers.
    fn add(&mut self, piece: &mut String, kept: &Kept) -> bool {
        let changes = &kept.changes.changes;
        let texts =
            kept.texts.get_or_init(|| Texts::new(changes.iter().map(|change| Event::new(change).line())));
        let revision = kept.changes.revision;
        let mut first = self.at == 0;
        if first {
            let written = write!(
                piece,
                "event: changes\nid: {revision}\ndata: {{\"revision\":\"{revision}\",\"events\":["
            );
            written.expect("a string takes everything");
        } else {
            first = !changes[..self.at].iter().any(|change| self.watcher.matches(change));
        }
        while self.at < changes.len() {
            if self.watcher.matches(&changes[self.at]) {
                if !std::mem::take(&mut first) {
                    piece.push(',');
                }
                piece.push_str(texts.get(self.at));
            }
            self.at += 1;
            // Never before the first change: its place says that the head of the message is written.
            if piece.len() >= PIECE_BYTES && self.at < changes.len() {
                return false;
            }
        }
        piece.push_str("]}\n\n");
        true
    }
}

fn position(piece: &mut String, event: &str, revision: Revision) {
    message(piece, event, Some(revision), &format!("{{\"revision\":\"{revision}\"}}"));
}

/// One message. The data is one line: JSON has no other.
fn message(piece: &mut String, event: &str, id: Option<Revision>, data: &str) {
    let written = match id {
        Some(id) => write!(piece, "event: {event}\nid: {id}\ndata: {data}\n\n"),
        None => write!(piece, "event: {event}\ndata: {data}\n\n"),
    };
    written.expect("a string takes everything");
}
