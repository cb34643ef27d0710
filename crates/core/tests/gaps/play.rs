//! Plays a day, and compares what the table shows with what is true.

use std::collections::BTreeMap;

use leasehold_core::gap::{GapCause, GapNote};
use leasehold_core::{
    Answer, Applied, Command, Config, Due, Entry, Event, ItemKind, LeaseTable, LogTime, Refusal, Reply,
    SessionId, System,
};

use super::chance::Chance;
use super::day::Day;
use super::log::{Step, name};
use super::truth::{Known, Order};

/// Gaps that are kept of one name.
const KEPT: usize = 32;

/// Sessions that were silent for longer are not tidied up any more: all of them were named before.
const LONG_OVER: u64 = 900_000;

/// What is true of one name, oldest first: with the place of the event behind which it is, and the incident in words.
type Story = Vec<(usize, Known, String, bool)>;

pub(crate) struct Played {
    seed: u64,
    day: Day,
    pub(crate) steps: Vec<Step>,
    /// The sessions of each name, by their last sign of life.
    sessions: Vec<Vec<(u64, SessionId)>>,
    /// When somebody waits for each name.
    waited_for: Vec<Vec<(u64, u64)>>,
    stories: Vec<Story>,
    order: Order,
}

impl Played {
    pub(crate) fn new(seed: u64, mut day: Day) -> Self {
        let (steps, order, ids) = super::log::write(&mut day);
        let names = 0..day.modes.len();
        let of_name = |nth: usize| {
            let of_name = day.sessions.iter().zip(&ids).filter(|(session, _)| session.name == nth);
            let mut sessions: Vec<_> = of_name.map(|(session, id)| (session.sign.at, *id)).collect();
            sessions.sort_unstable();
            sessions
        };
        let waits = |nth: usize| {
            let of_name = day.waited_for.iter().filter(|(name, _, _)| *name == nth);
            of_name.map(|(_, from, to)| (*from, *to)).collect()
        };
        let stories = names.clone().map(|nth| story(&day, &order, nth)).collect();
        let (sessions, waited_for) = (names.clone().map(of_name).collect(), names.map(waits).collect());
        Self { seed, day, steps, sessions, waited_for, stories, order }
    }

    pub(crate) fn gaps(&self) -> usize {
        self.stories.iter().map(Vec::len).sum()
    }

    pub(crate) fn lapses(&self) -> usize {
        self.stories.iter().flatten().filter(|gap| gap.3).count()
    }

