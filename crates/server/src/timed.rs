//! The socket of an HTTP connection, with limits of time: a client that does not read what was written for it, or that does not
//! finish the head of a request, is disconnected. What the HTTP library watches itself (bodies, idle connections) is not watched here.

use std::io;
use std::os::fd::AsFd;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::Shutdown;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::time::{Sleep, sleep};

/// How often it is looked whether a caller that waits has hung up.
const LOOK: Duration = Duration::from_millis(500);

/// A connection, as everybody who serves it sees it.
#[derive(Debug)]
pub(crate) struct Line {
    stream: TcpStream,
    /// Requests whose answers have not begun.
    in_flight: AtomicUsize,
    /// It is to end.
    end: Notify,
}

impl Line {
    pub(crate) fn new(stream: TcpStream) -> Arc<Self> {
        Arc::new(Self { stream, in_flight: AtomicUsize::new(0), end: Notify::new() })
    }

    /// Counts a request until its answer begins.
    pub(crate) fn begin(self: &Arc<Self>) -> InFlight {
        self.in_flight.fetch_add(1, Ordering::Relaxed);
        InFlight(Arc::clone(self))
    }

    /// Ends the connection, with all that is under way.
    pub(crate) fn end(&self) {
        self.end.notify_one();
    }

    /// Waits until it is to end.
    pub(crate) async fn ended(&self) {
        self.end.notified().await;
    }

    /// Ends when the client has hung up. The HTTP library notices that by itself only while nothing that was sent ahead waits to be
    /// read: one byte too many would hide it.
    pub(crate) async fn hung_up(&self) {
        loop {
            sleep(LOOK).await;
            let mut looked_at = [PollFd::new(&self.stream, PollFlags::RDHUP)];
            let gone = PollFlags::RDHUP | PollFlags::HUP | PollFlags::ERR;
            match poll(&mut looked_at, Some(&rustix::time::Timespec::default())) {
                Ok(1..) if looked_at[0].revents().intersects(gone) => return,
                _ => {}
            }
        }
    }
}

/// A request whose answer has not begun.
#[derive(Debug)]
pub(crate) struct InFlight(Arc<Line>);

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The bytes of a line.
#[derive(Debug)]
pub(crate) struct Timed {
    line: Arc<Line>,
    /// For one write, and for the head of one request where that is known.
    write_time: Duration,
    head_time: Option<Duration>,
    /// Runs while a write waits.
    writing: Option<Pin<Box<Sleep>>>,
    /// Runs while the head of a request has begun and is not whole.
    head: Option<Pin<Box<Sleep>>>,
}

impl Timed {
    /// Heads are timed on connections that have one request after the other (HTTP/1).
    pub(crate) fn new(line: Arc<Line>, write_time: Duration, head_time: Option<Duration>) -> Self {
        Self { line, write_time, head_time, writing: None, head: None }
    }

    /// Lets a write go on waiting, until its time is over.
    fn judge<T>(&mut self, cx: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.writing = None;
            return written;
        }
        let limit = self.write_time;
        let writing = self.writing.get_or_insert_with(|| Box::pin(sleep(limit)));
        writing.as_mut().poll(cx).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }

    fn try_write(&self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        loop {
            ready!(self.line.stream.poll_write_ready(cx))?;
            match self.line.stream.try_write(bytes) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                written => return Poll::Ready(written),
            }
        }
    }

    fn try_read(&self, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        loop {
            ready!(self.line.stream.poll_read_ready(cx))?;
            match self.line.stream.try_read(buffer.initialize_unfilled()) {
                Ok(count) => {
                    buffer.advance(count);
                    return Poll::Ready(Ok(()));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }
}

impl AsyncRead for Timed {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = self.try_read(cx, buffer);
        let idle = self.line.in_flight.load(Ordering::Relaxed) == 0;
        if !idle {
            self.head = None;
        }
        if read.is_ready() {
            if let Some(limit) = self.head_time.filter(|_| idle && buffer.filled().len() > before) {
                self.head.get_or_insert_with(|| Box::pin(sleep(limit)));
            }
            return read;
        }
        match &mut self.head {
            Some(head) => head.as_mut().poll(cx).map(|()| Err(io::ErrorKind::TimedOut.into())),
            None => Poll::Pending,
        }
    }
}

impl AsyncWrite for Timed {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        // An answer is under way: whatever comes next begins a new head.
        self.head = None;
        let written = self.try_write(cx, bytes);
        self.judge(cx, written)
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(rustix::net::shutdown(self.line.stream.as_fd(), Shutdown::Write).map_err(Into::into))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    const SHORT: Duration = Duration::from_millis(50);

    async fn pair() -> (Arc<Line>, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let theirs = TcpStream::connect(listener.local_addr().expect("it is bound")).await;
        let (ours, _) = listener.accept().await.expect("somebody connects");
        (Line::new(ours), theirs.expect("it listens"))
    }

    #[tokio::test]
    async fn a_write_that_nobody_reads_ends_after_the_limit() {
        let (line, _theirs) = pair().await;
        let error = Timed::new(line, SHORT, None).write_all(&vec![0; 64 << 20]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test]
    async fn a_head_that_is_not_finished_ends_after_the_limit_and_an_idle_line_does_not() {
        let (line, mut theirs) = pair().await;
        let mut timed = Timed::new(line, SHORT, Some(SHORT));
        let mut buffer = [0; 16];
        let idle = tokio::time::timeout(4 * SHORT, timed.read(&mut buffer)).await;
        assert!(idle.is_err(), "nothing was begun");
        theirs.write_all(b"GET").await.unwrap();
        assert_eq!(timed.read(&mut buffer).await.unwrap(), 3);
        assert_eq!(timed.read(&mut buffer).await.unwrap_err().kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test]
    async fn a_request_under_way_may_take_its_time() {
        let (line, mut theirs) = pair().await;
        let mut timed = Timed::new(Arc::clone(&line), SHORT, Some(SHORT));
        let mut buffer = [0; 16];
        theirs.write_all(b"GET").await.unwrap();
        assert_eq!(timed.read(&mut buffer).await.unwrap(), 3);
        let _request = line.begin();
        assert!(tokio::time::timeout(4 * SHORT, timed.read(&mut buffer)).await.is_err());
    }

    #[tokio::test]
    async fn a_client_that_hangs_up_is_noticed_behind_bytes_that_nobody_reads() {
        let (line, mut theirs) = pair().await;
        theirs.write_all(b"one byte too many").await.unwrap();
        assert!(tokio::time::timeout(2 * LOOK, line.hung_up()).await.is_err(), "it is still there");
        drop(theirs);
        tokio::time::timeout(4 * LOOK, line.hung_up()).await.expect("it is gone");
    }
}
