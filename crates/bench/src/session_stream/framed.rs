//! The contender with length-prefixed frames on tokio.
//!
//! A connection is a reading and a writing task with a queue between them and the sessions, which is what a
//! server that also pushes events needs. The writer sends whatever waits in its queue with one call.
//! Deliberately absent: back-pressure by session, keep-alive, anything about versions.

use std::collections::BTreeMap;

use bytes::BytesMut;
use prost::Message;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::mpsc;

use super::codec;
use super::endpoint::{Listener, ReadHalf, Stream, WriteHalf, connect};
use super::load::{Answers, Session};
use super::messages::{AnswerFrame, OpFrame, answer};
use super::plan::{Sharing, Transport};

/// Room for one read: several hundred frames.
const READ_BUFFER: usize = 64 * 1024;

/// Messages taken off a queue for one write.
const BATCH: usize = 256;

/// Accepts and serves until the process is ended.
pub(crate) async fn serve(listener: Listener) -> anyhow::Result<()> {
    let (accepted, mut connections) = mpsc::unbounded_channel();
    // Accepting happens once per connection, before the measured time: a blocking thread does it for both kinds.
    std::thread::spawn(move || {
        while let Ok(stream) = listener.accept() {
            if accepted.send(stream).is_err() {
                break;
            }
        }
    });
    while let Some(stream) = connections.recv().await {
        let (from, to) = stream.into_tokio()?;
        let (queue, answers) = mpsc::unbounded_channel();
        tokio::spawn(write_all(answers, to));
        tokio::spawn(read_all(from, move |frame: OpFrame| queue.send(answer(frame)).is_ok()));
    }
    Ok(())
}

/// Opens `sessions` sessions.
pub(crate) fn open(
    transport: Transport,
    address: &str,
    sharing: Sharing,
    sessions: u32,
) -> anyhow::Result<Vec<Session>> {
    let ids: Vec<u32> = (0..sessions).collect();
    let per_connection = match sharing {
        Sharing::One => ids.len(),
        Sharing::Each => 1,
    };
    let mut open = Vec::new();
    for ids in ids.chunks(per_connection) {
        open.extend(open_on(connect(transport, address)?, ids)?);
    }
    Ok(open)
}

fn open_on(stream: Stream, ids: &[u32]) -> anyhow::Result<Vec<Session>> {
    let (from, to) = stream.into_tokio()?;
    let (queue, ops) = mpsc::unbounded_channel();
    let mut routes = BTreeMap::new();
    let mut sessions = Vec::new();
    for &id in ids {
        let (route, answers) = mpsc::unbounded_channel();
        routes.insert(id, route);
        sessions.push(Session { id, ops: queue.clone(), answers: Answers::Queue(answers) });
    }
    tokio::spawn(write_all(ops, to));
    tokio::spawn(read_all(from, move |frame: AnswerFrame| {
        routes.get(&frame.session).is_some_and(|route| route.send(frame).is_ok())
    }));
    Ok(sessions)
}

/// Writes what is queued until the queue or the connection ends.
async fn write_all<M: Message>(
    mut queue: mpsc::UnboundedReceiver<M>,
    mut to: WriteHalf,
) -> anyhow::Result<()> {
    let mut batch = Vec::with_capacity(BATCH);
    let mut bytes = BytesMut::with_capacity(READ_BUFFER);
    while queue.recv_many(&mut batch, BATCH).await > 0 {
        for message in batch.drain(..) {
            codec::put(&message, &mut bytes);
        }
        to.write_all(&bytes).await?;
        bytes.clear();
    }
    Ok(())
}

/// Hands every message read to `sink` until it declines one or the connection ends.
async fn read_all<M: Message + Default>(
    mut from: ReadHalf,
    mut sink: impl FnMut(M) -> bool,
) -> anyhow::Result<()> {
    let mut bytes = BytesMut::with_capacity(READ_BUFFER);
    loop {
        while let Some(message) = codec::take(&mut bytes)? {
            if !sink(message) {
                return Ok(());
            }
        }
        bytes.reserve(READ_BUFFER / 2);
        if from.read_buf(&mut bytes).await? == 0 {
            return Ok(());
        }
    }
}
