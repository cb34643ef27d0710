//! Linearizability: what clients saw of one exclusive resource can be put into one order in which each operation takes effect
//! between its call and its return.
//!
//! A Wing-Gong search with memory, just in time: when an operation returns, every way to put pending operations before it is
//! tried from every configuration that is still possible, and each configuration is tried once. Operations without a known outcome,
//! and endings that no client asked for, may take effect at any time after their call, or never. Tokens only rise, so pending
//! grants have one order, and the search stays narrow. What is too wide is not judged, and counted.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use leasehold_core::{Ending, SessionId, Token};

use super::{Id, Run, Violation};
use crate::record::{Asked, Event, Place, ResourceId, Told, TrueTime};

/// Operations pending at once, at most.
const WIDEST: usize = 2_000;
/// Configurations at once, at most.
const MOST_CONFIGURATIONS: usize = 20_000;

/// What was found.
#[derive(Debug, Default)]
pub struct Searched {
    /// Histories without an order.
    pub violations: Vec<Violation>,
    /// Resources that were too wide.
    pub not_judged: u64,
}

/// What an operation does, or sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    /// Nobody holds it, then the holder of this token does.
    Grant(Token),
    /// The holder of this token does, then nobody.
    End(Token),
    /// This is the holder.
    See(Option<Token>),
}

/// An operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Operation {
    /// When it may take effect at the earliest.
    pub call: TrueTime,
    /// When it had taken effect; nothing if it may never.
    pub ret: Option<TrueTime>,
    /// What.
    pub act: Act,
}

/// Searches every resource that was only ever held exclusively.
pub fn check(run: Run<'_>) -> Searched {
    let mut searched = Searched::default();
    if run.excuses.files.is_some() || run.excuses.told_wrongly.is_some() {
        return searched;
    }
    let others: HashSet<ResourceId> = run
        .story
        .leases
        .iter()
        .filter(|lease| lease.shared || lease.place.slot.is_some())
        .map(|lease| lease.place.resource)
        .collect();
    for (resource, operations) in operations(run) {
        if others.contains(&resource) {
            continue;
        }
        match order(&operations) {
            Verdict::Possible => {}
            Verdict::TooWide => searched.not_judged += 1,
            Verdict::Impossible(operation) => {
                let name = &run.record.names[resource.0 as usize];
                let what = format!("{name}: {:?} fits into no order of what clients saw", operation.act);
                searched.violations.push(Violation::new(Id::Linear, operation.ret.unwrap_or_default(), what));
            }
        }
    }
    searched
}

/// What clients saw, resource by resource.
fn operations(run: Run<'_>) -> BTreeMap<ResourceId, Vec<Operation>> {
    let mut by_resource: BTreeMap<ResourceId, Vec<Operation>> = BTreeMap::new();
    let mut asked: HashMap<(SessionId, u64), (TrueTime, Asked)> = HashMap::new();
    let mut reads: HashMap<u64, (TrueTime, ResourceId)> = HashMap::new();
    let mut granted: HashMap<Token, TrueTime> = HashMap::new();
    let mut released: HashSet<Token> = HashSet::new();
    for (now, event) in &run.record.events {
        let mut push = |resource, call, act| {
            by_resource.entry(resource).or_default().push(Operation { call, ret: Some(*now), act });
        };
        match *event {
            Event::Asked { session, command, what } => {
                asked.entry((session, command)).or_insert((*now, what));
            }
            Event::Told { session, command, what } => {
                let Some((call, wanted)) = asked.get(&(session, command)).copied() else { continue };
                match (what, wanted) {
                    (Told::Granted { token, .. }, _) => {
                        granted.entry(token).or_insert(*now);
                    }
                    (Told::Held { token }, Asked::Exclusive { resource, .. }) => {
                        push(resource, call, Act::See(Some(token)));
                    }
                    // What acknowledges a revoke ends nothing.
                    (Told::Released, Asked::Release { resource, token }) if !is_revoked(run, token) => {
                        released.insert(token);
                        push(resource, call, Act::End(token));
                    }
                    _ => {}
                }
            }
            Event::ReadAsked { read, resource, .. } => {
                reads.insert(read, (*now, resource));
            }
            Event::ReadTold { read, holder, .. } if run.excuses.covers_reads(*now, run.healthy()) => {
                if let Some((call, resource)) = reads.get(&read).copied() {
                    push(resource, call, Act::See(holder));
                }
            }
            _ => {}
        }
    }
    for lease in &run.story.leases {
        let Place { resource, .. } = lease.place;
        let operations = by_resource.entry(resource).or_default();
        let known = asked.get(&(lease.session, lease.command));
        let call = known.map_or(TrueTime::ZERO, |(call, _)| *call);
        let ret = granted.get(&lease.token).copied();
        operations.push(Operation { call, ret, act: Act::Grant(lease.token) });
        if !released.contains(&lease.token) {
            operations.push(Operation { call, ret: None, act: Act::End(lease.token) });
        }
    }
    by_resource
}

