//! Databases behind a network.
//!
//! Both drivers pass over what they do not know behind the question mark, and that of PostgreSQL completes what is missing from `PG...`
//! variables. Whoever reads such a URL would take it for another database than is asked, or for a safer way to it. So only what is
//! understood may stand there.

use std::str::FromStr as _;
use std::sync::Arc;

use leasehold::fence::Receiver;
use sqlx::MySqlPool;
use sqlx::mysql::MySqlConnectOptions;
use url::form_urlencoded;

/// What one kind of database calls things in its URLs.
struct Dialect {
    how: &'static str,
    /// Whether TLS is spoken.
    mode: &'static str,
    /// How: not, if the server offers it, always, and always with a certificate that is trusted and has the name of the host.
    modes: [&'static str; 4],
    /// A file with certificates that are trusted besides those of the machine.
    trusted: &'static str,
    /// The file of a socket, or its directory.
    socket: &'static str,
    /// Whether a host stands before a socket all the same.
    has_host_beside_socket: bool,
    others: &'static [&'static str],
    may_stand: &'static str,
}

const POSTGRES: Dialect = Dialect {
    how: "write postgres://USER@HOST/DATABASE",
    mode: "sslmode",
    modes: ["disable", "prefer", "require", "verify-full"],
    trusted: "sslrootcert",
    socket: "host",
    has_host_beside_socket: false,
    others: &["application_name", "options"],
    may_stand: "application_name, options, sslmode, sslrootcert and, for a socket, host=DIRECTORY",
};

const MYSQL: Dialect = Dialect {
    how: "write mysql://USER@HOST/DATABASE",
    mode: "ssl-mode",
    modes: ["DISABLED", "PREFERRED", "REQUIRED", "VERIFY_IDENTITY"],
    trusted: "ssl-ca",
    socket: "socket",
    has_host_beside_socket: true,
    others: &[],
    may_stand: "ssl-mode, ssl-ca and socket=PATH",
};

impl Dialect {
    /// Whether a URL says all that is needed, and nothing that is not understood.
    fn must_be_whole(&self, url: &str) -> Result<(), String> {
        let (_, rest) = url.split_once("://").unwrap_or_default();
        let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
        // A password that should have been escaped may have anything in it, and nothing of it is to be said.
        if query.contains('@') && !place.contains('@') {
            return Err(
                "a question mark stands before the at sign; write %3F for one in a password".to_owned()
            );
        }
        let place = place.rsplit_once('@').map_or(place, |(_, place)| place);
        let (host, database) = place.split_once('/').unwrap_or((place, ""));
        let is_socket = self.understands(query)?;
        if host.split(':').next().is_none_or(str::is_empty) && !is_socket {
            return Err(format!("it names no host; {}", self.how));
        }
        if is_socket && !host.is_empty() && !self.has_host_beside_socket {
            return Err("it names a host and a socket; leave one of them out".to_owned());
        }
        if database.is_empty() {
            return Err(format!("it names no database; {}", self.how));
        }
        Ok(())
    }

    /// Looks at everything behind the question mark, and says whether it names a socket.
    fn understands(&self, query: &str) -> Result<bool, String> {
        let (mut is_socket, mut is_verified, mut trusted) = (false, false, None);
        let [.., verified] = self.modes;
        for (key, value) in form_urlencoded::parse(query.as_bytes()) {
            match &*key {
                key if key == self.socket && value.starts_with('/') => is_socket = true,
                key if self.others.contains(&key) => {}
                key if key == self.mode => {
                    if !self.modes.iter().any(|mode| value.eq_ignore_ascii_case(mode)) {
                        return Err(format!("{key} is none of {}", self.modes.join(", ")));
                    }
                    is_verified = value.eq_ignore_ascii_case(verified);
                }
                key if key == self.trusted => trusted = Some(value),
                // Its value may be a secret, and what is no word may be one too.
                key => {
                    let is_word = key.bytes().all(|byte| byte.is_ascii_lowercase() || b"_-".contains(&byte));
                    let not = if is_word { format!("not {key:?}") } else { "nothing else".to_owned() };
                    return Err(format!("only {} may stand behind the question mark, {not}", self.may_stand));
                }
            }
        }
        let Some(file) = trusted else { return Ok(is_socket) };
        let Self { mode, trusted, .. } = self;
        if !is_verified {
            return Err(format!("{trusted} changes nothing without {mode}={verified}; add that"));
        }
        std::fs::metadata(&*file).map_err(|error| format!("{trusted} {file}: {error}"))?;
        Ok(is_socket)
    }
}

pub(super) fn postgres(url: &str) -> Result<Arc<dyn Receiver>, String> {
    POSTGRES.must_be_whole(url)?;
    super::receiver(leasehold_fence::postgres::Fence::at(url))
}

/// MySQL, or MariaDB, which speaks the same.
pub(super) fn mysql(url: &str) -> Result<Arc<dyn Receiver>, String> {
    let how = MYSQL.how;
    if !url.contains("://") {
        return Err(format!("it does not begin with mysql://; {how}"));
    }
    let options = MySqlConnectOptions::from_str(url).map_err(|error| {
        format!("{error}; {how}, with %2C for a comma and %40 for an at sign in a password")
    });
    // What is missing is said before what the driver does not understand.
    MYSQL.must_be_whole(url)?;
    Ok(Arc::new(leasehold_fence::mysql::Fence::new(MySqlPool::connect_lazy_with(options?))))
}
