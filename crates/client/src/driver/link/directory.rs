//! A directory of this machine, and the server that this process may run for it.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use leasehold_core::Millis;
use leasehold_core::holder::Reading;
use leasehold_host::{EmbeddedOptions, Server};
use tokio::net::UnixStream;

use super::connection::{Connection, is_opening_error};
use super::socket::Socket;
use crate::error::Unreachable;
use crate::store::ConnectOptions;

/// A directory, and the server that this process runs for it.
pub(super) struct Directory {
    path: PathBuf,
    options: EmbeddedOptions,
    server: Option<Server>,
    silent_since: Option<Reading>,
    hello_time: Duration,
}

impl Directory {
    pub(super) fn new(path: PathBuf, options: &ConnectOptions, hello_time: Duration) -> Self {
        let options =
            EmbeddedOptions { end_all_after_wait: options.end_all_after_wait, ..EmbeddedOptions::default() };
        Self { path, options, server: None, silent_since: None, hello_time }
    }

    /// Serves if nobody does, then connects like everybody else.
    pub(super) async fn connect(&mut self) -> Result<Connection, Unreachable> {
        let began = leasehold_clock::read();
        self.serve_if_free().await?;
        let connected = self.visit_since(began).await?;
        self.options.must_exist = true;
        Ok(connected)
    }

    /// Connects to whoever serves.
    pub(super) async fn visit(&mut self) -> Result<Connection, Unreachable> {
        self.visit_since(leasehold_clock::read()).await
    }

    async fn visit_since(&mut self, began: Reading) -> Result<Connection, Unreachable> {
        match self.connect_socket().await {
            Ok(connected) => {
                self.silent_since = None;
                Ok(connected)
            }
            Err(error) => Err(self.silent(began, &error)),
        }
    }

    async fn serve_if_free(&mut self) -> Result<(), Unreachable> {
        if self.server.as_ref().is_some_and(Server::is_serving) {
            return Ok(());
        }
        let (old, path, options) = (self.server.take(), self.path.clone(), self.options.clone());
        let served = tokio::task::spawn_blocking(move || {
            if let Some(why) = old.and_then(Server::stop) {
                let failed = format!("this process serves {} no more: {why}", path.display());
                return Err(Unreachable::Directory(failed));
            }
            leasehold_host::try_serve(&path, &options)
                .map_err(|error| Unreachable::Directory(error.to_string()))
        });
        self.server = served.await.unwrap_or_else(|error| Err(Unreachable::Directory(error.to_string())))?;
        Ok(())
    }

    async fn connect_socket(&self) -> io::Result<Connection> {
        let (socket, _keep) = leasehold_host::connect_path(&self.path).map_err(io::Error::other)?;
        let attempt = async {
            let stream = UnixStream::connect(socket).await?.into_std()?;
            Connection::open(Socket::Unix(stream), "").await
        };
        tokio::time::timeout(self.hello_time, attempt)
            .await
            .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
    }

    /// Names the process that holds the directory and does not answer.
    fn silent(&mut self, began: Reading, error: &io::Error) -> Unreachable {
        let waited = leasehold_clock::read().since(*self.silent_since.get_or_insert(began)).greater();
        // Said to people, who do not count in nanoseconds.
        let waited = Millis::from_duration(waited).duration();
        if is_opening_error(error) {
            return Unreachable::Protocol(error.to_string());
        }
        match leasehold_host::lock_holder(&self.path) {
            Some(holder) => Unreachable::ServerSilent {
                path: self.path.clone(),
                pid: holder.pid,
                stopped: holder.stopped,
                waited,
            },
            None => no_connection(&self.path, waited, error),
        }
    }

    /// Hands the directory to the next process.
    pub(super) async fn leave(self) {
        if let Some(server) = self.server {
            let _ = tokio::task::spawn_blocking(move || server.stop()).await;
        }
    }
}

fn no_connection(path: &Path, waited: Duration, error: &io::Error) -> Unreachable {
    let store = format!("dir:{}", path.display());
    Unreachable::NoConnection { store, waited, last: Some(error.to_string()) }
}
