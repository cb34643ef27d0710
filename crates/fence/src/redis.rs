//! Redis and Valkey: the check, the raise and the commands are one script.
//!
//! ```no_run
//! # async fn example(guard: impl leasehold_fence::Authority) -> Result<(), Box<dyn std::error::Error>> {
//! use leasehold_fence::redis::Fence;
//!
//! let fence = Fence::open("redis://127.0.0.1/").await?;
//! let key = fence.key("reports/nightly", "last");
//! let replies = fence.write(&guard, redis::pipe().set(&key, "done").incr("{reports/nightly}:runs", 1)).await?;
//! # Ok(()) }
//! ```
//!
//! **The atomic step** is the script. It reads the highest token of the fence, refuses a smaller one, raises it, and runs the
//! commands; the server runs nothing else in between. A fence is one hash at `{NAME}:fence`, which never expires.
//!
//! **What it needs.** Redis 5 or later, or Valkey. In a cluster all keys of a write share the slot of the fence, which is that of
//! `{NAME}`: [`Fence::key`] makes such keys. `appendonly yes` with `appendfsync always`, or a server that is killed may forget the last
//! raise; without a log it forgets all of them. A `maxmemory-policy` that does not evict keys without expiry: `noeviction` or `volatile-...`.
//! [`Receiver::hazards`] says which of these are not so. A connection that never sends a command twice: that of [`Fence::open`] does not, one of a cluster does unless it was built with `retries(0)`.
//!
//! **What it does not cover.** *Failover*: replication is asynchronous, so a replica that takes over may not know the last raise, and takes a
//! stale write until somebody seals again. *Half a write*: Redis rolls nothing back. A command that fails
//! in the middle (a key of another type) leaves those before it written. That is [`Error::Unknown`] with [`Halfway`] as its source, which
//! says how many stand; when the first one fails it is [`Error::Failed`]. *Large numbers in replies*: an integer reply passes
//! through a double, and is rounded above 2^53; what is stored is exact. *Others*: whoever writes without this script is not fenced off.

mod commands;
mod settings;

use std::fmt;
use std::sync::LazyLock;
use std::time::Duration;

use redis::aio::{ConnectionLike, ConnectionManager, ConnectionManagerConfig};
use redis::{Cmd, ErrorKind, Pipeline, RedisError, Script, ServerErrorKind, Value};

use crate::counts::Counts;
use crate::error::{Error, Stale, Trouble};
use crate::moment;
use crate::receiver::{Answer, Hazard, Mark, Receiver, Refused, Seen};
use crate::stamp::{Authority, Stamp};

static ENTER: LazyLock<(String, Script)> = LazyLock::new(|| {
    // Comments are for readers of the source; the server would hash and parse them.
    let lines = include_str!("redis/enter.lua").lines().filter(|line| !line.trim_start().starts_with("--"));
    let code = lines.collect::<Vec<_>>().join("\n");
    let script = Script::new(&code);
    (code, script)
});

/// An answer is waited for this long by a fence that made its own connection: a disk that is busy takes most of a second, and what comes later is
/// unknown.
const PATIENCE: Duration = Duration::from_secs(2);
/// What the script says of a stale token, before the highest one.
const STALE: &str = "FENCED";
/// What the script says when a command behind the first one fails, before its number and the reason.
const HALFWAY: &str = "HALFWAY";

/// Redis or Valkey behind a fence.
#[derive(Clone)]
pub struct Fence<C = ConnectionManager> {
    connection: C,
    place: String,
    prefix: String,
    counts: Counts,
}

impl<C> fmt::Debug for Fence<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not the connection: it knows the password.
        f.debug_struct("Fence")
            .field("place", &self.place)
            .field("prefix", &self.prefix)
            .finish_non_exhaustive()
    }
}

impl Fence {
    /// Connects to a server, and again whenever the connection is lost. An answer is waited for two seconds.
    ///
    /// # Errors
    /// When the URL is none, or nobody answers there.
    pub async fn open(url: &str) -> Result<Self, RedisError> {
        let client = redis::Client::open(url)?;
        let info = client.get_connection_info();
        let place = format!("redis://{}/{}", info.addr(), info.redis_settings().db());
        // A server that is down is an answer for the caller, not a reason to wait: it may try again while its lease is held.
        let config = ConnectionManagerConfig::new().set_number_of_retries(1);
        let config = config.set_response_timeout(Some(PATIENCE));
        let connection = ConnectionManager::new_with_config(client, config).await?;
        Ok(Self::new(place, connection))
    }
}

impl<C: ConnectionLike + Clone + Send + Sync> Fence<C> {
    /// A fence over a connection that the program has. `place` is for people and metrics: no password. The connection must not
    /// send a command twice.
    pub fn new(place: impl Into<String>, connection: C) -> Self {
        Self { connection, place: place.into(), prefix: String::new(), counts: Counts::default() }
    }

