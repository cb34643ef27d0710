//! What is true of the gaps of a day, written down from the incidents that were chosen and from nothing else.
//!
//! A gap is known as two points and the causes between them. A point is a log time and an event: log time stands still in an outage, so only
//! the order of events says on which side of a point an outage lies. In numbers a point is the time outside, in which outages pass.

use std::fmt::Write;

use leasehold_core::Token;
use leasehold_core::gap::{GapCause, GapView};

/// Parts of one gap that are told apart (`docs/reference/limits.md`): later ones are added to the last of the same cause.
const MOST_PARTS: usize = 16;

/// Which event of the day.
pub(crate) type Mark = usize;
/// Which grant of the day.
pub(crate) type GrantId = usize;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Point {
    pub(crate) at: u64,
    pub(crate) mark: Mark,
}

/// Something by which a session shows that it is there.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Heard {
    pub(crate) place: usize,
    pub(crate) point: Point,
    pub(crate) renews: bool,
}

/// A lease of a session with this ttl.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lease {
    pub(crate) session: usize,
    pub(crate) ttl: u64,
    pub(crate) granted: Point,
}

/// Since when nobody acts.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Since {
    /// Since this point, whatever outages there were. Nothing is said of the second length.
    Point(Point),
    /// Since its holder gave it back here, unless its own clock had let go of it before.
    Left(Lease, Point),
    /// Since the last sign of life of its holder, before this event if there is one.
    Silent(Lease, Option<Mark>),
    /// The same, revoked by this event; here its holder said that it knew.
    Acknowledged(Lease, Mark, Point),
}

/// One gap of one name, as the incident has it.
#[derive(Debug, Clone)]
pub(crate) struct Truth {
    pub(crate) name: usize,
    pub(crate) words: String,
    pub(crate) since: Since,
    pub(crate) to: Point,
    /// Each cause with the log time up to which it is the reason, rising.
    pub(crate) causes: Vec<(GapCause, u64)>,
    pub(crate) before: GrantId,
    pub(crate) after: GrantId,
}

/// A holder that acted: from its grant to its last sign of life.
#[derive(Debug, Clone)]
pub(crate) struct Term {
    pub(crate) name: usize,
    pub(crate) grant: GrantId,
    pub(crate) lease: Lease,
    pub(crate) to: Mark,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Blackout {
    pub(crate) mark: Mark,
    pub(crate) at: u64,
    pub(crate) length: Option<u64>,
}

/// A gap in numbers, by the time outside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Known {
    pub(crate) from: u64,
    pub(crate) to: u64,
    /// For how long the holder before may have acted, where the incident says it.
    pub(crate) leeway: Option<u64>,
    pub(crate) parts: Vec<(GapCause, u64)>,
    pub(crate) before: Token,
    pub(crate) after: Option<Token>,
}

impl Known {
    /// What the table shows to whoever looks at this time outside.
    pub(crate) fn shown(view: &GapView, at: u64) -> Self {
        Self {
            leeway: view.leeway.map(leasehold_core::Millis::get),
            from: at - view.began_ago.get(),
            to: at - view.ended_ago.map_or(0, leasehold_core::Millis::get),
            parts: view.parts.iter().map(|part| (part.cause, part.length.get())).collect(),
            before: view.before.token,
            after: view.after.as_ref().map(|side| side.token),
        }
    }

    pub(crate) fn words(&self) -> String {
        let length: u64 = self.parts.iter().map(|(_, length)| length).sum();
        let number = |token: Token| format!("t{}.{}", token.epoch(), token.get() & 0xffff_ffff_ffff);
        let after = self.after.map_or("nobody".to_owned(), number);
        let mut words =
            format!("{} to {}, {length} ms, {} to {after}:", self.from, self.to, number(self.before));
        for (cause, length) in &self.parts {
            write!(words, " {} {length}", cause.word()).expect("text can be written");
        }
        if let Some(leeway) = self.leeway {
            write!(words, ", leeway {leeway}").expect("text can be written");
        }
        words
    }

    /// Whether this is what is shown.
    pub(crate) fn is(&self, shown: &Self) -> bool {
        let known = Self { leeway: self.leeway.or(shown.leeway), ..self.clone() };
        known == *shown
    }
}

