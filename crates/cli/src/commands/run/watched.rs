//! The command while it runs: deadlines and doubts go to the guardian, what happens to the command is heard, and whoever asks it to
//! end is heard too.

use std::time::Duration;

use futures_util::future::OptionFuture;
use leasehold::core::holder::Reading;
use leasehold::{Lease, LeaseState, ReleaseRequest};
use rustix::process::Signal;
use tokio::signal::unix::Signal as ChildSignals;
use tokio::time::sleep;

use super::readiness::Readiness;
use crate::args::RunArgs;
use crate::console::Console;
use crate::exit::Exit;
use crate::guardian::clock::Point;
use crate::holding::Holding;
use crate::loss::{lost, ran_out};
use crate::record::Record;
use crate::signals::Signals;
use crate::supervise::{Cause, Event, OnLoss, Supervised};
use crate::trouble::Trouble;
use crate::words;

/// How often is looked for news of the command when nothing else happens.
pub(super) const LOOK_EVERY: Duration = Duration::from_millis(50);
/// And how often in the moment after a child of this process has changed, which is when the last news comes.
const LOOK_OFTEN: Duration = Duration::from_millis(1);
const OFTEN_TIMES: u32 = 1_000;

/// How a command under a lease came to its end.
pub(super) struct End {
    pub(super) result: Result<Exit, Trouble>,
    /// Whether it was asked to end and has.
    pub(super) drained: bool,
    /// When the budget of a drain is used up, if it has one and began.
    pub(super) until: Option<Point>,
}

/// A command that was started, and how it is heard.
pub(super) struct Started<'a> {
    pub(super) supervised: Supervised,
    pub(super) children: ChildSignals,
    /// If it is to say when it is ready.
    pub(super) readiness: Option<&'a Readiness>,
}

/// Stays with the command until all of it is gone.
pub(super) async fn watch(
    console: &Console,
    args: &RunArgs,
    holding: &Holding,
    started: Started<'_>,
    signals: &mut Signals,
    record: &mut Record,
) -> End {
    let Started { supervised, mut children, readiness } = started;
    let mut watched = Watched {
        console,
        args,
        holding,
        supervised,
        record,
        told: None,
        in_doubt: false,
        exit: Exit::FAILURE,
        lost: None,
        drained: false,
        ending: false,
        cut_off: false,
        until: None,
    };
    let mut often = 0;
    let mut warnings = holding.keeper.store.warnings();
    loop {
        let nap = if often > 0 { LOOK_OFTEN } else { LOOK_EVERY };
        tokio::select! {
            () = holding.changed(), if watched.lost.is_none() => {}
            (lease, request) = holding.release_requested(), if !watched.drained => watched.drain(lease, &request),
            Some(warning) = warnings.next(), if !args.acquire.quiet => watched.say("numbers", &warning.to_string()),
            signal = signals.next() => watched.pass_on(signal),
            Some(()) = OptionFuture::from(readiness.map(Readiness::said)) => {
                holding.leases.iter().for_each(Lease::ready);
            }
            _ = children.recv() => often = OFTEN_TIMES,
            () = sleep(nap) => often = often.saturating_sub(1),
        }
        watched.look_at_leases();
        if watched.hear() {
            let result = watched.lost.map_or(Ok(watched.exit), Err);
            return End { result, drained: watched.drained && !watched.cut_off, until: watched.until };
        }
    }
}

struct Watched<'a> {
    console: &'a Console,
    args: &'a RunArgs,
    holding: &'a Holding,
    supervised: Supervised,
    record: &'a mut Record,
    /// The deadline that the guardian was told last.
    told: Option<Reading>,
    /// Whether the guardian was told that nobody can say whether the leases are held.
    in_doubt: bool,
    exit: Exit,
    lost: Option<Trouble>,
    drained: bool,
    /// Whether the command was asked to end.
    ending: bool,
    /// Whether it was killed because it had not ended in time.
    cut_off: bool,
    until: Option<Point>,
}

impl Watched<'_> {
    fn look_at_leases(&mut self) {
        let deadline = self.holding.deadline();
        if self.is_doubtful() {
            if !self.in_doubt {
                self.in_doubt = true;
                self.supervised.doubt();
            }
        } else if let Some(deadline) = deadline.filter(|deadline| self.told != Some(*deadline)) {
            self.in_doubt = false;
            self.told = Some(deadline);
            self.supervised.deadline(deadline.into());
        }
        for lease in &self.holding.leases {
            self.record.looked_at(lease);
            if let LeaseState::Ended { why, .. } = &lease.state() {
                self.record.lost(lease, why);
            }
        }
        if self.lost.is_none()
            && let Some((lease, state)) = self.holding.ended()
        {
            self.supervised.terminate();
            self.lost = Some(lost(lease, &state));
        }
    }

    /// Whether the command is to be frozen for what the leases say now. A deadline may move meanwhile, by a renewal that was sent before
    /// the doubt began, and is not handed on. A lease that is over for good is not in doubt.
    fn is_doubtful(&self) -> bool {
        self.args.on_loss == OnLoss::Freeze && !self.holding.is_held() && self.holding.ended().is_none()
    }

    /// Takes in what happened to the command; says whether all of it is gone.
    fn hear(&mut self) -> bool {
        while let Ok(event) = self.supervised.events().try_recv() {
            match event {
                Event::Terminating(Cause::Deadline) | Event::Killing(Cause::Deadline)
                    if self.lost.is_none() =>
                {
                    self.lost = Some(ran_out(self.holding.first()));
                }
                Event::Killing(Cause::TooSlow) => {
                    self.cut_off = true;
                    let patience = self.args.patience().map(words::length).unwrap_or_default();
                    let what = format!("the command has not ended within {patience} of SIGTERM");
                    self.say("killed", &format!("{what}; killing what is left"));
                }
                Event::Frozen => {
                    let names = self.holding.fence_names();
                    let what = "could not be confirmed; halting the command until it is";
                    self.say("frozen", &format!("{names} {what}"));
                }
                Event::Thawed => {
                    let names = self.holding.fence_names();
                    self.say("thawed", &format!("{names} is confirmed again; the command goes on"));
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

    /// Somebody wants the resource: the command is asked to end, and has as long as renewals go on, or as it was given.
    fn drain(&mut self, lease: &Lease, request: &ReleaseRequest) {
        let by = words::somebody(&request.by);
        self.say("release-requested", &format!("{by} asks for {}; ending the command", lease.fence_name()));
        self.drained = true;
        self.begin_to_end();
        self.supervised.terminate();
    }

    /// SIGTERM goes to everything that the command started, because the lease is kept until all of it is gone.
    fn pass_on(&mut self, signal: Signal) {
        if signal == Signal::TERM {
            // Whoever gives a budget says by it that SIGTERM means to drain.
            self.drained |= self.args.drain.is_some();
            self.begin_to_end();
            self.supervised.terminate();
        } else {
            self.supervised.signal(signal);
        }
    }

    /// An end begins once, whoever asks again.
    fn begin_to_end(&mut self) {
        if self.ending {
            return;
        }
        self.ending = true;
        self.until = self.args.drain.map(|budget| Point::now().plus(budget));
        // Where nobody can say how long it takes, there is nothing to show.
        if let Some(patience) = self.args.patience() {
            for lease in &self.holding.leases {
                lease.show_draining(1, patience);
            }
        }
    }

    fn say(&self, event: &'static str, message: &str) {
        let (resource, token) =
            (self.holding.fence_names(), self.holding.first().granted().fence.to_string());
        self.console.note(message, &object! { event, resource, token, message });
    }
}
