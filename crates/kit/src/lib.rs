//! Real servers for tests of what receives protected writes: one module for each, all used alike.
//!
//! ```no_run
//! use leasehold_kit::{Receiver, postgres};
//!
//! # fn main() -> anyhow::Result<()> {
//! let mut server = postgres::Server::start()?;
//! println!("{} at {}", server.version(), server.url());
//! server.kill()?; // as if the machine lost its power over this process
//! server.restart()?; // the same data, the same port
//! # Ok(())
//! # }
//! ```
//!
//! Promises: a server listens on a port of its own, keeps everything in a directory of its own, and is ready when `start` returns.
//! When it does not become ready in time, the error ends with the last lines of its log. Both process and directory are gone when
//! the value is dropped, and soon after the test process ended in any way, `SIGKILL` included. What a server acknowledged is on disk
//! unless it was started with `start_fast`, or its module says that it keeps nothing.
//!
//! What it deliberately does not do: it installs nothing and skips nothing. A program that is missing is an error that names the
//! command that installs it. It has no drivers: it speaks just enough of each protocol to see that the server serves. `SIGKILL`
//! is not the loss of a machine: what the kernel has taken is kept, so no test here shows what a missing `fsync` would lose.

mod awaited;
#[cfg(feature = "jvm")]
pub mod cassandra;
mod directory;
#[cfg(feature = "jvm")]
pub mod dynamodb;
#[cfg(feature = "jvm")]
mod java;
#[cfg(feature = "jvm")]
pub mod kafka;
mod leasehold;
pub mod mariadb;
mod port;
pub mod postgres;
mod process;
mod programs;
pub mod redis;
mod run;
pub mod s3;
mod scheduling;
mod tls;
mod tree;
mod user;
mod wire;

use anyhow::Result;

pub use awaited::Awaited;
pub use leasehold::leasehold;
pub use process::Process;
pub use scheduling::{Timer, held_back, this_thread_was_held_back};

/// A server under test.
pub trait Receiver: Sized {
    /// Starts it with empty data, such that what it acknowledges survives its death, and waits until it serves.
    ///
    /// # Errors
    /// When its program is missing, or it does not serve in time: then with the last lines of its log.
    fn start() -> Result<Self>;

    /// Where its clients connect to, in the form that they usually take.
    fn url(&self) -> String;

    /// The process behind it.
    fn process(&self) -> &Process;

    /// The process behind it.
    fn process_mut(&mut self) -> &mut Process;

    /// Its port on 127.0.0.1.
    fn port(&self) -> u16 {
        self.process().port()
    }

    /// Its version, as it said itself when it was started last.
    fn version(&self) -> &str {
        self.process().version()
    }

    /// Ends it with `SIGKILL`, children included, and returns when they are gone.
    ///
    /// # Errors
    /// When it cannot be signalled.
    fn kill(&mut self) -> Result<()> {
        self.process_mut().kill()
    }

    /// Starts it again on the same data and port, and waits until it serves. If it runs, it is killed before.
    ///
    /// # Errors
    /// As for `start`.
    fn restart(&mut self) -> Result<()> {
        self.process_mut().restart()
    }

    /// Stops it with `SIGSTOP`: connections stay open and nothing is answered, until `resume`.
    ///
    /// # Errors
    /// When it does not run.
    fn pause(&self) -> Result<()> {
        self.process().pause()
    }

    /// Lets it run on after `pause`.
    ///
    /// # Errors
    /// When it does not run.
    fn resume(&self) -> Result<()> {
        self.process().resume()
    }
}
