//! Thousands of clients and one node on simulated time: what happens when all of them do the same at one moment.

mod world;

use leasehold_core::protocol::ToClient;
use leasehold_core::{ItemKind, Millis};

use world::{Crowd, Wishes};

const TTL: Millis = Millis::new(10_000);
const SESSIONS: usize = 2_000;
/// Two thousand sessions that renew about every 3 s on average.
const EVEN: usize = 67;

/// The greatest number of renewals in 100 ms: before, and in the ttl that begins so many ttls after all came back at one moment.
struct Peaks {
    before: usize,
    herd: usize,
    first: usize,
    second: usize,
    fourth: usize,
    hints: usize,
}

/// All sessions lose their connection at one moment, are without a service for longer than a renewal interval, and come back to one
/// that was started anew from its log, at one moment.
fn failover(wishes: Wishes) -> Peaks {
    let mut crowd = Crowd::open(SESSIONS, TTL, wishes);
    crowd.run(12_000);
    let before = crowd.peak(crowd.now() - 6_000, crowd.now());
    crowd.fail_over(3_500);
    let back = crowd.now();
    crowd.run(4 * TTL.get());
    assert_eq!(crowd.lost(), 0, "no lease may be lost");
    let peak = |from: u64, to: u64| crowd.peak(back + from, back + to);
    Peaks {
        before,
        herd: peak(0, 100),
        first: peak(100, TTL.get()),
        second: peak(TTL.get(), 2 * TTL.get()),
        fourth: peak(3 * TTL.get(), 4 * TTL.get()),
        hints: crowd.hints(),
    }
}

/// A line of the table, and where its number comes from.
type Row = (&'static str, fn(&Peaks) -> usize);

/// The table in docs/internals/holders-craft.md is what this prints.
#[test]
fn wishes_take_apart_what_a_failover_has_put_together() {
    let (with, without) = (failover(Wishes::Default), failover(Wishes::None));
    println!("| renewals in 100 ms, at most | without wishes | with wishes |\n|---|---:|---:|");
    let rows: [Row; 6] = [
        ("before the failover", |peaks| peaks.before),
        ("as all come back", |peaks| peaks.herd),
        ("in the rest of the first ttl", |peaks| peaks.first),
        ("in the second ttl", |peaks| peaks.second),
        ("in the fourth ttl", |peaks| peaks.fourth),
        ("wishes sent", |peaks| peaks.hints),
    ];
    for (what, of) in rows {
        println!("| {what} | {} | {} |", of(&without), of(&with));
    }
    for peaks in [&with, &without] {
        assert!(peaks.before < 2 * EVEN, "before the failover the renewals were spread: {}", peaks.before);
        assert_eq!(peaks.herd, SESSIONS, "they come back at one moment");
    }
    assert_eq!(without.hints, 0);
    assert!(without.first > 4 * EVEN, "without wishes they stay together: {}", without.first);
    assert!(with.first < 2 * EVEN, "with wishes they do not: {}", with.first);
    assert!(with.second < 2 * EVEN && with.fourth < 2 * EVEN, "{} and {}", with.second, with.fourth);
    assert!(2 * with.second < without.second, "{} to {}", with.second, without.second);
    // Those that came together, and nobody afterwards.
    assert_eq!(with.hints, SESSIONS);
}

#[test]
fn sessions_that_renew_at_their_own_pace_are_asked_for_nothing() {
    let mut crowd = Crowd::open(500, TTL, Wishes::Default);
    crowd.run(3 * TTL.get());
    assert_eq!((crowd.hints(), crowd.lost()), (0, 0));
    assert!(crowd.renewals() > 4_000, "{} renewals", crowd.renewals());
}

#[test]
fn the_end_of_a_holder_is_told_to_the_first_of_a_thousand_waiters_and_to_nobody_else() {
    let mut crowd = Crowd::open(1_001, TTL, Wishes::Default);
    crowd.run(1_000);
    let wait = Millis::new(3_600_000);
    crowd.acquire(0, "herd", None);
    crowd.run(500);
    for client in 1..=1_000 {
        crowd.acquire(client, "herd", Some(wait));
    }
    crowd.run(1_000);
    assert_eq!(crowd.queue("herd"), 1_000);
    // The holder is gone without a word.
    crowd.kill(0);
    crowd.heard.clear();
    crowd.run(12_000);
    let items: Vec<_> = crowd
        .heard
        .iter()
        .filter_map(|(client, message)| match message {
            ToClient::Items { items, .. } => Some((*client, items)),
            _ => None,
        })
        .collect();
    let [(winner, granted)] = items.as_slice() else { panic!("{} clients were told", items.len()) };
    assert!(matches!(granted.as_slice(), [item] if matches!(item.kind, ItemKind::WaitGranted { .. })));
    assert_eq!(*winner, 1, "the first in the queue");
    assert_eq!((crowd.queue("herd"), crowd.lost()), (999, 0));
}
