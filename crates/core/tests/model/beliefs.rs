//! What holders can believe, and whether a grant contradicts it. Knows nothing of queues, policies or the naive table: it reads
//! commands, replies and events like somebody at the other end of the wire.
//!
//! A holder with the slowest allowed clock believes in a lease until its session's last confirmed renewal is a stretched ttl
//! ago. Renewals stop counting for a lease whose ending was published before them. Belief ends when a release or close is sent.
//! A revoke `--now`, and a restore, give up this protection on purpose; what they end is believed in no longer here.

use std::collections::{BTreeMap, BTreeSet};

use leasehold_core::{
    Applied, Command, CommandNumber, Drift, Ending, Entry, Event, Grant, Mode, Op, Operator, Reply,
    ResourceName, SessionId, System, Token,
};
use proptest::prelude::*;

#[derive(Debug, Default)]
pub(crate) struct Beliefs {
    drift: Drift,
    newest: u64,
    /// By session: ttl and the last confirmed renewal.
    sessions: BTreeMap<SessionId, (u64, u64)>,
    /// What each admitted acquire asked for, and where each accept stands.
    wanted: BTreeMap<(SessionId, CommandNumber), Wanted>,
    modes: BTreeMap<Token, Mode>,
    believed: Vec<Belief>,
    /// Resources whose alarm no operator has answered.
    alarmed: BTreeSet<ResourceName>,
}

#[derive(Debug, Clone)]
enum Wanted {
    Modes(Vec<(ResourceName, Mode)>),
    PlaceOf(Token),
}

#[derive(Debug, Clone)]
struct Belief {
    resource: ResourceName,
    token: Token,
    session: SessionId,
    mode: Mode,
    slot: Option<u32>,
    /// The last renewal that counts, once the lease is over for the table.
    frozen: Option<u64>,
    /// Held for the table, or believed in only.
    held: bool,
}

impl Beliefs {
    pub(crate) fn new(drift: Drift) -> Self {
        Self { drift, ..Self::default() }
    }

    /// Takes in one entry and checks every grant in it.
    pub(crate) fn check(&mut self, entry: &Entry, applied: &Applied) -> Result<(), TestCaseError> {
        let at = entry.at.get();
        for (command, reply) in entry.commands.iter().zip(&applied.replies) {
            self.renewed(command, reply, at);
        }
        self.note_wanted(entry, applied);
        let restored = |command: &Command| matches!(command, Command::System(System::Restored { .. }));
        let restored = entry.commands.iter().any(restored);
        if restored {
            // Its epoch may have answered any of them, at any place of the entry.
            self.alarmed.clear();
        }
        self.believed.retain(|belief| !given_up(entry, belief));
        for event in &applied.events {
            match event {
                Event::SessionOpened { session, .. } => {
                    prop_assert!(session.get() > self.newest, "session id {} is not new", session);
                    self.newest = session.get();
                }
                Event::AlarmRaised { resource, .. } => {
                    if !restored {
                        self.alarmed.insert(resource.clone());
                    }
                }
                Event::AlarmCleared { resource, .. } => {
                    self.alarmed.remove(resource);
                }
                Event::Granted { grant, session, command, .. } => {
                    let stopped = self.alarmed.contains(&grant.resource);
                    prop_assert!(!stopped, "{} was granted in spite of its alarm", grant.resource);
                    self.granted(entry, grant, *session, *command)?;
                }
                Event::Ended { resource, token, session, how, .. } => {
                    ended_by_its_own_command(entry, resource, *token, *session, how)?;
                    self.ended(*token, *session, how);
                }
                Event::ValueSet { .. }
                | Event::DrainingShown { .. }
                | Event::ReadySet { .. }
                | Event::RegisterWritten { .. }
                | Event::SessionEnded { .. }
                | Event::WaitGranted { .. }
                | Event::WaitEnded { .. } => {}
            }
        }
        // What was granted and given up in one and the same entry.
        self.believed.retain(|belief| belief.held || !given_up(entry, belief));
        Ok(())
    }

    fn renewed(&mut self, command: &Command, reply: &Reply, at: u64) {
        match (command, reply) {
            (Command::Open(_), Reply::Opened(opened)) if !opened.repeated => {
                self.sessions.insert(opened.session, (opened.ttl.get(), at));
            }
            (Command::Renew { session, .. } | Command::RenewPlain { session }, Reply::Renewed(_)) => {
                if let Some((_, last)) = self.sessions.get_mut(session) {
                    *last = at;
                }
            }
            _ => {}
        }
    }

    fn note_wanted(&mut self, entry: &Entry, applied: &Applied) {
        for (command, reply) in entry.commands.iter().zip(&applied.replies) {
            let (Command::Session(command), Reply::Applied { number } | Reply::Plain { number, .. }) =
                (command, reply)
            else {
                continue;
            };
            let wanted = match &command.op {
                Op::Acquire(acquire) => {
                    Wanted::Modes(acquire.requests.iter().map(|r| (r.resource.clone(), r.mode)).collect())
                }
                Op::Accept { token, .. } => Wanted::PlaceOf(*token),
                _ => continue,
            };
            self.wanted.insert((command.session, *number), wanted);
        }
    }

