//! A state of the whole: what everybody knows, what is under way, and what only the invariants look at.

use crate::client::{Answer, Client};
use crate::rules::{Rules, WrongRule};
use crate::scope::{NODES, Rates, Scope};
use crate::table::{CLIENTS, ClientId, Command, Entry, Holder, LIVES, Outcome, SessionId, Table, Token};
use crate::time::{HONOURED_TICKS, LogTime, Tick};

/// A leadership that its node believes in. It may be over without the node's knowing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Leadership {
    /// Its term.
    pub term: u8,
    /// Where log time stood in its log.
    pub base: LogTime,
    /// When elapsed time began to count.
    pub since: Tick,
}

/// A node that may lead.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Node {
    /// What it believes to lead.
    pub leads: Option<Leadership>,
    /// Entries of its log behind the committed ones.
    pub tail: Vec<Entry>,
    /// The clock of an earlier leadership, where a rule is broken that discards it.
    pub old_clock: Option<(LogTime, Tick)>,
}

/// The protected thing.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Receiver {
    /// The greatest token that it has accepted.
    pub greatest: Option<Token>,
}

/// A write under way: of a holder that believed when it sent it, however long ago.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Write {
    /// Whose.
    pub client: ClientId,
    /// With which token.
    pub token: Token,
}

/// What only the invariants look at.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Ghost {
    /// Every committed grant, in order, restores or not.
    pub grants: Vec<(SessionId, Token)>,
    /// Sessions that have ended, by index.
    pub ended: [bool; CLIENTS * LIVES],
    /// The last lease that its holder did not give back, and up to when it had to be honoured.
    pub honoured: Option<(SessionId, Tick)>,
    /// A lease ended by what does not name it, or before it was overdue.
    pub ended_early: bool,
    /// Somebody was granted what had to be honoured for another.
    pub granted_early: bool,
    /// The receiver accepted a smaller token behind a greater one.
    pub stale_write: bool,
    /// Log time went backwards.
    pub time_fell: bool,
}

/// The whole.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct State {
    /// True time.
    pub now: Tick,
    /// The clocks.
    pub rates: Rates,
    /// What follows from the committed log.
    pub table: Table,
    /// The highest epoch ever used, as noted beside the backup.
    pub epoch: u8,
    /// A copy taken earlier.
    pub backup: Option<Table>,
    /// Those that may lead.
    pub nodes: [Node; NODES],
    /// The node of the newest term, the only one that can commit.
    pub newest: usize,
    /// The newest term.
    pub term: u8,
    /// Requests on their way to whoever leads, sorted.
    pub requests: Vec<Command>,
    /// The clients.
    pub clients: [Client; CLIENTS],
    /// Writes on their way to the receiver, sorted.
    pub writes: Vec<Write>,
    /// The receiver.
    pub receiver: Receiver,
    /// Changes of leader left.
    pub changes: u8,
    /// Repetitions of a release left.
    pub repeated: u8,
    /// Bare time entries left.
    pub times: u8,
    /// Restores left.
    pub restores: u8,
    /// For the invariants.
    pub ghost: Ghost,
}

impl State {
    /// Both clients have opened a session at time zero, and node 0 leads.
    pub fn new(scope: &Scope, rates: Rates) -> State {
        let client = |index: usize| Client {
            life: 0,
            opening: None,
            confirmed: Some(Tick::default()),
            number: 0,
            renewals: Vec::new(),
            asking: false,
            held: None,
            inbox: Vec::new(),
            acquires: scope.acquires[index],
            renewals_left: scope.renewals[index],
            restarts: scope.restarts[index],
            writes: scope.writes,
            written: None,
        };
        let mut nodes = [Node::default(), Node::default()];
        nodes[0].leads = Some(Leadership { term: 0, base: LogTime::default(), since: Tick::default() });
        let mut state = State {
            now: Tick::default(),
            rates,
            table: Table::new(),
            epoch: 0,
            backup: None,
            nodes,
            newest: 0,
            term: 0,
            requests: Vec::new(),
            clients: [client(0), client(1)],
            writes: Vec::new(),
            receiver: Receiver::default(),
            changes: scope.changes,
            repeated: scope.repeated,
            times: scope.times,
            restores: scope.restores,
            ghost: Ghost::default(),
        };
        for id in [ClientId(0), ClientId(1)] {
            state.ask_and_write(id);
        }
        state
    }

    /// A client that may ask for the resource does so at once, and one that believes sends its write at once: either may be under
    /// way for as long as it likes, so that to send it later would add nothing.
    pub fn ask_and_write(&mut self, id: ClientId) {
        let index = usize::from(id.0);
        let belief = self.belief(index);
        let client = &mut self.clients[index];
        let session = client.session(id);
        if client.confirmed.is_some() && client.acquires > 0 && !client.asking && client.held.is_none() {
            client.acquires -= 1;
            client.asking = true;
            insert_sorted(&mut self.requests, Command::Acquire { session });
        }
        if let Some(token) = belief.filter(|token| client.writes && client.written != Some(*token)) {
            client.written = Some(token);
            insert_sorted(&mut self.writes, Write { client: id, token });
        }
    }

