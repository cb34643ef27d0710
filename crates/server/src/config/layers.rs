//! Where a configuration comes from: defaults, then a file, then the environment, then flags. What comes later wins, key by key.
//!
//! A word that is not known is refused wherever it stands, with the nearest known one: a key that is misspelled and quietly ignored is
//! found out when it was needed.

use std::fmt;
use std::path::{Path, PathBuf};

use leasehold_core::{Drift, Millis};

use super::keys::{KEYS, Key};
use super::nearest::nearest;
use super::{Config, file};

/// How the variables of the environment begin.
pub const PREFIX: &str = "LEASEHOLD_SERVE_";
/// The variable that names the file.
pub const FILE_VARIABLE: &str = "LEASEHOLD_SERVE_CONFIG";

/// Why a configuration cannot be served. The message names the place, the value and what it could be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// Something in it cannot be, or does not fit together.
    #[error("{0}")]
    Refused(String),
}

/// Where a value came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// Nobody said anything.
    Default,
    /// A line of the file.
    File {
        /// The file.
        path: PathBuf,
        /// The line, from 1 on.
        line: usize,
    },
    /// A variable of the environment.
    Variable(String),
    /// The command line.
    Flag(String),
    /// The directory: it was made with this value and keeps it, whatever the other places say.
    Directory,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { path, line } => write!(f, "{}:{line}", path.display()),
            Self::Variable(name) | Self::Flag(name) => f.write_str(name),
            Self::Directory => f.write_str("the directory"),
        }
    }
}

/// What each place says, before it is put together.
#[derive(Debug, Default)]
pub struct Layers {
    /// The file: its path, and its text.
    pub file: Option<(PathBuf, String)>,
    /// The variables of the environment; those of others are skipped.
    pub variables: Vec<(String, String)>,
    /// What the command line says: the flag as it was written, the key that it sets, and its value.
    pub flags: Vec<(String, String, String)>,
}

/// A configuration that was put together, and where each value of it came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Effective {
    /// The configuration.
    pub config: Config,
    sources: [Source; KEYS.len()],
}

impl Layers {
    /// The configuration that these come to. `data` is the directory that is used if nobody names one.
    ///
    /// # Errors
    /// At the first thing that cannot be: an unknown key, a value out of bounds, values that do not fit together.
    pub fn resolve(&self, data: Option<&Path>) -> Result<Effective, ConfigError> {
        let config = Config::new(data.unwrap_or(Path::new("")));
        let mut effective = Effective { config, sources: [const { Source::Default }; KEYS.len()] };
        self.add_file(&mut effective)?;
        self.add_variables(&mut effective)?;
        for (flag, key, text) in &self.flags {
            effective.add_text(Source::Flag(flag.clone()), key, text)?;
        }
        if effective.config.data.as_os_str().is_empty() {
            let why =
                "data is not set, and there is no home directory to put it in; name a directory with --data";
            return Err(ConfigError::Refused(why.to_owned()));
        }
        effective.config.check_with(|key| format!(" ({})", effective.source(key)))?;
        Ok(effective)
    }

    fn add_file(&self, effective: &mut Effective) -> Result<(), ConfigError> {
        let Some((path, text)) = &self.file else { return Ok(()) };
        for entry in file::read(&path.display().to_string(), text)? {
            let source = Source::File { path: path.clone(), line: entry.line };
            let (at, key) = match find(&source, &entry.key) {
                Err(_) if entry.section => return Err(no_section(&source, &entry.key)),
                found => found?,
            };
            let set = entry.value.and_then(|value| key.set(&mut effective.config, value));
            effective.note(at, source, set)?;
        }
        Ok(())
    }

    fn add_variables(&self, effective: &mut Effective) -> Result<(), ConfigError> {
        let ours = |name: &str| name.starts_with(PREFIX) && name != FILE_VARIABLE;
        for (name, text) in self.variables.iter().filter(|(name, _)| ours(name)) {
            let Some(key) = KEYS.iter().find(|key| key.variable() == *name) else {
                let names: Vec<String> = KEYS.iter().map(Key::variable).collect();
                let known = names.iter().map(String::as_str).chain([FILE_VARIABLE]);
                // The beginning is always right, and would make everything look near.
                let bare = known.map(|known| &known[PREFIX.len()..]);
                let meant = nearest(&name[PREFIX.len()..], bare).map(|bare| format!("{PREFIX}{bare}"));
                return Err(unknown(&format!("there is no variable {name}"), meant.as_deref()));
            };
            effective.add_text(Source::Variable(name.clone()), key.name, text)?;
        }
        Ok(())
    }
}

