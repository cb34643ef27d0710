//! A relay between client and service that counts what passes: bytes, frames, and the messages in them.
//!
//! It stands in a process of its own, so neither side pays for the counting. It knows of the stream only how frames and messages are cut.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::ops::Sub;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, Result};
use serde::Serialize;

/// What has passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Counted {
    /// Bytes of the stream in both directions, without what TCP and IP put around them.
    pub bytes: u64,
    /// Frames in both directions.
    pub frames: u64,
    /// Messages from the client: requests.
    pub to_server: u64,
    /// Messages from the service: responses, items and wishes.
    pub to_client: u64,
}

impl Sub for Counted {
    type Output = Self;

    fn sub(self, before: Self) -> Self {
        Self {
            bytes: self.bytes - before.bytes,
            frames: self.frames - before.frames,
            to_server: self.to_server - before.to_server,
            to_client: self.to_client - before.to_client,
        }
    }
}

#[derive(Debug, Default)]
struct Counters {
    bytes: AtomicU64,
    frames: AtomicU64,
    messages: AtomicU64,
}

/// A relay that runs until the process ends.
#[derive(Debug)]
pub struct Relay {
    address: String,
    from_client: Arc<Counters>,
    from_server: Arc<Counters>,
}

impl Relay {
    /// Listens on a port of its own.
    ///
    /// # Errors
    /// When there is no port.
    pub fn start(server: &str) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").context("no port for the relay")?;
        let address = listener.local_addr()?.to_string();
        let (from_client, from_server) = (Arc::<Counters>::default(), Arc::<Counters>::default());
        let (server, up, down) = (server.to_owned(), Arc::clone(&from_client), Arc::clone(&from_server));
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                // A service that is gone ends the client's connection, which is all that it should notice.
                if let Ok(server) = TcpStream::connect(&server) {
                    let _ = join(&client, &server, &up, &down);
                }
            }
        });
        Ok(Self { address, from_client, from_server })
    }

    /// Where to connect to.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// What has passed so far.
    pub fn counted(&self) -> Counted {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let (up, down) = (&self.from_client, &self.from_server);
        Counted {
            bytes: get(&up.bytes) + get(&down.bytes),
            frames: get(&up.frames) + get(&down.frames),
            to_server: get(&up.messages),
            to_client: get(&down.messages),
        }
    }
}

fn join(
    client: &TcpStream,
    server: &TcpStream,
    up: &Arc<Counters>,
    down: &Arc<Counters>,
) -> std::io::Result<()> {
    for (from, to, counters) in [(client, server, up), (server, client, down)] {
        let (from, to, counters) = (from.try_clone()?, to.try_clone()?, Arc::clone(counters));
        to.set_nodelay(true)?;
        std::thread::spawn(move || carry(from, to, &counters));
    }
    Ok(())
}

fn carry(mut from: TcpStream, mut to: TcpStream, counters: &Counters) {
    let mut buffer = vec![0; 64 * 1024];
    let mut cutter = Cutter::default();
    while let Ok(read @ 1..) = from.read(&mut buffer) {
        if to.write_all(&buffer[..read]).is_err() {
            break;
        }
        let (frames, messages) = cutter.cut(&buffer[..read]);
        counters.bytes.fetch_add(read as u64, Ordering::Relaxed);
        counters.frames.fetch_add(frames, Ordering::Relaxed);
        counters.messages.fetch_add(messages, Ordering::Relaxed);
    }
    let _ = to.shutdown(Shutdown::Write);
}

/// Bytes before the first frame.
const PREFACE: usize = 8;

/// Finds frames and messages in a stream of bytes.
#[derive(Debug, Default)]
struct Cutter {
    pending: Vec<u8>,
    opened: bool,
    /// Whether the hello is over: it is a frame, but not one of messages.
    greeted: bool,
}

impl Cutter {
    /// How many whole frames, and messages in them, have come with these bytes.
    fn cut(&mut self, bytes: &[u8]) -> (u64, u64) {
        self.pending.extend_from_slice(bytes);
        let mut at = 0;
        if !self.opened && self.pending.len() >= PREFACE {
            self.opened = true;
            at = PREFACE;
        }
        let (mut frames, mut messages) = (0, 0);
        while let Some((body, end)) = self.opened.then(|| frame(&self.pending, at)).flatten() {
            frames += 1;
            messages += if self.greeted { count(body) } else { 0 };
            self.greeted = true;
            at = end;
        }
        self.pending.drain(..at);
        (frames, messages)
    }
}

/// The frame that begins at a place, and where it ends.
fn frame(bytes: &[u8], at: usize) -> Option<(&[u8], usize)> {
    let head: [u8; 4] = bytes.get(at..at + 4)?.try_into().ok()?;
    let end = at + 4 + usize::try_from(u32::from_be_bytes(head)).ok()?;
    Some((bytes.get(at + 4..end)?, end))
}

/// The messages of a frame: each is field 1, with its length.
fn count(mut body: &[u8]) -> u64 {
    let mut messages = 0;
    while let [_, rest @ ..] = body {
        let (mut length, mut shift, mut taken) = (0_usize, 0, 0);
        for byte in rest {
            taken += 1;
            length |= usize::from(byte & 0x7f) << shift;
            shift += 7;
            if byte & 0x80 == 0 {
                break;
            }
        }
        messages += 1;
        body = rest.get(taken + length..).unwrap_or_default();
    }
    messages
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_and_messages_are_counted_however_the_bytes_are_cut() {
        let mut stream = b"12345678".to_vec();
        // A hello; then a frame with a message of 3 bytes and one of 130; then an empty frame.
        stream.extend([0, 0, 0, 2, 8, 1]);
        let mut body = vec![0x0a, 3, 1, 2, 3, 0x0a, 0x82, 0x01];
        body.extend([7; 130]);
        stream.extend([0, 0, 0, u8::try_from(body.len()).unwrap()]);
        stream.extend(&body);
        stream.extend([0, 0, 0, 0]);
        for size in [1, 3, 7, 1_000] {
            let mut cutter = Cutter::default();
            let parts = stream.chunks(size).map(|part| cutter.cut(part));
            let all = parts.fold((0, 0), |all, part| (all.0 + part.0, all.1 + part.1));
            assert_eq!(all, (3, 2), "in pieces of {size}");
            assert!(cutter.pending.is_empty());
        }
    }
}
