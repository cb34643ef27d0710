//! The meter of gaps: for how long nobody acted on names, by pattern and by cause. For metrics; nothing here is read by the node itself.

use std::collections::BTreeMap;
use std::fmt;

use leasehold_core::gap::{GapCause, GapNote, GapPart};
use leasehold_core::{LeaseTable, LogTime, Millis, ResourceName};

use crate::stats::Buckets;

/// Names that are counted together: one name, or all that begin with something.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct GapPattern(String);

impl GapPattern {
    /// Reads a pattern: a name, or a beginning of names and a star.
    ///
    /// # Errors
    /// When it is empty, or has a star anywhere but at its end.
    pub fn new(text: &str) -> Result<Self, String> {
        let beginning = text.strip_suffix('*').unwrap_or(text);
        if text.is_empty() || beginning.contains('*') {
            return Err(format!(
                "pattern {text:?} is not a name and not a beginning of names with * behind it, such as jobs/*"
            ));
        }
        Ok(Self(text.to_owned()))
    }

    fn matches(&self, name: &ResourceName) -> bool {
        match self.0.strip_suffix('*') {
            Some(beginning) => name.as_str().starts_with(beginning),
            None => name.as_str() == self.0,
        }
    }
}

impl fmt::Display for GapPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Milliseconds of one part of a gap.
const GAP_BOUNDS: &[u64] =
    &[1, 5, 10, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 15_000, 30_000, 60_000, 300_000, 3_600_000];

/// What was counted of gaps since this process began.
#[derive(Debug, Clone)]
pub struct GapFigures {
    causes: BTreeMap<GapCause, Buckets>,
    /// Outages whose length nobody knows.
    unknown_outages: u64,
    outages: Buckets,
}

impl Default for GapFigures {
    fn default() -> Self {
        Self { causes: BTreeMap::new(), unknown_outages: 0, outages: Buckets::new(GAP_BOUNDS) }
    }
}

impl GapFigures {
    /// Milliseconds of gaps that are over, by cause: each gap counts once for each of its causes.
    pub fn causes(&self) -> impl Iterator<Item = (GapCause, &Buckets)> {
        self.causes.iter().map(|(cause, buckets)| (*cause, buckets))
    }

    /// Milliseconds of outages, and how many had a length that nobody knows.
    pub fn outages(&self) -> (&Buckets, u64) {
        (&self.outages, self.unknown_outages)
    }
}

/// How long nobody acted on the names of one pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Leaderless {
    /// All gaps together, since this process began. It never falls.
    pub total: Millis,
    /// Names on which nobody acts now.
    pub names: u64,
    /// For how long nobody has acted on the one of them that has waited longest.
    pub longest: Millis,
}

/// Counts gaps. What this process finds in its log when it begins was counted by another.
#[derive(Debug, Default)]
pub(crate) struct GapMeter {
    figures: GapFigures,
    patterns: Vec<(GapPattern, Leaderless)>,
    /// Names of the patterns on which nobody acts, and up to where that is counted.
    open: BTreeMap<ResourceName, (usize, LogTime)>,
    /// What is settled of gaps that are not over, by cause.
    settled: BTreeMap<ResourceName, BTreeMap<GapCause, Millis>>,
    /// What was before this point was counted by another process.
    since: LogTime,
}

impl GapMeter {
    pub(crate) fn new(patterns: Vec<GapPattern>) -> Self {
        let patterns = patterns.into_iter().map(|pattern| (pattern, Leaderless::default())).collect();
        Self { patterns, ..Self::default() }
    }

    pub(crate) fn figures(&self) -> GapFigures {
        self.figures.clone()
    }

    /// Begins with the table as it is. What was open up to `counted` of a table before it is added first: a total never falls.
    pub(crate) fn begin(&mut self, table: &LeaseTable, counted: LogTime) {
        for name in self.open.keys().cloned().collect::<Vec<_>>() {
            self.leave(&name, counted);
        }
        self.settled.clear();
        self.since = table.last_at();
        let open =
            table.open_gaps().filter_map(|(name, end)| Some((name.clone(), (self.pattern(name)?, end))));
        self.open = open.collect();
    }

    /// Follows an entry that another process has counted.
    pub(crate) fn pass(&mut self, notes: &[GapNote], at: LogTime) {
        self.since = at;
        for note in notes {
            match note {
                GapNote::Began { resource, from } => self.begun(resource, *from),
                GapNote::Part { resource, part } => drop(self.advance(resource, part)),
                GapNote::Over { resource } | GapNote::Forgotten { resource } => {
                    self.open.remove(resource);
                }
                GapNote::Outage { .. } => {}
            }
        }
    }

    /// Takes note of what an entry at `at` says.
    pub(crate) fn note(&mut self, note: &GapNote, at: LogTime) {
        match note {
            GapNote::Began { resource, from } => self.begun(resource, *from),
            GapNote::Part { resource, part } => {
                let causes = self.settled.entry(resource.clone()).or_default();
                let sum = causes.entry(part.cause).or_default();
                *sum = sum.saturating_add(part.length);
                if let Some((place, length)) = self.advance(resource, part) {
                    let total = &mut self.patterns[place].1.total;
                    *total = total.saturating_add(length);
                }
            }
            GapNote::Over { resource } => {
                self.open.remove(resource);
                self.observe(resource);
            }
            GapNote::Forgotten { resource } => {
                self.leave(resource, at);
                self.settled.remove(resource);
            }
            GapNote::Outage { length: Some(length) } => self.figures.outages.add(length.get()),
            GapNote::Outage { length: None } => self.figures.unknown_outages += 1,
        }
    }

