//! What must hold of a disk on which a run ended, whatever ended it.

use crate::model::{IDENTITY, Model, Step, entry, run, states, vote};
use leasehold_wal::mem::{Fault, MemDisk};
use leasehold_wal::{Disk, Options, Record, Wal};
use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

/// States of one crash point; below it all are tried.
const STATES_OF_A_CRASH: usize = 256;
/// States of a crash within a recovery, which itself is one of many.
const STATES_OF_A_SECOND_CRASH: usize = 16;

pub(crate) type Verdict = Result<(), String>;

/// Counts, for the record.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) crash_points: usize,
    pub(crate) exhaustive_points: usize,
    pub(crate) states: usize,
    pub(crate) distinct_states: usize,
    pub(crate) opens: usize,
}

pub(crate) struct Checker<'a> {
    pub(crate) options: Options,
    pub(crate) steps: &'a [Step],
    pub(crate) tally: Tally,
    seen: HashSet<u64>,
}

impl<'a> Checker<'a> {
    pub(crate) fn new(options: Options, steps: &'a [Step]) -> Self {
        Self { options, steps, tally: Tally::default(), seen: HashSet::new() }
    }

    /// Stops a run after every number of operations, and tries what a kill and what a loss of power leaves.
    pub(crate) fn every_crash(&mut self) -> Verdict {
        let mut whole = MemDisk::new();
        let end = run(&mut whole, self.options, self.steps);
        if let Some(error) = end.error {
            return Err(format!("the run does not even end: {error}"));
        }
        for stop in 0..=whole.operations() {
            let mut disk = MemDisk::new();
            disk.stop_after(stop);
            let answered = run(&mut disk, self.options, self.steps).answered;
            disk.restart();
            self.ended(&disk, answered).map_err(|why| format!("stopped after {stop} operations: {why}"))?;
        }
        Ok(())
    }

    /// Makes every operation fail in turn; the process then ends and another one goes on with the run.
    pub(crate) fn every_fault(&mut self, fault: Fault) -> Verdict {
        let mut whole = MemDisk::new();
        run(&mut whole, self.options, self.steps);
        for at in 0..whole.operations() {
            let mut disk = MemDisk::new();
            disk.fail_after(at, fault);
            let answered = run(&mut disk, self.options, self.steps).answered;
            disk.restart();
            let on = |why| format!("{fault:?} at operation {at}: {why}");
            // Power lost at once leaves what a stop at this point leaves; the failure matters to a process that still sees the ghosts.
            let states = states(self.steps);
            let allowed = &states[answered..states.len().min(answered + 2)];
            self.tally.crash_points += 1;
            self.recovery(&disk, allowed).map_err(on)?;
            self.go_on(&mut disk, answered).map_err(on)?;
        }
        Ok(())
    }

    /// All that must hold of a disk on which a run ended after so many answered steps.
    fn ended(&mut self, disk: &MemDisk, answered: usize) -> Verdict {
        let states = states(self.steps);
        let allowed = &states[answered..states.len().min(answered + 2)];
        self.tally.crash_points += 1;
        self.recovery(disk, allowed).map_err(|why| format!("killed: {why}"))?;
        let crashes = disk.crash_choices(STATES_OF_A_CRASH, 1);
        self.tally.exhaustive_points += usize::from(crashes.is_exhaustive);
        for choice in crashes.choices {
            self.tally.states += 1;
            let after = disk.crash(&choice);
            if self.seen.insert(fingerprint(&after, answered)) {
                self.tally.distinct_states += 1;
                self.recovery(&after, allowed).map_err(|why| format!("power lost, {choice:?}: {why}"))?;
            }
        }
        Ok(())
    }

    /// The disk opens by itself, says one of the allowed things, says it again after another crash, and can be written to; and a
    /// crash within the opening changes none of this.
    fn recovery(&mut self, disk: &MemDisk, allowed: &[Model]) -> Verdict {
        let mut opened = disk.clone();
        let before = opened.operations();
        let (found, cut) = self.open(&mut opened)?;
        let opening = opened.operations() - before;
        one_of(&found, allowed)?;
        self.all_crashes_give(&opened, std::slice::from_ref(&found))
            .map_err(|why| format!("after opening: {why}"))?;

        let probes = [30, cut.map_or(30, |bytes| usize::try_from(bytes).expect("a small log") - 200)];
        for len in probes.iter().take(if cut.is_some() { 2 } else { 1 }) {
            self.probe(disk, opening, &found, *len).map_err(|why| format!("probe of {len} bytes: {why}"))?;
        }
        for stop in 0..opening {
            let mut halfway = disk.clone();
            halfway.stop_after(stop);
            let stopped = Wal::open(&mut halfway, IDENTITY, self.options).is_err();
            assert!(stopped, "an opening that was stopped does not succeed");
            halfway.restart();
            let on = |why| format!("opening stopped after {stop} operations: {why}");
            let (again, _) = self.open(&mut halfway.clone()).map_err(on)?;
            one_of(&again, allowed).map_err(on)?;
            self.all_crashes_give(&halfway, allowed).map_err(on)?;
        }
        Ok(())
    }