fn is_revoked(run: Run<'_>, token: Token) -> bool {
    let end = run.story.lease(token).and_then(|lease| lease.end.as_ref());
    end.is_none_or(|end| matches!(end.how, Ending::Revoked { .. }))
}

/// Whether there is an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// There is.
    Possible,
    /// There is none in which this operation fits.
    Impossible(Operation),
    /// Not searched to the end.
    TooWide,
}

/// Where an order can stand: the last token granted, whether it is held, and which pending operations have taken effect.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Configuration {
    last: Option<Token>,
    held: bool,
    done: BTreeSet<usize>,
}

/// Searches for an order.
pub fn order(operations: &[Operation]) -> Verdict {
    // At one moment calls come before returns: the order is open, and this allows more.
    let calls = operations.iter().enumerate().map(|(nth, operation)| (operation.call, false, nth));
    let returns =
        operations.iter().enumerate().filter_map(|(nth, operation)| Some((operation.ret?, true, nth)));
    let mut points: Vec<(TrueTime, bool, usize)> = calls.chain(returns).collect();
    points.sort_unstable();
    let mut pending: BTreeSet<usize> = BTreeSet::new();
    let mut possible: BTreeSet<Configuration> =
        BTreeSet::from([Configuration { last: None, held: false, done: BTreeSet::new() }]);
    for (_, returns, nth) in points {
        if !returns {
            pending.insert(nth);
            if pending.len() > WIDEST {
                return Verdict::TooWide;
            }
            continue;
        }
        let Some(next) = until_done(operations, &pending, possible, nth) else { return Verdict::TooWide };
        if next.is_empty() {
            return Verdict::Impossible(operations[nth]);
        }
        pending.remove(&nth);
        possible = next;
        forget(operations, &mut pending, &mut possible);
    }
    Verdict::Possible
}

/// All configurations in which `wanted` has taken effect, reached from `from` in any way.
fn until_done(
    operations: &[Operation],
    pending: &BTreeSet<usize>,
    from: BTreeSet<Configuration>,
    wanted: usize,
) -> Option<BTreeSet<Configuration>> {
    let mut reached = BTreeSet::new();
    let mut seen = from.clone();
    let mut open: Vec<Configuration> = from.into_iter().collect();
    while let Some(configuration) = open.pop() {
        if configuration.done.contains(&wanted) {
            let mut configuration = configuration;
            configuration.done.remove(&wanted);
            reached.insert(configuration);
            continue;
        }
        for nth in pending.difference(&configuration.done) {
            let Some(next) = configuration.after(operations, pending, *nth) else { continue };
            if seen.insert(next.clone()) {
                open.push(next);
            }
        }
        if seen.len() > MOST_CONFIGURATIONS {
            return None;
        }
    }
    Some(reached)
}

impl Configuration {
    /// This, and then the effect of a pending operation, if it can take effect now.
    fn after(&self, operations: &[Operation], pending: &BTreeSet<usize>, nth: usize) -> Option<Self> {
        let mut next = self.clone();
        match operations[nth].act {
            Act::Grant(token) => {
                // A smaller one that must still come could never come afterwards.
                let too_soon = pending.iter().any(|other| {
                    let operation = &operations[*other];
                    let smaller = matches!(operation.act, Act::Grant(smaller) if smaller < token);
                    smaller && operation.ret.is_some() && !self.done.contains(other)
                });
                if self.held || self.last.is_some_and(|last| last >= token) || too_soon {
                    return None;
                }
                (next.last, next.held) = (Some(token), true);
            }
            Act::End(token) => {
                if !self.held || self.last != Some(token) {
                    return None;
                }
                next.held = false;
            }
            Act::See(holder) => {
                if holder != self.last.filter(|_| self.held) {
                    return None;
                }
            }
        }
        next.done.insert(nth);
        Some(next)
    }
}

