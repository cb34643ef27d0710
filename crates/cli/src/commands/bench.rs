//! `bench`: puts load on a store and says how fast it answers.
//!
//! Every client has a session of its own and names that nobody else uses; all sessions are gone at the end, also after a signal, and the names are
//! free. A store in which others hold leases is left alone unless that is asked for by name: load slows them down. Figures are those of answers;
//! what was measured until the store went away is shown, and the rest is not made up.

mod load;
mod opening;
mod progress;
mod report;
mod used;

use std::time::Duration;

use tokio::time::timeout;

use crate::args::BenchArgs;
use crate::console::Console;
use crate::exit::Exit;
use crate::holding::FAREWELL;
use crate::place::Place;
use crate::signals::Signals;
use crate::trouble::Trouble;
use crate::words;

use load::{End, Taken};
use opening::Opened;

/// Thousands of sessions are closed within this by a store that answers; what is left then ends with its ttl.
const CLOSING: Duration = Duration::from_secs(10);

pub(super) async fn run(console: &Console, place: &Place, args: &BenchArgs) -> Result<Exit, Trouble> {
    check_connections(args)?;
    let mut signals = Signals::listen()?;
    let mut opened = Opened::default();
    let begun = tokio::select! {
        begun = opening::open(console, place, args, &mut opened) => begun.map(|()| None),
        signal = signals.next() => Ok(Some(signal.as_raw())),
    };
    console.clear_progress();
    if let Some(ended) = begun.transpose() {
        let when = opened.words(args.clients);
        close(opened, FAREWELL, &mut signals).await;
        return ended.map(|signal| nothing_measured(console, signal, &when));
    }
    let taken = load::put(console, &opened.sessions, args, &mut signals).await;
    let within = if matches!(taken.end, End::Complete) { CLOSING } else { FAREWELL };
    close(opened, within, &mut signals).await;
    told(console, place, args, taken)
}

/// Shows what was measured, and says why it ended if it was too early.
fn told(console: &Console, place: &Place, args: &BenchArgs, taken: Taken) -> Result<Exit, Trouble> {
    if let (End::Signal(signal), 0) = (&taken.end, taken.count()) {
        return Ok(nothing_measured(console, *signal, "before the first cycle was done"));
    }
    report::say(console, place.url(), args, &taken)?;
    let (url, after, during) = (place.url(), words::length(taken.took()), taken.last_phase());
    match taken.end {
        End::Complete | End::Signal(_) => Ok(Exit::OK),
        End::StoreGone(why) => {
            let why = why.map_or_else(String::new, |why| format!(" ({why})"));
            Err(Trouble::Service(format!(
                "{url} went away after {after} of load, during {during}{why}; the figures are those until then: \
                 see whether it runs, and measure again"
            )))
        }
        // A store that loses leases under load has failed, whatever is at fault.
        End::LeaseLost(why) => Err(Trouble::Service(format!(
            "{why}, after {after} of load, during {during}; the figures are those until then"
        ))),
        End::Failed(trouble) => Err(trouble),
    }
}

/// More connections than clients would be figures of something else than was asked for.
fn check_connections(args: &BenchArgs) -> Result<(), Trouble> {
    let (clients, connections) = (args.clients, args.connections);
    if connections <= clients {
        return Ok(());
    }
    let (many, few) = (words::count(connections, "connection"), words::count(clients, "client"));
    Err(Trouble::Misuse(format!(
        "{many} are more than {few}, and a connection without a client measures nothing; \
         give --connections {clients} or --clients {connections}"
    )))
}

/// A signal came before there was a figure: said like any other trouble, because no result follows.
fn nothing_measured(console: &Console, signal: i32, when: &str) -> Exit {
    let exit = Exit::of_signal(signal);
    let message = format!("ended by signal {signal} {when}: nothing was measured");
    let error = object! { code: "signal", exit_code: exit.get(), kind: "failed", message: &message };
    console.note(&message, &object! { error });
    exit
}

/// Closes all at once. Whoever sends another signal does not want to wait; what cannot be told to the store ends with the ttl.
async fn close(opened: Opened, within: Duration, signals: &mut Signals) {
    tokio::select! {
        _ = timeout(within, opened.close()) => {}
        _ = signals.next() => {}
    }
}