/// The order of events in the log: their places, by mark.
pub(crate) struct Order {
    pub(crate) place: Vec<usize>,
    pub(crate) token: Vec<Token>,
    pub(crate) blackouts: Vec<Blackout>,
    /// Of each session, in order.
    pub(crate) heard: Vec<Vec<Heard>>,
}

/// The last sign of life of a holder, and when it had renewed last.
#[derive(Clone, Copy)]
struct Last {
    sign: Point,
    renewed: u64,
}

/// How long the service waits for a holder that counts `ttl`, by the formula of the documents with a drift of 1000 ppm.
pub(crate) fn stretch(ttl: u64) -> u64 {
    (ttl * 1_001_000).div_ceil(999_000)
}

impl Order {
    /// For how long its own clock had not heard of a renewal, at least, if log time stood still on the way. Else it is overdue soon enough.
    fn unheard(&self, last: &Last, now: Point) -> u64 {
        if !self.blackouts.iter().any(|blackout| self.inside(blackout, last.sign.mark, now.mark)) {
            return 0;
        }
        self.outside_at(now) - self.outside_at(last.sign) + last.sign.at.saturating_sub(last.renewed)
    }

    /// A holder that has lapsed acts only when it has renewed: whatever else it says is no sign of life.
    fn last_of_session(&self, lease: Lease, before: usize) -> Last {
        let heard = &self.heard[lease.session];
        let mut last = Last { sign: heard[0].point, renewed: heard[0].point.at };
        for heard in heard.iter().take_while(|heard| heard.place < before) {
            self.hear(&mut last, lease, heard);
        }
        last
    }

    fn hear(&self, last: &mut Last, lease: Lease, heard: &Heard) {
        let point = heard.point;
        if heard.renews {
            *last = Last { sign: point, renewed: point.at };
        } else if point.at <= last.renewed + stretch(lease.ttl) && self.unheard(last, point) <= lease.ttl {
            last.sign = point;
        }
    }

    fn last(&self, lease: Lease, before: usize) -> Last {
        let last = self.last_of_session(lease, before);
        let later = self.place[lease.granted.mark] > self.place[last.sign.mark];
        Last { sign: if later { lease.granted } else { last.sign }, ..last }
    }

    /// Since when, with the second length, and up to when it is because the holder fell silent though it gave the lease back.
    fn since(&self, since: Since) -> (Point, Option<u64>, Option<u64>) {
        let (lease, before, left) = match since {
            Since::Point(point) => return (point, None, None),
            Since::Left(lease, at) => {
                let place = self.place[at.mark];
                if self.unheard(&self.last_of_session(lease, place), at) <= lease.ttl {
                    return (at, Some(0), None);
                }
                (lease, place, Some(at.at))
            }
            Since::Acknowledged(lease, revoked, given_up) => {
                let (sign, leeway, left) = self.since(Since::Silent(lease, Some(revoked)));
                let most = self.outside_at(given_up) - self.outside_at(sign);
                return (sign, leeway.map(|leeway| leeway.min(most)), left);
            }
            Since::Silent(lease, before) => (lease, before.map_or(usize::MAX, |mark| self.place[mark]), None),
        };
        let Last { sign, renewed } = self.last(lease, before);
        (sign, Some((renewed + stretch(lease.ttl)).saturating_sub(sign.at)), left)
    }

    fn inside(&self, blackout: &Blackout, from: Mark, to: Mark) -> bool {
        let place = self.place[blackout.mark];
        self.place[from] < place && place < self.place[to]
    }

    /// The time in outages whose places are so.
    fn dark(&self, is_so: impl Fn(usize) -> bool) -> u64 {
        let lengths = self.blackouts.iter().filter(|blackout| is_so(self.place[blackout.mark]));
        lengths.filter_map(|blackout| blackout.length).sum()
    }

    /// The time outside at a log time, behind everything up to a place.
    pub(crate) fn outside(&self, at: u64, place: usize) -> u64 {
        at + self.dark(|dark| dark <= place)
    }

