//! When entries come: at the points where something changes, right before and right after them, with those who live renewing in
//! time on the way.

use leasehold_core::{Command, Entry, ItemNumber, LogTime, RenewalNumber, SessionId};

use super::steps::{EntryStep, TimePick};
use leasehold_oracle::{Naive, Session};

/// When an entry comes, and whose renewals are left out on the way to it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment {
    pub(crate) at: u64,
    decaying: Option<SessionId>,
    renewing: u8,
}

impl Moment {
    pub(crate) fn of(naive: &Naive, step: &EntryStep) -> Self {
        let nowhere = Self { at: naive.now, decaying: None, renewing: step.renewing };
        let moved = |point: u64, offset: i8| point.saturating_add_signed(i64::from(offset)).max(naive.now);
        match step.time {
            TimePick::Forward(millis) => Self { at: naive.now + u64::from(millis), ..nowhere },
            TimePick::Point { nth, offset } => {
                let ahead: Vec<u64> = points(naive).into_iter().filter(|point| *point >= naive.now).collect();
                let point = pick(&ahead, nth).copied().unwrap_or(naive.now);
                Self { at: moved(point, offset), ..nowhere }
            }
            TimePick::Decay { nth, stage, offset } => {
                let holders: Vec<SessionId> = naive.leases.iter().map(|lease| lease.session).collect();
                let Some(session) = pick(&holders, nth).and_then(|id| naive.session(*id)) else {
                    return nowhere;
                };
                let overdue = naive.overdue_after(session);
                let (grace, taken) = (overdue + session.policies.grace.get(), naive.takeable_after(session));
                let stages = [overdue, grace, taken, naive.ended_after(session)];
                let point = stages[usize::from(stage) % stages.len()];
                Self { at: moved(point, offset), decaying: Some(session.id), ..nowhere }
            }
        }
    }

    pub(crate) fn renews(&self, session: &Session) -> bool {
        self.decaying != Some(session.id) && self.renewing >> session.nonce.0[0] & 1 == 1
    }
}

fn pick<T>(things: &[T], nth: u8) -> Option<&T> {
    things.get(usize::from(nth).checked_rem(things.len())?)
}

pub(crate) fn renewal(session: &Session) -> Command {
    let (number, seen) = (RenewalNumber::new(session.renewal + 1), ItemNumber::new(session.last_item));
    Command::Renew { session: session.id, number, seen }
}

/// An entry that comes before the moment, in which those who renew do so when they still can for the last time.
pub(crate) fn kept_alive(naive: &Naive, moment: &Moment) -> Option<Entry> {
    let renewing =
        || naive.sessions.iter().filter(|session| moment.renews(session) && naive.is_live(session.id));
    let first =
        renewing().map(|session| naive.overdue_after(session)).min().filter(|point| *point < moment.at)?;
    Some(Entry { at: LogTime::new(first), commands: renewing().map(renewal).collect() })
}

/// Every point past which something changes.
fn points(naive: &Naive) -> Vec<u64> {
    let mut points = Vec::new();
    for session in &naive.sessions {
        let overdue = naive.overdue_after(session);
        points.push(overdue);
        points.push(overdue + session.policies.grace.get());
        points.push(naive.takeable_after(session));
        points.push(naive.ended_after(session));
    }
    points.extend(naive.cooling.iter().map(|cooling| cooling.until));
    points.extend(naive.waits.iter().map(|wait| wait.until));
    for lease in &naive.leases {
        points.extend(lease.revoked.as_ref().map(|revoked| revoked.until));
        points.extend(lease.offer.as_ref().map(|offer| offer.until));
    }
    points.extend(naive.nothing_granted_until);
    points.sort_unstable();
    points.dedup();
    points
}