impl Effective {
    /// Every key with its value and where that came from.
    pub fn settings(&self) -> impl Iterator<Item = (&'static Key, super::Value, &Source)> {
        let keys = const { &KEYS }.iter().zip(&self.sources);
        keys.map(|(key, source)| (key, key.get(&self.config), source))
    }

    /// Where the value of a key came from; the default, if there is no such key.
    pub fn source(&self, name: &str) -> &Source {
        let known = KEYS.iter().position(|key| key.name == name);
        known.map_or(&Source::Default, |at| &self.sources[at])
    }

    /// Puts in what an existing directory keeps. Gives a warning for each value that somebody chose and that does not apply.
    pub fn keep(&mut self, max_ttl: Millis, drift: Drift) -> Vec<String> {
        let mut kept = self.config.clone();
        (kept.max_ttl, kept.drift) = (max_ttl, drift);
        let mut warnings = Vec::new();
        for (at, key) in const { &KEYS }.iter().enumerate() {
            let (chosen, value) = (key.get(&self.config), key.get(&kept));
            if chosen == value {
                continue;
            }
            let source = std::mem::replace(&mut self.sources[at], Source::Directory);
            if source != Source::Default {
                warnings.push(format!(
                    "{} of {chosen} ({source}) does not apply: {} was made with {value} and keeps it",
                    key.name,
                    kept.data.display()
                ));
            }
        }
        self.config = kept;
        warnings
    }

    /// The words for a value that turns out later to be impossible, with the place it came from.
    pub fn refusal(&self, name: &str, why: &str) -> ConfigError {
        refusal(name, self.source(name), why)
    }

    /// As a file that reads the same.
    pub fn to_toml(&self) -> String {
        let mut text = String::new();
        file::write(&mut text, &self.config).expect("text in memory can be written");
        text
    }

    fn add_text(&mut self, source: Source, name: &str, text: &str) -> Result<(), ConfigError> {
        let (at, key) = find(&source, name)?;
        let set = key.read(&self.config, text).and_then(|value| key.set(&mut self.config, value));
        self.note(at, source, set)
    }

    fn note(&mut self, at: usize, source: Source, set: Result<(), String>) -> Result<(), ConfigError> {
        set.map_err(|why| refusal(KEYS[at].name, &source, &why))?;
        self.sources[at] = source;
        Ok(())
    }
}

fn refusal(name: &str, source: &Source, why: &str) -> ConfigError {
    ConfigError::Refused(match source {
        Source::File { .. } => format!("{source}: {name}: {why}"),
        Source::Default | Source::Directory => format!("{name}: {why}"),
        // These are named after their keys.
        Source::Variable(_) | Source::Flag(_) => format!("{source}: {why}"),
    })
}

fn find(source: &Source, name: &str) -> Result<(usize, &'static Key), ConfigError> {
    let keys = const { &KEYS };
    let known = keys.iter().enumerate().find(|(_, key)| key.name == name);
    known.ok_or_else(|| {
        let meant = nearest(name, keys.iter().map(|key| key.name)).or_else(|| same_in_a_section(name));
        unknown(&format!("{source}: there is no key {name}"), meant)
    })
}

fn no_section(source: &Source, name: &str) -> ConfigError {
    let sections =
        const { &KEYS }.iter().filter_map(|key| key.name.split_once('.')).map(|(section, _)| section);
    let meant = nearest(name, sections).map(|section| format!("[{section}]"));
    unknown(&format!("{source}: there is no section [{name}]"), meant.as_deref())
}

/// A key that stands in a section and was named without it, or in another one.
fn same_in_a_section(name: &str) -> Option<&'static str> {
    let last = |name: &'static str| name.rsplit('.').next().unwrap_or(name);
    let wanted = name.rsplit('.').next()?;
    const { &KEYS }.iter().map(|key| key.name).find(|known| last(known) == wanted)
}

fn unknown(what: &str, meant: Option<&str>) -> ConfigError {
    let next = match meant {
        Some(meant) => format!("did you mean {meant}?"),
        None => "`leasehold serve --print-config` shows them all".to_owned(),
    };
    ConfigError::Refused(format!("{what}; {next}"))
}

#[cfg(test)]
mod tests;
