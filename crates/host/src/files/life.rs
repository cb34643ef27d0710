//! Another life of a state: a greater epoch, a new incarnation, one member that was never seen before, and nobody who holds anything.

use std::path::{Path, PathBuf};

use leasehold_core::command::DecodeError;
use leasehold_core::limits::{LONGEST_MAX_TTL, MIN_TTL};
use leasehold_core::protocol::{Incarnation, Member, MemberId};
use leasehold_core::{Command, Config, Entry, Epoch, LeaseTable, Millis, Revision, System, Token};
use leasehold_node::members::CLUSTER_VERSION;
use leasehold_node::payload::{NodeSnapshot, Payload, PayloadError, Voters};
use leasehold_node::{Anchor, ChangeLog, FOUNDER, Roster, SavedSnapshot};
use leasehold_wal::{HardState, Identity, Index, Options, Record, Recovered, SnapshotKind, Term, Wal};

use super::FilesError;
use crate::disk::FileDisk;

/// What the operator knows and wants.
#[derive(Debug, Clone, Default)]
pub struct Choices {
    /// The greatest token that is known to have been granted.
    pub above: Option<Token>,
    /// Nobody else has begun another life of this state: no backup of it was restored and no node of it recovered since.
    pub is_only_one: bool,
    /// The longest ttl from now on, if it is to be another one.
    pub max_ttl: Option<Millis>,
    /// Nobody believes in a lease any more, so there is nothing to wait for.
    pub holders_are_stopped: bool,
    /// What people call the member.
    pub name: Option<String>,
    /// Where it is reached.
    pub address: Option<String>,
}

/// A life that can be served now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Begun {
    /// Its directory.
    pub directory: PathBuf,
    /// Its only member; none in a directory that processes of one machine share.
    pub member: Option<Member>,
    /// Its incarnation; unknown in a directory that processes of one machine share.
    pub incarnation: Incarnation,
    /// Its epoch: every token is greater than those of smaller ones.
    pub epoch: u16,
    /// Its first revision.
    pub index: u64,
    /// How long nothing is granted.
    pub wait: Millis,
    /// Where the log of before is kept.
    pub kept: Option<PathBuf>,
    /// The epoch of a life that had begun in this directory and has no entries behind its snapshot: it was hardly ever served.
    pub given_up: Option<u16>,
    /// The member's address was neither given nor kept: it is one that other machines do not reach.
    pub address_is_guessed: bool,
    /// A note that speaks against the word that nothing else went on from this state.
    pub contradiction: Option<Contradiction>,
}

/// A note of a life that began after the state was written down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contradiction {
    /// The note.
    pub note: PathBuf,
    /// The epoch that it names.
    pub epoch: u16,
}

/// What is brought into another life.
#[derive(Debug)]
pub(super) struct State {
    pub(super) table: LeaseTable,
    pub(super) roster: Roster,
    /// Members that the log has removed: this directory may be one of theirs.
    pub(super) gone: Vec<Member>,
    pub(super) index: u64,
    pub(super) term: u64,
}

/// Who goes on with it.
#[derive(Debug, Clone)]
pub(super) enum Heir {
    /// A service.
    Served(Member),
    /// Processes of one machine, by whose clocks time goes on.
    Embedded(Anchor),
}

/// Why bytes make no state.
#[derive(Debug)]
pub(super) enum Unusable {
    /// A later release wrote them.
    Newer { what: &'static str, found: u32, known: u32 },
    /// They are not what was written.
    Bad(String),
}

impl Unusable {
    /// The same, of this file or directory.
    pub(super) fn of(self, path: &Path) -> FilesError {
        let path = path.to_owned();
        match self {
            Self::Newer { what, found, known } => {
                FilesError::Newer { path, what: what.to_owned(), found, known }
            }
            Self::Bad(why) => FilesError::State { path, why },
        }
    }

    /// The same, of this entry.
    fn at(self, index: Index) -> Self {
        match self {
            Self::Bad(why) => Self::Bad(format!("entry {index}: {why}")),
            newer @ Self::Newer { .. } => newer,
        }
    }
}

impl From<String> for Unusable {
    fn from(why: String) -> Self {
        Self::Bad(why)
    }
}

impl From<PayloadError> for Unusable {
    fn from(error: PayloadError) -> Self {
        match error {
            PayloadError::NewerVersion { what, found, known }
            | PayloadError::Core(DecodeError::NewerVersion { what, found, known }) => {
                Self::Newer { what, found: found.into(), known: known.into() }
            }
            error => Self::Bad(error.to_string()),
        }
    }
}

/// What may stand in this log is known here.
fn check_version(found: u32) -> Result<(), Unusable> {
    if found <= CLUSTER_VERSION {
        return Ok(());
    }
    Err(Unusable::Newer { what: "what may stand in its log", found, known: CLUSTER_VERSION })
}

impl Choices {
    /// Whether the member gets an address that nobody has chosen.
    pub(super) fn guesses_address(&self, before: Option<&Member>) -> bool {
        self.address.is_none() && before.is_none()
    }

