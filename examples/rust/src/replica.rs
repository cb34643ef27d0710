//! A replica in a rolling deploy: warm before it campaigns, and asked to leave by SIGTERM.
//!
//! The order of its end: no new work, finish what is in flight, give the lease back, name who leads now. The next replica is warm and
//! stands in the queue, so nobody leads for about as long as one message takes.

use std::fmt;
use std::future::Future;
use std::pin::{Pin, pin};
use std::time::Duration;

use anyhow::Result;
use leasehold::{Drain, Election, Error, Leadership, Token};

use crate::ledger::Ledger;

/// How long a write to the ledger takes at most.
const WRITE_BOUND: Duration = Duration::from_millis(100);
/// How long to wait before a lease that does not last long enough is looked at again.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// What happens in the life of a replica.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// It leads: a write with this token is possible from now on.
    Leads(Token),
    /// No new work is let in; so much is in flight.
    Drains(u32),
    /// The budget was over first: so much was cut off.
    CutOff(u32),
    /// The lease is given back now.
    Releases(Token),
    /// It was given back, and this one leads now; nobody, if that could not be seen in time.
    Resigned(Option<String>),
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Leads(token) => write!(f, "leads {token}"),
            Self::Drains(in_flight) => write!(f, "drains {in_flight}"),
            Self::CutOff(in_flight) => write!(f, "cut-off {in_flight}"),
            Self::Releases(token) => write!(f, "releases {token}"),
            Self::Resigned(Some(successor)) => write!(f, "resigned {successor}"),
            Self::Resigned(None) => write!(f, "resigned -"),
        }
    }
}

/// Why a term came to its end.
enum End {
    Terminated,
    ToldTo,
    WorkOver,
}

/// Campaigns, leads and works until it is terminated.
///
/// `work` is one term of work: it begins each piece with [`Drain::begin`] and ends when that is refused. `terminated` is SIGTERM, and
/// `out_of_time` ends when what is left of the grace period is over.
///
/// # Errors
/// When the service refuses for good, or the store cannot be reached when the lease is given back.
pub async fn run(
    election: &Election,
    work: impl AsyncFn(&Leadership, &Drain),
    terminated: impl Future<Output = ()>,
    out_of_time: impl AsyncFn(),
    tell: impl Fn(Event),
) -> Result<(), Error> {
    let mut terminated = pin!(terminated);
    loop {
        let leadership = tokio::select! {
            biased;
            // In the queue, or warming up: giving up the call gives up the place, and there is nothing to finish.
            () = &mut terminated => return Ok(()),
            campaigned = election.campaign() => campaigned?,
        };
        let Ok(token) = leadership.token() else { continue };
        tell(Event::Leads(token));
        let end = one_term(&leadership, &work, terminated.as_mut(), &out_of_time, &tell).await;
        tell(Event::Releases(token));
        // Whatever is answered, belief has ended. An answer that is missing matters only to who leaves for good.
        let resigned = leadership.resign().await;
        if matches!(end, End::Terminated) {
            tell(Event::Resigned(resigned?.successor.map(|leader| leader.label.to_string())));
            return Ok(());
        }
    }
}

async fn one_term(
    leadership: &Leadership,
    work: &impl AsyncFn(&Leadership, &Drain),
    terminated: Pin<&mut impl Future<Output = ()>>,
    out_of_time: &impl AsyncFn(),
    tell: &impl Fn(Event),
) -> End {
    let drain = Drain::new();
    let mut working = pin!(work(leadership, &drain));
    let end = tokio::select! {
        biased;
        () = terminated => End::Terminated,
        _why = leadership.cancelled() => End::ToldTo,
        () = &mut working => return End::WorkOver,
    };
    drain.stop();
    tell(Event::Drains(drain.in_flight()));
    tokio::select! {
        biased;
        _ = async { tokio::join!(working, drain.finished()) } => {}
        // What is cut off ends here, at its next await, before the lease is given back.
        () = out_of_time() => tell(Event::CutOff(drain.in_flight())),
        // And never later than the lease: after it another may lead.
        () = leadership.over() => tell(Event::CutOff(drain.in_flight())),
    }
    end
}

/// Takes item after item from a ledger, each of which takes `length`, until no new one may begin.
pub async fn take_items(leadership: &Leadership, drain: &Drain, ledger: &Ledger, length: Duration) {
    while let Ok(work) = drain.begin() {
        if leadership.guard(length).is_err() {
            // An item is not begun unless the lease lasts for all of it. Renewals that are late may come yet.
            drop(work);
            tokio::time::sleep(LOOK_AGAIN).await;
            continue;
        }
        // Refused by the guard or by the ledger: this term is over.
        if take_item(leadership, ledger, length).await.is_err() {
            return;
        }
    }
}

async fn take_item(leadership: &Leadership, ledger: &Ledger, length: Duration) -> Result<()> {
    let item = ledger.begin(leadership.token()?)?;
    tokio::time::sleep(length).await;
    // What took longer than was thought is still this leader's to write, if it still leads.
    let guard = leadership.guard(WRITE_BOUND)?;
    ledger.finish(item, guard.token()?)
}
