//! What a holder saw, written down as it happens: a file for `leasehold check-history`.
//!
//! Written *before* something is asked or given back and *after* something was told, so that a line never makes belief longer than it
//! was. Every line is one write at the end of the file, and several programs may share one. A file that cannot be written is no reason
//! to end a command that runs: it is said at the end.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use leasehold::core::Answer;
use leasehold::core::client::Outcome;
use leasehold::core::holder::{Reading, Standing};
use leasehold::{EndedWhy, Ending, Events, Lease, ResourceName, SessionEvent, SessionOptions, Store, Token};
use leasehold_api::code::Kind;
use leasehold_history::{At, Event, Line};

use crate::args::AcquireArgs;
use crate::holding::Holding;
use crate::trouble::Trouble;
use crate::words;

/// A history under way, if one is wanted.
#[derive(Debug)]
pub(crate) struct Record {
    open: Option<Open>,
}

#[derive(Debug)]
struct Open {
    path: PathBuf,
    file: File,
    /// The first thing that went wrong.
    trouble: Option<io::Error>,
    clock: String,
    process: String,
    client: String,
    ttl: Duration,
    margin: Duration,
    /// Until when the session was promised, as far as is known without a lease.
    promised: Option<At>,
    /// Where the lease comes from, and how often that was restored when it was granted.
    from: Option<(Store, Option<u32>)>,
    /// What its acquires are called: nothing if there is one, else each as the name it asks for.
    calls: Vec<String>,
    /// The deadlines that were written down last.
    written: BTreeMap<Token, Reading>,
    /// The leases of which it was written down that they are over.
    ended: BTreeSet<Token>,
}

impl Record {
    /// Goes on at the end of a file, or of none.
    pub(crate) fn open(path: Option<&Path>, client: &str, args: &AcquireArgs) -> Result<Self, Trouble> {
        let Some(path) = path else { return Ok(Self { open: None }) };
        let file = append(path)
            .map_err(|error| format!("{} cannot be written: {error}; nothing was run", path.display()))
            .map_err(Trouble::History)?;
        let margin = SessionOptions::new().ttl(args.ttl).numbers()?.margin().duration();
        let now = leasehold_clock::read().boot;
        let open = Open {
            path: path.to_owned(),
            file,
            trouble: None,
            clock: clock(),
            // A pid comes back; together with when it began it does not.
            process: format!("{}.{}", std::process::id(), now / 1_000_000),
            client: client.to_owned(),
            ttl: args.ttl,
            margin,
            promised: None,
            from: None,
            calls: Vec::new(),
            written: BTreeMap::new(),
            ended: BTreeSet::new(),
        };
        Ok(Self { open: Some(open) })
    }

    /// Nothing is wanted.
    pub(crate) const fn none() -> Self {
        Self { open: None }
    }

    /// It is about to ask for all of these at once.
    pub(crate) fn asked(&mut self, names: &[ResourceName], args: &AcquireArgs) {
        let ttl_ms = u32::try_from(args.ttl.as_millis()).ok();
        let calls: Vec<String> = match names {
            [_] => vec![String::new()],
            several => several.iter().map(ToString::to_string).collect(),
        };
        for (name, call) in names.iter().zip(&calls) {
            let resource = name.as_str().into();
            self.write(|client| Event::Asked { client, call: call.into(), resource, ttl_ms });
        }
        if let Some(open) = &mut self.open {
            open.calls = calls;
        }
    }

    /// It is about to open a session, which is its first renewal.
    pub(crate) fn opening(&mut self) {
        if let Some(open) = &mut self.open {
            open.promised = Some(At(leasehold_clock::read().boot).plus(open.ttl));
        }
    }

    /// Writes down that it stands in the queue, as soon as the store says so, and again with every renewal that is confirmed while it
    /// does: to wait renews nothing.
    pub(crate) async fn waits(&mut self, mut events: Events) -> Infallible {
        let mut queued = false;
        while let Some(event) = events.next().await {
            let Some(open) = &mut self.open else { break };
            match event {
                SessionEvent::Resolved { outcome: Outcome::Answered(Answer::Queued { .. }), .. } => {
                    queued = true;
                }
                SessionEvent::Standing(Standing::Held { until }) => {
                    open.promised = Some(Open::reached(until).plus(open.margin));
                }
                _ => continue,
            }
            if queued {
                let promised = open.promised;
                for call in self.calls() {
                    self.write(|client| Event::Queued { client, call: call.into(), promised });
                }
            }
        }
        std::future::pending().await
    }

    /// Nothing came of it.
    pub(crate) fn not_granted(&mut self, trouble: &Trouble) {
        let (code, kind) = trouble.code();
        for call in self.calls() {
            self.write(|client| {
                let (call, why) = (call.into(), code.into());
                match kind {
                    // Of a session that ended it is not known whether it was granted something first.
                    Kind::Refused if code != "session-ended" => Event::Refused { client, call, why },
                    _ => Event::Unknown { client, call, why },
                }
            });
        }
    }

    /// It was told that it holds the leases.
    pub(crate) fn granted(&mut self, holding: &Holding, shared: bool) {
        let store = &holding.keeper.store;
        if let Some(open) = &mut self.open {
            open.from = Some((store.clone(), store.epoch()));
        }
        for (lease, call) in holding.leases.iter().zip(self.calls()) {
            let Some(open) = &mut self.open else { return };
            if let Some(deadline) = lease.deadline() {
                open.written.insert(lease.granted().token, deadline);
            }
            let (until, promised) = open.belief(lease);
            self.write(|client| Event::Granted {
                client,
                call: call.into(),
                resource: lease.fence_name().into(),
                token: lease.granted().token,
                fence: Some(lease.granted().fence).filter(|fence| *fence != lease.granted().token),
                shared,
                handed_over: lease.was_handed_over(),
                until,
                promised: Some(promised),
            });
        }
    }