    fn begun(&mut self, name: &ResourceName, from: LogTime) {
        if let Some(place) = self.pattern(name) {
            self.open.insert(name.clone(), (place, from));
        }
    }

    /// Moves what is counted of an open gap, and says by how much that is more, and for which pattern.
    fn advance(&mut self, name: &ResourceName, part: &GapPart) -> Option<(usize, Millis)> {
        let (place, from) = self.open.get_mut(name)?;
        if part.cause == GapCause::Outage {
            return Some((*place, part.length));
        }
        let begin = *from;
        *from = begin.plus(part.length);
        Some((*place, from.since(begin.max(self.since))))
    }

    /// A name is not followed any more: what was open of it counts up to `at`.
    fn leave(&mut self, name: &ResourceName, at: LogTime) {
        if let Some((place, counted)) = self.open.remove(name) {
            let total = &mut self.patterns[place].1.total;
            *total = total.saturating_add(at.since(counted.max(self.since)));
        }
    }

    /// A gap is over: each of its causes counts once.
    fn observe(&mut self, name: &ResourceName) {
        for (cause, length) in self.settled.remove(name).unwrap_or_default() {
            if length > Millis::ZERO {
                let buckets = self.figures.causes.entry(cause).or_insert_with(|| Buckets::new(GAP_BOUNDS));
                buckets.add(length.get());
            }
        }
    }

    fn pattern(&self, name: &ResourceName) -> Option<usize> {
        self.patterns.iter().position(|(pattern, _)| pattern.matches(name))
    }

    /// Each pattern with what was counted of it up to `at`. `lasts` says for how long nobody has acted on a name, maybe later than that: a
    /// leader that has nothing to put into its log knows what time it is.
    pub(crate) fn patterns(
        &self,
        at: LogTime,
        lasts: impl Fn(&ResourceName) -> Option<Millis>,
    ) -> Vec<(GapPattern, Leaderless)> {
        let mut patterns = self.patterns.clone();
        for (name, (place, counted)) in &self.open {
            let (_, leaderless) = &mut patterns[*place];
            leaderless.total = leaderless.total.saturating_add(at.since((*counted).max(self.since)));
            leaderless.names += 1;
            leaderless.longest = leaderless.longest.max(lasts(name).unwrap_or(Millis::ZERO));
        }
        patterns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> ResourceName {
        ResourceName::new(text).unwrap()
    }

    fn part(resource: &str, cause: GapCause, length: u64) -> GapNote {
        GapNote::Part { resource: name(resource), part: GapPart { cause, length: Millis::new(length) } }
    }

    fn total(meter: &GapMeter, at: u64) -> u64 {
        let at = LogTime::new(at);
        meter.patterns(at, |_| None)[0].1.total.get()
    }

    #[test]
    fn a_pattern_is_a_name_or_a_beginning_with_a_star() {
        for (text, good) in
            [("jobs/*", true), ("*", true), ("leader", true), ("", false), ("a*b", false), ("**", false)]
        {
            assert_eq!(GapPattern::new(text).is_ok(), good, "{text}");
        }
    }

    /// There to find: a share of what is open that vanishes when its name is forgotten, and a name that is kept for ever.
    #[test]
    fn a_total_never_falls_when_a_name_is_forgotten() {
        let mut meter = GapMeter::new(vec![GapPattern::new("jobs/*").unwrap()]);
        let began = GapNote::Began { resource: name("jobs/a"), from: LogTime::new(100) };
        meter.note(&began, LogTime::new(100));
        assert_eq!(total(&meter, 900), 800);
        meter.note(&GapNote::Forgotten { resource: name("jobs/a") }, LogTime::new(1_000));
        assert_eq!((total(&meter, 5_000), meter.open.len(), meter.settled.len()), (900, 0, 0));
    }

    /// There to find: a process that begins in the middle of a gap of which a part was settled, and counts that part for the next.
    #[test]
    fn a_total_never_falls_behind_a_restart_in_the_middle_of_a_gap() {
        let mut meter = GapMeter::new(vec![GapPattern::new("a").unwrap()]);
        meter.pass(&[GapNote::Began { resource: name("a"), from: LogTime::ZERO }], LogTime::ZERO);
        meter.pass(&[part("a", GapCause::Queue, 1_000)], LogTime::new(1_000));
        meter.pass(&[], LogTime::new(2_000));
        assert_eq!(total(&meter, 3_000), 1_000);
        meter.note(&part("a", GapCause::Alarm, 2_000), LogTime::new(3_000));
        assert_eq!(total(&meter, 3_000), 1_000);
        meter.note(&part("a", GapCause::Queue, 10), LogTime::new(3_010));
        meter.note(&GapNote::Over { resource: name("a") }, LogTime::new(3_010));
        assert_eq!(total(&meter, 9_000), 1_010);
    }

    /// There to find: a cause that is cut in two by an outage and counts as two gaps.
    #[test]
    fn a_gap_counts_once_for_each_of_its_causes() {
        let mut meter = GapMeter::new(Vec::new());
        for note in [
            part("a", GapCause::Detection, 300),
            part("a", GapCause::Outage, 0),
            part("a", GapCause::Detection, 700),
            part("a", GapCause::Queue, 5),
        ] {
            meter.note(&note, LogTime::ZERO);
        }
        meter.note(&GapNote::Over { resource: name("a") }, LogTime::ZERO);
        let counted: Vec<_> =
            meter.figures.causes().map(|(cause, buckets)| (cause, buckets.count(), buckets.sum())).collect();
        assert_eq!(counted, [(GapCause::Detection, 1, 1_000), (GapCause::Queue, 1, 5)]);
    }
}
