//! As much of the protocol of ZooKeeper as is needed: a session, nodes, and watches that tell once.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use bytes::{Buf as _, BufMut as _, BytesMut};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{mpsc, oneshot};
use tokio_stream::StreamExt as _;
use tokio_util::codec::{FramedRead, LengthDelimitedCodec};

/// What is read at once at most.
const CHUNK: usize = 64 * 1024;
/// Numbers of requests.
const CREATE: i32 = 1;
const DELETE: i32 = 2;
const EXISTS: i32 = 3;
const PING: i32 = 11;
const CHILDREN: i32 = 8;
/// Numbers that stand where that of a request would.
const OF_EVENT: i32 = -1;
const OF_PING: i32 = -2;
/// Numbers of errors.
const NO_NODE: i32 = -101;
const NODE_EXISTS: i32 = -110;

/// How a node is made.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    /// It stays.
    Persistent = 0,
    /// It ends with the session.
    Ephemeral = 1,
    /// It ends with the session, and its name ends with a number.
    Sequential = 3,
}

/// A session on a connection on which many requests are under way at once.
#[derive(Debug)]
pub struct Session {
    sender: mpsc::UnboundedSender<Vec<u8>>,
    state: Arc<Mutex<State>>,
    pings: tokio::task::JoinHandle<()>,
}

#[derive(Debug, Default)]
struct State {
    last: i32,
    /// Answers come in the order of the requests.
    waiting: VecDeque<(i32, oneshot::Sender<Answer>)>,
    watches: HashMap<String, Vec<oneshot::Sender<()>>>,
    over: bool,
}

/// An answer: the transaction, the error or zero, and the rest.
#[derive(Debug)]
struct Answer {
    /// The last transaction that the server knows; of a change the one that made it.
    transaction: i64,
    /// Zero, or what went wrong.
    error: i32,
    rest: BytesMut,
}

impl Session {
    /// Connects and opens a session.
    ///
    /// # Errors
    /// When it is not opened.
    pub async fn open(address: &str, timeout: Duration) -> Result<Self> {
        let stream = TcpStream::connect(address).await;
        let stream = stream.with_context(|| format!("nobody listens on {address}"))?;
        stream.set_nodelay(true)?;
        let (half, writing) = stream.into_split();
        let (sender, requests) = mpsc::unbounded_channel();
        tokio::spawn(write(writing, requests));
        let mut frames = FramedRead::with_capacity(half, LengthDelimitedCodec::new(), CHUNK);
        let mut hello = BytesMut::new();
        hello.put_i32(0);
        hello.put_i64(0);
        hello.put_i32(i32::try_from(timeout.as_millis())?);
        hello.put_i64(0);
        put_buffer(&mut hello, &[0; 16]);
        sender.send(framed(&hello)).ok().context("the connection is gone")?;
        let mut granted = frames.next().await.context("the session was not opened")??;
        ensure!(granted.len() >= 8, "the session was not opened");
        granted.advance(4);
        let granted_ms = u64::try_from(granted.get_i32())?;
        ensure!(granted_ms > 0, "the session was not opened");
        let state = Arc::<Mutex<State>>::default();
        tokio::spawn(read(frames, Arc::clone(&state)));
        let pings = tokio::spawn(ping(sender.clone(), Duration::from_millis(granted_ms / 3)));
        Ok(Self { sender, state, pings })
    }

    /// Makes a node. Gives back its path and the transaction.
    ///
    /// # Errors
    /// When it is not made; `None` if it is there already.
    pub async fn create(&self, path: &str, kind: Kind) -> Result<Option<(String, i64)>> {
        let mut body = BytesMut::new();
        put_buffer(&mut body, path.as_bytes());
        put_buffer(&mut body, b"");
        // Anybody may do anything.
        body.put_i32(1);
        body.put_i32(31);
        put_buffer(&mut body, b"world");
        put_buffer(&mut body, b"anyone");
        body.put_i32(kind as i32);
        let mut answer = self.ask(CREATE, &body, None).await?.0;
        match answer.error {
            0 => Ok(Some((take_text(&mut answer.rest)?, answer.transaction))),
            NODE_EXISTS => Ok(None),
            error => bail!("{path} was not made: error {error}"),
        }
    }

