//! The end of a drain: the leases are given back, and for the rest of the budget it is looked who comes next.

use std::time::Duration;

use leasehold::{Error, Store};
use tokio::time::timeout;

use crate::console::Console;
use crate::guardian::clock::Point;
use crate::holding::Holding;
use crate::signals::Signals;
use crate::successor::{self, Predecessor, Successor};
use crate::words;

/// To let go is tried for so long even if the budget is used up by then.
const LEAST: Duration = Duration::from_millis(500);
/// So long before the end of the budget the looking ends: whoever kills at its end is to find nobody.
const RESERVE: Duration = Duration::from_millis(300);
/// A store is closed within this when nothing is left of the budget.
const LEAST_TO_CLOSE: Duration = Duration::from_millis(100);

/// Leases that were given back after a drain, and the store in which others may take them.
#[derive(Debug)]
pub(super) struct Drained {
    store: Store,
    leases: Vec<Predecessor>,
    until: Point,
}

impl Drained {
    /// Gives the leases back.
    pub(super) async fn give_back(
        holding: Holding,
        until: Point,
        drained: bool,
    ) -> (Result<(), Error>, Self) {
        let leases = holding.leases.iter().map(Predecessor::from).collect();
        let left = until.remaining(Point::now()).max(LEAST);
        let (told, store) = holding.give_back_and_look(left, drained).await;
        (told, Self { store, leases, until })
    }

    /// Says who has the names next, or that nobody has within the budget. A signal ends the wait.
    pub(super) async fn look(self, console: &Console, signals: &mut Signals, given_back: bool) {
        let Self { store, leases, until } = self;
        // What was not given back has no successor yet, and that was said.
        if given_back {
            tokio::select! {
                () = successor::wait(&store, leases, until.minus(RESERVE), |ended, next| say(console, ended, next)) => {}
                _ = signals.next() => {}
            }
        }
        let left = until.remaining(Point::now()).max(LEAST_TO_CLOSE);
        let _ = timeout(left, store.close()).await;
    }
}

fn say(console: &Console, ended: &Predecessor, next: Option<&Successor>) {
    let name = ended.resource.as_str();
    let message = match next {
        Some(next) => words::succeeded(&ended.resource, next),
        None => format!("{name}: the time of the drain is over, and nobody else holds it yet"),
    };
    let note = object! {
        event: if next.is_some() { "successor" } else { "no-successor" },
        resource: name,
        token: ended.token.to_string(),
        successor: next.map(|next| next.label.as_str()),
        successor_token: next.map(|next| next.token.to_string()),
        message: &message,
    };
    console.note(&message, &note);
}
