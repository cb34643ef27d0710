//! The directory of a server, which does not outlive the test process, however that ends.
//!
//! A destructor does not run when a test is killed, nor for a server that lies in a `static`. So a shell waits for the end of a pipe
//! whose other end this process holds, and removes the directory then.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result};

/// Tries again: the server may still be dying, and making files.
const REMOVE: &str =
    r#"read -r _; for _ in 1 2 3 4 5 6 7 8 9 10; do rm -rf -- "$1" && exit; sleep 0.2; done"#;
/// Others may pass, none may look: a server may run as another user, and its data lies further down.
const PASSABLE: u32 = 0o711;

/// A directory that is removed when this is dropped, or when this process ends.
#[derive(Debug)]
pub(crate) struct Directory {
    path: PathBuf,
    remover: Child,
}

impl Directory {
    /// Makes an empty one.
    pub(crate) fn new(name: &str) -> Result<Self> {
        let made = tempfile::Builder::new().prefix(&format!("leasehold-{name}-")).tempdir();
        let made = made.context("no temporary directory can be made")?;
        std::fs::set_permissions(made.path(), Permissions::from_mode(PASSABLE))?;
        let mut remover = Command::new("sh");
        remover.args(["-c", REMOVE, "sh"]).arg(made.path()).current_dir("/");
        // In a group of its own it also survives an interrupt at the terminal, which is one of the ends that it waits for.
        remover.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
        let remover = remover.spawn().context("sh does not start")?;
        Ok(Self { path: made.keep(), remover })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        drop(self.remover.stdin.take());
        // Nothing can be done about a failure here; the next test has a directory of its own.
        let _ = self.remover.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_gone_with_everything_in_it_after_drop() {
        let directory = Directory::new("test").unwrap();
        let path = directory.path().to_owned();
        std::fs::create_dir(path.join("a")).unwrap();
        std::fs::write(path.join("a").join("b"), "c").unwrap();
        drop(directory);
        assert!(!path.exists());
    }
}
