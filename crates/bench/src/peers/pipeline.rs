//! A connection on which many requests are under way at once: whatever waits to be sent goes out in one write.
//!
//! For peers whose protocol is small enough to be spoken here. What is read is the business of each of them.

use anyhow::{Context, Result};
use bytes::BytesMut;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::mpsc;

/// What is read at once at most.
const CHUNK: usize = 64 * 1024;

/// The sending half.
#[derive(Debug, Clone)]
pub struct Sender(mpsc::UnboundedSender<Vec<u8>>);

impl Sender {
    /// Sends a whole request.
    ///
    /// # Errors
    /// When the connection is gone.
    pub fn send(&self, request: Vec<u8>) -> Result<()> {
        self.0.send(request).ok().context("the connection is gone")
    }
}

/// The receiving half.
#[derive(Debug)]
pub struct Receiver {
    half: OwnedReadHalf,
    /// What was read and not taken yet.
    pub read: BytesMut,
}

impl Receiver {
    /// Reads more.
    ///
    /// # Errors
    /// When the other side is gone.
    pub async fn more(&mut self) -> Result<()> {
        self.read.reserve(CHUNK);
        let count = self.half.read_buf(&mut self.read).await?;
        (count > 0).then_some(()).context("the server closed the connection")
    }
}

/// Connects to `HOST:PORT`.
///
/// # Errors
/// When nobody listens.
pub async fn connect(address: &str) -> Result<(Sender, Receiver)> {
    let stream = TcpStream::connect(address).await.with_context(|| format!("nobody listens on {address}"))?;
    stream.set_nodelay(true)?;
    let (half, writing) = stream.into_split();
    let (sender, requests) = mpsc::unbounded_channel();
    tokio::spawn(write(writing, requests));
    Ok((Sender(sender), Receiver { half, read: BytesMut::new() }))
}

/// Writes until nobody sends any more, or nobody reads.
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
