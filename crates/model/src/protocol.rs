//! The protocol as a model for the checker: what may happen in a state, and what comes of it.

use stateright::{Model, Property};

use crate::client::{Answer, Client, Held};
use crate::invariants;
use crate::rules::{Rules, WrongRule};
use crate::scope::{NODES, Scope};
use crate::state::{Leadership, State, Write};
use crate::table::{CLIENTS, ClientId, Command, Entry};
use crate::time::Tick;

/// What a change of leader does to the entries that were not committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Tail {
    /// The new leader has the first so many of the newest leader's: all are kept, some, or none.
    First(usize),
    /// The new leader has its own, from an earlier term: what was cut comes back.
    Revived,
}

/// One thing that happens.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Action {
    /// True time passes.
    Tick,
    /// A client sends a renewal.
    Renew(ClientId),
    /// A client gives its lease back.
    Release(ClientId),
    /// A client dies, comes back without a memory and opens a new session.
    Restart(ClientId),
    /// A client hears what was on its way to it.
    Hear(ClientId, Answer),
    /// A write reaches the receiver.
    Arrive(Write),
    /// A node that believes to lead stamps and appends a request.
    TakeIn {
        /// Which node.
        node: usize,
        /// The request.
        request: Command,
        /// Whether it will arrive once more.
        again: bool,
    },
    /// A node that believes to lead finds something overdue.
    Expire(usize),
    /// A node that believes to lead appends a bare time entry.
    Time(usize),
    /// The first entry of the newest leader's tail is on a quorum's disks.
    Commit,
    /// A node becomes leader of a new term; the present one again, if it restarts.
    Lead {
        /// Which node.
        node: usize,
        /// With which tail.
        tail: Tail,
    },
    /// A backup is taken.
    Backup,
    /// The backup takes the place of everything.
    Restore,
}

/// The protocol, with its bounds and without at most one of its rules.
#[derive(Debug, Clone)]
pub struct Protocol {
    /// The bounds.
    pub scope: Scope,
    /// The rules.
    pub rules: Rules,
}

impl Model for Protocol {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        self.scope.rates.iter().map(|rates| State::new(&self.scope, *rates)).collect()
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        for index in 0..CLIENTS {
            self.client_actions(state, index, actions);
        }
        actions.extend(state.writes.iter().copied().map(Action::Arrive));
        for node in 0..NODES {
            self.leader_actions(state, node, actions);
        }
        if state.nodes[state.newest].leads.is_some() && !state.nodes[state.newest].tail.is_empty() {
            actions.push(Action::Commit);
        }
        if state.changes > 0 {
            changes(state, actions);
        }
        if state.restores > 0 {
            actions.push(if state.backup.is_none() { Action::Backup } else { Action::Restore });
        }
        if state.now.0 < self.scope.ticks && (!self.scope.prompt || self.is_done_with_this_tick(state)) {
            actions.push(Action::Tick);
        }
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        match action {
            Action::Tick => {
                state.now = state.now.plus(1);
                let now = state.now;
                // What is over is forgotten, so that states that differ only in it are one.
                state.ghost.honoured.take_if(|(_, until)| *until < now);
            }
            Action::Arrive(write) => arrive(&mut state, self.rules, write),
            Action::TakeIn { node, request, again } => {
                if again {
                    state.repeated -= 1;
                } else {
                    state.requests.retain(|other| *other != request);
                }
                self.append(&mut state, node, request);
            }
            Action::Expire(node) => {
                let token = state.table.holder?.token;
                self.append(&mut state, node, Command::Expire { token });
            }
            Action::Time(node) => {
                if state.times != u8::MAX {
                    state.times = state.times.saturating_sub(1);
                }
                self.append(&mut state, node, Command::Time);
            }
            Action::Commit => state.commit(self.rules),
            Action::Lead { node, tail } => lead(&mut state, self.rules, node, tail),
            Action::Backup => state.backup = Some(state.table.clone()),
            Action::Restore => {
                let backup = state.backup.clone()?;
                state.restores -= 1;
                state.restore(self.rules, &backup);
                if state.restores == 0 {
                    state.backup = None;
                }
            }
            Action::Renew(id) | Action::Release(id) | Action::Restart(id) | Action::Hear(id, _) => {
                client_step(&mut state, self.rules, id, &action);
            }
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        invariants::properties(&self.scope)
    }
}

impl Protocol {
    fn client_actions(&self, state: &State, index: usize, actions: &mut Vec<Action>) {
        let client = &state.clients[index];
        let id = client_id(index);
        actions.extend(client.inbox.iter().map(|answer| Action::Hear(id, *answer)));
        if client.restarts > 0 {
            actions.push(Action::Restart(id));
        }
        let is_open = client.confirmed.is_some();
        // A second renewal in the same tick would say the same.
        let sent_now = client.renewals.iter().any(|(_, sent)| *sent == state.now);
        let confirmed_now = client.confirmed == Some(state.now);
        if is_open && client.renewals_left > 0 && !sent_now && !confirmed_now {
            actions.push(Action::Renew(id));
        }
        if self.scope.releases && client.held.is_some_and(|held| !held.let_go) {
            actions.push(Action::Release(id));
        }
    }