    pub(crate) fn incidents(&self) -> &BTreeMap<&'static str, usize> {
        &self.day.counts
    }

    pub(crate) fn causes(&self) -> BTreeMap<&'static str, u64> {
        let mut causes = BTreeMap::new();
        for (cause, length) in self.stories.iter().flatten().flat_map(|gap| &gap.1.parts) {
            *causes.entry(cause.word()).or_default() += length;
        }
        causes
    }

    fn begin() -> LeaseTable {
        let mut table = LeaseTable::new(Config::default());
        let version =
            Command::System(System::ClusterVersion { version: leasehold_core::table::GAPS_HAVE_TWO_LENGTHS });
        table.apply(&Entry { at: LogTime::ZERO, commands: vec![version] });
        table
    }

    /// As it stands: nothing is tidied up but where a waiter is served by it. A second table replays it, with snapshots on the way.
    pub(crate) fn straight(&self, dice: &mut Chance) {
        let (mut table, mut again) = (Self::begin(), Self::begin());
        let mut sums = Sums::default();
        for step in &self.steps {
            let applied = table.apply(&step.entry);
            self.expect_outcome(step, &applied);
            assert_eq!(again.apply(&step.entry), applied, "seed {}: replay of {:?}", self.seed, step.entry);
            sums.take(&applied);
            for nth in &step.checks {
                self.check(&table, *nth, step.place, "nothing tidied up");
                self.check_sums(&sums, *nth, step.place);
            }
            if dice.once_in(400) {
                let bytes = again.encode();
                again = LeaseTable::decode(&bytes).expect("what was written can be read");
                for nth in 0..self.stories.len() {
                    let (one, other) = (
                        table.gaps(&name(nth), None, LogTime::ZERO),
                        again.gaps(&name(nth), None, LogTime::ZERO),
                    );
                    assert_eq!(
                        one, other,
                        "seed {}: a snapshot at {} changed what is shown",
                        self.seed, step.entry.at
                    );
                }
            }
        }
        assert_eq!(table.check_invariants(), Ok(()));
        assert!(table.encode() == again.encode(), "seed {}: replay ends in other bytes", self.seed);
    }

    /// With tidying at any time at which it does not decide when a waiter is served.
    pub(crate) fn tidied(&self, dice: &mut Chance, once_in: u64) {
        let mut table = Self::begin();
        let mut last = 0;
        for step in &self.steps {
            let at = step.entry.at.get();
            if dice.once_in(once_in) {
                let moment = dice.between(last, at);
                let due = self.due(moment);
                let applied =
                    table.apply(&Entry { at: LogTime::new(moment), commands: vec![Command::Tidy(due)] });
                let granted = applied.events.iter().any(|event| matches!(event, Event::Granted { .. }));
                assert!(!granted, "seed {}: tidying at {moment} served somebody", self.seed);
            }
            last = at;
            table.apply(&step.entry);
            for nth in &step.checks {
                self.check(&table, *nth, step.place, "tidied up at any time");
            }
        }
        assert_eq!(table.check_invariants(), Ok(()));
    }

    /// Everything that nobody waits for at this moment.
    fn due(&self, moment: u64) -> Vec<Due> {
        let mut due = Vec::new();
        for (nth, waits) in self.waited_for.iter().enumerate() {
            // One wait of a name is over before the next begins.
            let last = waits.partition_point(|(from, _)| *from <= moment).checked_sub(1);
            if last.is_some_and(|last| moment <= waits[last].1) {
                continue;
            }
            let sessions = &self.sessions[nth];
            let old = sessions.partition_point(|(sign, _)| sign + LONG_OVER < moment);
            let recent = sessions[old..].iter().take_while(|(sign, _)| *sign <= moment + LONG_OVER);
            due.extend(recent.map(|(_, id)| Due::Session(*id)));
            due.push(Due::Resource(name(nth)));
        }
        due
    }

    /// The incidents went as they were planned.
    fn expect_outcome(&self, step: &Step, applied: &Applied) {
        let granted = applied.events.iter().filter_map(|event| match event {
            Event::Granted { grant, .. } => Some(grant.token),
            _ => None,
        });
        let granted: Vec<_> = granted.collect();
        assert_eq!(granted, step.grants, "seed {}: grants by {:?}", self.seed, step.entry);
        let refused = applied.items.iter().find_map(|(_, item)| match &item.kind {
            ItemKind::Answer { answer: Answer::Refused(Refusal::TokenAhead { .. }), .. } => None,
            ItemKind::Answer { answer: Answer::Refused(refusal), .. } => Some(refusal.clone()),
            _ => None,
        });
        let outright = applied.replies.iter().find(|reply| matches!(reply, Reply::Refused(_)));
        assert!(
            refused.is_none() && outright.is_none(),
            "seed {}: {:?} came to {applied:?}",
            self.seed,
            step.entry
        );
    }

    fn check(&self, table: &LeaseTable, nth: usize, place: usize, how: &str) {
        let at = self.order.outside(table.last_at().get(), place);
        let shown = table.gaps(&name(nth), None, LogTime::ZERO).expect("the name is known").gaps;
        let views: Vec<Known> = shown.iter().map(|view| Known::shown(view, at)).collect();
        let true_now = self.stories[nth].iter().rev().filter(|gap| gap.0 <= place);
        let truth: Vec<_> = true_now.take(views.len().max(KEPT)).collect();
        for place in 0..truth.len().max(views.len()) {
            let (expected, found) = (truth.get(place), views.get(place));
            let same = match (expected, found) {
                (Some(expected), Some(found)) => expected.1.is(found),
                (None, None) => true,
                (Some(_), None) => place >= KEPT,
                (None, Some(_)) => false,
            };
            if !same {
                panic!(
                    "seed {}, at {at}, {how}, gap {place} of name-{nth} ({:?})\n incident  {}\n expected  {}\n found     {}\n behind it expected {}\n behind it found    {}",
                    self.seed,
                    self.day.modes[nth],
                    expected.map_or("none", |gap| &gap.2),
                    expected.map_or("none".to_owned(), |gap| gap.1.words()),
                    found.map_or("none".to_owned(), Known::words),
                    truth.get(place + 1).map_or("none".to_owned(), |gap| gap.1.words()),
                    views.get(place + 1).map_or("none".to_owned(), Known::words),
                );
            }
        }
        for (view, known) in shown.iter().zip(&views) {
            assert_eq!(
                view.length().get(),
                known.to - known.from,
                "the parts of {view:?} are not its length"
            );
        }
        for pair in views.windows(2) {
            assert!(
                pair[1].to <= pair[0].from,
                "seed {}: {} and {}",
                self.seed,
                pair[1].words(),
                pair[0].words()
            );
        }
    }

    /// What whoever counts was told of a name comes to what is true.
    fn check_sums(&self, sums: &Sums, nth: usize, place: usize) {
        let mut expected: BTreeMap<GapCause, u64> = BTreeMap::new();
        for (_, known, _, _) in self.stories[nth].iter().filter(|gap| gap.0 <= place) {
            for (cause, length) in &known.parts {
                *expected.entry(*cause).or_default() += length;
            }
        }
        let found = sums.0.get(name(nth).as_str()).cloned().unwrap_or_default();
        assert_eq!(found, expected, "seed {}: what was told of name-{nth}", self.seed);
    }
}

/// What the notes of all entries come to, by name and cause.
#[derive(Default)]
struct Sums(BTreeMap<String, BTreeMap<GapCause, u64>>);

impl Sums {
    fn take(&mut self, applied: &Applied) {
        for note in &applied.gaps {
            if let GapNote::Part { resource, part } = note {
                let of_name = self.0.entry(resource.as_str().to_owned()).or_default();
                *of_name.entry(part.cause).or_default() += part.length.get();
            }
        }
    }
}

fn story(day: &Day, order: &Order, nth: usize) -> Story {
    let truths = day.truths.iter().filter(|truth| truth.name == nth);
    let known = truths.filter_map(|truth| {
        let known = order.known(truth)?;
        Some((order.place[truth.to.mark], known, truth.words.clone(), false))
    });
    let mut story: Story = known.collect();
    let told = order.told(&day.truths, nth);
    for term in day.terms.iter().filter(|term| term.name == nth) {
        story.extend(
            order.lapses(term, &told).into_iter().filter_map(|lapse| {
                Some((order.place[lapse.to.mark], order.known(&lapse)?, lapse.words, true))
            }),
        );
    }
    story.sort_by_key(|gap| (gap.1.to, gap.1.from, gap.0));
    story
}
