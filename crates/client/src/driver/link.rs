//! The link: keeps one connection to the store, and serves the directory when nobody else does.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use leasehold_core::Millis;
use leasehold_core::protocol::{Request, RequestId};
use leasehold_wire::{FrameReader, Hello, OpeningReader, decode_server_frame, encode_client, encode_opening};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::sync::mpsc;

use super::ToDriver;
use crate::error::{Error, Unreachable};
use crate::store::ConnectOptions;

/// Between two attempts to connect: a server that has just begun needs a few milliseconds.
const SHORTEST_PAUSE: Duration = Duration::from_millis(2);
const LONGEST_PAUSE: Duration = Duration::from_millis(50);
/// A server says hello within this time, or is given up for this attempt: it may be stopped.
const HELLO_TIME: Duration = Duration::from_millis(1_000);
const READ_BYTES: usize = 64 * 1024;

/// Where a store is.
#[derive(Debug, Clone)]
pub(super) enum Address {
    #[cfg(feature = "embedded")]
    Directory(PathBuf),
}

impl Address {
    pub(super) fn parse(url: &str) -> Result<Self, Error> {
        let bad = |why: &str| Error::BadUrl { url: url.to_owned(), why: why.to_owned() };
        let Some((scheme, rest)) = url.split_once(':') else {
            return Err(bad("it has no scheme; a directory is dir:PATH"));
        };
        match scheme {
            #[cfg(feature = "embedded")]
            "dir" if rest.is_empty() => Err(bad("the path is missing; a directory is dir:PATH")),
            #[cfg(feature = "embedded")]
            "dir" => std::path::absolute(rest).map(Self::Directory).map_err(|error| bad(&error.to_string())),
            _ => Err(bad("its scheme is not known here; a directory is dir:PATH")),
        }
    }
}

/// Keeps a connection until the driver is gone.
pub(super) async fn run(
    address: Address,
    options: ConnectOptions,
    driver: mpsc::WeakUnboundedSender<ToDriver>,
    mut reconnects: mpsc::UnboundedReceiver<()>,
) {
    let mut home = Home::new(address, &options);
    let mut pause = SHORTEST_PAUSE;
    loop {
        let attempt = tokio::select! {
            attempt = home.connect() => attempt,
            () = gone(&mut reconnects) => break,
        };
        let why = match attempt {
            Ok((stream, frames)) => {
                pause = SHORTEST_PAUSE;
                while reconnects.try_recv().is_ok() {}
                let Some(ended) = converse(stream, frames, &driver, &mut reconnects).await else { break };
                ended
            }
            Err(trouble) => Some(trouble),
        };
        if !tell(&driver, ToDriver::Disconnected { why }) {
            break;
        }
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = gone(&mut reconnects) => break,
        }
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
    home.leave().await;
}

/// Ends when the driver has dropped its side.
async fn gone(reconnects: &mut mpsc::UnboundedReceiver<()>) {
    while reconnects.recv().await.is_some() {}
}

fn tell(driver: &mpsc::WeakUnboundedSender<ToDriver>, message: ToDriver) -> bool {
    driver.upgrade().is_some_and(|driver| driver.send(message).is_ok())
}

/// Moves frames until the connection ends or is given up. Nothing when the driver is gone.
async fn converse(
    stream: UnixStream,
    frames: FrameReader,
    driver: &mpsc::WeakUnboundedSender<ToDriver>,
    reconnects: &mut mpsc::UnboundedReceiver<()>,
) -> Option<Option<Unreachable>> {
    let (sender, outgoing) = mpsc::unbounded_channel();
    if !tell(driver, ToDriver::Connected { sender }) {
        return None;
    }
    let (read, write) = stream.into_split();
    tokio::select! {
        ended = receive(read, frames, driver) => Some(ended),
        ended = send(write, outgoing) => Some(ended),
        again = reconnects.recv() => again.map(|()| None),
    }
}

async fn receive(
    mut read: impl AsyncReadExt + Unpin,
    mut frames: FrameReader,
    driver: &mpsc::WeakUnboundedSender<ToDriver>,
) -> Option<Unreachable> {
    let protocol = |error: &dyn std::fmt::Display| Some(Unreachable::Protocol(error.to_string()));
    let mut buffer = vec![0; READ_BYTES];
    loop {
        loop {
            let messages = match frames.next_frame() {
                Ok(Some(frame)) => decode_server_frame(frame),
                Ok(None) => break,
                Err(error) => return protocol(&error),
            };
            match messages {
                Ok(messages) => {
                    tell(driver, ToDriver::Received(messages));
                }
                Err(error) => return protocol(&error),
            }
        }
        match read.read(&mut buffer).await {
            Ok(0) | Err(_) => return None,
            Ok(count) => frames.push(&buffer[..count]),
        }
    }
}

/// Sends until the connection ends. The driver's dropping its sender is not an end: it is about to drop all.
async fn send(
    mut write: impl AsyncWriteExt + Unpin,
    mut outgoing: mpsc::UnboundedReceiver<Vec<(RequestId, Request)>>,
) -> Option<Unreachable> {
    let mut bytes = Vec::new();
    while let Some(requests) = outgoing.recv().await {
        bytes.clear();
        encode(&requests, &mut bytes);
        while let Ok(more) = outgoing.try_recv() {
            encode(&more, &mut bytes);
        }
        if write.write_all(&bytes).await.is_err() {
            return None;
        }
    }
    std::future::pending().await
}

