//! `run --ready notify`: the command says that it is ready, with the protocol that systemd has for it.
//!
//! The command finds a socket of ours in `NOTIFY_SOCKET`, in a directory that nobody else may enter. A datagram with the line `READY=1` ends
//! the warm-up of its leases. If this program was itself given such a socket, everything but `MAINPID` is passed on to it, so that a
//! service manager still learns what it would have without us: the command's own pid is not that of the service's main process.
//!
//! What it does not do: descriptors that come with a datagram are not passed on.

use std::cell::Cell;
use std::ffi::{OsStr, OsString};
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use tokio::net::UnixDatagram;

use crate::serve::notify;

/// Longer datagrams are cut, as systemd cuts them.
const LONGEST: usize = 4096;
/// Of a path to a socket, with its end.
const LONGEST_PATH: usize = 107;

/// A socket for one command. It goes, with its directory, when this is dropped.
#[derive(Debug)]
pub(super) struct Readiness {
    socket: UnixDatagram,
    directory: PathBuf,
    outer: Option<OsString>,
    /// Whether it has said so: a command that repeats it does not reach the store again.
    heard: Cell<bool>,
}

impl Readiness {
    /// Makes the socket.
    pub(super) fn listen() -> io::Result<Self> {
        let outer = std::env::var_os(notify::VARIABLE).filter(|outer| !outer.is_empty());
        Self::within(&std::env::temp_dir(), outer)
    }

    fn within(parent: &Path, outer: Option<OsString>) -> io::Result<Self> {
        let random = getrandom::u64().map_err(io::Error::other)?;
        let name = format!("leasehold-{random:016x}");
        let fits = parent.join(&name).join("notify").as_os_str().len() < LONGEST_PATH;
        let directory = if fits { parent } else { Path::new("/tmp") }.join(name);
        DirBuilder::new().mode(0o700).create(&directory)?;
        match UnixDatagram::bind(directory.join("notify")) {
            Ok(socket) => Ok(Self { socket, directory, outer, heard: Cell::new(false) }),
            Err(error) => {
                let _ = std::fs::remove_dir(&directory);
                Err(error)
            }
        }
    }

    /// What the command is told.
    pub(super) fn variable(&self) -> (OsString, OsString) {
        (notify::VARIABLE.into(), self.directory.join("notify").into_os_string())
    }

    /// Waits until the command says that it is ready, for the first time. Passes on whatever it says, before and after.
    pub(super) async fn said(&self) {
        let mut buffer = [0; LONGEST];
        loop {
            let Ok(length) = self.socket.recv(&mut buffer).await else { return std::future::pending().await };
            let state = &buffer[..length];
            self.pass_on(state);
            if lines(state).any(|line| line == b"READY=1") && !self.heard.replace(true) {
                return;
            }
        }
    }

    fn pass_on(&self, state: &[u8]) {
        let Some(outer) = &self.outer else { return };
        let kept: Vec<&[u8]> = lines(state).filter(|line| !line.starts_with(b"MAINPID=")).collect();
        if !kept.is_empty() {
            // A manager that does not listen is no reason to stop the command.
            let _ = notify::send(OsStr::new(outer), &kept.join(&b'\n'));
        }
    }
}

impl Drop for Readiness {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(self.directory.join("notify"));
        let _ = std::fs::remove_dir(&self.directory);
    }
}

fn lines(state: &[u8]) -> impl Iterator<Item = &[u8]> {
    state.split(|byte| *byte == b'\n').filter(|line| !line.is_empty())
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixDatagram as Blocking;

    use super::*;

    fn runtime() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
    }

    #[test]
    fn readiness_is_heard_among_other_lines_and_passed_on_without_the_pid() {
        let directory = tempfile::tempdir().unwrap();
        let manager = directory.path().join("manager");
        let outer = Blocking::bind(&manager).unwrap();
        let runtime = runtime();
        let _entered = runtime.enter();
        let readiness = Readiness::within(directory.path(), Some(manager.into_os_string())).unwrap();
        let (_, path) = readiness.variable();
        let said = |text: &str| {
            Blocking::unbound().unwrap().send_to(text.as_bytes(), &path).unwrap();
        };
        said("STATUS=filling caches\nREADY=10\n");
        said("MAINPID=7\nREADY=1\nSTATUS=serving");
        runtime.block_on(readiness.said());
        let mut heard = [0; 256];
        let mut next = || {
            let length = outer.recv(&mut heard).unwrap();
            String::from_utf8(heard[..length].to_vec()).unwrap()
        };
        assert_eq!(next(), "STATUS=filling caches\nREADY=10");
        assert_eq!(next(), "READY=1\nSTATUS=serving");
    }

    #[test]
    fn nothing_is_left_of_the_socket_and_a_long_way_to_it_is_avoided() {
        let directory = tempfile::tempdir().unwrap();
        let deep = directory.path().join("d".repeat(100));
        std::fs::create_dir(&deep).unwrap();
        let runtime = runtime();
        let _entered = runtime.enter();
        for parent in [directory.path(), deep.as_path()] {
            let readiness = Readiness::within(parent, None).unwrap();
            let (_, path) = readiness.variable();
            assert!(Path::new(&path).exists() && path.len() < LONGEST_PATH);
            drop(readiness);
            assert!(!Path::new(&path).parent().unwrap().exists());
        }
    }
}
