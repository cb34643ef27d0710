//! Where the store is: what the command line says, or the default of this user.
//!
//! A look never makes a directory: whoever mistypes a path learns it instead of reading from an empty store.

use std::ffi::OsString;
use std::fmt::Display;
use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpStream, ToSocketAddrs};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use leasehold::{ConnectOptions, DEFAULT_PORT, Store};
use serde_json::json;

use crate::args::Global;
use crate::console::Console;
use crate::trouble::Trouble;
use crate::words;

/// The file that every directory with leases has.
const LOCK_FILE: &str = "lock";
/// Nobody but its owner may look into or change a directory.
const OTHERS: u32 = 0o077;
/// Says where a service of this user listens, if not at the default address.
const SERVICE_VARIABLE: &str = "LEASEHOLD_SERVE_LISTEN";
/// On this machine the kernel answers a connection sooner, whatever its processes do.
const PROBE_TIME: Duration = Duration::from_millis(200);
/// A service answers sooner even on a machine that is busy with something else. A program that takes connections there and says nothing holds up a
/// command for no longer.
const HELLO_TIME: Duration = Duration::from_secs(2);

/// A store, not yet connected to.
#[derive(Debug)]
pub(crate) struct Place {
    url: String,
    directory: Option<PathBuf>,
    /// Whether the directory lies where anybody may write, and must be looked at.
    exposed: bool,
    /// How long it is tried to reach it.
    pub(crate) timeout: Duration,
    /// What is said while it does not answer.
    pub(crate) silence: Silence,
    /// Whether it is the default, and a service on this machine may be meant.
    is_default: bool,
}

impl Place {
    /// The place that the command line, the environment or the default names.
    pub(crate) fn find(global: &Global) -> Result<Self, Trouble> {
        if let Some(given) = &global.store {
            return Self::new(given, global);
        }
        let user = rustix::process::getuid().as_raw();
        let own = own_path();
        let exposed = own.is_none();
        let path = own.unwrap_or_else(|| PathBuf::from(format!("/tmp/leasehold-{user}")));
        if exposed {
            check_private(&path, user)?;
        }
        let given = path.into_os_string().into_string().map_err(|path| Trouble::BadDirectory {
            path: path.into(),
            why: "is not valid UTF-8".to_owned(),
        })?;
        Ok(Self { exposed, is_default: true, ..Self::new(&format!("dir:{given}"), global)? })
    }

    fn new(given: &str, global: &Global) -> Result<Self, Trouble> {
        let at = |url: String, directory: Option<PathBuf>| {
            let (console, timeout) = (Console::new(global.json), global.timeout);
            let silence = Silence { console, timeout, said: Arc::default() };
            Self { url, directory, exposed: false, timeout, silence, is_default: false }
        };
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
            return Ok(at(given.to_owned(), None));
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
            return Ok(at(format!("dir:{path}"), None));
        }
        // Absolute, because the command that gets it in its environment may stand elsewhere.
        let absolute =
            std::path::absolute(path).map_err(Trouble::system("cannot find the present directory"))?;
        let Some(text) = absolute.to_str() else {
            return Err(Trouble::BadDirectory { path: absolute, why: "is not valid UTF-8".to_owned() });
        };
        let url = format!("dir:{text}");
        Ok(at(url, Some(absolute)))
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
        self.mention_service().await;
        if let Some(directory) = &self.directory {
            // Any other trouble than that it is missing is told better by whoever opens it.
            let missing = |error: &io::Error| {
                matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
            };
            if fs::metadata(directory.join(LOCK_FILE)).is_err_and(|error| missing(&error)) {
                return Err(Trouble::NoStore(directory.clone()));
            }
        }
        self.open(ConnectOptions::new()).await
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

    /// Connects, and makes the directory if it is not there. The patience is that of the command line.
    pub(crate) async fn connect_with(&self, options: ConnectOptions) -> Result<Store, Trouble> {
        self.mention_service().await;
        self.open(options).await
    }

    async fn open(&self, options: ConnectOptions) -> Result<Store, Trouble> {
        if let (true, Some(directory)) = (self.exposed, &self.directory) {
            make_private(directory)?;
            check_private(directory, rustix::process::getuid().as_raw())?;
        }
        let silence = self.silence.clone();
        let options = options.patience(self.timeout).report(move |why| silence.say(why));
        Ok(Store::connect_with(&self.url, options).await?)
    }

    /// Says so if this command uses the default directory while a service runs on this machine: leases of the one do not exclude those of the other.
    async fn mention_service(&self) {
        if self.is_default
            && let Some(service) = service_here().await
        {
            let directory = &self.url;
            let text = format!(
                "this command uses {directory}, although a service listens on this machine; to use the service: export \
                 LEASEHOLD_STORE={service} (or name the directory with --store, and this is not said)"
            );
            let event = json!({ "event": "service-not-used", "store": directory, "service": service });
            self.silence.console.note(text, &event);
        }
    }
}

/// What is said, once, while a store does not answer.
#[derive(Debug, Clone)]
pub(crate) struct Silence {
    console: Console,
    timeout: Duration,
    said: Arc<AtomicBool>,
}

impl Silence {
    /// Says what is wrong and for how long the store is tried.
    pub(crate) fn say(&self, why: &impl Display) {
        if !self.said.swap(true, Ordering::Relaxed) {
            let timeout = words::length(self.timeout);
            let event = json!({ "event": "no-answer-yet", "message": why.to_string() });
            self.console.note(format_args!("{why}; trying until {timeout} are over (--timeout)"), &event);
        }
    }

    /// Whether it was said.
    pub(crate) fn is_said(&self) -> bool {
        self.said.load(Ordering::Relaxed)
    }
}

/// The service that listens where `leasehold serve` listens on this machine unless told otherwise, if there is one. Where there is none, that
/// takes one refused connection.
async fn service_here() -> Option<String> {
    let listen = std::env::var(SERVICE_VARIABLE);
    let mut address = match &listen {
        Ok(listen) => listen.to_socket_addrs().ok()?.next()?,
        Err(_) => SocketAddr::from((Ipv4Addr::LOCALHOST, DEFAULT_PORT)),
    };
    if address.ip().is_unspecified() {
        address.set_ip(Ipv4Addr::LOCALHOST.into());
    }
    drop(TcpStream::connect_timeout(&address, PROBE_TIME).ok()?);
    // Others may listen there. One that speaks the protocol is a service.
    let url = format!("leasehold://{address}");
    let store =
        Store::connect_with(&url, ConnectOptions::new().patience(HELLO_TIME).only_listed()).await.ok()?;
    store.close().await;
    Some(url)
}

/// Where a service of this user keeps its data unless told otherwise: beside the files of the store that has no service, whose
/// directory it must not be.
pub(crate) fn service_data() -> Option<PathBuf> {
    own_path().map(|own| own.with_file_name("leasehold-service"))
}

/// Where the leases of this user live unless told otherwise; nothing without a home.
fn own_path() -> Option<PathBuf> {
    home_path(std::env::var_os("XDG_STATE_HOME"), std::env::var_os("HOME"))
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

    fn place(given: &str) -> Result<Place, Trouble> {
        Place::new(given, &Global { store: None, json: false, timeout: Duration::ZERO })
    }

    fn url(given: &str) -> String {
        place(given).unwrap().url
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
            let place = place(given).unwrap();
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
            assert!(matches!(place(given), Err(Trouble::Misuse(_))), "{given}");
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
