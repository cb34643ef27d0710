//! Every rule is needed: with a bug that breaks it, the checker finds a way to break the invariant it is there for.

use std::collections::BTreeSet;

use leasehold_model::invariants::{I1, I2, I3, I4, I5, I9, P4, T1};
use leasehold_model::{Protocol, Rules, Scope, WrongRule, story};
use stateright::{Checker, HasDiscoveries, Model};

fn assert_breaks(bug: WrongRule, scope: Scope, invariant: &'static str) {
    let wanted = HasDiscoveries::AllOf(BTreeSet::from([invariant]));
    let protocol = Protocol { scope, rules: Rules::with(bug) };
    let checker = protocol.checker().finish_when(wanted).spawn_bfs().join();
    let path = checker.assert_any_discovery(invariant);
    let different = checker.unique_state_count();
    println!("with {bug:?}, {invariant} breaks; found in {different} states:\n{}", story::tell(path));
}

#[test]
fn without_the_send_time_two_believe_at_once() {
    assert_breaks(WrongRule::DeadlineFromReceipt, Scope::tight(), I1);
}

#[test]
fn without_the_drift_factor_two_believe_at_once() {
    assert_breaks(WrongRule::NoDriftFactor, Scope::tight(), I1);
}

#[test]
fn without_the_drift_factor_a_renewal_is_not_honoured() {
    assert_breaks(WrongRule::NoDriftFactor, Scope::tight(), I4);
}

#[test]
fn without_the_token_in_a_release_two_believe_at_once() {
    assert_breaks(WrongRule::ReleaseIgnoresToken, Scope::releases(), I1);
}

#[test]
fn without_the_token_in_an_expiry_two_believe_at_once() {
    assert_breaks(WrongRule::ExpiryUnguarded, Scope::expiries(), I1);
}

#[test]
fn without_the_token_in_an_expiry_a_lease_ends_early() {
    assert_breaks(WrongRule::ExpiryUnguarded, Scope::expiries(), I3);
}

#[test]
fn a_grant_that_moves_the_deadline_lets_two_believe_at_once() {
    assert_breaks(WrongRule::GrantMovesDeadline, Scope::tight(), I1);
}

#[test]
fn belief_until_the_release_is_answered_lets_two_believe_at_once() {
    assert_breaks(WrongRule::BeliefUntilReleaseAnswered, Scope::releases(), I1);
}

#[test]
fn an_answer_before_the_commit_tells_of_leases_that_never_were() {
    assert_breaks(WrongRule::AckedBeforeCommit, Scope::leaders(), I3);
}

#[test]
fn a_clock_kept_from_an_earlier_leadership_breaks_log_time() {
    assert_breaks(WrongRule::OldClockKept, Scope::leaders(), T1);
}

#[test]
fn a_fresh_ttl_at_every_change_of_leader_makes_endings_late() {
    assert_breaks(WrongRule::FreshTtlPerFailover, Scope::lateness(), P4);
}

#[test]
fn a_renewal_that_revives_a_session_is_a_resurrection() {
    assert_breaks(WrongRule::EndedRevived, Scope::tight(), I5);
}

#[test]
fn a_renewal_from_before_a_restore_that_revives_a_session_is_a_resurrection() {
    assert_breaks(WrongRule::EndedRevived, Scope::lives(), I5);
}

#[test]
fn without_the_drift_factor_a_renewal_is_not_honoured_by_later_leaders() {
    assert_breaks(WrongRule::NoDriftFactor, Scope::failover(), I4);
}

#[test]
fn a_restore_without_its_wait_lets_two_believe_at_once() {
    assert_breaks(WrongRule::RestoreWithoutWait, Scope::restore(), I1);
}

#[test]
fn a_restore_without_a_new_epoch_repeats_tokens() {
    assert_breaks(WrongRule::RestoreKeepsEpoch, Scope::restore(), I2);
}

#[test]
fn without_the_fence_a_stale_write_is_accepted() {
    assert_breaks(WrongRule::FenceUnchecked, Scope::fence(), I9);
}
