//! The session stream as a call: one connection of the node, carried by HTTP/2 instead of our own frames.
//!
//! A client that does not read is not read from, as over TCP, and is let go when that, or one message, takes too long. A client that has ended its side is still told what comes; it ends the call by
//! cancelling it.

use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt, stream};
use leasehold_core::protocol::{Failure, Response, ToClient};
use leasehold_host::{Door, Inbound, OnTheWay, Outbound};
use leasehold_wire::messages::{SessionIn, SessionMessage, SessionOut};
use leasehold_wire::{Hello, OpeningError, decode_client_frame};
use tokio::sync::{mpsc, oneshot};
use tonic::{Status, Streaming};

use super::{Answers, status};
use leasehold_api::ApiError;

/// A client says who it is within this time, or is sent away.
const OPENING_TIME: Duration = Duration::from_secs(5);
/// What is still to be sent when the service lets go of a connection gets this long.
const FLUSH_TIME: Duration = Duration::from_secs(2);
/// Messages between the connection and HTTP/2: one being sent, and one that is ready.
const READY: usize = 2;

/// The way out. What a message counts with is dropped when HTTP/2 takes it, and [counts](crate::paced) on from there.
type Out = mpsc::Sender<(SessionOut, Option<Arc<Vec<OnTheWay>>>)>;

/// Begins a connection, which ends when either side ends the call.
pub(super) fn begin(
    incoming: Streaming<SessionIn>,
    door: Door,
    write_timeout: Duration,
) -> Answers<SessionOut> {
    let (out, mut ready) = mpsc::channel(READY);
    // Beside the queue: a client that did not read is told why, once it reads again.
    let (say_why, why) = oneshot::channel();
    tokio::spawn(async move {
        tokio::select! {
            carried = carry(incoming, &door, &out, write_timeout) => if let Err(status) = carried {
                let _ = say_why.send(status);
            },
            () = out.closed() => {}
        }
    });
    let messages = stream::poll_fn(move |cx| ready.poll_recv(cx)).map(|(message, _)| Ok(message));
    let end = stream::once(why).filter_map(|why| std::future::ready(why.ok().map(Err)));
    Box::pin(messages.chain(end))
}

/// Carries messages until the connection is over. There is no good end: a client that has enough cancels the call.
async fn carry(
    mut incoming: Streaming<SessionIn>,
    door: &Door,
    out: &Out,
    write_timeout: Duration,
) -> Result<(), Status> {
    let hello = SessionOut::hello(&door.hello()).map_err(|error| Status::internal(error.to_string()))?;
    if out.send((hello, None)).await.is_err() {
        return Ok(());
    }
    let opened = tokio::time::timeout(OPENING_TIME, open(&mut incoming)).await;
    opened.map_err(|_| Status::deadline_exceeded(format!("no hello came within {OPENING_TIME:?}")))??;
    let (inbound, mut outbound) = door.open().map_err(|_| let_go())?;
    let service_let_go = outbound.let_go();
    let writing = write(outbound, out, write_timeout);
    tokio::pin!(writing);
    tokio::select! {
        read = read(incoming, inbound) => read,
        written = &mut writing => written,
        () = service_let_go => {
            let _ = tokio::time::timeout(FLUSH_TIME, writing).await;
            Err(let_go())
        }
    }
}

/// Waits for the client's hello, and judges it.
async fn open(incoming: &mut Streaming<SessionIn>) -> Result<(), Status> {
    let not_understood = |error: OpeningError| Status::invalid_argument(error.to_string());
    match incoming.message().await?.and_then(|first| first.message) {
        Some(SessionMessage::Hello(hello)) => Hello::from_message(hello)
            .map_err(not_understood)?
            .check_client()
            .map_err(|error| Status::failed_precondition(error.to_string())),
        Some(SessionMessage::Frame(_)) | None => {
            Err(Status::invalid_argument("the first message must be a hello"))
        }
    }
}

/// Takes in requests. Ends only when the connection must.
async fn read(mut incoming: Streaming<SessionIn>, mut inbound: Inbound) -> Result<(), Status> {
    while let Some(message) = incoming.message().await? {
        let Some(SessionMessage::Frame(frame)) = message.message else {
            return Err(Status::invalid_argument("a message after the hello must be a frame"));
        };
        let requests =
            decode_client_frame(&frame).map_err(|error| Status::invalid_argument(error.to_string()))?;
        for request in requests {
            inbound.take(request).await.map_err(|_| let_go())?;
        }
    }
    // The client asks for nothing more, but what it has may still change, and its connection keeps it.
    std::future::pending().await
}

