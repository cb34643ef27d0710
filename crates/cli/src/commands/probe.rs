//! `probe`: measures what the numbers of a lease depend on, and says whether they hold.
//!
//! Round trips are those of a real session at the store; it is closed at the end, and nothing is left behind. What is measured here is measured by
//! every client all the time; this is for whoever wants to know before.

mod advice;
mod measuring;
mod report;

use leasehold::core::numbers::{Ask, MIN_ROUND_TRIP, Numbers};

use crate::args::ProbeArgs;
use crate::console::Console;
use crate::exit::Exit;
use crate::place::Place;
use crate::signals::Signals;
use crate::trouble::Trouble;
use crate::words;

pub(super) use report::{fine, micros};

pub(super) async fn run(console: &Console, place: &Place, args: &ProbeArgs) -> Result<Exit, Trouble> {
    // Numbers that could not hold at any store are refused before anything is made or opened.
    Numbers::check(Ask { round_trip: Some(MIN_ROUND_TRIP), ..args.ask() }).map_err(leasehold::Error::from)?;
    let mut signals = Signals::listen()?;
    if !console.can_animate() {
        let message = format!("measuring for {}", words::length(args.length));
        console.note(&message, &object! { event: "measuring", store: place.url(), message: &message });
    }
    let taken = measuring::measure(console, place, args.length, &mut signals).await?;
    let advice = advice::advise(&taken.measured(), args.ask())?;
    report::say(console, place.url(), &taken, &advice)?;
    Ok(if advice.holds() { Exit::OK } else { Exit::FAILURE })
}
