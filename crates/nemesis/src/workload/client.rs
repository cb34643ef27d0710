//! One client of a workload.

use std::time::Duration;

use leasehold::core::holder::{Reading, Standing};
use leasehold::core::{Answer, client::Outcome};
use leasehold::{
    ConnectOptions, EndedWhy, Ending, Error, Lease, LeaseState, Session, SessionEvent, SessionOptions, Store,
};
use std::sync::atomic::Ordering;

use super::strander::Links;
use super::{Life, Shape};
use crate::history::{self, At, ClientId, Event, Now};
use crate::random::Random;

/// Between two attempts that failed at once.
const BREATH: Duration = Duration::from_millis(20);
/// How long a store may be out of reach before the library gives up; clients here never do.
const PATIENCE: Duration = Duration::from_secs(60);

/// A client.
pub(super) struct Client {
    id: ClientId,
    life: Life,
    options: SessionOptions,
    margin: Duration,
    random: Random,
    calls: u32,
    served: bool,
}

/// A connection and a session on it.
pub(super) struct Open {
    pub(super) store: Store,
    pub(super) session: Session,
}

/// Whether nothing can be done with the session any more.
pub(super) const fn is_over(error: &Error) -> bool {
    matches!(error, Error::SessionEnded(_) | Error::Unreachable(_) | Error::OutcomeUnknown)
}

impl Client {
    pub(super) fn new(id: ClientId, life: Life, options: SessionOptions, random: Random) -> Self {
        let margin = options.numbers().map(|numbers| numbers.margin().duration()).unwrap_or_default();
        Self { id, life, options, margin, random, calls: 0, served: false }
    }

    /// Contends for names with others until it is over.
    pub(super) async fn contend(mut self, shape: &Shape) {
        let mut open = None;
        while !self.life.is_over() {
            let resource = super::name(self.random.below(shape.names));
            let hold = self.random.between(&shape.hold);
            self.turn(&mut open, &resource, shape.wait, hold).await;
        }
        self.close(open).await;
    }

    /// Contends for one name, and is cut off as soon as it holds it, for longer than the ttl.
    pub(super) async fn strand(mut self, shape: &Shape, links: Links) {
        let mut open = None;
        while !self.life.is_over() {
            let hold = self.random.between(&shape.hold);
            if self.life.is_healing() {
                self.turn(&mut open, &super::name(0), shape.wait, hold).await;
                continue;
            }
            let only_answers = self.random.below(3) == 0;
            let Some(lease) = self.take(&mut open, &super::name(0), shape.wait).await else { continue };
            links.strand(only_answers);
            let mut lost = self.hold(&lease, shape.ttl * 3 / 2).await;
            links.mend().await;
            // It is told now what became of it.
            lost = lost || self.hold(&lease, shape.ttl / 2).await;
            self.give_back(&mut open, lease, lost).await;
        }
        self.close(open).await;
        drop(links);
    }

    /// Takes a name of its own and gives it back, again and again.
    pub(super) async fn pulse(mut self, pause: Duration) {
        let mut open = None;
        let resource = format!("pulse/{}", self.id.0);
        while !self.life.is_over() {
            self.turn(&mut open, &resource, Duration::from_secs(10), Duration::ZERO).await;
            tokio::time::sleep(pause).await;
        }
        self.close(open).await;
    }

    /// Takes a name and holds it to the end.
    pub(super) async fn keep(mut self) {
        let mut open = None;
        let resource = format!("kept/{}", self.id.0);
        while !self.life.is_over() {
            self.turn(&mut open, &resource, Duration::from_secs(10), Duration::MAX).await;
        }
        self.close(open).await;
    }

    /// Takes a name, holds it for so long, and gives it back.
    async fn turn(&mut self, open: &mut Option<Open>, resource: &str, wait: Duration, hold: Duration) {
        if let Some(lease) = self.take(open, resource, wait).await {
            let lost = self.hold(&lease, hold).await;
            self.give_back(open, lease, lost).await;
        }
    }

    /// Takes a name, unless that fails.
    async fn take(&mut self, open: &mut Option<Open>, resource: &str, wait: Duration) -> Option<Lease> {
        if open.is_none() {
            *open = self.open().await;
        }
        let Open { session, .. } = open.as_ref()?;
        match self.acquire(session, resource, wait, true).await {
            Ok(lease) => Some(lease),
            Err(error) => {
                if is_over(&error) {
                    self.close(open.take()).await;
                }
                tokio::time::sleep(BREATH).await;
                None
            }
        }
    }

    /// Gives a lease back, unless it was lost.
    async fn give_back(&self, open: &mut Option<Open>, lease: Lease, lost: bool) {
        if lost {
            return;
        }
        if let Err(error) = self.release(lease).await
            && is_over(&error)
        {
            self.close(open.take()).await;
        }
    }

    /// Gives a lease back and records that.
    pub(super) async fn release(&self, lease: Lease) -> Result<(), Error> {
        let (client, token) = (self.id.name(), lease.granted().token);
        self.life.recorder.record(Event::GivingBack { client: client.clone(), token });
        let released = lease.release().await;
        let trouble = released.as_ref().err().map(|error| error.to_string().into());
        self.life.recorder.record(Event::GaveBack { client, token, trouble });
        released
    }

