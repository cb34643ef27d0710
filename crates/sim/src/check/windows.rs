//! The times in which holders believed in their leases.

use std::collections::BTreeMap;

use leasehold_core::{SessionId, Token};

use super::excuse::Span;
use crate::record::{ClientId, Event, Place, Record, TrueTime};

/// One stretch of belief in one lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// Whose.
    pub session: SessionId,
    /// The process.
    pub client: Option<ClientId>,
    /// In what.
    pub place: Place,
    /// In which lease.
    pub token: Token,
    /// From when to when.
    pub span: Span,
    /// Whether time alone ended it.
    pub ran_out: bool,
}

/// All windows of a run. A client that died believes nothing from then on.
pub fn windows(record: &Record) -> Vec<Window> {
    let mut clients: BTreeMap<SessionId, ClientId> = BTreeMap::new();
    let mut open: BTreeMap<(SessionId, Token), Window> = BTreeMap::new();
    let mut windows = Vec::new();
    for (now, event) in &record.events {
        match *event {
            Event::SessionOpened { client, session, .. } => {
                clients.insert(session, client);
            }
            Event::Died { client } => {
                let dead: Vec<_> = open.iter().filter(|(_, window)| window.client == Some(client)).collect();
                let keys: Vec<_> = dead.into_iter().map(|(key, _)| *key).collect();
                windows.extend(keys.into_iter().filter_map(|key| closed(open.remove(&key)?, *now)));
            }
            Event::Belief { session, place, token, until } => {
                let key = (session, token);
                let before = open.remove(&key);
                let from = match before {
                    Some(window) if until.is_some() && window.span.to >= *now => window.span.from,
                    Some(window) => {
                        windows.extend(closed(window, *now));
                        *now
                    }
                    None => *now,
                };
                if let Some(to) = until {
                    let (client, span) = (clients.get(&session).copied(), Span { from, to });
                    open.insert(key, Window { session, client, place, token, span, ran_out: false });
                }
            }
            _ => {}
        }
    }
    let end = record.end();
    windows.extend(open.into_values().filter_map(|window| closed(window, end)));
    windows
}

fn closed(mut window: Window, now: TrueTime) -> Option<Window> {
    window.ran_out = window.span.to < now;
    window.span.to = window.span.to.min(now);
    (window.span.from < window.span.to).then_some(window)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::stage::{MILLI, Stage, USABLE};

    fn spans(stage: &Stage) -> Vec<(u64, u64, bool)> {
        let all = windows(&stage.record);
        all.iter().map(|w| (w.span.from.0 / MILLI, w.span.to.0 / MILLI, w.ran_out)).collect()
    }

    #[test]
    fn renewals_in_time_make_one_window_and_a_late_one_begins_another() {
        let mut stage = Stage::new();
        let session = stage.open(1);
        let token = stage.acquire(session).unwrap();
        stage.at(500).renew(session, &[token]);
        stage.at(1_450).renew(session, &[token]);
        stage.at(1_500).release(session, token);
        assert_eq!(spans(&stage), [(0, 500 + USABLE, true), (1_450, 1_500, false)]);
    }

    #[test]
    fn the_dead_believe_nothing() {
        let mut stage = Stage::new();
        let session = stage.open(1);
        stage.acquire(session).unwrap();
        stage.at(300).push(Event::Died { client: ClientId(1) });
        stage.at(5_000).push(Event::Ended);
        assert_eq!(spans(&stage), [(0, 300, false)]);
    }
}
