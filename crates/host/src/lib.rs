//! Drivers around the node: files, sockets and clocks, the embedded mode made of them, and what a service is made of.
//!
//! The node decides; this crate carries out. Its loop runs beside its connections on one thread that waits for no network, and for a disk only where
//! that is quick and nobody else waits: writes go to a disk thread, frames to tasks that never wait, and both come back as inputs.

mod caller;
mod directory;
mod disk;
mod door;
mod driver;
mod embedded;
mod files;
mod frames;
mod hub;
mod identity;
mod inbox;
mod listener;
mod opening;
mod peers;
mod repeats;
mod room;
mod served;
mod thread;
mod unread;

pub use caller::{Caller, Inspection, Steadiness};
pub use directory::{DirectoryError, LockHolder, connect_path, lock_holder};
pub use disk::FileDisk;
pub use door::{Door, Inbound, Outbound};
pub use embedded::{EmbeddedOptions, Server, try_serve};
pub use files::{
    Backup, Begun, Choices, Contradiction, Extent, FilesError, Problem, Verified, backup_file, read_backup,
    recover, restore, save_backup, verify,
};
pub use hub::{Hub, Kept, Texts, Watcher};
pub use inbox::Ended;
pub use opening::ServeError;
pub use peers::{Accepting, Asking, Founders, Peers};
pub use repeats::Repeats;
pub use room::{Held, Page, Room};
pub use served::{Founding, Served, ServedOptions, serve};
pub use unread::OnTheWay;