/// One frame if it fits, else one for each request, which always fits: names and values are bounded.
fn encode(requests: &[(RequestId, Request)], bytes: &mut Vec<u8>) {
    if encode_client(requests, bytes).is_err() {
        for request in requests {
            let _ = encode_client(std::slice::from_ref(request), bytes);
        }
    }
}

/// The directory of a store, and the server that this process runs for it.
struct Home {
    address: Address,
    #[cfg(feature = "embedded")]
    options: leasehold_server::EmbeddedOptions,
    #[cfg(feature = "embedded")]
    server: Option<leasehold_server::Server>,
    silent_since: Option<leasehold_core::holder::Reading>,
    hello_time: Duration,
}

impl Home {
    fn new(address: Address, options: &ConnectOptions) -> Self {
        Self {
            address,
            #[cfg(feature = "embedded")]
            options: leasehold_server::EmbeddedOptions {
                end_all_after_wait: options.end_all_after_wait,
                ..leasehold_server::EmbeddedOptions::default()
            },
            #[cfg(feature = "embedded")]
            server: None,
            silent_since: None,
            // A short patience must still leave time to find out who is silent.
            hello_time: HELLO_TIME.min(options.patience / 2),
        }
    }

    /// Serves if nobody does, then connects like everybody else.
    async fn connect(&mut self) -> Result<(UnixStream, FrameReader), Unreachable> {
        match self.address.clone() {
            #[cfg(feature = "embedded")]
            Address::Directory(path) => {
                let began = leasehold_clock::read();
                self.serve_if_free(&path).await?;
                match self.connect_directory(&path).await {
                    Ok(connected) => {
                        self.silent_since = None;
                        self.options.must_exist = true;
                        Ok(connected)
                    }
                    Err(error) => Err(self.silent(path, began, &error)),
                }
            }
        }
    }

    #[cfg(feature = "embedded")]
    async fn serve_if_free(&mut self, path: &std::path::Path) -> Result<(), Unreachable> {
        if self.server.as_ref().is_some_and(leasehold_server::Server::is_serving) {
            return Ok(());
        }
        let (old, path, options) = (self.server.take(), path.to_owned(), self.options.clone());
        let served = tokio::task::spawn_blocking(move || {
            if let Some(why) = old.and_then(leasehold_server::Server::stop) {
                let failed = format!("this process serves {} no more: {why}", path.display());
                return Err(Unreachable::Directory(failed));
            }
            leasehold_server::try_serve(&path, &options)
                .map_err(|error| Unreachable::Directory(error.to_string()))
        });
        self.server = served.await.unwrap_or_else(|error| Err(Unreachable::Directory(error.to_string())))?;
        Ok(())
    }

    #[cfg(feature = "embedded")]
    async fn connect_directory(&self, path: &std::path::Path) -> io::Result<(UnixStream, FrameReader)> {
        let (socket, _keep) = leasehold_server::connect_path(path).map_err(io::Error::other)?;
        let attempt = async {
            let mut stream = UnixStream::connect(socket).await?;
            let frames = greet(&mut stream).await?;
            Ok((stream, frames))
        };
        tokio::time::timeout(self.hello_time, attempt)
            .await
            .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
    }

    /// Names the process that holds the directory and does not answer.
    #[cfg(feature = "embedded")]
    fn silent(
        &mut self,
        path: PathBuf,
        began: leasehold_core::holder::Reading,
        error: &io::Error,
    ) -> Unreachable {
        let waited = leasehold_clock::read().since(*self.silent_since.get_or_insert(began)).greater();
        // Said to people, who do not count in nanoseconds.
        let waited = Millis::from_duration(waited).duration();
        if is_opening_error(error) {
            return Unreachable::Protocol(error.to_string());
        }
        match leasehold_server::lock_holder(&path) {
            Some(holder) => {
                Unreachable::ServerSilent { path, pid: holder.pid, stopped: holder.stopped, waited }
            }
            None => Unreachable::NoConnection {
                store: format!("dir:{}", path.display()),
                waited,
                last: Some(error.to_string()),
            },
        }
    }

    /// Hands the directory to the next process.
    async fn leave(self) {
        #[cfg(feature = "embedded")]
        if let Some(server) = self.server {
            let _ = tokio::task::spawn_blocking(move || server.stop()).await;
        }
    }
}

async fn greet(stream: &mut UnixStream) -> io::Result<FrameReader> {
    let mut bytes = Vec::new();
    let program = concat!("leasehold ", env!("CARGO_PKG_VERSION"));
    encode_opening(&Hello::new(program, std::process::id(), ""), &mut bytes).map_err(io::Error::other)?;
    stream.write_all(&bytes).await?;
    let mut opening = OpeningReader::new();
    let mut buffer = vec![0; READ_BYTES];
    loop {
        if let Some(hello) = opening.hello().map_err(io::Error::other)? {
            hello.check_service().map_err(io::Error::other)?;
            return opening.into_frames().map_err(io::Error::other);
        }
        match stream.read(&mut buffer).await? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => opening.push(&buffer[..count]),
        }
    }
}

/// Whether the other side was understood to be somebody else, or of another version.
#[cfg(feature = "embedded")]
fn is_opening_error(error: &io::Error) -> bool {
    error.get_ref().is_some_and(<dyn std::error::Error + Send + Sync>::is::<leasehold_wire::OpeningError>)
}
