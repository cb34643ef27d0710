//! `hold`: a lease without a command, for scripts and for people.

use std::future::pending;
use std::io::Read;
use std::time::Duration;

use leasehold::{Broken, LeaseState, ReleaseRequest, Warnings};
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

/// One line of output: what has happened to the lease.
#[derive(Debug, Clone, Serialize)]
struct Line {
    event: &'static str,
    resource: String,
    token: String,
    fence_token: String,
    slot: Option<u32>,
    session: String,
    remaining_ms: Option<u64>,
    by: Option<String>,
    ended: Option<&'static str>,
}

/// Something worth saying beside the lines.
#[derive(Serialize)]
struct Note<'a> {
    event: &'static str,
    resource: String,
    token: String,
    message: &'a str,
}

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
    let warnings = (!args.acquire.quiet).then(|| holding.keeper.store.warnings());
    line("granted", &holding, None).say(console)?;
    match watch(console, &holding, &mut signals, warnings).await? {
        Over::Asked { drained } => {
            let released = line("released", &holding, None);
            holding.give_back(drained).await.map_err(|error| {
                let message = not_released(&released.resource, &args.acquire, &error);
                Trouble::NotReleased { error, message }
            })?;
            released.say(console)?;
            Ok(Exit::OK)
        }
        Over::Lost(trouble) => {
            line("ended", &holding, None).say(console)?;
            let _ = holding.close().await;
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
    holding: &Holding,
    signals: &mut Signals,
    mut warnings: Option<Warnings>,
) -> Result<Over, Trouble> {
    let lease = holding.first();
    let mut input_ended = end_of_input();
    let mut shown = "held";
    loop {
        let asked = tokio::select! {
            _ = lease.changed() => None,
            request = lease.release_requested() => {
                let ReleaseRequest { by, .. } = request;
                line("release-requested", holding, Some(by.to_string())).say(console)?;
                Some(Over::Asked { drained: true })
            }
            warning = next(&mut warnings) => {
                let (resource, token) = (lease.fence_name(), lease.granted().fence.to_string());
                let message = &warning.to_string();
                console.note(message, &Note { event: "numbers", resource, token, message });
                None
            }
            _ = signals.next() => Some(Over::Asked { drained: false }),
            () = ended(&mut input_ended) => Some(Over::Asked { drained: false }),
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
            line(word, holding, None).say(console)?;
        }
    }
}

fn line(event: &'static str, holding: &Holding, by: Option<String>) -> Line {
    let lease = holding.first();
    let state = lease.state();
    let remaining = match &state {
        LeaseState::Held { remaining } | LeaseState::Retrying { remaining, .. } => Some(*remaining),
        _ => None,
    };
    Line {
        event,
        resource: lease.fence_name(),
        token: lease.granted().token.to_string(),
        fence_token: lease.granted().fence.to_string(),
        slot: lease.slot(),
        session: holding.keeper.session.id().to_string(),
        remaining_ms: remaining.map(|left| u64::try_from(left.as_millis()).unwrap_or(u64::MAX)),
        by,
        ended: match &state {
            LeaseState::Ended { why, .. } => Some(words::ended_code(why)),
            _ => None,
        },
    }
}

impl Line {
    fn say(&self, console: &Console) -> Result<(), Trouble> {
        let by = self.by.as_deref().map(|by| format!(" by {by}")).unwrap_or_default();
        let how = self.ended.map(|how| format!(" {how}")).unwrap_or_default();
        let text = format!("{} {} token {}{by}{how}", self.event, self.resource, self.fence_token);
        let said = console.result(text, self);
        match said {
            // Whoever has read the first line and closed the pipe still wants the lease to be held.
            Err(trouble) if trouble.is_closed_output() => Ok(()),
            said => said,
        }
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

async fn next(warnings: &mut Option<Warnings>) -> Broken {
    match warnings {
        Some(warnings) => match warnings.next().await {
            Some(warning) => warning,
            None => pending().await,
        },
        None => pending().await,
    }
}

async fn ended(input: &mut Option<oneshot::Receiver<()>>) {
    match input {
        // An error is the end of the thread, which is the end of what it reads.
        Some(told) => drop(told.await),
        None => pending().await,
    }
}
