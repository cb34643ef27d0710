//! With every rule kept, no order of events within the bounds breaks an invariant.
//!
//! `LEASEHOLD_MODEL_DEPTH=N` adds so many ticks and renewals to every scope: minutes to hours instead of seconds.

use leasehold_model::{Protocol, Rules, Scope};
use stateright::{Checker, Model};

fn deeper_by() -> u8 {
    let depth = std::env::var("LEASEHOLD_MODEL_DEPTH").ok();
    depth.map_or(0, |depth| depth.parse().expect("LEASEHOLD_MODEL_DEPTH is a small number"))
}

/// Also asserts that everything the scope is there for was reached.
fn assert_nothing_breaks(scope: Scope) {
    let name = scope.name;
    let checker =
        Protocol { scope: scope.deeper(deeper_by()), rules: Rules::all() }.checker().spawn_bfs().join();
    checker.assert_properties();
    let (all, different, depth) = (checker.state_count(), checker.unique_state_count(), checker.max_depth());
    println!("{name}: {all} states, {different} different, at most {depth} steps deep");
}

#[test]
fn nothing_breaks_under_every_mix_of_clocks() {
    assert_nothing_breaks(Scope::clocks());
}

#[test]
fn nothing_breaks_when_releases_come_late_and_twice() {
    assert_nothing_breaks(Scope::releases());
}

#[test]
fn nothing_breaks_when_expiries_are_proposed_twice() {
    assert_nothing_breaks(Scope::expiries());
}

#[test]
fn nothing_breaks_when_tails_are_cut_kept_and_revived() {
    assert_nothing_breaks(Scope::leaders());
}

#[test]
fn nothing_breaks_when_a_leader_changes_amid_renewals() {
    assert_nothing_breaks(Scope::failover());
}

#[test]
fn nothing_breaks_when_there_is_more_time_after_a_change_of_leader() {
    assert_nothing_breaks(Scope::patience());
}

#[test]
fn nothing_breaks_across_a_restore() {
    assert_nothing_breaks(Scope::restore());
}

#[test]
fn nothing_breaks_when_leaders_change_around_a_restore() {
    assert_nothing_breaks(Scope::lives());
}

#[test]
fn nothing_breaks_at_a_fenced_receiver() {
    assert_nothing_breaks(Scope::fence());
}

#[test]
fn nobody_is_late_by_more_than_is_promised() {
    assert_nothing_breaks(Scope::lateness());
}