    fn ended(&mut self, token: Token, session: SessionId, how: &Ending) {
        if how.is_voluntary() {
            self.believed.retain(|belief| belief.token != token);
        }
        let last = self.sessions.get(&session).map(|(_, last)| *last);
        for belief in self.believed.iter_mut().filter(|belief| belief.token == token) {
            belief.frozen = last;
            belief.held = false;
        }
    }

    fn believed_until(&self, belief: &Belief) -> u64 {
        let (ttl, last) = self.sessions.get(&belief.session).copied().unwrap_or_default();
        belief.frozen.unwrap_or(last) + self.drift.stretch(leasehold_core::Millis::new(ttl)).get()
    }

    fn granted(
        &mut self,
        entry: &Entry,
        grant: &Grant,
        session: SessionId,
        command: CommandNumber,
    ) -> Result<(), TestCaseError> {
        let at = entry.at.get();
        prop_assert!(grant.token.get() > self.newest, "token {} after {}", grant.token, self.newest);
        self.newest = grant.token.get();
        let (ttl, last) = self.sessions.get(&session).copied().unwrap_or_default();
        let live_until = last + self.drift.stretch(leasehold_core::Millis::new(ttl)).get();
        prop_assert!(
            at <= live_until,
            "{} granted at {} to a session overdue since {}",
            grant.token,
            at,
            live_until
        );
        let mode = self.mode_of(grant, session, command);
        self.modes.insert(grant.token, mode);
        for belief in self.believed.iter().filter(|belief| belief.resource == grant.resource) {
            if given_up(entry, belief) {
                continue;
            }
            let compatible = match (mode, belief.mode) {
                (Mode::Shared, Mode::Shared) => true,
                (Mode::Slot { of }, Mode::Slot { of: other }) if of == other => grant.slot != belief.slot,
                _ => false,
            };
            let until = self.believed_until(belief);
            prop_assert!(
                compatible || (at > until && !belief.held),
                "{:?} granted as {:?} at {} while {:?} is believed in until {}",
                grant,
                mode,
                at,
                belief,
                until
            );
        }
        let (resource, token, slot) = (grant.resource.clone(), grant.token, grant.slot);
        self.believed.push(Belief { resource, token, session, mode, slot, frozen: None, held: true });
        Ok(())
    }

    fn mode_of(&self, grant: &Grant, session: SessionId, command: CommandNumber) -> Mode {
        let known = match self.wanted.get(&(session, command)) {
            Some(Wanted::Modes(modes)) => {
                modes.iter().find(|(name, _)| *name == grant.resource).map(|(_, mode)| *mode)
            }
            Some(Wanted::PlaceOf(predecessor)) => self.modes.get(predecessor).copied(),
            None => None,
        };
        known.unwrap_or(Mode::Exclusive)
    }
}

/// Whether a command of this entry says that its holder, or whoever answers for the risk, has given the lease up. All commands
/// of an entry were sent before it was stamped, so their order within it does not matter.
fn given_up(entry: &Entry, belief: &Belief) -> bool {
    entry.commands.iter().any(|command| match command {
        Command::Session(command) if command.session == belief.session => match &command.op {
            Op::Release { resource, token, .. } => (resource, *token) == (&belief.resource, belief.token),
            Op::Close => true,
            _ => false,
        },
        Command::Operator(Operator::Revoke { token, now: true, .. }) => *token == belief.token,
        Command::System(System::Rebooted | System::Restored { .. }) => true,
        _ => false,
    })
}

/// A release ends the very lease that it names, a revoke the one that it names, and nothing else ends in these ways.
fn ended_by_its_own_command(
    entry: &Entry,
    ended: &ResourceName,
    lease: Token,
    holder: SessionId,
    how: &Ending,
) -> Result<(), TestCaseError> {
    let names_it = |command: &Command| match (how, command) {
        (Ending::Released | Ending::Drained | Ending::HandedOver { .. }, Command::Session(command)) => {
            let Op::Release { resource, token, .. } = &command.op else { return false };
            (command.session, resource, *token) == (holder, ended, lease)
        }
        (Ending::SessionClosed, Command::Session(command)) => {
            command.session == holder && matches!(command.op, Op::Close)
        }
        (Ending::Revoked { .. }, Command::Operator(Operator::Revoke { resource, token, .. })) => {
            (resource, *token) == (ended, lease)
        }
        (Ending::Revoked { .. }, Command::Operator(Operator::ChangeKind { resource, .. })) => {
            resource == ended
        }
        (Ending::Rebooted, Command::System(system)) => matches!(system, System::Rebooted),
        (Ending::Restored, Command::System(system)) => matches!(system, System::Restored { .. }),
        (Ending::Expired | Ending::Taken { .. }, _) => true,
        _ => false,
    };
    prop_assert!(
        entry.commands.iter().any(names_it),
        "{} {} ended as {:?} by nobody's command",
        ended,
        lease,
        how
    );
    Ok(())
}