/// Sends what there is, until the service lets go or the client does not read.
async fn write(mut outbound: Outbound, out: &Out, write_timeout: Duration) -> Result<(), Status> {
    while let Some(messages) = outbound.next().await {
        let sent = Arc::new(outbound.taken());
        let frames = frames(&messages);
        drop(messages);
        for message in frames {
            let sending = out.send((message, Some(Arc::clone(&sent))));
            tokio::select! {
                biased;
                sent = tokio::time::timeout(write_timeout, sending) => match sent {
                    Ok(Ok(())) => {}
                    Ok(Err(_)) => return Ok(()),
                    Err(_) => return Err(let_go()),
                },
                () = outbound.room().stall() => return Err(let_go()),
            }
        }
    }
    Err(let_go())
}

/// One frame if it fits, else smaller ones, down to single items. A response that does not fit is replaced by one that says so.
fn frames(messages: &[ToClient]) -> Vec<SessionOut> {
    if let Ok(frame) = SessionOut::frame(messages) {
        return vec![frame];
    }
    match messages {
        [ToClient::Items { session, items }] if items.len() > 1 => {
            let halves = items.chunks(items.len().div_ceil(2));
            let half = |items: &[_]| ToClient::Items { session: *session, items: items.to_vec() };
            halves.flat_map(|items| frames(&[half(items)])).collect()
        }
        [ToClient::Response { id, .. }] => {
            let why = "the answer does not fit a frame; ask for less at once".into();
            let response = Response::Failed(Failure::Unavailable { why });
            frames(&[ToClient::Response { id: *id, response }])
        }
        [_] => unreachable!("one item and one part of a watch are far below a frame"),
        several => several.iter().flat_map(|message| frames(std::slice::from_ref(message))).collect(),
    }
}

/// The end of a connection that the service has let go of.
fn let_go() -> Status {
    let why = "the connection is let go of: the service stops, or its client did not read".into();
    status::of("session", &ApiError::Failed(Failure::Unavailable { why }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use leasehold_core::protocol::RequestId;
    use leasehold_core::{
        Answer, CommandNumber, Grant, Item, ItemKind, ItemNumber, ResourceName, SessionId, Token,
    };
    use leasehold_wire::{MAX_FRAME_BYTES, decode_server_frame};

    fn heard(frames: Vec<SessionOut>) -> Vec<ToClient> {
        let body = |frame: SessionOut| match frame.message {
            Some(SessionMessage::Frame(body)) => body,
            other => panic!("{other:?}"),
        };
        frames.into_iter().flat_map(|frame| decode_server_frame(&body(frame)).unwrap()).collect()
    }

    #[test]
    fn items_beyond_a_frame_are_split_and_none_is_lost() {
        let name = ResourceName::new(&"n".repeat(512)).unwrap();
        let grant =
            Grant { resource: name, token: Token::from_u64(1), fence: Token::from_u64(1), slot: None };
        let item = |number: u64| Item {
            number: ItemNumber::new(number),
            kind: ItemKind::Answer {
                command: CommandNumber::new(number),
                answer: Answer::Granted(vec![grant.clone(); 64]),
            },
        };
        let items: Vec<Item> = (1..=512).map(item).collect();
        let session = SessionId::from_u64(7);
        let mut received = Vec::new();
        for message in heard(frames(&[ToClient::Items { session, items: items.clone() }])) {
            let ToClient::Items { items, .. } = message else { panic!("only items were sent") };
            received.extend(items);
        }
        assert_eq!(received, items);
    }

    #[test]
    fn a_response_that_does_not_fit_is_replaced_and_its_neighbours_are_not() {
        let response = |id, why: String| ToClient::Response {
            id: RequestId(id),
            response: Response::Failed(Failure::Unavailable { why }),
        };
        let (first, last) = (response(1, "a".into()), response(3, "b".into()));
        let told = heard(frames(&[first.clone(), response(2, "w".repeat(MAX_FRAME_BYTES)), last.clone()]));
        assert_eq!((&told[0], &told[2]), (&first, &last));
        let ToClient::Response { id: RequestId(2), response: Response::Failed(failure) } = &told[1] else {
            panic!("{:?}", told[1]);
        };
        assert!(failure.to_string().contains("does not fit a frame"), "{failure}");
    }
}