    /// Keys of fences begin with this. One with a hash tag of its own, such as `{reports}:`, puts all fences into that slot.
    #[must_use]
    pub fn prefixed(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// Counts here.
    #[must_use]
    pub fn counted(mut self, counts: &Counts) -> Self {
        self.counts = counts.clone();
        self
    }

    /// A key in the same slot as the fence of this name: `{NAME}:rest`, behind the prefix.
    pub fn key(&self, name: &str, rest: &str) -> String {
        format!("{}{{{name}}}:{rest}", self.prefix)
    }

    /// Carries out commands, if the token is not stale: all in one step, in their order. Gives back a reply for each.
    ///
    /// # Errors
    /// [`Error::Failed`] when the first command fails, or when one is refused before anything is sent ([`Unfit`]).
    /// [`Error::Unknown`] when no answer came, or when a later command fails ([`Halfway`]).
    pub async fn write(&self, authority: impl Authority, commands: &Pipeline) -> Result<Vec<Value>, Error> {
        self.counts.writing(&self.place, self.try_write(authority, commands, None)).await
    }

    /// As [`Fence::write`], for commands whose keys are not known here: `keys` names all of them.
    ///
    /// # Errors
    /// As [`Fence::write`].
    pub async fn write_keys(
        &self,
        authority: impl Authority,
        commands: &Pipeline,
        keys: &[&str],
    ) -> Result<Vec<Value>, Error> {
        let keys = keys.iter().map(|key| key.as_bytes()).collect();
        self.counts.writing(&self.place, self.try_write(authority, commands, Some(keys))).await
    }

    async fn try_write(
        &self,
        authority: impl Authority,
        commands: &Pipeline,
        keys: Option<Vec<&[u8]>>,
    ) -> Result<Vec<Value>, Error> {
        let stamp = authority.stamp()?;
        let fence = self.key(stamp.name(), "fence");
        let enter = Enter::new(&fence, &stamp, commands, keys).map_err(|unfit| self.failed(unfit))?;
        if enter.commands.is_empty() {
            return Err(self.failed(Unfit::Nothing));
        }
        match self.enter(&enter).await? {
            Value::Array(replies) if enter.commands.len() > 1 => Ok(replies),
            reply => Ok(vec![reply]),
        }
    }

    async fn enter(&self, enter: &Enter<'_>) -> Result<Value, Error> {
        let (code, script) = &*ENTER;
        let mut connection = self.connection.clone();
        let by_hash = enter.packed("EVALSHA", script.get_hash());
        let mut reply = answer(connection.req_packed_command(&by_hash).await);
        // The server does not know the script: it ran nothing.
        if matches!(&reply, Err(error) if error.kind() == ErrorKind::Server(ServerErrorKind::NoScript)) {
            let by_text = enter.packed("EVAL", code);
            reply = answer(connection.req_packed_command(&by_text).await);
        }
        reply.map_err(|error| self.end(enter, error))
    }

    /// Which end an error is. Whatever is not certainly without effect is unknown.
    fn end(&self, enter: &Enter<'_>, error: RedisError) -> Error {
        match error.code() {
            Some(STALE) => {
                let highest = error.detail().and_then(|highest| highest.trim().parse().ok());
                return Stale::of(enter.stamp, highest).into();
            }
            Some(HALFWAY) => {
                let (nth, why) = error.detail().and_then(|said| said.split_once(' ')).unwrap_or(("0", ""));
                let failed = nth.parse().unwrap_or(0);
                let halfway = Halfway { failed, commands: enter.commands.len(), why: why.to_owned() };
                return Error::unknown(&self.place, halfway);
            }
            Some("CROSSSLOT") => {
                if let Some(unfit) = enter.key_elsewhere() {
                    return self.failed(unfit);
                }
            }
            _ => {}
        }
        let certainly_without_effect = match error.kind() {
            // It answered, and not with the reply to a command behind the first one.
            ErrorKind::Server(_) | ErrorKind::Extension => true,
            // Found before anything was sent.
            ErrorKind::Client | ErrorKind::InvalidClientConfig => true,
            _ => error.is_connection_refusal(),
        };
        match certainly_without_effect {
            true => self.answered(error),
            false if error.kind() == ErrorKind::Parse => Error::unknown(&self.place, self.no_redis()),
            false => Error::unknown(&self.place, error),
        }
    }

    /// What is said of an answer that nobody understands.
    fn no_redis(&self) -> String {
        let server = self.place.split_once("://").map_or(&*self.place, |(_, server)| server);
        let server = server.split('/').next().unwrap_or_default();
        format!("{server} does not speak Redis; check the address")
    }

    /// Nothing was written: whether the server is away, whether it is none, and whether trying again may help.
    fn answered(&self, error: RedisError) -> Error {
        if error.is_io_error() || error.is_timeout() || error.is_connection_dropped() {
            return Error::away(&self.place, error);
        }
        if error.kind() == ErrorKind::Parse {
            return Error::lasting(&self.place, self.no_redis());
        }
        let refused = ["NOAUTH", "WRONGPASS", "NOPERM"];
        let is_lasting = error.kind() == ErrorKind::AuthenticationFailed
            || error.code().is_some_and(|code| refused.contains(&code));
        if is_lasting { Error::lasting(&self.place, error) } else { self.failed(error) }
    }

    fn failed(&self, why: impl Into<Trouble>) -> Error {
        Error::failed(&self.place, why)
    }

    async fn try_seal(&self, stamp: &Stamp) -> Result<(), Error> {
        let fence = self.key(stamp.name(), "fence");
        let enter = Enter { fence: &fence, stamp, keys: Vec::new(), commands: Vec::new() };
        self.enter(&enter).await.map(drop)
    }

    async fn try_look(&self, name: &str) -> Result<Seen, RedisError> {
        let mut connection = self.connection.clone();
        let mut all = redis::cmd("HGETALL");
        let fields: Vec<(String, String)> =
            all.arg(self.key(name, "fence")).query_async(&mut connection).await?;
        let field = |name: &str| fields.iter().find(|(field, _)| field == name).map(|(_, value)| value);
        let highest = field("token").and_then(|token| token.parse().ok()).map(|token| Mark {
            token,
            holder: field("holder").filter(|holder| !holder.is_empty()).cloned(),
        });
        let lines = fields.iter().filter(|(field, _)| field.starts_with("refused:"));
        let mut refusals: Vec<(u64, Refused)> = lines.filter_map(|(_, line)| refusal(line)).collect();
        refusals.sort_by_key(|(nth, _)| std::cmp::Reverse(*nth));
        let refusals = refusals.into_iter().map(|(_, refused)| refused).collect();
        Ok(Seen { highest, refusals: Some(refusals) })
    }
}

impl<C: ConnectionLike + Clone + Send + Sync> Receiver for Fence<C> {
    fn place(&self) -> &str {
        &self.place
    }