/// Drops what can take effect in no configuration any more.
fn forget(operations: &[Operation], pending: &mut BTreeSet<usize>, possible: &mut BTreeSet<Configuration>) {
    let Some(oldest) = possible.iter().map(|configuration| configuration.last).min() else { return };
    let dead: Vec<usize> = pending
        .iter()
        .copied()
        .filter(|nth| match (operations[*nth].act, operations[*nth].ret) {
            (Act::Grant(token) | Act::End(token), None) => Some(token) < oldest,
            _ => false,
        })
        .collect();
    if dead.is_empty() {
        return;
    }
    for nth in &dead {
        pending.remove(nth);
    }
    *possible = std::mem::take(possible)
        .into_iter()
        .map(|mut configuration| {
            configuration.done.retain(|nth| pending.contains(nth));
            configuration
        })
        .collect();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::excuse::Excuses;
    use crate::check::stage::{Stage, caught};
    use crate::check::story::Story;

    fn operation(call: u64, ret: Option<u64>, act: Act) -> Operation {
        Operation { call: TrueTime(call), ret: ret.map(TrueTime), act }
    }

    fn grant(call: u64, ret: u64, token: u64) -> Operation {
        operation(call, Some(ret), Act::Grant(Token::from_u64(token)))
    }

    fn end(call: u64, ret: Option<u64>, token: u64) -> Operation {
        operation(call, ret, Act::End(Token::from_u64(token)))
    }

    fn see(call: u64, ret: u64, token: Option<u64>) -> Operation {
        operation(call, Some(ret), Act::See(token.map(Token::from_u64)))
    }

    #[test]
    fn one_after_the_other_is_an_order() {
        let history =
            [grant(0, 1, 1), see(2, 3, Some(1)), end(4, Some(5), 1), see(6, 7, None), grant(8, 9, 2)];
        assert_eq!(order(&history), Verdict::Possible);
    }

    #[test]
    fn a_stale_read_fits_into_no_order_unless_it_is_concurrent() {
        let history = |call| [grant(0, 1, 1), end(2, Some(5), 1), see(call, 9, Some(1))];
        assert_eq!(order(&history(4)), Verdict::Possible);
        assert_eq!(order(&history(6)), Verdict::Impossible(see(6, 9, Some(1))));
    }

    #[test]
    fn two_holders_at_once_fit_into_no_order() {
        let history = [grant(0, 1, 1), grant(0, 3, 2), end(4, Some(5), 1)];
        assert!(matches!(order(&history), Verdict::Impossible(_)));
        let history = [grant(0, 1, 1), end(2, Some(9), 1), grant(0, 3, 2)];
        assert_eq!(order(&history), Verdict::Possible, "the release has taken effect before its answer");
    }

    #[test]
    fn what_may_never_have_happened_is_taken_both_ways() {
        let lost = end(2, None, 1);
        for seen in [Some(1), None] {
            assert_eq!(order(&[grant(0, 1, 1), lost, see(3, 4, seen)]), Verdict::Possible);
        }
        let back = [grant(0, 1, 1), lost, see(3, 4, None), see(5, 6, Some(1))];
        assert!(matches!(order(&back), Verdict::Impossible(_)), "but not to and fro");
        let smaller = [grant(0, 1, 2), lost, end(2, None, 2), grant(3, 4, 1)];
        assert!(matches!(order(&smaller), Verdict::Impossible(_)));
    }

    #[test]
    fn many_waiters_and_lost_endings_are_searched_quickly() {
        let mut history = Vec::new();
        for token in 1..2_000 {
            // Twenty wait at any time, every third loses its lease to time, and everybody looks.
            let call = 10 * u64::saturating_sub(token, 20);
            history.push(grant(call, 10 * token, token));
            let lost = token % 3 == 0;
            history.push(end(10 * token + 1, (!lost).then_some(10 * token + 9), token));
            history.push(see(10 * token + 1, 10 * token + 8, Some(token)));
        }
        assert_eq!(order(&history), Verdict::Possible);
        history.push(see(19_998, 19_999, Some(1_998)));
        assert!(matches!(order(&history), Verdict::Impossible(_)));
    }

    fn searched(stage: &Stage) -> Searched {
        let (story, excuses) = (Story::of(&stage.record), Excuses::of(&stage.record));
        check(Run { record: &stage.record, story: &story, excuses: &excuses })
    }

    #[test]
    fn a_record_is_searched() {
        let mut stage = Stage::new();
        let (first, second) = (stage.open(1), stage.open(2));
        let token = stage.at(10).acquire(first).unwrap();
        stage.at(20).acquire(second).unwrap_err();
        let next = stage.at(30).release(first, token).unwrap();
        assert_eq!(searched(&stage).violations, []);
        let resource = ResourceId(0);
        for (command, token, count) in [(7, next, 0), (8, token, 1)] {
            stage.at(40).asked(first, command, Asked::Exclusive { resource, wait: None });
            stage.at(50).told(first, command, Told::Held { token });
            assert_eq!(searched(&stage).violations.len(), count);
        }
        caught(&searched(&stage).violations, "fits into no order");
    }
}
