//! What must always hold, by the ids that the simulator uses, and what must be reachable for that to mean anything.

use stateright::Property;

use crate::client::Answer;
use crate::protocol::Protocol;
use crate::scope::Scope;
use crate::state::State;
use crate::table::{CLIENTS, ClientId, Command, Entry};
use crate::time::{LATEST_END_TICKS, Rate};

/// Two clients never believe at once.
pub const I1: &str = "I1 exclusion";
/// Tokens of committed grants rise, across restores.
pub const I2: &str = "I2 token order";
/// A lease that a client was told of stands in the log, and ends only by what names it or when overdue.
pub const I3: &str = "I3 grants are durable";
/// Nobody is granted what another's committed renewal, counted from its sending on the slowest clock, still covers.
pub const I4: &str = "I4 renewals are honoured";
/// A session that has ended is not in the table again.
pub const I5: &str = "I5 no resurrection";
/// The receiver accepts no smaller token behind a greater one.
pub const I9: &str = "I9 fenced receiver";
/// Log time neither falls nor outruns the fastest clock.
pub const T1: &str = "T1 log time";
/// Nobody waits for a resource that is free.
pub const L2: &str = "L2 a free resource has no waiter";
/// A session that is not renewed ends in time: a tick late per change of leader, and never by a fresh ttl.
pub const P4: &str = "P4 lateness";

/// Every invariant, and what a scope is there to reach.
pub fn properties(scope: &Scope) -> Vec<Property<Protocol>> {
    let mut properties = vec![
        Property::always(I1, |_, state: &State| believers(state) <= 1),
        Property::always(I2, |_, state: &State| {
            state.ghost.grants.windows(2).all(|pair| pair[0].1 < pair[1].1)
        }),
        Property::always(I3, |_, state: &State| !state.ghost.ended_early && told_is_granted(state)),
        Property::always(I4, |_, state: &State| !state.ghost.granted_early),
        Property::always(I5, |_, state: &State| {
            state
                .table
                .sessions
                .iter()
                .zip(state.ghost.ended)
                .all(|(session, ended)| session.is_none() || !ended)
        }),
        Property::always(I9, |_, state: &State| !state.ghost.stale_write),
        Property::always(T1, |_, state: &State| log_time_is_honest(state)),
        Property::always(L2, |_, state: &State| {
            let table = &state.table;
            table.queue.is_empty() || table.holder.is_some() || table.closed_until.is_some()
        }),
    ];
    if scope.prompt {
        properties.push(Property::always(P4, |_, state: &State| ends_in_time(state)));
    } else {
        properties.push(Property::sometimes(
            "a second holder believes after the first",
            |_, state: &State| {
                let second = state.ghost.grants.get(1).map(|(_, token)| *token);
                second.is_some() && (0..CLIENTS).any(|client| state.belief(client) == second)
            },
        ));
    }
    properties.extend(reached(scope));
    properties
}

/// How many clients believe in a lease now.
pub fn believers(state: &State) -> usize {
    (0..CLIENTS).filter(|client| state.belief(*client).is_some()).count()
}

fn told_is_granted(state: &State) -> bool {
    state.clients.iter().zip([ClientId(0), ClientId(1)]).all(|(client, id)| {
        let session = client.session(id);
        client.held.is_none_or(|held| state.ghost.grants.contains(&(session, held.token)))
    })
}

fn log_time_is_honest(state: &State) -> bool {
    let sessions = state.table.sessions.iter().flatten();
    // Where a fast clock's count since the renewal is less than log time's, its holder loses time.
    let outrun = |log_units: u8, ticks: u8| log_units > Rate::Fast.units(ticks);
    let last_at = state.table.last_at.0;
    !state.ghost.time_fell
        && sessions
            .into_iter()
            .all(|session| !outrun(last_at - session.renewed.0, state.now.since(session.stamped)))
}

fn ends_in_time(state: &State) -> bool {
    state.table.sessions.iter().flatten().all(|session| {
        let excused = state.term - session.term;
        state.now.since(session.stamped) <= LATEST_END_TICKS + excused
    })
}

fn reached(scope: &Scope) -> Vec<Property<Protocol>> {
    let mut reached = Vec::new();
    if scope.renewals[0] > 0 && scope.ticks > 3 {
        reached.push(Property::sometimes(
            "an answer is under way to a session that has ended",
            |_, state: &State| {
                state.clients.iter().zip([ClientId(0), ClientId(1)]).any(|(client, id)| {
                    let renewed = client.inbox.iter().any(|answer| matches!(answer, Answer::Renewed(_)));
                    renewed && state.ghost.ended[client.session(id).index()]
                })
            },
        ));
    }
    if scope.changes > 0 {
        // Before any restore, because that ends every session.
        reached.push(Property::sometimes("a session expired", |_, state: &State| {
            state.epoch == 0 && state.ghost.ended.contains(&true)
        }));
    }
    if scope.changes > 1 {
        reached.push(Property::sometimes("two nodes believe to lead", |_, state: &State| {
            state.nodes.iter().all(|node| node.leads.is_some())
        }));
        reached.push(Property::sometimes("a tail that was cut is back", |_, state: &State| {
            let other = state.nodes[1 - state.newest].leads.map(|leads| leads.term);
            let revived = |term| other.is_some_and(|other| term < other && other < state.term);
            state.nodes[state.newest].tail.iter().any(|entry| revived(entry.term))
        }));
    }
    if scope.restores > 0 {
        reached.push(Property::sometimes("a grant after a restore", |_, state: &State| {
            state.ghost.grants.iter().any(|(_, token)| token.epoch > 0)
        }));
        reached.push(Property::sometimes(
            "a renewal from before a restore is taken in behind it",
            |_, state: &State| {
                let from_before = |entry: &Entry| {
                    matches!(entry.command, Command::Renew { session, .. }
                        if state.ghost.ended[session.index()])
                };
                state.epoch > 0 && state.nodes.iter().any(|node| node.tail.iter().any(from_before))
            },
        ));
    }
    if scope.writes {
        reached.push(Property::sometimes("a stale write is on its way", |_, state: &State| {
            state.writes.iter().any(|write| Some(write.token) < state.receiver.greatest)
        }));
    }
    reached
}