    fn seal<'a>(&'a self, stamp: &'a Stamp) -> Answer<'a, ()> {
        Box::pin(self.counts.sealing(&self.place, self.try_seal(stamp)))
    }

    fn look<'a>(&'a self, name: &'a str) -> Answer<'a, Seen> {
        Box::pin(async move { self.try_look(name).await.map_err(|error| self.answered(error)) })
    }

    /// Asks for `appendonly`, `appendfsync`, `maxmemory-policy` and `maxmemory`; of a cluster, some node of it.
    fn hazards(&self) -> Answer<'_, Vec<Hazard>> {
        Box::pin(async move {
            let mut connection = self.connection.clone();
            settings::hazards(&mut connection).await.map_err(|error| self.answered(error))
        })
    }
}

/// One call of the script.
struct Enter<'a> {
    fence: &'a str,
    stamp: &'a Stamp,
    keys: Vec<&'a [u8]>,
    commands: Vec<Vec<&'a [u8]>>,
}

impl<'a> Enter<'a> {
    fn new(
        fence: &'a str,
        stamp: &'a Stamp,
        commands: &'a Pipeline,
        keys: Option<Vec<&'a [u8]>>,
    ) -> Result<Self, Unfit> {
        let commands = commands.cmd_iter().map(commands::words).collect::<Result<Vec<_>, _>>()?;
        let keys = match keys {
            Some(keys) => keys,
            None => {
                let keys =
                    commands.iter().map(|words| commands::keys(words)).collect::<Result<Vec<_>, _>>()?;
                keys.concat()
            }
        };
        // Nor that of another name: whoever removed it would let that one's stale writes in.
        let prefix = &fence[..fence.len() - stamp.name().len() - "{}:fence".len()];
        let of_a_fence = |key: &&&[u8]| {
            let rest = key.strip_prefix(prefix.as_bytes());
            rest.is_some_and(|rest| rest.starts_with(b"{") && rest.ends_with(b"}:fence"))
        };
        if let Some(key) = keys.iter().find(of_a_fence) {
            return Err(Unfit::IsTheFence { key: String::from_utf8_lossy(key).into_owned() });
        }
        Ok(Self { fence, stamp, keys, commands })
    }

