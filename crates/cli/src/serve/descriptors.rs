//! Descriptors: every connection takes one, and a process may have only so many.

use leasehold_server::config::{Config, Effective, Source};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::trouble::Trouble;

/// Kept for what is no connection of a client: files of the log, listeners, the runtimes' own.
const RESERVE: u64 = 128;
const KEY: &str = "limits.max_connections";

/// Makes room for as many connections as are configured. A default that does not fit is lowered, and words about it are given
/// back; what was asked for is refused if it does not fit.
pub(crate) fn fit(effective: &mut Effective) -> Result<Option<String>, Trouble> {
    let Some(allowed) = raise() else { return Ok(None) };
    let asked_for = (*effective.source(KEY) != Source::Default).then(|| effective.source(KEY).to_string());
    fit_within(&mut effective.config, asked_for.as_deref(), allowed).map_err(Trouble::Misuse)
}

/// How many of `wanted` fit if each takes two: a connection of its own and one to somebody else.
pub(crate) fn room_for_pairs(wanted: usize) -> usize {
    let Some(allowed) = raise() else { return wanted };
    let room = usize::try_from(allowed.saturating_sub(RESERVE) / 2).unwrap_or(usize::MAX);
    wanted.min(room).max(1)
}

/// Raises the soft limit to the hard one; how many there may be then, or nothing if there is no limit.
fn raise() -> Option<u64> {
    let limit = getrlimit(Resource::Nofile);
    if limit.current == limit.maximum {
        return limit.current;
    }
    // A kernel may have a limit below the hard one; what counts is what it says afterwards.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
    getrlimit(Resource::Nofile).current
}

fn fit_within(config: &mut Config, asked_for: Option<&str>, allowed: u64) -> Result<Option<String>, String> {
    let wanted = config.limits.max_connections;
    let room = usize::try_from(allowed.saturating_sub(RESERVE)).unwrap_or(usize::MAX);
    if wanted <= room {
        return Ok(None);
    }
    let facts = format!(
        "{KEY} of {wanted} and {RESERVE} more for the service itself do not fit into the {allowed} descriptors that this process may have"
    );
    match asked_for {
        Some(source) => Err(format!(
            "{source}: {facts}; lower the first, or raise the second with ulimit -n or LimitNOFILE"
        )),
        None if room == 0 => Err(format!("{facts}; raise them with ulimit -n or LimitNOFILE")),
        None => {
            config.limits.max_connections = room;
            Ok(Some(format!(
                "{facts}: {room} connections are taken; raise the descriptors with ulimit -n or LimitNOFILE"
            )))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fitted(asked_for: Option<&str>, allowed: u64) -> (Result<Option<String>, String>, usize) {
        let mut config = Config::new("/data");
        let outcome = fit_within(&mut config, asked_for, allowed);
        (outcome, config.limits.max_connections)
    }

    #[test]
    fn what_fits_is_left_alone() {
        assert_eq!(fitted(None, 16_384 + RESERVE), (Ok(None), 16_384));
        assert_eq!(fitted(Some("--set"), 1 << 40), (Ok(None), 16_384));
    }

    #[test]
    fn a_default_is_lowered_and_a_wish_is_refused() {
        let (outcome, connections) = fitted(None, 1_024);
        assert_eq!(connections, 1_024 - 128);
        assert!(outcome.unwrap().unwrap().contains("1024 descriptors"));
        let (outcome, _) = fitted(Some("c.toml:3"), 1_024);
        let why = outcome.unwrap_err();
        assert!(
            why.starts_with("c.toml:3: limits.max_connections of 16384") && why.contains("1024"),
            "{why}"
        );
    }

    #[test]
    fn a_process_without_room_for_anybody_does_not_serve() {
        assert!(fitted(None, RESERVE).0.is_err());
        assert!(fitted(None, 3).0.is_err());
    }
}
