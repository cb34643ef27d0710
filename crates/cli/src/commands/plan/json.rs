//! A plan for programs.

use leasehold::core::numbers::{Ask, Inequality};
use leasehold::core::plan::{Changed, Plan, Sides, Traffic};
use leasehold::core::{Millis, Policies};
use serde::Serialize;

use super::again;

#[derive(Serialize)]
pub(super) struct PlanJson {
    accepted: bool,
    refused: Option<RefusedJson>,
    warnings: Vec<WarningJson>,
    ttl_ms: u64,
    schedule: &'static str,
    renew_every_ms: u64,
    second_attempt_ms: u64,
    round_trip_ms: u64,
    drift_ppm: u32,
    clock_bound_ms: u64,
    in_flight_ms: u64,
    margin_ms: u64,
    guard_ms: u64,
    effective_ms: u64,
    overdue_ms: u64,
    grace_ms: u64,
    delay_ms: u64,
    max_ttl_ms: u64,
    inequalities: Vec<SidesJson>,
    gaps: GapsJson,
    pauses: PausesJson,
    leases: u64,
    coalesced: TrafficJson,
    separate: TrafficJson,
}

#[derive(Serialize)]
struct RefusedJson {
    inequality: Option<&'static str>,
    message: String,
    nearest: Option<NearestJson>,
}

#[derive(Serialize)]
struct NearestJson {
    changes: String,
    command: String,
    ttl_ms: u64,
    renew_every_ms: Option<u64>,
    margin_ms: Option<u64>,
    round_trip_ms: Option<u64>,
    schedule: &'static str,
}

#[derive(Serialize)]
struct WarningJson {
    name: &'static str,
    condition: &'static str,
    reason: &'static str,
}

#[derive(Serialize)]
struct SidesJson {
    name: &'static str,
    left_ms: u64,
    relation: &'static str,
    right_ms: u64,
    holds: bool,
}

#[derive(Serialize)]
struct GapsJson {
    planned_ms: u64,
    planned_polling_ms: u64,
    unplanned_ms: u64,
    unplanned_polling_ms: u64,
}

#[derive(Serialize)]
struct PausesJson {
    unnoticed_ms: Option<u64>,
    returns_ms: Option<u64>,
    asked_ms: Option<u64>,
    effect: Option<&'static str>,
}

#[derive(Serialize)]
struct TrafficJson {
    sessions: u64,
    renewals_per_day: u64,
    bytes_per_day: u64,
}

pub(super) fn report(plan: &Plan, nearest: Option<&(Ask, Vec<Changed>)>, leases: u64) -> PlanJson {
    let sides = [Some(plan.safety), Some(plan.availability), plan.paused];
    PlanJson {
        accepted: plan.is_accepted(),
        refused: plan.verdict.err().map(|error| RefusedJson {
            inequality: error.inequality().map(Inequality::word),
            message: error.to_string(),
            nearest: nearest.map(|(ask, changed)| near(ask, changed, &plan.policies)),
        }),
        warnings: plan
            .warnings
            .iter()
            .map(|warning| WarningJson {
                name: warning.name(),
                condition: warning.condition(),
                reason: warning.reason(),
            })
            .collect(),
        ttl_ms: plan.ttl.get(),
        schedule: plan.schedule.word(),
        renew_every_ms: plan.renew_every.get(),
        second_attempt_ms: plan.second_attempt.get(),
        round_trip_ms: plan.round_trip.get(),
        drift_ppm: plan.ask.drift.ppm(),
        clock_bound_ms: plan.clock_bound.get(),
        in_flight_ms: plan.in_flight.get(),
        margin_ms: plan.margin.get(),
        guard_ms: plan.guard.get(),
        effective_ms: plan.effective.get(),
        overdue_ms: plan.overdue.get(),
        grace_ms: plan.policies.grace.get(),
        delay_ms: plan.policies.delay.get(),
        max_ttl_ms: plan.ask.max_ttl.get(),
        inequalities: sides.into_iter().flatten().map(of_sides).collect(),
        gaps: GapsJson {
            planned_ms: plan.gaps.planned.get(),
            planned_polling_ms: plan.gaps.planned_polling.get(),
            unplanned_ms: plan.gaps.unplanned.get(),
            unplanned_polling_ms: plan.gaps.unplanned_polling.get(),
        },
        pauses: PausesJson {
            unnoticed_ms: plan.pauses.unnoticed.map(Millis::get),
            returns_ms: plan.pauses.returns.map(Millis::get),
            asked_ms: plan.pauses.asked.map(|(pause, _)| pause.get()),
            effect: plan.pauses.asked.map(|(_, effect)| effect.word()),
        },
        leases,
        coalesced: of_traffic(&plan.coalesced),
        separate: of_traffic(&plan.separate),
    }
}

fn near(ask: &Ask, changed: &[Changed], policies: &Policies) -> NearestJson {
    NearestJson {
        changes: again::changes(changed),
        command: again::command(ask, policies),
        ttl_ms: ask.ttl.get(),
        renew_every_ms: ask.renew_every.map(Millis::get),
        margin_ms: ask.margin.map(Millis::get),
        round_trip_ms: ask.round_trip.map(Millis::get),
        schedule: ask.schedule.word(),
    }
}

fn of_sides(sides: Sides) -> SidesJson {
    let relation = if sides.which == Inequality::Safety { ">=" } else { "<" };
    SidesJson {
        name: sides.which.word(),
        left_ms: sides.left.get(),
        relation,
        right_ms: sides.right.get(),
        holds: sides.holds,
    }
}

fn of_traffic(traffic: &Traffic) -> TrafficJson {
    let Traffic { sessions, renewals_per_day, bytes_per_day } = *traffic;
    TrafficJson { sessions, renewals_per_day, bytes_per_day }
}
