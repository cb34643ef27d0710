//! `run`: a command under a lease.
//!
//! The guardian is told every deadline as soon as a renewal is confirmed, and ends the command before the last one it was told.
//! The lease is given back only when the command and everything it started are gone.

use std::ffi::OsString;
use std::time::Duration;

use leasehold::core::holder::Reading;
use leasehold::{Lease, LeaseState, ReleaseRequest};
use rustix::process::Signal;
use serde::Serialize;
use tokio::signal::unix::{Signal as ChildSignals, SignalKind, signal};
use tokio::time::{sleep, timeout};

use crate::acquire::{self, Holding};
use crate::args::RunArgs;
use crate::console::Console;
use crate::exit::Exit;
use crate::guardian::clock::Point;
use crate::loss::{lost, not_released, point, ran_out};
use crate::place::Place;
use crate::record::Record;
use crate::signals::Signals;
use crate::supervise::{Cause, Event, Launch, Leads, Supervised};
use crate::trouble::Trouble;
use crate::words;

/// How often is looked for news of the command when nothing else happens.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// And how often in the moment after a child of this process has changed, which is when the last news comes.
const LOOK_OFTEN: Duration = Duration::from_millis(1);
const OFTEN_TIMES: u32 = 1_000;

#[derive(Serialize)]
struct Note<'a> {
    event: &'static str,
    resource: &'a str,
    token: String,
    message: &'a str,
}

pub(super) async fn run(console: &Console, place: &Place, args: &RunArgs) -> Result<Exit, Trouble> {
    let mut signals = Signals::listen()?;
    let label = words::own_label(args.command.first().map(OsString::as_os_str));
    let client = args.acquire.label.as_ref().unwrap_or(&label).to_string();
    let mut record = Record::open(args.history.as_deref(), &client, &args.acquire)?;
    record.asked(&args.acquire);
    let acquired = acquire::acquire(console, place, &args.acquire, label, &mut signals, &mut record).await;
    let holding = acquired
        .inspect_err(|trouble| record.not_granted(trouble))
        .map_err(|trouble| trouble.without_a_lease("nothing was run"))?;
    record.granted(&holding, args.acquire.shared);
    let fence_name = holding.lease.fence_name();
    let token = holding.lease.fence().to_string();
    let End { result, drained } =
        under_lease(console, place, args, &holding, &mut signals, &mut record).await;
    let lost = matches!(result, Err(Trouble::Lost(_)));
    let given_back = record.giving_back(&holding.lease).then(|| holding.lease.token());
    // A lease that is lost needs no giving back; closing the session tells the store that nobody acts under it.
    let told = if lost { holding.close().await } else { holding.give_back(drained).await };
    if let Some(token) = given_back {
        record.gave_back(token, told.as_ref().err().map(ToString::to_string));
    }
    if let Some(message) = record.trouble() {
        let (resource, token) = (fence_name.as_str(), token.clone());
        console.note(&message, &Note { event: "history-not-whole", resource, token, message: &message });
    }
    if let Err(error) = told {
        let message = not_released(&fence_name, &args.acquire, &error);
        console
            .note(&message, &Note { event: "not-released", resource: &fence_name, token, message: &message });
    }
    result
}

/// How a command under a lease came to its end.
struct End {
    result: Result<Exit, Trouble>,
    drained: bool,
}

/// Runs the command from its start to the end of all that came from it.
async fn under_lease(
    console: &Console,
    place: &Place,
    args: &RunArgs,
    holding: &Holding,
    signals: &mut Signals,
    record: &mut Record,
) -> End {
    let started = async {
        // Before the start: the command may be at its end at once.
        let children = signal(SignalKind::child())
            .map_err(|source| Trouble::System { what: "cannot listen to signals", source })?;
        Ok((children, start(place, args, holding).await?))
    };
    match started.await {
        Ok((children, supervised)) => {
            watch(console, &holding.lease, supervised, children, signals, record).await
        }
        Err(trouble) => End { result: Err(trouble), drained: false },
    }
}

/// Starts the command as soon as enough of the lease is confirmed.
async fn start(place: &Place, args: &RunArgs, holding: &Holding) -> Result<Supervised, Trouble> {
    let lease = &holding.lease;
    let leads = Leads::for_ttl(args.acquire.ttl);
    let deadline = believed(lease, leads, args.acquire.ttl).await?;
    let variable = |name: &str, value: &str| (OsString::from(name), OsString::from(value));
    let launch = Launch {
        command: args.command.clone(),
        environment: vec![
            variable("LEASEHOLD_TOKEN", &lease.fence().to_string()),
            variable("LEASEHOLD_RESOURCE", &lease.fence_name()),
            variable("LEASEHOLD_SESSION", &holding.keeper.session.id().to_string()),
            variable("LEASEHOLD_STORE", place.url()),
        ],
        rules: leads.into(),
        deadline,
    };
    Ok(Supervised::start(&launch)?)
}

