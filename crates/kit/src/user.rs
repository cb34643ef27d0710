//! Whom a server runs as that refuses to run as root.

use std::os::unix::fs::chown;
use std::path::Path;

use anyhow::{Context, Result};

/// Looked for in this order: the one that the package made, and one that every system has.
const NAMES: [&str; 2] = ["postgres", "nobody"];

/// A user of this system who is not root.
#[derive(Clone, Debug)]
pub(crate) struct User {
    id: u32,
    group: u32,
}

impl User {
    /// Somebody else, if whoever runs the test is root.
    pub(crate) fn if_root() -> Result<Option<Self>> {
        if !rustix::process::geteuid().is_root() {
            return Ok(None);
        }
        let users = std::fs::read_to_string("/etc/passwd").context("/etc/passwd cannot be read")?;
        let user = NAMES.iter().find_map(|name| Self::named(name, &users));
        user.map(Some).with_context(|| format!("there is no user {}", NAMES.join(" and no ")))
    }

    /// Gives a directory to this user.
    pub(crate) fn own(&self, directory: &Path) -> Result<()> {
        let given = chown(directory, Some(self.id), Some(self.group));
        given.with_context(|| format!("{} cannot be given to user {}", directory.display(), self.id))
    }

    /// What `setpriv` is told.
    pub(crate) fn for_setpriv(&self) -> [String; 3] {
        [format!("--reuid={}", self.id), format!("--regid={}", self.group), "--clear-groups".to_owned()]
    }

    /// A line has a name, a word that means nothing today, the user's number and the group's.
    fn named(name: &str, users: &str) -> Option<Self> {
        let line = users.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        let mut numbers = line.split(':').skip(1);
        Some(Self { id: numbers.next()?.parse().ok()?, group: numbers.next()?.parse().ok()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_found_by_the_whole_name() {
        let users =
            "root:x:0:0:root:/:/bin/sh\nnobody2:x:7:8::/:/bin/sh\nnobody:x:65534:65533:nobody:/:/bin/sh\n";
        let user = User::named("nobody", users).unwrap();
        assert_eq!((user.id, user.group), (65534, 65533));
        assert!(User::named("postgres", users).is_none());
    }
}