    /// Records that the service has ended a lease.
    pub(super) fn lost(&self, lease: &Lease, why: &EndedWhy) {
        let (client, token) = (self.id.name(), lease.granted().token);
        let revoked = matches!(why, EndedWhy::ByService(Ending::Revoked { .. }));
        let why = format!("{why:?}").into();
        // Scenarios that restore do not ask for this rule behind a restore.
        self.life.recorder.record(Event::Lost { client, token, why, revoked, restored: false });
    }

    /// Connects and opens a session; nothing if it is over before that.
    pub(super) async fn open(&self) -> Option<Open> {
        while !self.life.is_over() {
            let options = ConnectOptions::new().patience(PATIENCE);
            let options = if self.life.only_listed { options.only_listed() } else { options };
            if let Ok(store) = Store::connect_with(&self.life.url, options).await {
                match store.session_with(&self.options).await {
                    Ok(session) => return Some(Open { store, session }),
                    Err(_) => store.close().await,
                }
            }
            tokio::time::sleep(BREATH).await;
        }
        None
    }

    /// What is left of a session is given back with it. Nobody waits long for a store that is out of reach.
    async fn close(&self, open: Option<Open>) {
        if let Some(Open { store, session }) = open {
            let closing = async {
                let _ = session.close().await;
                store.close().await;
            };
            let _ = tokio::time::timeout(Duration::from_secs(2), closing).await;
        }
    }

    /// Asks for a name and records what comes of it; that it was queued only if it listens to the session.
    pub(super) async fn acquire(
        &mut self,
        session: &Session,
        resource: &str,
        wait: Duration,
        listens: bool,
    ) -> Result<Lease, Error> {
        self.calls += 1;
        let (client, call, recorder) = (self.id, self.calls, &self.life.recorder);
        let (name, number) = (client.name(), call.to_string());
        let mut events = listens.then(|| session.events());
        recorder.record(history::asked(client, call, resource));
        let granted = async { session.acquire(resource).wait(wait).await };
        tokio::pin!(granted);
        let (mut queued, mut promised) = (false, None);
        let granted = loop {
            tokio::select! {
                // Whoever is granted at once is told so, not that it was queued before.
                biased;
                granted = &mut granted => break granted,
                Some(event) = async { events.as_mut()?.next().await } => {
                    match event {
                        SessionEvent::Resolved { outcome: Outcome::Answered(Answer::Queued { .. }), .. } => {
                            queued = true;
                        }
                        SessionEvent::Standing(Standing::Held { until }) => {
                            promised = Some(reached(until).plus(self.margin));
                        }
                        _ => continue,
                    }
                    // Again with every renewal: to wait renews nothing, and without a promise nobody could judge the wait.
                    if queued {
                        let (client, call) = (name.clone(), number.clone().into());
                        recorder.record(Event::Queued { client, call, promised });
                    }
                }
            }
        };
        match &granted {
            Ok(lease) => {
                if !self.served {
                    self.served = true;
                    self.life.settled.fetch_add(1, Ordering::Relaxed);
                }
                let (until, promised) = self.belief(lease);
                let token = lease.granted().token;
                recorder.record(history::granted(client, call, resource, token, until, promised));
            }
            Err(error) => {
                let (client, call, why) = (name, number.into(), error.to_string().into());
                recorder.record(match error {
                    Error::Refused(_)
                    | Error::NotFree { .. }
                    | Error::WaitEnded(_)
                    | Error::Unavailable(_) => Event::Refused { client, call, why },
                    _ => Event::Unknown { client, call, why },
                });
            }
        }
        granted
    }

    /// Holds for so long, and records every confirmation. Says whether the lease was lost.
    async fn hold(&self, lease: &Lease, length: Duration) -> bool {
        let begun = At::now();
        let mut last = lease.deadline();
        loop {
            if let LeaseState::Ended { why, .. } = lease.state() {
                self.lost(lease, &why);
                return true;
            }
            let held = At::now().since(begun);
            if held >= length || self.life.is_over() {
                return false;
            }
            // Whatever changes is noticed; the pause is for the end of the run.
            let pause = (length - held).min(Duration::from_millis(100));
            let _ = tokio::time::timeout(pause, lease.changed()).await;
            let deadline = lease.deadline();
            if deadline.is_some() && deadline != last {
                last = deadline;
                let (until, promised) = self.belief(lease);
                let (client, token) = (self.id.name(), lease.granted().token);
                let promised = Some(promised);
                self.life.recorder.record(Event::Confirmed { client, token, until, promised });
            }
        }
    }

    /// Until when this client believes, and until when the service must honour it.
    fn belief(&self, lease: &Lease) -> (At, At) {
        let Some(deadline) = lease.deadline() else { return (At(0), At(0)) };
        let until = reached(deadline);
        (until, until.plus(self.margin))
    }
}

/// When a deadline is reached, on the boot clock.
fn reached(deadline: Reading) -> At {
    // The clock that has moved further decides: what is left is the smaller of the two.
    let now = leasehold_clock::read();
    let past = |now: u64, deadline: u64| i128::from(deadline) - i128::from(now);
    let left = past(now.boot, deadline.boot).min(past(now.raw, deadline.raw));
    At(u64::try_from(i128::from(now.boot) + left).unwrap_or(0))
}
