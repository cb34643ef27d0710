//! A slow network: it holds the bytes of one message on their way to the database until it is told to let them through.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// A way to the database on which the first bytes that contain a mark are held.
#[derive(Debug)]
pub(crate) struct Gate {
    address: SocketAddr,
    state: Arc<State>,
}

#[derive(Debug)]
struct State {
    mark: Vec<u8>,
    /// Whether the marked bytes have arrived here.
    held: watch::Sender<bool>,
    open: watch::Sender<bool>,
}

impl Gate {
    /// A gate before `database`.
    pub(crate) async fn before(database: SocketAddr, mark: &str) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await.context("no port for the gate")?;
        let address = listener.local_addr()?;
        let state = Arc::new(State {
            mark: mark.as_bytes().to_vec(),
            held: watch::Sender::new(false),
            open: watch::Sender::new(false),
        });
        let shared = Arc::clone(&state);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(pass(client, database, Arc::clone(&shared)));
            }
        });
        Ok(Self { address, state })
    }

    /// Where to connect to.
    pub(crate) const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Waits until the marked bytes are held here: they have left the worker, and have not reached the database.
    pub(crate) async fn has_bytes(&self) {
        // The sender lives as long as the gate.
        let _ = self.state.held.subscribe().wait_for(|held| *held).await;
    }

    /// Lets them through.
    pub(crate) fn open(&self) {
        self.state.open.send_replace(true);
    }
}

async fn pass(client: TcpStream, database: SocketAddr, state: Arc<State>) -> Result<()> {
    let server = TcpStream::connect(database).await?;
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
            && bytes.windows(state.mark.len()).any(|window| window == state.mark)
        {
            state.held.send_replace(true);
            state.open.subscribe().wait_for(|open| *open).await?;
        }
        to.write_all(bytes).await?;
    }
}
