//! Whether the real table and the naive one show the same state, through what the real one lets people see.

use leasehold_core::table::{HoldingState, LeaseView, ReadinessView};
use leasehold_core::{CommandNumber, ItemNumber, LeaseTable, Millis, RegisterKey};
use proptest::prelude::*;

use super::resolve::resource;
use leasehold_oracle::Naive;

pub(crate) fn same_state(table: &LeaseTable, naive: &Naive) -> Result<(), TestCaseError> {
    prop_assert_eq!(table.sizes(), (naive.sessions.len(), naive.names.len()), "sessions and names");
    prop_assert_eq!(table.newest(), (u64::from(naive.epoch) << 48) | naive.counter, "the counter");
    same_sessions(table, naive)?;
    (0..3).try_for_each(|nth| same_resource(table, naive, nth))
}

fn same_sessions(table: &LeaseTable, naive: &Naive) -> Result<(), TestCaseError> {
    let shown =
        table.sessions(None, usize::MAX).map(|view| (view.session, view.overdue, view.leases, view.waits));
    let lives = naive.sessions.iter().filter(|session| !naive.is_over(session.id));
    let expected = lives.map(|session| {
        let leases = naive.leases.iter().filter(|lease| lease.session == session.id).count();
        let waits = naive.waits.iter().filter(|wait| wait.session == session.id).count();
        (session.id, !naive.is_live(session.id), leases, waits)
    });
    prop_assert_eq!(shown.collect::<Vec<_>>(), expected.collect::<Vec<_>>(), "sessions");
    for session in &naive.sessions {
        let unseen: Vec<_> = table.unseen(session.id).cloned().collect();
        prop_assert_eq!(&unseen, &session.unseen, "unseen items of {}", session.id);
        if !naive.is_over(session.id) {
            let position = (CommandNumber::new(session.last_command), ItemNumber::new(session.last_item));
            prop_assert_eq!(table.stream_position(session.id), Some(position), "streams of {}", session.id);
            let attached = table.attachment(session.id).map(leasehold_core::AttachNumber::get);
            prop_assert_eq!(attached, Some(session.attach), "attachment of {}", session.id);
        }
    }
    Ok(())
}

/// What holders tell of drains and offers.
fn same_told(view: &LeaseView, naive: &Naive) -> Result<(), TestCaseError> {
    for holder in &view.holders {
        let lease = naive.lease(&view.resource, holder.token).expect("the same holders were compared before");
        let left = |until: u64| Millis::new(until.saturating_sub(naive.now));
        let drain = holder.draining.map(|shown| (shown.in_flight, shown.remaining));
        let expected = lease.draining.map(|(in_flight, until)| (in_flight, left(until)));
        prop_assert_eq!(drain, expected, "drain of {} {}", view.resource, holder.token);
        let ready = holder.readiness.map(|readiness| match readiness {
            ReadinessView::WarmingUp => None,
            ReadinessView::ReadyAfter(length) => Some(length.get()),
        });
        prop_assert_eq!(ready, lease.ready, "readiness of {} {}", view.resource, holder.token);
        let shown = holder.offer.as_ref().map(|offer| (offer.to, offer.ready, offer.remaining));
        let stands =
            lease.offer.as_ref().filter(|offer| naive.now <= offer.until && !naive.is_over(offer.to));
        let expected = stands.map(|offer| {
            let ready = offer.ready.as_ref().is_some_and(|ready| naive.still_ready(offer.to, ready));
            (offer.to, ready && naive.is_live(offer.to), left(offer.until))
        });
        prop_assert_eq!(shown, expected, "offer of {} {}", view.resource, holder.token);
    }
    Ok(())
}

fn same_resource(table: &LeaseTable, naive: &Naive, nth: u8) -> Result<(), TestCaseError> {
    let name = resource(nth);
    let raised = naive.alarms.iter().find(|(alarmed, _)| *alarmed == name).map(|(_, token)| *token);
    prop_assert_eq!(table.alarm(&name).map(|alarm| alarm.token), raised, "alarm of {}", name);
    let (Some(view), Some(known)) = (table.lease(&name), naive.name(&name)) else {
        let known = naive.name(&name).is_some() || raised.is_some();
        prop_assert_eq!(table.lease(&name).is_some(), known, "{} is known", name);
        return Ok(());
    };
    let shown: Vec<_> = view
        .holders
        .iter()
        .map(|h| (h.session, h.token, h.fence, h.slot, h.shared, h.value.clone(), h.held_for.get(), h.state))
        .collect();
    let holders = naive.leases_on(&name).filter(|lease| !naive.is_over(lease.session));
    let expected: Vec<_> = holders
        .map(|l| {
            let state = match (&l.revoked, naive.is_live(l.session)) {
                (Some(_), _) => HoldingState::Revoked,
                (None, false) => HoldingState::Overdue,
                (None, true) => HoldingState::Held,
            };
            // Outages are told though log time stood still in them.
            let held_for = naive.now - l.since + naive.dark - l.dark;
            (l.session, l.token, l.fence, l.slot, l.shared, Some(l.value.clone()), held_for, state)
        })
        .collect();
    prop_assert_eq!(shown, expected, "holders of {}", name);
    same_told(&view, naive)?;
    let queue: Vec<_> = view.queue.iter().map(|waiter| (waiter.session, waiter.overdue)).collect();
    let expected: Vec<_> =
        naive.queue(&name).map(|wait| (wait.session, !naive.is_live(wait.session))).collect();
    prop_assert_eq!(queue, expected, "queue of {}", name);
    let running = naive.cooling.iter().filter(|c| c.resource == name && naive.now <= c.until);
    let cool_down = running.map(|cooling| Millis::new(cooling.until - naive.now)).max();
    prop_assert_eq!(view.cool_down, cool_down, "cool-down of {}", name);
    prop_assert_eq!(view.transitions, known.grants, "grants of {}", name);
    let history: Vec<_> =
        table.history(&name).into_iter().map(|past| (past.token, past.session, past.how)).collect();
    let past = naive.past.iter().rev().filter(|past| past.resource == name);
    let expected: Vec<_> = past.map(|past| (past.token, past.session, past.how.clone())).collect();
    prop_assert_eq!(history, expected, "history of {}", name);
    for key in ["x", "y", "z"] {
        let key = RegisterKey::new(key).expect("a letter is a key");
        let shown = table.register(&name, &key).map(|(value, token)| (value.clone(), token));
        let found = naive.registers.iter().find(|register| register.resource == name && register.key == key);
        let lives = found.filter(|register| {
            let lease = naive.lease(&name, register.token);
            !register.with_lease || lease.is_some_and(|l| l.revoked.is_none() && !naive.is_over(l.session))
        });
        prop_assert_eq!(
            shown,
            lives.map(|register| (register.value.clone(), register.token)),
            "register of {}",
            name
        );
    }
    Ok(())
}
