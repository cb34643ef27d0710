//! The port: accepting connections, and finding out what each of them speaks by its first bytes.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use leasehold_api::ApiError;
use leasehold_core::protocol::Failure;
use leasehold_host::{Accepting, Door, Repeats};
use leasehold_wire::{FirstBytes, PREFACE, look_at_first_bytes};
use rustix::net::sockopt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};

use crate::config::LimitsConfig;
use crate::running::{Counts, Stopping};

/// The first bytes of a connection are looked at this often until they say what it speaks.
const LOOK: Duration = Duration::from_millis(10);
/// So many looks without anything new are enough for a part of the preface.
const LOOKS: u32 = 20;
/// How a connection begins that speaks HTTP/2 and needs no negotiation.
const HTTP2: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Connections above the limit that are looked at all the same: clients may not shut out the other nodes.
const ROOM_FOR_PEERS: usize = 64;
/// Pause after a failed accept, which is mostly a lack of descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);
/// A connection that was silent for this long is asked whether anybody is there.
const KEEP_ALIVE_AFTER: Duration = Duration::from_secs(30);
/// And again after this long, so many times; then it is closed.
const KEEP_ALIVE_EVERY: Duration = Duration::from_secs(10);
const KEEP_ALIVE_TIMES: u32 = 3;

/// Counts a connection as long as it lives.
#[derive(Debug)]
pub(crate) struct Counted {
    counts: Arc<Counts>,
    which: fn(&Counts) -> &AtomicUsize,
}

impl Counted {
    pub(crate) fn new(counts: &Arc<Counts>, which: fn(&Counts) -> &AtomicUsize) -> Self {
        which(counts).fetch_add(1, Ordering::Relaxed);
        Self { counts: Arc::clone(counts), which }
    }

    /// Counts one more watch over HTTP or gRPC, if there may be one more.
    pub(crate) fn watch(counts: &Arc<Counts>, limit: usize) -> Result<Self, ApiError> {
        // Counted before it is judged: two that begin at once may both be refused, but never both be let in.
        let counted = Self::new(counts, |counts| &counts.watches);
        if counts.watches.load(Ordering::Relaxed) > limit {
            return Err(Failure::TooManyWatches { limit }.into());
        }
        Ok(counted)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        (self.which)(&self.counts).fetch_sub(1, Ordering::Relaxed);
    }
}

/// A connection that speaks HTTP, on its way to the other thread.
#[derive(Debug)]
pub(crate) struct WebStream {
    pub(crate) stream: std::net::TcpStream,
    /// Whether it begins as HTTP/2 does.
    pub(crate) http2: bool,
    /// Counts it among all connections.
    pub(crate) counted: Counted,
}

/// Where connections go, by what they speak.
#[derive(Debug, Clone)]
pub(crate) struct Ways {
    /// Session streams.
    pub(crate) door: Door,
    /// Other nodes.
    pub(crate) peers: Accepting,
    /// HTTP.
    pub(crate) to_web: mpsc::UnboundedSender<WebStream>,
    /// How many of each.
    pub(crate) counts: Arc<Counts>,
    /// Connections above the limit come by the thousand.
    pub(crate) turned_away: Arc<Repeats<()>>,
    /// How long a connection may take to say what it speaks.
    pub(crate) opening_time: Duration,
}

