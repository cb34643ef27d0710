//! `plan`: what numbers come to, before anybody uses them.
//!
//! Everything that is shown is worked out by [`leasehold::core::plan`]; what is here only reads the command line and draws.

pub(super) mod again;
mod json;
mod presets;
mod svg;
mod text;
mod timeline;

#[cfg(test)]
mod tests;

use std::time::Duration;

use leasehold::core::limits::DEFAULT_MAX_TTL;
use leasehold::core::numbers::{Ask, DEFAULT_TTL};
use leasehold::core::plan::{Changed, Plan, nearest};
use leasehold::core::{Millis, Policies};

use crate::args::PlanArgs;
use crate::console::Console;
use crate::exit::Exit;
use crate::trouble::Trouble;

pub(super) fn run(console: &Console, args: &PlanArgs) -> Result<Exit, Trouble> {
    if args.presets {
        return presets::run(console);
    }
    let plan = plan_of(args)?;
    if let Some(path) = &args.svg {
        let drawn = std::fs::write(path, svg::draw(&plan));
        drawn.map_err(|error| Trouble::Files(format!("cannot write {}: {error}", path.display())))?;
    }
    let closest = closest(&plan);
    let text = text::report(console, &plan, closest.as_ref(), args.leases, args.preset);
    console.result(text, &json::report(&plan, closest.as_ref(), args.leases))?;
    Ok(if plan.is_accepted() { Exit::OK } else { Exit::FAILURE })
}

/// The nearest numbers that are accepted, of those that are not.
fn closest(plan: &Plan) -> Option<(Ask, Vec<Changed>)> {
    if plan.is_accepted() { None } else { nearest(plan.ask) }
}

/// What the command line asks for, with everything that follows.
fn plan_of(args: &PlanArgs) -> Result<Plan, Trouble> {
    let (start, given) = match args.preset {
        Some(preset) => (preset.ask, preset.policies),
        None => (Ask { max_ttl: DEFAULT_MAX_TTL, ..Ask::for_ttl(DEFAULT_TTL) }, Policies::default()),
    };
    let ask = Ask {
        ttl: args.ttl.map_or(start.ttl, Millis::from_duration),
        renew_every: args.renew_every.map(Millis::from_duration).or(start.renew_every),
        schedule: args.schedule.map_or(start.schedule, Into::into),
        margin: args.margin.map(Millis::from_duration).or(start.margin),
        clock_bound: args.clock_bound.map(bound).or(start.clock_bound),
        round_trip: args.rtt.map(bound).or(start.round_trip),
        in_flight: args.in_flight.map(bound).or(start.in_flight),
        pause: args.pause.map(bound).or(start.pause),
        drift: args.drift.map_or(start.drift, |percent| percent.0),
        max_ttl: args.max_ttl.map_or(start.max_ttl, Millis::from_duration),
        ..start
    };
    let grace = args.grace.map_or(given.grace, bound);
    let delay = args.delay.map_or(given.delay, bound);
    let policies = Policies { grace, hard: given.hard.max(grace), delay };
    policies.check().map_err(|error| Trouble::Misuse(error.to_string()))?;
    Ok(Plan::of(ask, args.leases, policies))
}

/// A bound is rounded up: what is shorter than it says is not bounded by it.
fn bound(length: Duration) -> Millis {
    let whole = Millis::from_duration(length);
    if whole.duration() < length { whole.saturating_add(Millis::new(1)) } else { whole }
}

/// A length to the millisecond, as it can be given on the command line again.
fn exact(length: Millis) -> String {
    let millis = length.get();
    let (seconds, rest) = (millis / 1_000, millis % 1_000);
    match (seconds, rest) {
        (0, 0) => "0s".to_owned(),
        (0, _) => format!("{rest}ms"),
        (_, 0) if seconds % 3_600 == 0 => format!("{}h", seconds / 3_600),
        (_, 0) if seconds % 60 == 0 => format!("{}m", seconds / 60),
        (_, 0) => format!("{seconds}s"),
        _ => format!("{seconds}.{}s", format!("{rest:03}").trim_end_matches('0')),
    }
}
