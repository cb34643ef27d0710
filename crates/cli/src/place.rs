//! Where the store is: what the command line says, or the default of this user.
//!
//! A look never makes a directory: whoever mistypes a path learns it instead of reading from an empty store.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use leasehold::{ConnectOptions, Store};

use crate::args::Global;
use crate::trouble::Trouble;

/// The file that every directory with leases has.
const LOCK_FILE: &str = "lock";
/// Nobody but its owner may look into or change a directory.
const OTHERS: u32 = 0o077;

/// A store, not yet connected to.
#[derive(Debug)]
pub(crate) struct Place {
    url: String,
    directory: Option<PathBuf>,
    timeout: Duration,
}

impl Place {
    /// The place that the command line, the environment or the default names.
    pub(crate) fn find(global: &Global) -> Result<Self, Trouble> {
        let given = match &global.store {
            Some(given) => given.clone(),
            None => default_directory()?,
        };
        Self::new(&given, global.timeout)
    }

    fn new(given: &str, timeout: Duration) -> Result<Self, Trouble> {
        let path = match scheme(given) {
            Some("dir") => Some(&given["dir:".len()..]),
            Some(_) => None,
            None => Some(given),
        };
        let Some(path) = path else { return Ok(Self { url: given.to_owned(), directory: None, timeout }) };
        if path.is_empty() {
            return Err(Trouble::Misuse(
                "store is empty; name a directory, or leave --store and LEASEHOLD_STORE out".to_owned(),
            ));
        }
        // Absolute, because the command that gets it in its environment may stand elsewhere.
        let absolute = std::path::absolute(path)
            .map_err(|source| Trouble::System { what: "cannot find the present directory", source })?;
        Ok(Self { url: format!("dir:{}", absolute.display()), directory: Some(absolute), timeout })
    }

    /// The address, as it is passed on to others.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Connects to a store that is there already.
    pub(crate) async fn look(&self) -> Result<Store, Trouble> {
        if let Some(directory) = &self.directory {
            // Any other trouble than that it is missing is told better by whoever opens it.
            let missing = |error: &io::Error| {
                matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
            };
            if fs::metadata(directory.join(LOCK_FILE)).is_err_and(|error| missing(&error)) {
                return Err(Trouble::NoStore(directory.clone()));
            }
        }
        self.connect().await
    }

    /// Connects, and makes the directory if it is not there.
    pub(crate) async fn connect(&self) -> Result<Store, Trouble> {
        let options = ConnectOptions::new().patience(self.timeout);
        Ok(Store::connect_with(&self.url, options).await?)
    }
}

/// The scheme of an address; a path has none.
fn scheme(given: &str) -> Option<&str> {
    let (scheme, _) = given.split_once(':')?;
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-');
    (!scheme.is_empty() && scheme.chars().all(fits)).then_some(scheme)
}

fn default_directory() -> Result<String, Trouble> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let path = match (variable("XDG_STATE_HOME"), variable("HOME")) {
        (Some(state), _) if Path::new(&state).is_absolute() => PathBuf::from(state).join("leasehold"),
        (_, Some(home)) => PathBuf::from(home).join(".local/state/leasehold"),
        _ => homeless_directory()?,
    };
    path.into_os_string().into_string().map_err(|path: OsString| Trouble::BadDirectory {
        path: path.into(),
        why: "is not valid UTF-8".to_owned(),
    })
}

/// A directory for a user without a home. Anybody may write to /tmp, so it is looked at before it is trusted.
fn homeless_directory() -> Result<PathBuf, Trouble> {
    let user = rustix::process::getuid().as_raw();
    let path = PathBuf::from(format!("/tmp/leasehold-{user}"));
    let bad = |why: String| Trouble::BadDirectory { path: path.clone(), why };
    match fs::DirBuilder::new().mode(0o700).create(&path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(bad(format!("cannot be made: {error}"))),
        _ => {}
    }
    let found = fs::symlink_metadata(&path).map_err(|error| bad(format!("cannot be looked at: {error}")))?;
    if !found.is_dir() || found.uid() != user {
        return Err(bad("is not a directory of this user".to_owned()));
    }
    if found.mode() & OTHERS != 0 {
        return Err(bad("is open to other users".to_owned()));
    }
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(given: &str) -> String {
        Place::new(given, Duration::ZERO).unwrap().url
    }

    #[test]
    fn a_bare_path_is_a_directory() {
        assert_eq!(url("/var/lib/x"), "dir:/var/lib/x");
        assert_eq!(url("dir:/var/lib/x"), "dir:/var/lib/x");
        assert_eq!(url("/odd:path"), "dir:/odd:path");
        assert!(url("x").starts_with("dir:/") && url("x").ends_with("/x"));
    }

    #[test]
    fn another_scheme_is_left_to_the_library() {
        assert_eq!(url("leasehold://host:4570"), "leasehold://host:4570");
    }

    #[test]
    fn an_empty_store_is_not_taken_for_the_default() {
        for given in ["", "dir:"] {
            assert!(matches!(Place::new(given, Duration::ZERO), Err(Trouble::Misuse(_))), "{given}");
        }
    }
}