    /// A batch appended by the process that opened is there after its answer, and there or not before it.
    fn probe(&mut self, disk: &MemDisk, opening: usize, found: &Model, len: usize) -> Verdict {
        let records = vec![vote(90, 9, found.hard_state.commit.0), entry(found.next_index(), 90, len)];
        let after = found.after(&Step::Append(records.clone()));
        let mut answered = disk.clone();
        self.append(&mut answered, &records)?;
        let (again, _) = self.open(&mut answered.clone())?;
        one_of(&again, std::slice::from_ref(&after))?;
        self.all_crashes_give(&answered, std::slice::from_ref(&after))?;

        // The batch is written, or its segment is made; the sync does not come.
        let mut unsynced = disk.clone();
        unsynced.stop_after(opening + 1);
        drop(self.append(&mut unsynced, &records));
        unsynced.restart();
        self.all_crashes_give(&unsynced, &[found.clone(), after])
    }

    /// Another process takes the remaining steps; each is there once it is answered.
    fn go_on(&mut self, disk: &mut MemDisk, answered: usize) -> Verdict {
        let states = states(self.steps);
        let (found, _) = self.open(disk)?;
        let Some(at) = (answered..states.len()).take(2).rev().find(|at| states[*at] == found) else {
            return Err("the process that goes on finds another state".to_owned());
        };
        for (step, state) in self.steps.iter().zip(&states[1..]).skip(at) {
            let (mut wal, _) =
                Wal::open(&mut *disk, IDENTITY, self.options).map_err(|error| error.to_string())?;
            crate::model::take_step(&mut wal, step).map_err(|error| error.to_string())?;
            drop(wal);
            self.all_crashes_give(disk, std::slice::from_ref(state))?;
        }
        Ok(())
    }

    fn all_crashes_give(&mut self, disk: &MemDisk, allowed: &[Model]) -> Verdict {
        for choice in disk.crash_choices(STATES_OF_A_SECOND_CRASH, 2).choices {
            let mut after = disk.crash(&choice);
            let on = |why| format!("then power lost, {choice:?}: {why}");
            let (found, _) = self.open(&mut after).map_err(on)?;
            one_of(&found, allowed).map_err(on)?;
        }
        Ok(())
    }

    fn append(&self, disk: &mut MemDisk, records: &[Record]) -> Verdict {
        let (mut wal, _) = Wal::open(disk, IDENTITY, self.options).map_err(|error| error.to_string())?;
        wal.append(records).map_err(|error| error.to_string())
    }

    fn open(&mut self, disk: &mut MemDisk) -> Result<(Model, Option<u64>), String> {
        self.tally.opens += 1;
        let (_, recovered) = Wal::open(disk, IDENTITY, self.options).map_err(|error| error.to_string())?;
        Ok((Model::of(&recovered), recovered.cut.map(|cut| cut.bytes)))
    }
}

fn one_of(found: &Model, allowed: &[Model]) -> Verdict {
    if allowed.contains(found) {
        return Ok(());
    }
    let brief = |model: &Model| {
        let entries: Vec<_> = model.entries.iter().map(|entry| (entry.index.0, entry.term.0)).collect();
        let snapshot = model.snapshot.as_ref().map(|(kind, index, _)| (kind, index.0));
        format!("{:?}, entries {entries:?}, snapshot {snapshot:?}", model.hard_state)
    };
    let allowed: Vec<_> = allowed.iter().map(brief).collect();
    Err(format!("found {}; allowed {allowed:#?}", brief(found)))
}

fn fingerprint(disk: &MemDisk, answered: usize) -> u64 {
    let mut hasher = DefaultHasher::new();
    answered.hash(&mut hasher);
    for name in disk.clone().list().expect("listing memory does not fail") {
        disk.content(&name).hash(&mut hasher);
        name.hash(&mut hasher);
    }
    hasher.finish()
}
