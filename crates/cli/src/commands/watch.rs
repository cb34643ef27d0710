//! `watch`: what happens to leases, as it happens.

use std::convert::Infallible;
use std::time::Duration;

use leasehold::core::Value;
use leasehold::{Change, Changes, Error, Store};
use leasehold_api::view;
use tokio::time::{sleep, timeout};

use crate::args::WatchArgs;
use crate::console::Console;
use crate::exit::Exit;
use crate::place::Place;
use crate::signals::Signals;
use crate::trouble::Trouble;
use crate::words;

/// More of a value is not shown in a line.
const LONGEST_VALUE: usize = 80;

/// How often it is asked whether a leader answers.
const ASK_EVERY: Duration = Duration::from_secs(1);
/// An answer that takes longer is worth a word. An election takes less.
const SILENT_AFTER: Duration = Duration::from_secs(2);

pub(super) async fn run(console: &Console, place: &Place, args: &WatchArgs) -> Result<Exit, Trouble> {
    let mut signals = Signals::listen()?;
    let store = tokio::select! {
        store = place.look() => store?,
        _ = signals.next() => return Ok(Exit::OK),
    };
    let watched = tokio::select! {
        watched = watch(console, &store, args) => watched,
        never = ask_for_leader(console, &store), if place.directory().is_none() => match never {},
        _ = signals.next() => Ok(()),
    };
    store.close().await;
    watched.map(|()| Exit::OK)
}

/// Says so while no leader answers: a node that has lost the others tells no changes, and a silent watch looks as if there were none. Before the
/// first answer the library reports it.
async fn ask_for_leader(console: &Console, store: &Store) -> Infallible {
    let mut answered = false;
    loop {
        let asked = async {
            while store.revision().await.is_err() {
                sleep(ASK_EVERY).await;
            }
        };
        tokio::pin!(asked);
        if timeout(SILENT_AFTER, &mut asked).await.is_err() {
            if answered {
                let text =
                    "no leader answers: changes are shown when one does; see `leasehold cluster status`";
                console.note(text, &object! { event: "no-leader" });
            }
            asked.await;
            console.note("a leader answers", &object! { event: "leader-answers" });
        }
        answered = true;
        sleep(ASK_EVERY).await;
    }
}

/// Ends with an error alone.
async fn watch(console: &Console, store: &Store, args: &WatchArgs) -> Result<(), Trouble> {
    let watch = store.watch(&args.prefix);
    let mut watch = match args.after {
        Some(after) => watch.after(after).await?,
        None => watch.await?,
    };
    // From here on nothing is missed.
    let revision = watch.revision().to_string();
    console.note(format!("watching after revision {revision}"), &object! { event: "started", revision });
    loop {
        let changes = match watch.next().await {
            Ok(changes) => changes,
            // What came before is told, so that whoever begins there again misses nothing.
            Err(error @ (Error::Unreachable(_) | Error::Unavailable(_))) => {
                return Err(Trouble::WatchEnded { error, after: watch.revision() });
            }
            Err(error) => return Err(error.into()),
        };
        console.result(lines(&changes), &view::Changes::new(&changes))?;
    }
}

fn lines(changes: &Changes) -> String {
    let line = |change: &Change| format!("{} {}\n", changes.revision, words_of(change));
    changes.changes.iter().map(line).collect()
}