/// The deadline, once the lease is held for long enough to start anything: a grant that came after a long wait may first have to
/// be confirmed by a renewal.
async fn believed(lease: &Lease, leads: Leads, ttl: Duration) -> Result<Point, Trouble> {
    let confirmed = async {
        loop {
            match (lease.state(), lease.deadline()) {
                (LeaseState::Held { remaining } | LeaseState::Retrying { remaining, .. }, Some(deadline))
                    if remaining > leads.term() * 2 =>
                {
                    return Ok(point(deadline));
                }
                (state @ LeaseState::Ended { .. }, _) => return Err(lost(lease, &state)),
                _ => {}
            }
            // The change may have come between the look and here; a nap makes up for it.
            let _ = timeout(LOOK_EVERY, lease.changed()).await;
        }
    };
    timeout(ttl, confirmed).await.unwrap_or_else(|_| Err(lost(lease, &lease.state())))
}

/// Stays with the command until all of it is gone.
async fn watch(
    console: &Console,
    lease: &Lease,
    supervised: Supervised,
    mut children: ChildSignals,
    signals: &mut Signals,
    record: &mut Record,
) -> End {
    let (told, exit, lost, drained) = (None, Exit::FAILURE, None, false);
    let mut watched = Watched { console, lease, supervised, record, told, exit, lost, drained };
    let mut often = 0;
    loop {
        let nap = if often > 0 { LOOK_OFTEN } else { LOOK_EVERY };
        tokio::select! {
            _ = lease.changed(), if watched.lost.is_none() => {}
            request = lease.release_requested(), if !watched.drained => watched.drain(&request),
            signal = signals.next() => watched.pass_on(signal),
            _ = children.recv() => often = OFTEN_TIMES,
            () = sleep(nap) => often = often.saturating_sub(1),
        }
        watched.look_at_lease();
        if watched.hear() {
            let result = watched.lost.map_or(Ok(watched.exit), Err);
            return End { result, drained: watched.drained };
        }
    }
}

struct Watched<'a> {
    console: &'a Console,
    lease: &'a Lease,
    supervised: Supervised,
    record: &'a mut Record,
    /// The deadline that the guardian was told last.
    told: Option<Reading>,
    exit: Exit,
    lost: Option<Trouble>,
    drained: bool,
}

impl Watched<'_> {
    fn look_at_lease(&mut self) {
        if let Some(deadline) = self.lease.deadline().filter(|deadline| self.told != Some(*deadline)) {
            self.told = Some(deadline);
            self.supervised.deadline(point(deadline));
            self.record.looked_at(self.lease);
        }
        if self.lost.is_none() {
            let state = self.lease.state();
            if let LeaseState::Ended { why, .. } = &state {
                self.supervised.terminate();
                self.record.lost(self.lease, why);
                self.lost = Some(lost(self.lease, &state));
            }
        }
    }

    /// Takes in what happened to the command; says whether all of it is gone.
    fn hear(&mut self) -> bool {
        while let Ok(event) = self.supervised.events().try_recv() {
            match event {
                Event::Terminating(Cause::Deadline) | Event::Killing(Cause::Deadline)
                    if self.lost.is_none() =>
                {
                    self.lost = Some(ran_out(self.lease));
                }
                Event::GuardianLost => {
                    self.say("guardian-lost", "the guardian is gone; the command is killed from here");
                }
                Event::Exited(ending) => self.exit = Exit::of_command(ending.exit_code()),
                Event::AllGone => return true,
                _ => {}
            }
        }
        false
    }

    /// Somebody wants the resource: the command is asked to end, and has as long as renewals go on.
    fn drain(&mut self, request: &ReleaseRequest) {
        self.drained = true;
        let by = words::somebody(&request.by);
        self.say(
            "release-requested",
            &format!("{by} asks for {}; ending the command", self.lease.fence_name()),
        );
        self.supervised.terminate();
    }

    /// SIGTERM goes to everything that the command started, because the lease is kept until all of it is gone.
    fn pass_on(&self, signal: Signal) {
        if signal == Signal::TERM {
            self.supervised.terminate();
        } else {
            self.supervised.signal(signal);
        }
    }

    fn say(&self, event: &'static str, message: &str) {
        let (resource, token) = (self.lease.fence_name(), self.lease.fence().to_string());
        self.console.note(message, &Note { event, resource: &resource, token, message });
    }
}