/// Accepts connections until the service ends.
pub(crate) async fn accept(
    listener: TcpListener,
    ways: Ways,
    limits: LimitsConfig,
    mut stopping: watch::Receiver<Stopping>,
) {
    let streams = tokio_util::task::TaskTracker::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stopping.changed() => break,
        };
        match accepted {
            Ok((stream, from)) => {
                let connections = ways.counts.connections.load(Ordering::Relaxed);
                let full = connections >= limits.max_connections;
                if connections >= limits.max_connections + ROOM_FOR_PEERS {
                    // Closed at once: the client backs off and comes again.
                    if let Some(more) = ways.turned_away.say((), leasehold_clock::read()) {
                        tracing::warn!(%from, limit = limits.max_connections, more, "too many connections");
                    }
                    continue;
                }
                let counted = Counted::new(&ways.counts, |counts| &counts.connections);
                streams.spawn(sort(stream, ways.clone(), counted, full));
            }
            // Out of descriptors, or a connection that ended before it was taken: the listener itself is well.
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    // The port is closed from here on. Streams end when the node lets go of them.
    drop(listener);
    drop(ways);
    streams.close();
    let ended = async { drop(stopping.wait_for(|stopping| *stopping == Stopping::Ended).await) };
    tokio::select! {
        () = streams.wait() => {}
        () = ended => {
            // What the node has answered is written; connections that never said anything are not waited for.
            let _ = tokio::time::timeout(Duration::from_secs(1), streams.wait()).await;
        }
    }
}

/// What a connection speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Speaks {
    Frames,
    Peers,
    Http1,
    Http2,
}

/// What a connection speaks, once it has said enough; nothing when it ends before. The bytes stay where they are.
async fn look(stream: &TcpStream) -> Option<Speaks> {
    let mut first = [0; HTTP2.len()];
    let (mut most, mut looks) = (0, 0);
    loop {
        let seen = match stream.peek(&mut first).await {
            Ok(0) | Err(_) => return None,
            Ok(count) => &first[..count],
        };
        match look_at_first_bytes(seen) {
            FirstBytes::SessionStream => return Some(Speaks::Frames),
            FirstBytes::PeerStream => return Some(Speaks::Peers),
            // More must come, unless the other side has ended: that cannot be seen before these are taken. The door takes them.
            FirstBytes::Undecided if seen.len() == most && looks >= LOOKS => return Some(Speaks::Frames),
            FirstBytes::Undecided => {}
            // Meant as one of ours, or as nothing: the door says what it expects.
            FirstBytes::Other if seen[0] == PREFACE[0] => return Some(Speaks::Frames),
            FirstBytes::Other if !HTTP2.starts_with(seen) => return Some(Speaks::Http1),
            FirstBytes::Other if seen.len() == HTTP2.len() => return Some(Speaks::Http2),
            FirstBytes::Other => {}
        }
        // A part of the preface: more must come, or the time is over.
        looks = if seen.len() > most { 0 } else { looks + 1 };
        most = seen.len();
        tokio::time::sleep(LOOK).await;
    }
}

/// Finds out what a connection speaks and hands it on.
async fn sort(stream: TcpStream, ways: Ways, counted: Counted, full: bool) {
    let Ways { door, peers, to_web, counts, turned_away, opening_time } = ways;
    if set_options(&stream).is_err() {
        return;
    }
    let Ok(Some(speaks)) = tokio::time::timeout(opening_time, look(&stream)).await else { return };
    if speaks == Speaks::Peers {
        // Its task is not one of the clients': those are let go when the service stops.
        if let Ok(stream) = stream.into_std() {
            peers.accept(stream);
        }
        return;
    }
    if full {
        if let Some(more) = turned_away.say((), leasehold_clock::read()) {
            tracing::warn!(more, "too many connections");
        }
        return;
    }
    if speaks == Speaks::Frames {
        let _streams = Counted::new(&counts, |counts| &counts.streams);
        let (read, write) = stream.into_split();
        door.serve(read, write).await;
        drop(counted);
    } else if let Ok(stream) = stream.into_std() {
        // If the other thread has ended, so does the connection.
        let http2 = speaks == Speaks::Http2;
        let _ = to_web.send(WebStream { stream, counted, http2 });
    }
}

/// Small answers go out at once, and a peer that vanished without a word is noticed.
fn set_options(stream: &TcpStream) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, KEEP_ALIVE_AFTER)?;
    sockopt::set_tcp_keepintvl(stream, KEEP_ALIVE_EVERY)?;
    sockopt::set_tcp_keepcnt(stream, KEEP_ALIVE_TIMES)?;
    Ok(())
}
