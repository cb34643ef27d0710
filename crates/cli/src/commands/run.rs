//! `run`: a command under a lease, or under several.
//!
//! The guardian is told every deadline as soon as a renewal is confirmed, and ends the command before the last one it was told.
//! The leases are given back only when the command and everything it started are gone.

mod farewell;
mod readiness;
mod watched;

use std::ffi::OsString;
use std::time::Duration;

use leasehold::{Lease, LeaseState, Token};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::timeout;

use crate::acquire::{self, Wanted};
use crate::args::{ReadyWord, RunArgs};
use crate::console::Console;
use crate::exit::Exit;
use crate::guardian::clock::Point;
use crate::holding::Holding;
use crate::loss::{lost, not_released};
use crate::place::Place;
use crate::record::Record;
use crate::signals::{CANNOT_LISTEN, Signals};
use crate::supervise::{Launch, Leads, Rules, Supervised};
use crate::trouble::Trouble;
use crate::words;

use farewell::Drained;
use readiness::Readiness;
use watched::{End, LOOK_EVERY, Started};

pub(super) async fn run(console: &Console, place: &Place, args: &RunArgs) -> Result<Exit, Trouble> {
    let mut signals = Signals::listen()?;
    let label = words::own_label(args.command.first().map(OsString::as_os_str));
    let client = args.acquire.label.as_ref().unwrap_or(&label).to_string();
    let readiness = match args.ready {
        ReadyWord::Granted => None,
        ReadyWord::Notify => {
            let what = "cannot make a socket for the command to say that it is ready";
            Some(Readiness::listen().map_err(Trouble::system(what))?)
        }
    };
    let mut record = Record::open(args.history.as_deref(), &client, &args.acquire)?;
    let (names, warms_up) = (args.names(), readiness.is_some());
    record.asked(&names, &args.acquire);
    let wanted = Wanted { names: &names, args: &args.acquire, default_label: label, warms_up };
    let asked = acquire::acquire(console, place, wanted, &mut signals, &mut record);
    let holding = match asked.await {
        Ok(holding) => holding,
        Err(trouble) => {
            record.not_granted(&trouble);
            return acquire::without_a_lease(&args.acquire, trouble, "nothing was run");
        }
    };
    record.granted(&holding, args.acquire.shared);
    let (fence_names, token) = (holding.fence_names(), holding.first().granted().fence.to_string());
    let End { result, drained, until } =
        under_lease(console, place, args, &holding, readiness.as_ref(), &mut signals, &mut record).await;
    let is_lost = matches!(result, Err(Trouble::Lost(_)));
    let given_back: Vec<Token> = holding
        .leases
        .iter()
        .filter(|lease| record.giving_back(lease))
        .map(|lease| lease.granted().token)
        .collect();
    let (told, next) = match until {
        // A lease that is lost needs no giving back; closing the session tells the store that nobody acts under it.
        _ if is_lost => (holding.keeper.close().await, None),
        Some(until) => {
            let (told, next) = Drained::give_back(holding, until, drained).await;
            (told, Some(next))
        }
        None => (holding.give_back(drained).await, None),
    };
    for token in given_back {
        record.gave_back(token, told.as_ref().err().map(ToString::to_string));
    }
    let note = |event: &str, message: &str| {
        console.note(message, &object! { event, resource: &fence_names, token: &token, message });
    };
    if let Some(message) = record.trouble() {
        note("history-not-whole", &message);
    }
    if let Err(error) = &told {
        note("not-released", &not_released(&fence_names, &args.acquire, error));
    }
    if let Some(next) = next {
        next.look(console, &mut signals, told.is_ok()).await;
    }
    result
}

/// Runs the command from its start to the end of all that came from it.
async fn under_lease(
    console: &Console,
    place: &Place,
    args: &RunArgs,
    holding: &Holding,
    readiness: Option<&Readiness>,
    signals: &mut Signals,
    record: &mut Record,
) -> End {
    let started = async {
        // Before the start: the command may be at its end at once.
        let children = signal(SignalKind::child()).map_err(Trouble::system(CANNOT_LISTEN))?;
        let supervised = start(place, args, holding, readiness).await?;
        Ok(Started { supervised, children, readiness })
    };
    match started.await {
        Ok(started) => watched::watch(console, args, holding, started, signals, record).await,
        Err(trouble) => End { result: Err(trouble), drained: false, until: None },
    }
}

/// Starts the command as soon as enough of the lease is confirmed.
async fn start(
    place: &Place,
    args: &RunArgs,
    holding: &Holding,
    readiness: Option<&Readiness>,
) -> Result<Supervised, Trouble> {
    let lease = holding.first();
    let leads = Leads::for_ttl(args.acquire.ttl);
    let deadline = believed(holding, leads, args.acquire.ttl).await?;
    let variable = |name: &str, value: &str| (OsString::from(name), OsString::from(value));
    let environment = [
        variable("LEASEHOLD_TOKEN", &lease.granted().fence.to_string()),
        variable("LEASEHOLD_RESOURCE", &lease.fence_name()),
        variable("LEASEHOLD_TOKENS", &tokens(&holding.leases)),
        variable("LEASEHOLD_SESSION", &holding.keeper.session.id().to_string()),
        variable("LEASEHOLD_STORE", place.url()),
    ];
    let environment = environment.into_iter().chain(readiness.map(Readiness::variable)).collect();
    let launch = Launch {
        command: args.command.clone(),
        environment,
        rules: Rules { leads, on_loss: args.on_loss, kill_after: args.patience() },
        deadline,
    };
    Ok(Supervised::start(&launch)?)
}

/// A line for each lease. The token comes first, because a name may have spaces; it has no line ends.
fn tokens(leases: &[Lease]) -> String {
    let lines: Vec<String> =
        leases.iter().map(|lease| format!("{} {}", lease.granted().fence, lease.fence_name())).collect();
    lines.join("\n")
}

/// The deadline, once all leases are held for long enough to start anything: a grant that came after a long wait may first have to
/// be confirmed by a renewal.
async fn believed(holding: &Holding, leads: Leads, ttl: Duration) -> Result<Point, Trouble> {
    let enough = |lease: &Lease| match lease.state() {
        LeaseState::Held { remaining } | LeaseState::Retrying { remaining, .. } => {
            remaining > leads.term() * 2
        }
        _ => false,
    };
    let confirmed = async {
        loop {
            if let Some((lease, state)) = holding.ended() {
                return Err(lost(lease, &state));
            }
            if let (true, Some(deadline)) = (holding.leases.iter().all(enough), holding.deadline()) {
                return Ok(deadline.into());
            }
            // The change may have come between the look and here; a nap makes up for it.
            let _ = timeout(LOOK_EVERY, holding.changed()).await;
        }
    };
    let late = || Err(lost(holding.first(), &holding.first().state()));
    timeout(ttl, confirmed).await.unwrap_or_else(|_| late())
}
