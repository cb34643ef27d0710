//! The log of a service: standard error, for people or for programs.

use std::io::{IsTerminal, stderr};

use leasehold_server::Found;
use leasehold_server::config::{Effective, LogConfig, LogFormat, Source};
use tracing::level_filters::LevelFilter;
use tracing::{info, warn};
use tracing_subscriber::EnvFilter;

use crate::console::no_color;
use crate::trouble::Trouble;
use crate::words;

/// How lines look, once that was decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    /// Text.
    Human,
    /// One JSON object a line.
    Json,
}

/// What the configuration wants to be logged.
pub(crate) fn filter(effective: &Effective) -> Result<EnvFilter, Trouble> {
    let text = &effective.config.log.level;
    read_filter(text).map_err(|why| {
        Trouble::Misuse(effective.refusal("log.level", &format!("{text:?} {why}")).to_string())
    })
}

fn read_filter(text: &str) -> Result<EnvFilter, String> {
    // The parser wants no spaces behind commas, and people write them.
    let words: Vec<&str> = text.split(',').map(str::trim).collect();
    // The parser takes a bare word that is no level for the name of a part, and is silent about everything else.
    for word in words.iter().filter(|word| !word.contains(['=', '[', '{', '}', ']'])) {
        if word.parse::<LevelFilter>().is_err() {
            return Err(format!(
                "names no level with {word:?}; write error, warn, info, debug, trace or off, or directives such as \
                 info,leasehold_server=debug"
            ));
        }
    }
    EnvFilter::try_new(words.join(",")).map_err(|error| format!("cannot be read: {error}"))
}

/// Logs from now on, in this process, until its end.
pub(crate) fn start(config: &LogConfig, filter: EnvFilter) -> Style {
    let terminal = stderr().is_terminal();
    let style = match config.format {
        LogFormat::Human => Style::Human,
        LogFormat::Json => Style::Json,
        LogFormat::Auto if terminal => Style::Human,
        LogFormat::Auto => Style::Json,
    };
    // A standard error that nobody reads any more is no reason to end a service.
    let lines =
        tracing_subscriber::fmt().with_env_filter(filter).with_writer(stderr).log_internal_errors(false);
    match style {
        Style::Human => lines.with_target(false).with_ansi(terminal && !no_color()).init(),
        Style::Json => lines.json().flatten_event(true).with_current_span(false).init(),
    }
    style
}

/// Says what the directory brought with it.
pub(crate) fn found(found: Option<&Found>) {
    match found {
        Some(Found { rules: None, .. }) => {
            info!(
                "the directory holds nothing yet: this node has not met its cluster, or was not added to one"
            );
        }
        // Of a node alone everything is decided; of a member only what its last snapshot has, which says little.
        Some(Found { members, .. }) if *members > 1 => {
            info!(
                members,
                "the directory holds the log of a member of a cluster; its table follows with what is decided there"
            );
        }
        Some(found) => {
            let Found { sessions, leases, revision, .. } = found;
            info!(sessions, leases, revision = revision.get(), "recovered what was there");
        }
        None => info!("the directory is new"),
    }
    if let Some(left) = found.and_then(|found| found.restore_wait) {
        let seconds = left.get().div_ceil(1_000);
        warn!(
            seconds,
            "the state was restored or recovered: nothing is granted for another {}, until about {}, because holders of before may still act",
            words::millis(left),
            words::moment_in(left.duration())
        );
    }
}

/// Says the effective configuration: to people what differs from the defaults, to programs all of it.
pub(crate) fn settings(effective: &Effective, style: Style) {
    for (key, value, source) in effective.settings() {
        let key = key.name;
        match style {
            Style::Json => {
                info!(key, value = value.bare(), source = source.to_string(), "setting");
            }
            Style::Human if *source != Source::Default => info!("{key} = {value} from {source}"),
            Style::Human => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_and_directives_are_understood() {
        for good in ["info", "off", "ERROR", "info,leasehold_server=debug", "warn, leasehold_host=trace"] {
            assert!(read_filter(good).is_ok(), "{good}");
        }
    }

    #[test]
    fn a_misspelled_level_does_not_silence_everything() {
        for (bad, part) in [("inof", "\"inof\""), ("info,debgu", "\"debgu\""), ("a=loud", "cannot be read")] {
            assert!(read_filter(bad).unwrap_err().contains(part), "{bad}");
        }
    }
}