    /// How long nothing may be granted: until nobody can believe in a lease of before.
    pub(super) fn wait(&self, config: &Config) -> Result<Millis, FilesError> {
        let given = self.max_ttl.unwrap_or(config.max_ttl);
        if !(MIN_TTL..=LONGEST_MAX_TTL).contains(&given) {
            let (least, most) = (MIN_TTL.get(), LONGEST_MAX_TTL.get());
            return Err(FilesError::MaxTtl { given: given.get(), least, most });
        }
        if self.holders_are_stopped {
            return Ok(Millis::ZERO);
        }
        Ok(config.drift.stretch(given.max(config.max_ttl)))
    }
}

impl State {
    /// The state of a backup or snapshot.
    pub(super) fn of_snapshot(saved: &SavedSnapshot) -> Result<Self, Unusable> {
        let read = NodeSnapshot::decode(&saved.bytes)?;
        // Both say it: what is begun from this state goes on with the greater.
        check_version(read.roster.version.max(read.table.version()))?;
        read.table.check_invariants()?;
        let (index, term) = (saved.index, saved.term);
        Ok(Self { table: read.table, roster: read.roster, gone: Vec::new(), index, term })
    }

    /// The state of a log with all its entries, committed or not: everything ends anyway, and no token that may have been granted is
    /// forgotten.
    pub(super) fn of_log(log: &Recovered) -> Result<Self, Unusable> {
        let mut state = match &log.snapshot {
            Some((meta, bytes)) => {
                let (index, term) = (meta.index.0, meta.term.0);
                Self::of_snapshot(&SavedSnapshot { index, term, bytes: bytes.clone() })?
            }
            None if log.entries.first().is_some_and(|entry| entry.index.0 == 1) => Self {
                table: LeaseTable::new(Config::default()),
                roster: Roster::default(),
                gone: Vec::new(),
                index: 0,
                term: 0,
            },
            None => return Err("neither a snapshot nor the beginning of the log is left".to_owned().into()),
        };
        for entry in &log.entries {
            let place = |error: Unusable| error.at(entry.index);
            if entry.kind != 0 {
                let before = state.roster.members.clone();
                let changed = state.roster.apply_change(&entry.payload);
                changed.map_err(|error| place(error.to_string().into()))?;
                let is_left = |member: &Member| state.roster.members.iter().any(|left| left.id == member.id);
                state.gone.extend(before.into_iter().filter(|member| !is_left(member)));
            } else if !entry.payload.is_empty() {
                let payload = Payload::decode(&entry.payload).map_err(|error| place(error.into()))?;
                if payload.entry.at < state.table.last_at() {
                    return Err(place("log time falls".to_owned().into()));
                }
                state.table.apply(&payload.entry);
                // What follows may be of kinds that this release cannot read.
                check_version(state.table.version())?;
            }
            (state.index, state.term) = (entry.index.0, state.term.max(entry.term.0));
        }
        state.term = state.term.max(log.hard_state.term.0);
        state.roster.version = state.roster.version.max(state.table.version());
        state.table.check_invariants()?;
        Ok(state)
    }

