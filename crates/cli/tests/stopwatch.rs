//! What `gaps` tells, beside a stopwatch: staged incidents with real processes and real signals.
//!
//! Every holder says when it acts, each few milliseconds and only while its own library lets it. The stopwatch of a gap runs from the last
//! such moment of one holder to the first of the next. It must lie between the two lengths that `gaps` tells, and the greater must not
//! exceed it by more than a renewal interval and 0.2 s.
//!
//! Six cases are run here. `LEASEHOLD_CASES=all` runs every one, as `cargo xtask test --everything` does, and another word those whose names
//! contain it; with `--nocapture` they are printed as a table.
#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

#[path = "stopwatch/cases.rs"]
mod cases;
#[path = "cluster/stage.rs"]
#[expect(dead_code, reason = "the cluster's own tests use the rest")]
mod cluster;
#[path = "stopwatch/judge.rs"]
mod judge;
#[path = "stopwatch/lateness.rs"]
mod lateness;
#[path = "promises/stage.rs"]
#[expect(dead_code, reason = "the promises use the rest")]
mod place;
#[path = "stopwatch/plain.rs"]
mod plain;
#[path = "stopwatch/scene.rs"]
mod scene;

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use cases::{CASES, Case};
use judge::Row;

/// They wait more than they compute.
const AT_ONCE: usize = 8;

#[test]
fn six_of_many_cases_are_run_every_time() {
    let short = CASES.iter().filter(|case| case.short).count();
    assert!(short == 6 && CASES.len() >= 40, "{short} of {}", CASES.len());
}

#[test]
fn a_stopwatch_lies_between_the_two_lengths() {
    let asked = std::env::var("LEASEHOLD_CASES").ok();
    let is_chosen = |case: &&Case| match asked.as_deref() {
        None => case.short,
        Some(word) => word == "all" || case.name.contains(word),
    };
    let chosen: Vec<&Case> = CASES.iter().filter(is_chosen).collect();
    let (next, rows) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(case) = chosen.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let told = std::panic::catch_unwind(case.play);
                    let told =
                        told.unwrap_or_else(|_| vec![Row::failed("it could not be staged: see above")]);
                    rows.lock().unwrap().extend(told.into_iter().map(|row| (case.name, row)));
                }
            });
        }
    });
    let rows = rows.into_inner().unwrap();
    println!("| case | stopwatch | at least | at most | what `gaps` said | |\n|---|---:|---:|---:|---|---|");
    for (case, row) in &rows {
        println!("| {case} | {row} |");
    }
    let wrong: Vec<_> = rows.iter().filter(|(_, row)| row.wrong.is_some()).collect();
    assert!(wrong.is_empty(), "{} of {} are wrong: {wrong:#?}", wrong.len(), rows.len());
}