    /// Deletes a node.
    ///
    /// # Errors
    /// When it is not there.
    pub async fn delete(&self, path: &str) -> Result<()> {
        let mut body = BytesMut::new();
        put_buffer(&mut body, path.as_bytes());
        body.put_i32(-1);
        let (answer, _) = self.ask(DELETE, &body, None).await?;
        ensure!(answer.error == 0, "{path} was not deleted: error {}", answer.error);
        Ok(())
    }

    /// The names of the nodes below one.
    ///
    /// # Errors
    /// When it is not there.
    pub async fn children(&self, path: &str) -> Result<Vec<String>> {
        let mut body = BytesMut::new();
        put_buffer(&mut body, path.as_bytes());
        body.put_u8(0);
        let (mut answer, _) = self.ask(CHILDREN, &body, None).await?;
        ensure!(answer.error == 0, "{path} was not listed: error {}", answer.error);
        ensure!(answer.rest.len() >= 4, "an answer is too short");
        let count = answer.rest.get_i32();
        (0..count).map(|_| take_text(&mut answer.rest)).collect()
    }

    /// Waits until a node changes, if it is there.
    ///
    /// # Errors
    /// When the connection ends.
    pub async fn until_changed(&self, path: &str) -> Result<()> {
        let mut body = BytesMut::new();
        put_buffer(&mut body, path.as_bytes());
        body.put_u8(1);
        let (answer, changed) = self.ask(EXISTS, &body, Some(path)).await?;
        match (answer.error, changed) {
            (NO_NODE, _) | (_, None) => Ok(()),
            (0, Some(changed)) => changed.await.context("the connection ended"),
            (error, _) => bail!("{path} cannot be watched: error {error}"),
        }
    }

    async fn ask(
        &self,
        kind: i32,
        body: &[u8],
        watch: Option<&str>,
    ) -> Result<(Answer, Option<oneshot::Receiver<()>>)> {
        let (tell, told) = oneshot::channel();
        let watched = {
            // The lock also keeps requests in the order of their numbers.
            let mut state = lock(&self.state);
            ensure!(!state.over, "the connection is gone");
            state.last = state.last.wrapping_add(1).max(1);
            let number = state.last;
            state.waiting.push_back((number, tell));
            let watched = watch.map(|path| {
                let (tell, told) = oneshot::channel();
                state.watches.entry(path.to_owned()).or_default().push(tell);
                told
            });
            let mut request = BytesMut::with_capacity(8 + body.len());
            request.put_i32(number);
            request.put_i32(kind);
            request.extend_from_slice(body);
            self.sender.send(framed(&request)).ok().context("the connection is gone")?;
            watched
        };
        Ok((told.await.context("the connection ended before an answer came")?, watched))
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.pings.abort();
    }
}

/// Writes until nobody sends any more, or nobody reads. Whatever waits to be sent goes out in one write.
async fn write(mut half: OwnedWriteHalf, mut requests: mpsc::UnboundedReceiver<Vec<u8>>) {
    while let Some(mut batch) = requests.recv().await {
        while let Ok(next) = requests.try_recv() {
            batch.extend_from_slice(&next);
        }
        if half.write_all(&batch).await.is_err() {
            return;
        }
    }
}

async fn ping(sender: mpsc::UnboundedSender<Vec<u8>>, every: Duration) {
    let mut request = BytesMut::new();
    request.put_i32(OF_PING);
    request.put_i32(PING);
    loop {
        tokio::time::sleep(every).await;
        if sender.send(framed(&request)).is_err() {
            return;
        }
    }
}

/// Takes in frames until the connection ends, or one is not understood. Whoever waits is told by the end of its channel.
async fn read(mut frames: FramedRead<OwnedReadHalf, LengthDelimitedCodec>, state: Arc<Mutex<State>>) {
    while let Some(Ok(frame)) = frames.next().await {
        if !hear(&state, frame) {
            break;
        }
    }
    *lock(&state) = State { over: true, ..State::default() };
}

