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
    /// Whether the directory lies where anybody may write, and must be looked at.
    exposed: bool,
    timeout: Duration,
}

impl Place {
    /// The place that the command line, the environment or the default names.
    pub(crate) fn find(global: &Global) -> Result<Self, Trouble> {
        if let Some(given) = &global.store {
            return Self::new(given, global.timeout);
        }
        let user = rustix::process::getuid().as_raw();
        let own = home_path(std::env::var_os("XDG_STATE_HOME"), std::env::var_os("HOME"));
        let exposed = own.is_none();
        let path = own.unwrap_or_else(|| PathBuf::from(format!("/tmp/leasehold-{user}")));
        if exposed {
            check_private(&path, user)?;
        }
        let given = path.into_os_string().into_string().map_err(|path| Trouble::BadDirectory {
            path: path.into(),
            why: "is not valid UTF-8".to_owned(),
        })?;
        Ok(Self { exposed, ..Self::new(&format!("dir:{given}"), global.timeout)? })
    }

    fn new(given: &str, timeout: Duration) -> Result<Self, Trouble> {
        if looks_like_a_service(given) {
            // Taken for a path it would make a store of its own on every machine, and exclude nobody.
            return Err(Trouble::Misuse(format!(
                "store {given:?} looks like a service: write leasehold://{given}, or dir:./{given} for a directory"
            )));
        }
        let path = match scheme(given) {
            Some("dir") => Some(&given["dir:".len()..]),
            Some(_) => None,
            None => Some(given),
        };
        let Some(path) = path else {
            return Ok(Self { url: given.to_owned(), directory: None, exposed: false, timeout });
        };
        if path.is_empty() {
            return Err(Trouble::Misuse(
                "store is empty; name a directory, or leave --store and LEASEHOLD_STORE out".to_owned(),
            ));
        }
        if path.starts_with('~') {
            // Quotes or a dir: in front keep a shell from it, and the store would be in a directory called ~.
            return Err(Trouble::Misuse(format!(
                "store {given:?} begins with ~, which no shell has replaced here; write the whole path"
            )));
        }
        if path.contains('?') {
            // The library refuses it, with words about what to do. Nobody looks for a directory of that name before.
            return Ok(Self { url: format!("dir:{path}"), directory: None, exposed: false, timeout });
        }
        // Absolute, because the command that gets it in its environment may stand elsewhere.
        let absolute = std::path::absolute(path)
            .map_err(|source| Trouble::System { what: "cannot find the present directory", source })?;
        let Some(text) = absolute.to_str() else {
            return Err(Trouble::BadDirectory { path: absolute, why: "is not valid UTF-8".to_owned() });
        };
        let url = format!("dir:{text}");
        Ok(Self { url, directory: Some(absolute), exposed: false, timeout })
    }

    /// The address, as it is passed on to others.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// The directory, if it is one and not a service.
    pub(crate) fn directory(&self) -> Option<&Path> {
        self.directory.as_deref()
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

    /// Asks a store that is there already, and takes leave of it.
    pub(crate) async fn ask<T, E>(&self, work: impl AsyncFnOnce(&Store) -> Result<T, E>) -> Result<T, Trouble>
    where
        Trouble: From<E>,
    {
        let store = self.look().await?;
        let answer = work(&store).await;
        store.close().await;
        Ok(answer?)
    }

    /// Connects, and makes the directory if it is not there.
    pub(crate) async fn connect(&self) -> Result<Store, Trouble> {
        self.connect_with(ConnectOptions::new()).await
    }

    /// The same with options; the patience is that of the command line.
    pub(crate) async fn connect_with(&self, options: ConnectOptions) -> Result<Store, Trouble> {
        if let (true, Some(directory)) = (self.exposed, &self.directory) {
            make_private(directory)?;
            check_private(directory, rustix::process::getuid().as_raw())?;
        }
        Ok(Store::connect_with(&self.url, options.patience(self.timeout)).await?)
    }
}

/// Where a service of this user keeps its data unless told otherwise: beside the files of the store that has no service, whose
/// directory it must not be.
pub(crate) fn service_data() -> Option<PathBuf> {
    let own = home_path(std::env::var_os("XDG_STATE_HOME"), std::env::var_os("HOME"));
    own.map(|own| own.with_file_name("leasehold-service"))
}

/// Whether this is a host and a port without a scheme.
fn looks_like_a_service(given: &str) -> bool {
    let Some((host, port)) = given.rsplit_once(':') else { return false };
    let port_fits = !port.is_empty() && port.len() <= 5 && port.bytes().all(|byte| byte.is_ascii_digit());
    port_fits && !host.is_empty() && !host.contains('/') && host != "dir"
}

/// The scheme of an address; a path has none.
fn scheme(given: &str) -> Option<&str> {
    let (scheme, _) = given.split_once(':')?;
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-');
    (!scheme.is_empty() && scheme.chars().all(fits)).then_some(scheme)
}

/// Where the leases of a user with a home live unless told otherwise.
fn home_path(state: Option<OsString>, home: Option<OsString>) -> Option<PathBuf> {
    match (state.map(PathBuf::from), home.filter(|home| !home.is_empty())) {
        (Some(state), _) if state.is_absolute() => Some(state.join("leasehold")),
        (_, home) => Some(PathBuf::from(home?).join(".local/state/leasehold")),
    }
}

/// Makes a directory in a place where anybody may write.
fn make_private(path: &Path) -> Result<(), Trouble> {
    match fs::DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            Err(Trouble::BadDirectory { path: path.to_owned(), why: format!("cannot be made: {error}") })
        }
        _ => Ok(()),
    }
}

