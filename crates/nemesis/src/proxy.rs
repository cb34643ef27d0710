//! Something between clients and one node that delays, holds, swallows and cuts, in each direction alone.
//!
//! It carries bytes, so it never repeats or reorders anything: TCP would not let that happen either.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// What happens to bytes of one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mood {
    /// They pass after this long.
    Pass(Duration),
    /// They wait until the mood is another.
    Hold,
    /// They are lost, and nobody is told.
    Swallow,
    /// Connections end.
    Cut,
}

/// A direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// From clients to the node.
    ToNode,
    /// From the node to clients.
    ToClients,
}

/// A proxy in front of one node.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    to_node: Arc<watch::Sender<Mood>>,
    to_clients: Arc<watch::Sender<Mood>>,
    task: tokio::task::JoinHandle<()>,
}

impl Proxy {
    /// In front of the node at `node`, as `host:port`.
    ///
    /// # Errors
    /// When it cannot listen.
    pub async fn to(node: String) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.context("a proxy cannot listen")?;
        let address = listener.local_addr().context("a proxy has no address")?;
        let mood = || Arc::new(watch::Sender::new(Mood::Pass(Duration::ZERO)));
        let (to_node, to_clients) = (mood(), mood());
        let moods = (Arc::clone(&to_node), Arc::clone(&to_clients));
        let task = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (node, up, down) = (node.clone(), moods.0.subscribe(), moods.1.subscribe());
                tokio::spawn(async move {
                    // A node that is away refuses its clients, and so does this.
                    if let Ok(server) = TcpStream::connect(&node).await {
                        let _ = (client.set_nodelay(true), server.set_nodelay(true));
                        let (from_client, to_client) = client.into_split();
                        let (from_server, to_server) = server.into_split();
                        tokio::select! {
                            () = carry(from_client, to_server, up) => {}
                            () = carry(from_server, to_client, down) => {}
                        }
                    }
                });
            }
        });
        Ok(Self { address, to_node, to_clients, task })
    }

    /// Where clients find it.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// From now on.
    pub fn set(&self, direction: Direction, mood: Mood) {
        match direction {
            Direction::ToNode => self.to_node.send_replace(mood),
            Direction::ToClients => self.to_clients.send_replace(mood),
        };
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Carries one direction until either end is closed or the mood cuts it.
async fn carry(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, mut mood: watch::Receiver<Mood>) {
    let mut buffer = vec![0; 65_536];
    loop {
        let count = tokio::select! {
            read = from.read(&mut buffer) => match read {
                Ok(count @ 1..) => count,
                _ => return,
            },
            changed = mood.wait_for(|mood| *mood == Mood::Cut) => {
                let _ = changed;
                return;
            }
        };
        let Ok(now) = mood.wait_for(|mood| *mood != Mood::Hold).await.map(|mood| *mood) else { return };
        match now {
            Mood::Pass(delay) => {
                tokio::time::sleep(delay).await;
                if to.write_all(&buffer[..count]).await.is_err() {
                    return;
                }
            }
            Mood::Swallow => {}
            Mood::Hold | Mood::Cut => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Answers every byte with the same.
    async fn echo() -> String {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                tokio::spawn(async move {
                    let (mut read, mut write) = stream.split();
                    tokio::io::copy(&mut read, &mut write).await
                });
            }
        });
        address
    }

    async fn ask(stream: &mut TcpStream) -> Option<u8> {
        stream.write_all(b"x").await.ok()?;
        let mut answer = [0];
        let read = tokio::time::timeout(Duration::from_millis(200), stream.read_exact(&mut answer)).await;
        read.ok()?.ok().map(|_| answer[0])
    }

    #[tokio::test]
    async fn bytes_pass_wait_vanish_and_connections_end() {
        let proxy = Proxy::to(echo().await).await.unwrap();
        let mut stream = TcpStream::connect(proxy.address()).await.unwrap();
        assert_eq!(ask(&mut stream).await, Some(b'x'));

        proxy.set(Direction::ToClients, Mood::Hold);
        assert_eq!(ask(&mut stream).await, None);
        proxy.set(Direction::ToClients, Mood::Pass(Duration::from_millis(1)));
        let mut held = [0];
        stream.read_exact(&mut held).await.unwrap();

        proxy.set(Direction::ToNode, Mood::Swallow);
        assert_eq!(ask(&mut stream).await, None);
        proxy.set(Direction::ToNode, Mood::Pass(Duration::ZERO));
        assert_eq!(ask(&mut stream).await, Some(b'x'));

        proxy.set(Direction::ToNode, Mood::Cut);
        assert_eq!(stream.read(&mut held).await.unwrap_or(0), 0);
    }
}