/// Takes in a frame. Says whether it was understood.
fn hear(state: &Mutex<State>, mut frame: BytesMut) -> bool {
    if frame.len() < 16 {
        return false;
    }
    let (number, transaction, error) = (frame.get_i32(), frame.get_i64(), frame.get_i32());
    let mut state = lock(state);
    match number {
        OF_PING => {}
        OF_EVENT if frame.len() > 8 => {
            frame.advance(8);
            let path = take_text(&mut frame).unwrap_or_default();
            for tell in state.watches.remove(&path).unwrap_or_default() {
                let _ = tell.send(());
            }
        }
        number => match state.waiting.pop_front() {
            Some((expected, tell)) if expected == number => {
                drop(tell.send(Answer { transaction, error, rest: frame }));
            }
            _ => return false,
        },
    }
    true
}

fn framed(body: &[u8]) -> Vec<u8> {
    let mut frame = Vec::with_capacity(4 + body.len());
    put_buffer(&mut frame, body);
    frame
}

fn put_buffer(out: &mut impl bytes::BufMut, bytes: &[u8]) {
    out.put_i32(i32::try_from(bytes.len()).expect("nothing here is longer than a name"));
    out.put_slice(bytes);
}

fn take_frame(read: &mut BytesMut) -> Option<BytesMut> {
    let length = usize::try_from(i32::from_be_bytes(read.get(..4)?.try_into().ok()?)).ok()?;
    if read.len() < 4 + length {
        return None;
    }
    read.advance(4);
    Some(read.split_to(length))
}

fn take_text(read: &mut BytesMut) -> Result<String> {
    let text = take_frame(read).context("an answer is too short")?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_taken_only_when_whole() {
        let mut read = BytesMut::from(&framed(b"abc")[..5]);
        assert_eq!(take_frame(&mut read), None);
        read.extend_from_slice(b"bc");
        assert_eq!(take_text(&mut read).unwrap(), "abc");
        assert!(read.is_empty());
    }

    #[tokio::test]
    async fn a_session_is_opened_and_a_node_is_made() {
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let server = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut opened = BytesMut::new();
            opened.put_i32(0);
            opened.put_i32(30_000);
            let mut made = BytesMut::new();
            made.put_i32(1);
            made.put_i64(9);
            made.put_i32(0);
            put_buffer(&mut made, b"/a");
            let mut asked = Vec::new();
            for answer in [opened, made] {
                let length = tokio::io::AsyncReadExt::read_u32(&mut stream).await.unwrap();
                let mut request = vec![0; length as usize];
                tokio::io::AsyncReadExt::read_exact(&mut stream, &mut request).await.unwrap();
                asked.push(request);
                stream.write_all(&framed(&answer)).await.unwrap();
            }
            asked
        });
        let session = Session::open(&address, Duration::from_secs(40)).await.unwrap();
        let made = session.create("/a", Kind::Ephemeral).await.unwrap();
        assert_eq!(made, Some(("/a".to_owned(), 9)));
        let asked = server.await.unwrap();
        assert!(asked[1].starts_with(&[0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 2, b'/', b'a']), "{asked:?}");
        assert!(session.delete("/a").await.is_err(), "the server is gone");
    }

    #[test]
    fn a_watch_is_told_once_and_answers_must_come_in_order() {
        let state = Mutex::new(State::default());
        let (tell, mut told) = oneshot::channel();
        lock(&state).watches.insert("/a".to_owned(), vec![tell]);
        let mut event = BytesMut::new();
        event.put_i32(OF_EVENT);
        event.put_i64(0);
        event.put_i32(0);
        event.put_i64(0);
        put_buffer(&mut event, b"/a");
        assert!(hear(&state, event));
        assert!(told.try_recv().is_ok() && lock(&state).watches.is_empty());
        let (tell, _told) = oneshot::channel();
        lock(&state).waiting.push_back((2, tell));
        let mut answer = BytesMut::new();
        answer.put_i32(1);
        answer.put_i64(9);
        answer.put_i32(0);
        assert!(!hear(&state, answer), "that answers another request");
    }
}
