//! `hold`: a lease without a command, for scripts and for people.

use std::io::Read;
use std::time::Duration;

use futures_util::future::OptionFuture;
use leasehold::{LeaseState, ReleaseRequest, Warnings};
use rustix::fs::{FileType, fstat};
use serde::Serialize;
use tokio::sync::oneshot;
use tokio::time::sleep;

use crate::acquire::{self, Wanted};
use crate::args::HoldArgs;
use crate::console::Console;
use crate::exit::Exit;
use crate::holding::Holding;
use crate::loss::{lost, not_released};
use crate::place::Place;
use crate::record::Record;
use crate::signals::Signals;
use crate::trouble::Trouble;
use crate::words;

/// How often is looked how the lease stands when nothing is heard.
const LOOK_EVERY: Duration = Duration::from_millis(100);

pub(super) async fn run(console: &Console, place: &Place, args: &HoldArgs) -> Result<Exit, Trouble> {
    let mut signals = Signals::listen()?;
    let label = words::own_label(None);
    let names = std::slice::from_ref(&args.name);
    let mut none = Record::none();
    let wanted = Wanted { names, args: &args.acquire, default_label: label, warms_up: false };
    let asked = acquire::acquire(console, place, wanted, &mut signals, &mut none);
    let holding = match asked.await {
        Ok(holding) => holding,
        Err(trouble) => return acquire::without_a_lease(&args.acquire, trouble, "nothing is held"),
    };
    // Before anybody knows that it is held, so that no warning is missed.
    let warnings = holding.keeper.store.warnings();
    say(console, line("granted", &holding, None))?;
    match watch(console, args, &holding, &mut signals, warnings).await? {
        Over::Asked { drained } => {
            let (name, released) = (holding.first().fence_name(), line("released", &holding, None));
            holding.give_back(drained).await.map_err(|error| {
                let message = not_released(&name, &args.acquire, &error);
                Trouble::NotReleased { error, message }
            })?;
            say(console, released)
        }
        Over::Lost(trouble) => {
            say(console, line("ended", &holding, None))?;
            let _ = holding.keeper.close().await;
            Err(trouble)
        }
    }
}

/// Why it is over.
enum Over {
    /// Somebody wants it to be.
    Asked { drained: bool },
    /// Nobody does.
    Lost(Trouble),
}

async fn watch(
    console: &Console,
    args: &HoldArgs,
    holding: &Holding,
    signals: &mut Signals,
    mut warnings: Warnings,
) -> Result<Over, Trouble> {
    let lease = holding.first();
    let mut input_ended = end_of_input();
    let mut shown = "held";
    loop {
        let asked = tokio::select! {
            _ = lease.changed() => None,
            request = lease.release_requested() => {
                let ReleaseRequest { by, .. } = request;
                say(console, line("release-requested", holding, Some(by.to_string())))?;
                Some(Over::Asked { drained: true })
            }
            Some(warning) = warnings.next(), if !args.acquire.quiet => {
                let (resource, token) = (lease.fence_name(), lease.granted().fence.to_string());
                let message = warning.to_string();
                console.note(&message, &object! { event: "numbers", resource, token, message: &message });
                None
            }
            _ = signals.next() => Some(Over::Asked { drained: false }),
            // An error is the end of the thread, which is the end of what it reads.
            Some(_) = OptionFuture::from(input_ended.as_mut()) => Some(Over::Asked { drained: false }),
            () = sleep(LOOK_EVERY) => None,
        };
        let state = lease.state();
        if matches!(state, LeaseState::Ended { .. }) {
            // Also if it is asked for at the same moment: a lease that is lost cannot be released.
            return Ok(Over::Lost(lost(lease, &state)));
        }
        if let Some(asked) = asked {
            return Ok(asked);
        }
        let word = words::state_code(&state);
        if word != shown {
            shown = word;
            say(console, line(word, holding, None))?;
        }
    }
}

/// One line of output, for people and for programs: what has happened to the lease.
fn line(event: &'static str, holding: &Holding, by: Option<String>) -> (String, impl Serialize + use<>) {
    let lease = holding.first();
    let state = lease.state();
    let remaining = match &state {
        LeaseState::Held { remaining } | LeaseState::Retrying { remaining, .. } => Some(*remaining),
        _ => None,
    };
    let ended = match &state {
        LeaseState::Ended { why, .. } => Some(words::ended_code(why)),
        _ => None,
    };
    let (resource, fence_token) = (lease.fence_name(), lease.granted().fence.to_string());
    let asked = by.as_deref().map(|by| format!(" by {by}")).unwrap_or_default();
    let how = ended.map(|how| format!(" {how}")).unwrap_or_default();
    let text = format!("{event} {resource} token {fence_token}{asked}{how}");
    let json = object! {
        event,
        resource,
        token: lease.granted().token.to_string(),
        fence_token,
        slot: lease.slot(),
        session: holding.keeper.session.id().to_string(),
        remaining_ms: remaining.map(words::whole_millis),
        by,
        ended,
    };
    (text, json)
}

fn say(console: &Console, (text, json): (String, impl Serialize)) -> Result<Exit, Trouble> {
    match console.result(text, &json) {
        // Whoever has read the first line and closed the pipe still wants the lease to be held.
        Err(trouble) if trouble.is_closed_output() => Ok(Exit::OK),
        said => said,
    }
}

/// Told at the end of standard input if that is a pipe or a socket: whoever started this program is gone or has closed it.
fn end_of_input() -> Option<oneshot::Receiver<()>> {
    let kind = FileType::from_raw_mode(fstat(rustix::stdio::stdin()).ok()?.st_mode);
    if !matches!(kind, FileType::Fifo | FileType::Socket) {
        return None;
    }
    let (tell, told) = oneshot::channel();
    let thread = std::thread::Builder::new().name("stdin".into()).spawn(move || {
        let mut waste = [0; 4096];
        let mut input = std::io::stdin().lock();
        while matches!(input.read(&mut waste), Ok(count) if count > 0) {}
        let _ = tell.send(());
    });
    thread.is_ok().then_some(told)
}
