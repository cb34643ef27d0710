//! Worlds are decided by their seed, and the ones tried here keep every promise.

use leasehold_sim::check::Depth;
use leasehold_sim::plan::{Fault, Plan};
use leasehold_sim::run::{Outcome, run};
use leasehold_sim::trace::{SECOND, Trace};

fn of(seed: u64) -> (Plan, Outcome) {
    let plan = Plan { fault_length: 20 * SECOND, ..Plan::of(seed) };
    let outcome = run(&plan, Trace::new(false, 0, 0), Depth::Quick);
    (plan, outcome)
}

#[test]
fn the_same_seed_gives_the_same_world() {
    for seed in 0..6 {
        let ((_, one), (_, two)) = (of(seed), of(seed));
        assert_eq!((one.hash, one.events, one.totals), (two.hash, two.events, two.totals), "seed {seed}");
        assert!(one.events > 10_000, "seed {seed} has {} events", one.events);
    }
}

#[test]
fn other_seeds_give_other_worlds() {
    let hashes: std::collections::BTreeSet<u64> = (0..6).map(|seed| of(seed).1.hash).collect();
    assert_eq!(hashes.len(), 6);
}

#[test]
fn a_few_worlds_keep_every_promise() {
    for seed in 100..112 {
        let (plan, outcome) = of(seed);
        assert!(outcome.violations.is_empty(), "{}: {:#?}", plan.arguments(), outcome.violations);
        assert!(outcome.totals.grants > 0, "seed {seed} granted nothing");
    }
}

#[test]
fn small_worlds_stand_up_to_the_slow_checkers_too() {
    for seed in 200..204 {
        let plan = Plan { fault_length: 5 * SECOND, ..Plan::of(seed) };
        let outcome = run(&plan, Trace::new(false, 0, 0), Depth::Full);
        assert!(outcome.violations.is_empty(), "{}: {:#?}", plan.arguments(), outcome.violations);
    }
}

#[test]
fn a_quarter_of_the_seeds_is_quiet_and_every_fault_is_on_in_some() {
    let plans: Vec<Plan> = (0..400).map(Plan::of).collect();
    let quiet = plans.iter().filter(|plan| plan.faults.iter().next().is_none()).count();
    assert!((60..160).contains(&quiet), "{quiet} of 400 are quiet");
    for fault in Fault::ALL {
        assert!(plans.iter().any(|plan| plan.faults.has(*fault)), "{} is never on", fault.word());
    }
}

#[test]
fn the_arguments_of_a_smaller_plan_name_what_was_taken_away() {
    let seed = (0..).find(|seed| Plan::of(*seed).faults.has(Fault::Kill)).expect("some seed has it");
    let whole = Plan::of(seed);
    let small = Plan { faults: whole.faults.without(Fault::Kill), clients: 2, ..whole };
    assert_eq!(small.arguments(), format!("--seed {seed} --without kill --clients 2"));
}

#[test]
fn clocks_that_break_their_word_are_noticed_by_whoever_does_not_know() {
    let tight = (0..)
        .map(Plan::of)
        .filter(|plan| plan.tight && !plan.faults.iter().any(Fault::is_beyond_assumptions));
    let noticed = tight.take(40).any(|plan| {
        let plan = Plan { clock_ppm: 300_000, fault_length: 60 * SECOND, ..plan };
        let outcome = run(&plan, Trace::new(false, 0, 0), Depth::Quick);
        outcome.violations.iter().any(|words| words.starts_with("I1 "))
    });
    assert!(noticed, "two holders believed at once, or should have");
}
