//! A slow network: it holds one request on its way to the store until it is told to let it through.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context as _, Result};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// A way to the store on which one request is held, and everything behind it on its connection.
#[derive(Debug)]
pub(crate) struct Gate {
    address: SocketAddr,
    state: Arc<State>,
}

#[derive(Debug)]
struct State {
    /// How the request begins.
    mark: Vec<u8>,
    /// So many of them are let through before.
    passes: AtomicUsize,
    /// Whether its bytes have arrived here.
    held: watch::Sender<bool>,
    open: watch::Sender<bool>,
}

impl Gate {
    /// A gate before `store`, which lets `passes` requests with this mark through and holds the next.
    pub(crate) async fn before(store: SocketAddr, mark: &str, passes: usize) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await.context("no port for the gate")?;
        let address = listener.local_addr()?;
        let state = Arc::new(State {
            mark: mark.as_bytes().to_vec(),
            passes: AtomicUsize::new(passes),
            held: watch::Sender::new(false),
            open: watch::Sender::new(false),
        });
        let shared = Arc::clone(&state);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(pass(client, store, Arc::clone(&shared)));
            }
        });
        Ok(Self { address, state })
    }

    /// Where to connect to.
    pub(crate) const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Waits until the request is held here: it has left the writer, and has not reached the store.
    pub(crate) async fn has_bytes(&self) {
        // The sender lives as long as the gate.
        let _ = self.state.held.subscribe().wait_for(|held| *held).await;
    }

    /// Lets it through.
    pub(crate) fn open(&self) {
        self.state.open.send_replace(true);
    }
}

impl State {
    /// Whether these bytes are those to be held. A request begins with its mark, and a client sends its head as one piece.
    fn is_held(&self, bytes: &[u8]) -> bool {
        let is_marked = bytes.windows(self.mark.len()).any(|window| window == self.mark);
        let one_less = |passes: usize| passes.checked_sub(1);
        is_marked && self.passes.fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_less).is_err()
    }
}

async fn pass(client: TcpStream, store: SocketAddr, state: Arc<State>) -> Result<()> {
    let server = TcpStream::connect(store).await?;
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    tokio::spawn(copy(from_server, to_client, None));
    copy(from_client, to_server, Some(state)).await
}

async fn copy(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, gate: Option<Arc<State>>) -> Result<()> {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let length = from.read(&mut buffer).await?;
        if length == 0 {
            return Ok(());
        }
        let bytes = &buffer[..length];
        if let Some(state) = &gate
            && state.is_held(bytes)
        {
            state.held.send_replace(true);
            state.open.subscribe().wait_for(|open| *open).await?;
        }
        to.write_all(bytes).await?;
    }
}
