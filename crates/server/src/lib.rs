//! Drivers around the node: files, sockets and clocks, and the embedded mode made of them.
//!
//! The node decides; this crate carries out. Its loop runs on a thread of its own that neither the disk nor the network ever
//! blocks: writes go to a disk thread, frames to a network thread, and both come back as inputs.

mod directory;
mod disk;
mod driver;
mod embedded;
mod identity;
mod listener;

pub use directory::{DirectoryError, LockHolder, connect_path, lock_holder};
pub use disk::FileDisk;
pub use embedded::{EmbeddedOptions, ServeError, Server, try_serve};