    fn leader_actions(&self, state: &State, node: usize, actions: &mut Vec<Action>) {
        let Some(at) = state.stamp(node) else { return };
        let tail = &state.nodes[node].tail;
        if tail.len() >= self.scope.tail {
            return;
        }
        for (place, request) in state.requests.iter().enumerate() {
            if place > 0 && state.requests[place - 1] == *request {
                continue;
            }
            actions.push(Action::TakeIn { node, request: *request, again: false });
            if state.repeated > 0 && matches!(request, Command::Release { .. }) {
                actions.push(Action::TakeIn { node, request: *request, again: true });
            }
        }
        if state.table.is_holder_overdue(self.rules, at) {
            actions.push(Action::Expire(node));
        } else if state.table.is_due(self.rules, at) || (state.times > 0 && at > last_at(state, tail)) {
            actions.push(Action::Time(node));
        }
    }

    fn append(&self, state: &mut State, node: usize, command: Command) {
        state.append(self.rules, node, command);
        if self.scope.commits_at_once() {
            state.commit(self.rules);
        }
    }

    /// Whether the service has done all that is due in this tick, for scopes in which it is prompt.
    fn is_done_with_this_tick(&self, state: &State) -> bool {
        let newest = state.newest;
        state.nodes[newest].tail.is_empty() && state.stamp(newest) == Some(state.table.last_at)
    }
}

fn client_id(index: usize) -> ClientId {
    ClientId(u8::try_from(index).expect("there are two clients"))
}

fn last_at(state: &State, tail: &[Entry]) -> crate::time::LogTime {
    tail.last().map_or(state.table.last_at, |entry| entry.at)
}

fn changes(state: &State, actions: &mut Vec<Action>) {
    let newest = &state.nodes[state.newest].tail;
    for (index, node) in state.nodes.iter().enumerate() {
        actions.extend((0..=newest.len()).map(|kept| Action::Lead { node: index, tail: Tail::First(kept) }));
        if !newest.starts_with(&node.tail) {
            actions.push(Action::Lead { node: index, tail: Tail::Revived });
        }
    }
}

fn lead(state: &mut State, rules: Rules, node: usize, tail: Tail) {
    state.changes -= 1;
    state.term += 1;
    if let Tail::First(kept) = tail {
        state.nodes[node].tail = state.nodes[state.newest].tail[..kept].to_vec();
    }
    let base = last_at(state, &state.nodes[node].tail);
    let mut leads = Leadership { term: state.term, base, since: state.now };
    let leader = &mut state.nodes[node];
    if rules.has(WrongRule::OldClockKept) {
        let earlier = leader.leads.map(|leads| (leads.base, leads.since)).or(leader.old_clock);
        if let Some((base, since)) = earlier {
            (leads.base, leads.since) = (base, since);
        }
        leader.old_clock = Some((leads.base, leads.since));
    }
    leader.leads = Some(leads);
    state.newest = node;
}

fn arrive(state: &mut State, rules: Rules, write: Write) {
    if let Some(place) = state.writes.iter().position(|other| *other == write) {
        state.writes.remove(place);
    }
    let is_stale = state.receiver.greatest.is_some_and(|greatest| write.token < greatest);
    if is_stale && !rules.has(WrongRule::FenceUnchecked) {
        return;
    }
    state.ghost.stale_write |= is_stale;
    state.receiver.greatest = state.receiver.greatest.max(Some(write.token));
}

fn client_step(state: &mut State, rules: Rules, id: ClientId, action: &Action) {
    let now = state.now;
    let client = &mut state.clients[usize::from(id.0)];
    let session = client.session(id);
    match action {
        Action::Renew(_) => {
            client.renewals_left -= 1;
            client.number += 1;
            let number = client.number;
            client.renewals.push((number, now));
            state.send(Command::Renew { session, number, sent: now });
        }
        Action::Release(_) => {
            let Some(Held { token, .. }) = client.held else { return };
            let waits = rules.has(WrongRule::BeliefUntilReleaseAnswered);
            client.held = waits.then_some(Held { token, let_go: false });
            state.send(Command::Release { session, token });
        }
        Action::Restart(_) => {
            restart(client, now);
            let session = client.session(id);
            state.send(Command::Open { session, sent: now });
        }
        Action::Hear(_, answer) => {
            client.inbox.retain(|other| other != answer);
            client.hear(rules, *answer, now);
        }
        _ => {}
    }
    state.ask_and_write(id);
}

fn restart(client: &mut Client, now: Tick) {
    client.restarts -= 1;
    client.life += 1;
    client.opening = Some(now);
    client.confirmed = None;
    client.number = 0;
    client.renewals.clear();
    client.asking = false;
    client.held = None;
    client.inbox.clear();
}