    fn packed(&self, how: &str, script: &str) -> Cmd {
        let Self { fence, stamp, keys, commands } = self;
        let words = commands.iter().map(Vec::len).sum::<usize>();
        let bytes = commands.iter().flatten().chain(keys).map(|word| word.len()).sum::<usize>();
        let mut cmd = Cmd::with_capacity(
            words + commands.len() + keys.len() + 7,
            bytes + script.len() + fence.len() + 320,
        );
        cmd.arg(how).arg(script).arg(keys.len() + 1).arg(fence);
        for key in keys {
            cmd.arg(key);
        }
        cmd.arg(stamp.token()).arg(stamp.holder().unwrap_or_default()).arg(commands.len());
        for words in commands {
            cmd.arg(words.len());
        }
        for word in commands.iter().flatten() {
            cmd.arg(word);
        }
        cmd
    }

    /// The first key that a cluster keeps elsewhere than the fence.
    fn key_elsewhere(&self) -> Option<Unfit> {
        let slot = commands::slot(self.fence.as_bytes());
        let key = self.keys.iter().find(|key| commands::slot(key) != slot)?;
        let (key, slot_of_key) = (String::from_utf8_lossy(key).into_owned(), commands::slot(key));
        Some(Unfit::Elsewhere { key, slot_of_key, fence: self.fence.to_owned(), slot })
    }
}

/// A reply that is an error may come as a value.
fn answer(reply: Result<Value, RedisError>) -> Result<Value, RedisError> {
    match reply? {
        Value::ServerError(error) => Err(error.into()),
        value => Ok(value),
    }
}

/// A refusal as the script keeps it: number, token, highest token, time and holder.
fn refusal(line: &str) -> Option<(u64, Refused)> {
    let mut words = line.splitn(5, ' ');
    let nth = words.next()?.parse().ok()?;
    let (token, highest) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    let at = words.next().map(moment::shown);
    let holder = words.next().filter(|holder| !holder.is_empty()).map(ToOwned::to_owned);
    Some((nth, Refused { token, highest, holder, at }))
}

/// A command behind the first one failed. Those before it are written, those behind it were not run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "command {failed} of {commands} failed and the {} before it stand, for Redis rolls nothing back: {why}",
    .failed.saturating_sub(1)
)]
pub struct Halfway {
    /// Which one failed; the first one has number 1.
    pub failed: usize,
    /// How many there were.
    pub commands: usize,
    /// What the server said.
    pub why: String,
}

/// Commands that cannot be written behind a fence. Nothing was sent, or nothing of it was run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unfit {
    /// There is nothing to write.
    #[error("there is no command; to raise the fence alone, seal it")]
    Nothing,
    /// A command without a name.
    #[error("a command has no words")]
    Empty,
    /// A command that is asked again and again.
    #[error("a command with a cursor cannot be in a script; scan outside of the write")]
    Cursor,
    /// The server would refuse it, after it has carried out those before.
    #[error(
        "{command} has {words} words and needs at least {least}, and a value for every key that takes one"
    )]
    TooShort {
        /// Which command.
        command: String,
        /// How many it has, with its name.
        words: usize,
        /// How many it needs.
        least: usize,
    },
    /// A script cannot pass so many words.
    #[error(
        "{command} has {words} words, above the limit of {} for a script; make it several commands",
        commands::MAX_WORDS
    )]
    TooLong {
        /// Which command.
        command: String,
        /// How many it has, with its name.
        words: usize,
    },
    /// A script has to name its keys, and those of this command are not known.
    #[error("the keys of {command} are not known here; name them with write_keys, if scripts may run it")]
    KeysNotKnown {
        /// Which command.
        command: String,
    },
    /// A command on the key of a fence, this one or another.
    #[error("{key} is the key of a fence; nothing but the fence may write it")]
    IsTheFence {
        /// Its key.
        key: String,
    },
    /// In this cluster the key is not where the fence is.
    #[error(
        "{key} is in slot {slot_of_key} and the fence {fence} in slot {slot}; a script writes in one slot: give the key the hash tag of the fence"
    )]
    Elsewhere {
        /// The key.
        key: String,
        /// Its slot.
        slot_of_key: u16,
        /// The key of the fence.
        fence: String,
        /// Its slot.
        slot: u16,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kept_refusal_is_read_back_with_a_holder_that_has_spaces() {
        let (nth, refused) = refusal("17 33 34 1700000000.000123 worker 3, left").unwrap();
        assert_eq!((nth, refused.token, refused.highest), (17, 33, 34));
        assert_eq!(refused.at.as_deref(), Some("2023-11-14T22:13:20.000Z"));
        assert_eq!(refused.holder.as_deref(), Some("worker 3, left"));
        assert_eq!(refusal("17 33 34 1700000000.000123 ").unwrap().1.holder, None);
        assert_eq!(refusal("what"), None);
    }
}