/// Somebody else may have been there first: a directory in such a place is looked at before it is trusted.
fn check_private(path: &Path, user: u32) -> Result<(), Trouble> {
    let bad = |why: String| Err(Trouble::BadDirectory { path: path.to_owned(), why });
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => bad(format!("cannot be looked at: {error}")),
        Ok(found) if !found.is_dir() || found.uid() != user => {
            bad("is not a directory of this user".to_owned())
        }
        Ok(found) if found.mode() & OTHERS != 0 => bad("is open to other users".to_owned()),
        Ok(_) => Ok(()),
    }
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
    fn a_directory_with_a_query_is_left_to_the_library_which_refuses_it() {
        for given in ["dir:/x?token_floor=8", "/x?token_floor=8"] {
            let place = Place::new(given, Duration::ZERO).unwrap();
            assert_eq!((place.url.as_str(), place.directory), ("dir:/x?token_floor=8", None));
        }
    }

    #[test]
    fn the_default_lies_in_the_state_of_the_user() {
        let path = |state: Option<&str>, home: Option<&str>| {
            home_path(state.map(Into::into), home.map(Into::into)).map(|path| path.display().to_string())
        };
        assert_eq!(path(Some("/s"), Some("/h")).as_deref(), Some("/s/leasehold"));
        // The standard says that a relative one is to be ignored.
        assert_eq!(path(Some("s"), Some("/h")).as_deref(), Some("/h/.local/state/leasehold"));
        assert_eq!(path(None, Some("/h")).as_deref(), Some("/h/.local/state/leasehold"));
        assert_eq!(path(None, None), None);
        assert_eq!(path(None, Some("")), None);
    }

    #[test]
    fn a_directory_of_others_is_not_trusted() {
        let root = tempfile::tempdir().unwrap();
        let user = rustix::process::getuid().as_raw();
        let path = root.path().join("leases");
        check_private(&path, user).unwrap();
        make_private(&path).unwrap();
        check_private(&path, user).unwrap();
        assert!(check_private(&path, user + 1).is_err());
        fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        assert!(check_private(&path, user).is_err());
        let link = root.path().join("link");
        std::os::unix::fs::symlink(root.path(), &link).unwrap();
        assert!(check_private(&link, user).is_err());
    }

    #[test]
    fn an_empty_store_and_one_with_a_tilde_are_refused() {
        for given in ["", "dir:", "dir:~/x", "~"] {
            assert!(matches!(Place::new(given, Duration::ZERO), Err(Trouble::Misuse(_))), "{given}");
        }
    }

    #[test]
    fn a_host_and_a_port_are_not_taken_for_a_path() {
        for given in ["leases.internal:7420", "127.0.0.1:7420", "localhost:1", "[::1]:7420"] {
            assert!(looks_like_a_service(given), "{given}");
        }
        for given in ["leasehold://a:7420", "dir:7420", "./a:7420", "/a:7420", "a", "a:b", "dir:/x"] {
            assert!(!looks_like_a_service(given), "{given}");
        }
    }
}