fn words_of(change: &Change) -> String {
    match change {
        Change::Granted { grant, shared, label, value, .. } => {
            // Not name#slot: the end of a lease does not say its slot, and both lines are to be found by the same words.
            let how = match (grant.slot, shared) {
                (Some(slot), _) => format!(" slot {slot}"),
                (None, true) => " shared".to_owned(),
                (None, false) => String::new(),
            };
            let shown = match value {
                Some(value) if value.is_empty() => String::new(),
                value => format!(" with value {}", shown(value.as_ref())),
            };
            let who = words::somebody(label);
            format!("{} token {} granted{how} to {who}{shown}", grant.resource, grant.token)
        }
        Change::ValueSet { resource, token, value, .. } => {
            format!("{resource} token {token} shows {}", shown(value.as_ref()))
        }
        Change::RegisterWritten { resource, key, token, removed } => {
            let done = if *removed { "removed" } else { "written" };
            format!("{resource} token {token} register {key} {done}")
        }
        Change::Ended { resource, token, label, how, .. } => {
            format!("{resource} token {token} of {} ended: {}", words::somebody(label), words::ending(how))
        }
        Change::AlarmRaised { resource, token, by } => {
            let who = words::somebody(by);
            format!("{resource} token {token} alarm: shown by {who}, and never granted here")
        }
        Change::AlarmCleared { resource, token, by, reason } => {
            format!("{resource} token {token} alarm cleared by {}: {reason}", words::somebody(by))
        }
        Change::ReadySet { resource, token, ready, .. } => {
            let word = if *ready { "ready" } else { "warming up" };
            format!("{resource} token {token} {word}")
        }
        Change::DrainingShown { resource, token, in_flight, within, .. } => {
            let within = words::millis(*within);
            format!("{resource} token {token} draining: {in_flight} in flight, within {within}")
        }
    }
}

/// A value as part of a line, without anything that a terminal would act upon.
fn shown(value: Option<&Value>) -> String {
    let Some(value) = value else { return "too long for a watch; see leasehold get".to_owned() };
    let length = value.as_bytes().len();
    match std::str::from_utf8(value.as_bytes()) {
        Ok(text) if text.chars().count() <= LONGEST_VALUE => format!("{text:?}"),
        _ => format!("of {length} bytes; see --json"),
    }
}

#[cfg(test)]
mod tests {
    use leasehold::core::Grant;
    use leasehold::{Ending, Label, Reason, ResourceName, Revision, SessionId, Token};

    use super::*;

    #[test]
    fn every_change_is_a_line_that_begins_with_its_revision() {
        let resource = || ResourceName::new("job").unwrap();
        let (token, session) = (Token::from_u64(4), SessionId::from_u64(3));
        let value = |bytes: &[u8]| Some(Value::new(bytes.to_vec()).unwrap());
        let changes = Changes {
            revision: Revision::new(9),
            changes: vec![
                Change::Granted {
                    grant: Grant { resource: resource(), token, fence: Token::from_u64(1), slot: Some(2) },
                    shared: false,
                    session,
                    label: Label::new("w").unwrap(),
                    value: value(b""),
                },
                Change::ValueSet { resource: resource(), token, session, value: value(b"\x1b[31m") },
                Change::ValueSet { resource: resource(), token, session, value: value(&[b'a'; 100]) },
                Change::ValueSet { resource: resource(), token, session, value: None },
                Change::Ended {
                    resource: resource(),
                    token,
                    session,
                    label: Label::new("").unwrap(),
                    how: Ending::Expired,
                },
                Change::AlarmRaised { resource: resource(), token, by: Label::new("").unwrap() },
                Change::AlarmCleared {
                    resource: resource(),
                    token,
                    by: Label::new("ops").unwrap(),
                    reason: Reason::new("a slip").unwrap(),
                },
                Change::DrainingShown {
                    resource: resource(),
                    token,
                    session,
                    in_flight: 3,
                    within: leasehold::core::Millis::new(20_000),
                },
            ],
        };
        assert_eq!(
            lines(&changes),
            "9 job token 4 granted slot 2 to w\n\
             9 job token 4 shows \"\\u{1b}[31m\"\n\
             9 job token 4 shows of 100 bytes; see --json\n\
             9 job token 4 shows too long for a watch; see leasehold get\n\
             9 job token 4 of somebody ended: expired\n\
             9 job token 4 alarm: shown by somebody, and never granted here\n\
             9 job token 4 alarm cleared by ops: a slip\n\
             9 job token 4 draining: 3 in flight, within 20s\n"
        );
    }
}