    fn outside_at(&self, point: Point) -> u64 {
        point.at + self.dark(|dark| dark < self.place[point.mark])
    }

    /// The gap in numbers, with the outages that lie in it; nothing if it has no length.
    pub(crate) fn known(&self, truth: &Truth) -> Option<Known> {
        let (from, leeway, silent) = self.since(truth.since);
        let inside = |blackout: &&Blackout| self.inside(blackout, from.mark, truth.to.mark);
        let mut blackouts = self.blackouts.iter().filter(inside).peekable();
        let (mut parts, mut reached) = (Vec::new(), from.at);
        let silent = silent.map(|until| (GapCause::Detection, until));
        let causes = silent.iter().chain(&truth.causes);
        for (cause, until) in causes.map(|(cause, until)| (*cause, (*until).min(truth.to.at))) {
            while let Some(blackout) = blackouts.next_if(|blackout| blackout.at <= until.max(reached)) {
                add(&mut parts, cause, blackout.at.max(reached) - reached);
                reached = reached.max(blackout.at);
                add_outage(&mut parts, blackout.length.unwrap_or(0));
            }
            add(&mut parts, cause, until.saturating_sub(reached));
            reached = reached.max(until);
        }
        assert_eq!(reached.max(from.at), truth.to.at, "the causes of {truth:?} do not reach its end");
        for blackout in blackouts {
            add_outage(&mut parts, blackout.length.unwrap_or(0));
        }
        (!parts.is_empty()).then(|| Known {
            leeway,
            from: self.outside_at(from),
            to: self.outside_at(truth.to),
            parts,
            before: self.token[truth.before],
            after: Some(self.token[truth.after]),
        })
    }

    /// From where to where the gaps of a name are told by its incidents.
    pub(crate) fn told(&self, truths: &[Truth], name: usize) -> Vec<(usize, usize)> {
        let of_name = truths.iter().filter(|truth| truth.name == name);
        of_name.map(|truth| (self.place[self.since(truth.since).0.mark], self.place[truth.to.mark])).collect()
    }

    /// Where a holder went on though its own clock had let go of the lease: it could not renew for longer than its ttl. What lies in a
    /// gap of the incidents is not among them.
    pub(crate) fn lapses(&self, term: &Term, told: &[(usize, usize)]) -> Vec<Truth> {
        let lease = term.lease;
        let own = self.place[lease.granted.mark] + 1..=self.place[term.to];
        let heard = &self.heard[lease.session];
        let mut last = Last { sign: heard[0].point, renewed: heard[0].point.at };
        let mut lapses = Vec::new();
        for heard in heard.iter().take_while(|heard| heard.place <= *own.end()) {
            if heard.renews && own.contains(&heard.place) {
                let later = self.place[lease.granted.mark] > self.place[last.sign.mark];
                let sign = if later { lease.granted } else { last.sign };
                let lapsed = self.unheard(&Last { sign, ..last }, heard.point) > lease.ttl;
                if lapsed && !told.iter().any(|(from, to)| *from < heard.place && heard.place <= *to) {
                    lapses.push(Truth {
                        name: term.name,
                        words: format!("{}: the holder could not renew for longer than its ttl", term.name),
                        since: Since::Silent(lease, Some(heard.point.mark)),
                        to: heard.point,
                        causes: vec![(GapCause::Detection, heard.point.at)],
                        before: term.grant,
                        after: term.grant,
                    });
                }
            }
            self.hear(&mut last, lease, heard);
        }
        lapses
    }
}

fn add(parts: &mut Vec<(GapCause, u64)>, cause: GapCause, length: u64) {
    if length > 0 {
        join(parts, cause, length);
    }
}

/// An outage counts even if nobody knows how long it was.
fn add_outage(parts: &mut Vec<(GapCause, u64)>, length: u64) {
    join(parts, GapCause::Outage, length);
}

fn join(parts: &mut Vec<(GapCause, u64)>, cause: GapCause, length: u64) {
    let full = parts.len() >= MOST_PARTS;
    match parts.iter().rposition(|part| part.0 == cause) {
        Some(place) if full || place + 1 == parts.len() => parts[place].1 += length,
        _ => parts.push((cause, length)),
    }
}
