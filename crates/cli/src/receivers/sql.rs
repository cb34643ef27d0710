//! Databases behind a network.

use std::str::FromStr as _;
use std::sync::Arc;

use leasehold::fence::Receiver;
use sqlx::MySqlPool;
use sqlx::mysql::MySqlConnectOptions;
use url::form_urlencoded;

const HOW: &str = "write mysql://USER@HOST/DATABASE";
const HOW_POSTGRES: &str = "write postgres://USER@HOST/DATABASE";
const NO_TLS: &str = "there is no TLS for PostgreSQL here; leave sslmode out for a server, or a tunnel to one, that takes plain connections";

/// The driver would complete what is missing from `PG...` variables, and pass over what it does not know: whoever reads the URL would take it for
/// another database than is asked.
fn must_be_whole(url: &str) -> Result<(), String> {
    let (_, rest) = url.split_once("://").unwrap_or_default();
    let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
    // A password that should have been escaped may have anything in it, and nothing of it is to be said.
    if query.contains('@') && !place.contains('@') {
        return Err("a question mark stands before the at sign; write %3F for one in a password".to_owned());
    }
    let place = place.rsplit_once('@').map_or(place, |(_, place)| place);
    let (host, database) = place.split_once('/').unwrap_or((place, ""));
    let mut is_socket = false;
    for (key, value) in form_urlencoded::parse(query.as_bytes()) {
        match &*key {
            "host" if value.starts_with('/') => is_socket = true,
            "application_name" | "options" => {}
            "sslmode" if value == "disable" => {}
            "sslmode" => return Err(NO_TLS.to_owned()),
            // Its value may be a secret, and what is no word may be one too.
            key => {
                let is_word = key.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
                let not = if is_word { format!("not {key:?}") } else { "nothing else".to_owned() };
                return Err(format!(
                    "only application_name, options and, for a socket, host=DIRECTORY may stand behind the question mark, {not}"
                ));
            }
        }
    }
    if host.split(':').next().is_none_or(str::is_empty) && !is_socket {
        return Err(format!("it names no host; {HOW_POSTGRES}"));
    }
    if is_socket && !host.is_empty() {
        return Err("it names a host and a socket; leave one of them out".to_owned());
    }
    if database.is_empty() {
        return Err(format!("it names no database; {HOW_POSTGRES}"));
    }
    Ok(())
}

pub(super) fn postgres(url: &str) -> Result<Arc<dyn Receiver>, String> {
    must_be_whole(url)?;
    let fence = leasehold_fence::postgres::Fence::at(url).map_err(|error| error.to_string())?;
    Ok(Arc::new(fence))
}

/// MySQL, or MariaDB, which speaks the same.
pub(super) fn mysql(url: &str) -> Result<Arc<dyn Receiver>, String> {
    if !url.contains("://") {
        return Err(format!("it does not begin with mysql://; {HOW}"));
    }
    let options = MySqlConnectOptions::from_str(url).map_err(|error| {
        format!("{error}; {HOW}, with %2C for a comma and %40 for an at sign in a password")
    })?;
    if options.get_database().is_none_or(str::is_empty) {
        return Err(format!("it names no database; {HOW}"));
    }
    Ok(Arc::new(leasehold_fence::mysql::Fence::new(MySqlPool::connect_lazy_with(options))))
}