    /// Begins another life: one entry that ends everything, and the snapshot behind it.
    pub(super) fn begin(
        mut self,
        heir: &Heir,
        epoch: Epoch,
        wait: Millis,
        max_ttl: Option<Millis>,
    ) -> Result<(SavedSnapshot, Incarnation), String> {
        let at = self.table.last_at();
        let restored = Command::System(System::Restored { epoch, wait });
        self.table.apply(&Entry { at, commands: vec![restored] });
        if let Some(max_ttl) = max_ttl {
            self.table.set_max_ttl(max_ttl);
        }
        self.table.check_invariants()?;
        let (Some(index), Some(term)) = (self.index.checked_add(1), self.term.checked_add(1)) else {
            return Err("its entry or its term is the last that can be".to_owned());
        };
        let (voter, roster, anchor) = match heir {
            Heir::Served(member) => (member.id, alone(member)?, None),
            Heir::Embedded(anchor) => (FOUNDER, Roster::default(), Some(anchor.clone())),
        };
        // What the table has come to, a release that does not know it cannot read.
        let roster = Roster { version: roster.version.max(self.table.version()), ..roster };
        let voters = Voters { voters: vec![voter.0], ..Voters::default() };
        // Whoever watched the life before must look anew: its revisions beyond this one are not those of the new life.
        let changes = ChangeLog::after(Revision::new(index));
        let stamped = Some((at, anchor));
        let bytes = NodeSnapshot::encode(voters, &roster, Some(0), stamped, &changes, &self.table);
        // Numbers at their ends may be good and not leave room for another life: that is to be known before anything is written.
        NodeSnapshot::decode(&bytes)
            .map_err(|error| format!("another life of it could not be read: {error}"))?;
        Ok((SavedSnapshot { index, term, bytes }, roster.incarnation))
    }
}

/// A roster of one, and an incarnation that no other life has.
fn alone(member: &Member) -> Result<Roster, String> {
    let mut random = [0; 16];
    getrandom::fill(&mut random).map_err(|error| format!("no incarnation can be drawn: {error}"))?;
    let mut roster = Roster::founding(vec![member.clone()]);
    // Zero means unknown.
    roster.incarnation = Incarnation((roster.incarnation.0 ^ u128::from_le_bytes(random)).max(1));
    Ok(roster)
}

/// Makes a new log that begins with a snapshot, durable in all its parts.
pub(super) fn write_log(
    log: &Path,
    of: &Path,
    lock_inode: u64,
    snapshot: &SavedSnapshot,
) -> Result<(), FilesError> {
    let disk = FileDisk::open(log).map_err(super::failed("open", log))?;
    let log_error = |source| FilesError::Log { path: of.to_owned(), source };
    let mut wal = Wal::create(disk, Identity { lock_inode }, Options::default()).map_err(log_error)?;
    let (index, term) = (Index(snapshot.index), Term(snapshot.term));
    let state = Record::HardState(HardState { term, vote: None, commit: index });
    wal.save_snapshot(SnapshotKind::Installed, index, term, &snapshot.bytes, &[state])
        .map_err(|source| FilesError::Write { path: of.to_owned(), source })?;
    Ok(())
}

/// The member that goes on, called as before unless told otherwise.
pub(super) fn heir(choices: &Choices, before: Option<&Member>, id: MemberId) -> Result<Member, FilesError> {
    const NAME: &str = "leasehold";
    const ADDRESS: &str = "127.0.0.1:7420";
    let name = choices.name.as_deref().or(before.map(|member| member.name.as_str())).unwrap_or(NAME);
    let address =
        choices.address.as_deref().or(before.map(|member| member.address.as_str())).unwrap_or(ADDRESS);
    Ok(Member::new(id, name, address)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::tests::{member, small_snapshot};

    #[test]
    fn another_life_is_above_the_one_before_and_has_one_member() {
        let state = State::of_snapshot(&small_snapshot()).unwrap();
        let before = state.roster.incarnation;
        let (index, term) = (state.index, state.term);
        let epoch = Epoch::new(3).unwrap();
        let max_ttl = Millis::new(700_000);
        let heir = Heir::Served(member(9));
        let (snapshot, incarnation) = state.begin(&heir, epoch, Millis::new(500), Some(max_ttl)).unwrap();
        assert_eq!((snapshot.index, snapshot.term), (index + 1, term + 1));
        assert_ne!(incarnation, before);
        let read = NodeSnapshot::decode(&snapshot.bytes).unwrap();
        assert_eq!((read.table.epoch(), read.table.config().max_ttl), (epoch, max_ttl));
        assert_eq!(read.voters.voters, [9]);
        assert_eq!(read.roster.members, [member(9)]);
    }

    #[test]
    fn the_wait_is_the_greater_ttl_with_its_drift_or_nothing() {
        let config = Config::default();
        let choices = |max_ttl: Option<u64>, holders_are_stopped| Choices {
            max_ttl: max_ttl.map(Millis::new),
            holders_are_stopped,
            ..Choices::default()
        };
        let whole = config.drift.stretch(config.max_ttl);
        assert!(whole > config.max_ttl);
        assert_eq!(choices(None, false).wait(&config).unwrap(), whole);
        assert_eq!(choices(Some(500), false).wait(&config).unwrap(), whole);
        assert!(choices(Some(499), false).wait(&config).is_err());
        let longer = choices(Some(3_600_000), false).wait(&config).unwrap();
        assert_eq!(longer, config.drift.stretch(Millis::new(3_600_000)));
        assert_eq!(choices(Some(3_600_000), true).wait(&config).unwrap(), Millis::ZERO);
        assert!(choices(Some(u64::MAX), true).wait(&config).is_err());
    }
}