    /// Its deadline may have moved.
    pub(crate) fn looked_at(&mut self, lease: &Lease) {
        let Some(open) = &mut self.open else { return };
        let token = lease.granted().token;
        let Some(deadline) = lease.deadline() else { return };
        if open.written.insert(token, deadline) == Some(deadline) {
            return;
        }
        let (until, promised) = open.belief(lease);
        self.write(|client| Event::Confirmed { client, token, until, promised: Some(promised) });
    }

    /// The lease has ended, and not by its holder's will. Once is enough.
    pub(crate) fn lost(&mut self, lease: &Lease, why: &EndedWhy) {
        if self.open.as_ref().is_none_or(|open| open.ended.contains(&lease.granted().token)) {
            return;
        }
        let revoked = matches!(why, EndedWhy::ByService(Ending::Revoked { .. }));
        let restored = match why {
            EndedWhy::ByService(how) => matches!(how, Ending::Restored),
            EndedWhy::SessionEnded => self.open.as_ref().is_some_and(Open::is_restored),
            _ => false,
        };
        self.write(|client| Event::Lost {
            client,
            token: lease.granted().token,
            why: words::ended_code(why).into(),
            revoked,
            restored,
        });
        self.end(lease);
    }

    /// It is about to give the lease back, unless it was lost. Says whether it is.
    pub(crate) fn giving_back(&mut self, lease: &Lease) -> bool {
        let gives = self.open.as_ref().is_some_and(|open| !open.ended.contains(&lease.granted().token));
        if gives {
            self.write(|client| Event::GivingBack { client, token: lease.granted().token });
            self.end(lease);
        }
        gives
    }

    /// It has tried to give it back.
    pub(crate) fn gave_back(&mut self, token: Token, trouble: Option<String>) {
        self.write(|client| Event::GaveBack { client, token, trouble: trouble.map(Into::into) });
    }

    /// What is to be said at the end: a history that is not whole must not look like one.
    pub(crate) fn trouble(&self) -> Option<String> {
        let open = self.open.as_ref()?;
        let trouble = open.trouble.as_ref()?;
        Some(format!("the history in {} is not whole: {trouble}", open.path.display()))
    }

    fn end(&mut self, lease: &Lease) {
        if let Some(open) = &mut self.open {
            open.ended.insert(lease.granted().token);
        }
    }

    fn calls(&self) -> Vec<String> {
        self.open.as_ref().map(|open| open.calls.clone()).unwrap_or_default()
    }

    fn write<'a>(&mut self, event: impl FnOnce(Cow<'a, str>) -> Event<'a>) {
        let Some(open) = &mut self.open else { return };
        let line = Line {
            at: At(leasehold_clock::read().boot),
            clock: Some(open.clock.as_str().into()),
            process: Some(open.process.as_str().into()),
            event: event(Cow::Owned(open.client.clone())),
        };
        let text = format!("{}\n", line.to_json());
        if let Err(error) = open.file.write_all(text.as_bytes()) {
            open.trouble.get_or_insert(error);
        }
    }
}

impl Open {
    /// Until when the holder believes, and until when the store must honour it, on the boot clock.
    fn belief(&self, lease: &Lease) -> (At, At) {
        let Some(deadline) = lease.deadline() else {
            let now = At(leasehold_clock::read().boot);
            return (now, now);
        };
        let until = Self::reached(deadline);
        (until, until.plus(self.margin))
    }

    /// When a deadline is reached, on the boot clock.
    fn reached(deadline: Reading) -> At {
        let now = leasehold_clock::read();
        // The clock that has moved further decides: what is left is the smaller of the two.
        let left = |now: u64, deadline: u64| i128::from(deadline) - i128::from(now);
        let left = left(now.boot, deadline.boot).min(left(now.raw, deadline.raw));
        At(u64::try_from(i128::from(now.boot) + left).unwrap_or(0))
    }

    /// Whether the state that the lease stood in was replaced by a backup. A session ends by that without a word of why; that the
    /// epoch has risen is known before, from the hello of whoever says that it has ended.
    fn is_restored(&self) -> bool {
        let Some((store, Some(granted))) = &self.from else { return false };
        store.epoch().is_some_and(|now| now > *granted)
    }
}

/// Opens a file to write at its end, on a line of its own.
fn append(path: &Path) -> io::Result<File> {
    let mut file = File::options().read(true).append(true).create(true).open(path)?;
    if file.metadata()?.is_file() && file.seek(SeekFrom::End(0))? > 0 {
        let mut last = [0];
        file.seek(SeekFrom::End(-1))?;
        file.read_exact(&mut last)?;
        if last != *b"\n" {
            file.write_all(b"\n")?;
        }
    }
    Ok(file)
}

/// What others must share to compare their times with ours: one boot of one machine, and one time namespace.
fn clock() -> String {
    let boot_id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let namespace = std::fs::metadata("/proc/self/ns/time").map(|metadata| metadata.ino()).unwrap_or(0);
    format!("boottime/{}/{namespace}", boot_id.trim())
}
