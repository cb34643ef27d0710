//! Bodies of answers, handed to the HTTP library in pieces as it takes them.
//!
//! The library takes a body whole if it can, and keeps it for as long as its client does not read. So what is larger than a piece stays here, where
//! it [counts](leasehold_host::Room) until its last piece is taken; and while there is no room, a client that takes no piece loses its connection.

use std::cell::Cell;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};

use axum::body::{Body, Bytes, HttpBody};
use axum::response::Response;
use hyper::body::{Frame, SizeHint};
use leasehold_host::{Held, Page, Room};

use crate::timed::Line;

/// As much is handed over at once. Events come in smaller pieces of their own.
const PIECE: usize = 32 * 1024;
/// Bodies that are known to be so short are left alone: they cost less than their connection.
const SHORT: u64 = 1024;

/// The answer with its body in pieces. A page that was made for it counts as what the body has, from now on.
pub(crate) fn paced(answer: Response, page: Option<Page>, room: &Room, line: &Arc<Line>) -> Response {
    let size = answer.body().size_hint();
    if page.is_none() && size.exact().is_some_and(|exact| exact <= SHORT) {
        return answer;
    }
    let exact = size.exact().and_then(|exact| usize::try_from(exact).ok());
    let held = page.map(|page| page.made(exact));
    answer
        .map(|inner| Body::new(Paced { inner, rest: None, held, room: room.clone(), line: Arc::clone(line) }))
}

tokio::task_local! {
    /// The room of the page that a call has asked for. The body is made of it only behind several layers that know nothing of it.
    static PAGE: Cell<Option<Page>>;
}

/// Runs a call, and gives what it has [kept](keep) with its outcome.
pub(crate) async fn keeping<F: Future>(call: F) -> (F::Output, Option<Page>) {
    PAGE.scope(Cell::new(None), async { (call.await, PAGE.with(Cell::take)) }).await
}

/// Keeps the room of a page until the answer to the present call is read.
pub(crate) fn keep(page: Option<Page>) {
    // A call that is not answered by a body, as in a test, has nothing to keep it for.
    let _ = PAGE.try_with(|kept| kept.set(page));
}

struct Paced {
    inner: Body,
    /// What is left of a frame that is larger than a piece.
    rest: Option<Rest>,
    /// For the first frame, or the only one.
    held: Option<Held>,
    room: Room,
    line: Arc<Line>,
}

struct Rest {
    bytes: Bytes,
    _held: Held,
    /// How many pieces were taken. Whoever looks whether any was, looks no more when this is gone.
    taken: Arc<AtomicUsize>,
}

impl Paced {
    fn begin(&mut self, bytes: Bytes) {
        let held = match self.held.take() {
            Some(mut held) => {
                held.resize(bytes.len());
                held
            }
            None => self.room.count(bytes.len()),
        };
        let taken = Arc::new(AtomicUsize::new(0));
        // It keeps neither the body nor the connection.
        let (watched, line) = (Arc::downgrade(&taken), Arc::downgrade(&self.line));
        let room = self.room.clone();
        tokio::spawn(async move {
            let mut before = 0;
            loop {
                let is_scarce = room.pause().await;
                let (Some(taken), Some(line)) = (watched.upgrade(), line.upgrade()) else { return };
                let now = taken.load(Ordering::Relaxed);
                if is_scarce && now == before {
                    return line.end();
                }
                before = now;
            }
        });
        self.rest = Some(Rest { bytes, _held: held, taken });
    }

    /// A copy of the next piece: a part of the whole would keep the whole.
    fn piece(&mut self) -> Option<Bytes> {
        let rest = self.rest.as_mut()?;
        let piece = rest.bytes.split_to(rest.bytes.len().min(PIECE));
        rest.taken.fetch_add(1, Ordering::Relaxed);
        if rest.bytes.is_empty() {
            self.rest = None;
        }
        Some(Bytes::copy_from_slice(&piece))
    }
}

impl HttpBody for Paced {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if self.rest.is_none() {
            let frame = match ready!(Pin::new(&mut self.inner).poll_frame(cx)) {
                Some(Ok(frame)) => frame,
                over => return Poll::Ready(over),
            };
            match frame.into_data() {
                Ok(bytes) if bytes.len() > PIECE => self.begin(bytes),
                Ok(bytes) => return Poll::Ready(Some(Ok(Frame::data(bytes)))),
                Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
            }
        }
        Poll::Ready(self.piece().map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_none() && self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let left = self.rest.as_ref().map_or(0, |rest| rest.bytes.len() as u64);
        let inner = self.inner.size_hint();
        let mut hint = SizeHint::new();
        hint.set_lower(inner.lower() + left);
        if let Some(upper) = inner.upper() {
            hint.set_upper(upper + left);
        }
        hint
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::response::IntoResponse;
    use tokio::net::{TcpListener, TcpStream};

    async fn line() -> (Arc<Line>, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let theirs = TcpStream::connect(listener.local_addr().expect("it is bound")).await;
        let (ours, _) = listener.accept().await.expect("somebody connects");
        (Line::new(ours), theirs.expect("it listens"))
    }

    async fn next(body: &mut Body) -> Option<Bytes> {
        let frame = std::future::poll_fn(|cx| Pin::new(&mut *body).poll_frame(cx)).await?;
        Some(frame.expect("it does not fail").into_data().expect("there are no trailers"))
    }

    #[tokio::test]
    async fn a_long_body_comes_in_pieces_of_its_own_and_says_how_long_it_is() {
        let (line, _theirs) = line().await;
        let room = Room::default();
        let page = room.page().await.unwrap();
        let whole: Vec<u8> = (0..3 * PIECE + 7).map(|at| at as u8).collect();
        let mut body = paced(whole.clone().into_response(), Some(page), &room, &line).into_body();
        assert_eq!(body.size_hint().exact(), Some(whole.len() as u64));
        let mut read = Vec::new();
        while let Some(piece) = next(&mut body).await {
            assert!(piece.len() <= PIECE);
            read.extend_from_slice(&piece);
            assert_eq!(body.size_hint().exact(), Some((whole.len() - read.len()) as u64));
            assert_eq!(body.is_end_stream(), read.len() == whole.len());
        }
        assert_eq!(read, whole);
    }

    #[tokio::test]
    async fn a_body_that_is_not_taken_ends_its_connection_only_while_there_is_no_room() {
        let (line, _theirs) = line().await;
        let room = Room::default();
        let whole = vec![0_u8; 10 * PIECE];
        let mut read = paced(whole.clone().into_response(), None, &room, &line).into_body();
        next(&mut read).await.unwrap();
        let in_time = |limit| tokio::time::timeout(std::time::Duration::from_millis(limit), line.ended());
        assert!(in_time(1_200).await.is_err(), "there is room");
        let others: Vec<_> = (0..16).map(|_| room.count(usize::MAX)).collect();
        assert!(in_time(10_000).await.is_ok(), "others need the room");
        drop(read);
        let mut unread = paced(whole.into_response(), None, &room, &line).into_body();
        next(&mut unread).await.unwrap();
        drop(unread);
        assert!(in_time(1_200).await.is_err(), "what is gone is not waited for");
        assert_eq!(Arc::strong_count(&line), 1, "and keeps no connection");
        drop(others);
    }
}