    /// What a node would stamp now, if it believes to lead.
    pub fn stamp(&self, node: usize) -> Option<LogTime> {
        let leads = self.nodes[node].leads?;
        Some(leads.base.plus(self.rates.nodes[node].units(self.now.since(leads.since))))
    }

    /// The token that a client believes in now.
    pub fn belief(&self, client: usize) -> Option<Token> {
        self.clients[client].believes(self.rates.clients[client], self.now)
    }

    /// Sends a request to whoever leads.
    pub fn send(&mut self, request: Command) {
        insert_sorted(&mut self.requests, request);
    }

    /// A node that believes to lead stamps and appends.
    pub fn append(&mut self, rules: Rules, node: usize, command: Command) {
        let Some((leads, at)) = self.nodes[node].leads.zip(self.stamp(node)) else { return };
        let entry = Entry { term: leads.term, at, stamped: self.now, command };
        if rules.has(WrongRule::AckedBeforeCommit) {
            let mut table = self.table.clone();
            for earlier in &self.nodes[node].tail {
                table.apply(rules, earlier);
            }
            for outcome in table.apply(rules, &entry) {
                self.tell(rules, outcome);
            }
        }
        self.nodes[node].tail.push(entry);
    }

    /// The first entry of the newest leader's tail is on a quorum's disks: it is applied and answered.
    pub fn commit(&mut self, rules: Rules) {
        let newest = self.newest;
        let entry = self.nodes[newest].tail.remove(0);
        for (_, node) in self.nodes.iter_mut().enumerate().filter(|(index, _)| *index != newest) {
            if node.tail.first() == Some(&entry) {
                node.tail.remove(0);
            } else {
                // Its log lacks what is committed: it cannot win with it any more, and hears of the newer term.
                node.tail.clear();
                node.leads = None;
            }
        }
        for outcome in self.table.apply(rules, &entry) {
            self.note(outcome);
            if !rules.has(WrongRule::AckedBeforeCommit) {
                self.tell(rules, outcome);
            }
        }
    }

    /// Puts the table of the backup in the place of everything.
    pub fn restore(&mut self, rules: Rules, backup: &Table) {
        for (index, session) in self.table.sessions.iter().enumerate() {
            self.ghost.ended[index] |= session.is_some();
        }
        if let Some(holder) = self.table.holder
            && let Some(session) = self.table.session(holder.session)
        {
            self.ghost.honoured = Some((holder.session, session.sent.plus(HONOURED_TICKS)));
        }
        self.table = backup.restored(rules, self.epoch);
        self.epoch = self.epoch.max(self.table.epoch);
        self.term += 1;
        self.newest = 0;
        self.nodes = [Node::default(), Node::default()];
        self.nodes[0].leads = Some(Leadership { term: self.term, base: self.table.last_at, since: self.now });
    }

    fn tell(&mut self, rules: Rules, outcome: Outcome) {
        let (session, answer) = match outcome {
            Outcome::Opened(session) => (session, Answer::Opened),
            Outcome::Renewed(session, number) => (session, Answer::Renewed(number)),
            Outcome::Granted(Holder { session, token }) => (session, Answer::Granted(token)),
            Outcome::Released(Holder { session, token })
                if rules.has(WrongRule::BeliefUntilReleaseAnswered) =>
            {
                (session, Answer::Released(token))
            }
            _ => return,
        };
        let client = &mut self.clients[usize::from(session.client.0)];
        // What is meant for an earlier life finds nobody.
        if client.life == session.life {
            insert_sorted(&mut client.inbox, answer);
        }
    }

    fn note(&mut self, outcome: Outcome) {
        match outcome {
            Outcome::Granted(Holder { session, token }) => {
                let early =
                    self.ghost.honoured.is_some_and(|(other, until)| other != session && self.now <= until);
                self.ghost.granted_early |= early;
                self.ghost.honoured = None;
                self.ghost.grants.push((session, token));
            }
            Outcome::Lost(holder, session) => {
                self.ghost.honoured = Some((holder.session, session.sent.plus(HONOURED_TICKS)));
            }
            Outcome::LostEarly(holder, session) => {
                self.ghost.honoured = Some((holder.session, session.sent.plus(HONOURED_TICKS)));
                self.ghost.ended_early = true;
            }
            Outcome::SessionEnded(session) => self.ghost.ended[session.index()] = true,
            Outcome::TimeFell => self.ghost.time_fell = true,
            Outcome::Opened(_) | Outcome::Renewed(..) | Outcome::Released(_) => {}
        }
    }
}

/// Order under way means nothing: two states that differ only in it are one.
pub fn insert_sorted<T: Ord>(items: &mut Vec<T>, item: T) {
    let place = items.partition_point(|other| *other <= item);
    items.insert(place, item);
}
