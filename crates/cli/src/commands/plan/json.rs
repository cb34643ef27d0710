//! A plan for programs.

use leasehold::core::numbers::{Ask, Inequality};
use leasehold::core::plan::{Changed, Plan, Sides, Traffic};
use leasehold::core::{Millis, Policies};
use serde::Serialize;

use super::again;

pub(super) fn report(plan: &Plan, nearest: Option<&(Ask, Vec<Changed>)>, leases: u64) -> impl Serialize {
    let Plan { gaps, pauses, policies, .. } = plan;
    let warnings = plan.warnings.iter().map(|warning| {
        object! { name: warning.name(), condition: warning.condition(), reason: warning.reason() }
    });
    let sides = [Some(plan.safety), Some(plan.availability), plan.paused];
    object! {
        accepted: plan.is_accepted(),
        refused: plan.verdict.err().map(|error| object! {
            inequality: error.inequality().map(Inequality::word),
            message: error.to_string(),
            nearest: nearest.map(|(ask, changed)| near(ask, changed, policies)),
        }),
        warnings: warnings.collect::<Vec<_>>(),
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
        grace_ms: policies.grace.get(),
        delay_ms: policies.delay.get(),
        max_ttl_ms: plan.ask.max_ttl.get(),
        inequalities: sides.into_iter().flatten().map(of_sides).collect::<Vec<_>>(),
        gaps: object! {
            planned_ms: gaps.planned.get(),
            planned_polling_ms: gaps.planned_polling.get(),
            unplanned_ms: gaps.unplanned.get(),
            unplanned_polling_ms: gaps.unplanned_polling.get(),
        },
        pauses: object! {
            unnoticed_ms: pauses.unnoticed.map(Millis::get),
            returns_ms: pauses.returns.map(Millis::get),
            asked_ms: pauses.asked.map(|(pause, _)| pause.get()),
            effect: pauses.asked.map(|(_, effect)| effect.word()),
        },
        leases,
        coalesced: of_traffic(&plan.coalesced),
        separate: of_traffic(&plan.separate),
    }
}

fn near(ask: &Ask, changed: &[Changed], policies: &Policies) -> impl Serialize {
    object! {
        changes: again::changes(changed),
        command: again::command(ask, policies),
        ttl_ms: ask.ttl.get(),
        renew_every_ms: ask.renew_every.map(Millis::get),
        margin_ms: ask.margin.map(Millis::get),
        round_trip_ms: ask.round_trip.map(Millis::get),
        schedule: ask.schedule.word(),
    }
}

fn of_sides(sides: Sides) -> impl Serialize {
    object! {
        name: sides.which.word(),
        left_ms: sides.left.get(),
        relation: if sides.which == Inequality::Safety { ">=" } else { "<" },
        right_ms: sides.right.get(),
        holds: sides.holds,
    }
}

fn of_traffic(traffic: &Traffic) -> impl Serialize {
    let Traffic { sessions, renewals_per_day, bytes_per_day } = *traffic;
    object! { sessions, renewals_per_day, bytes_per_day }
}
