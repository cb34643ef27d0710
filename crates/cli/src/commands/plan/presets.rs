//! The table of presets: numbers of other systems by our inequalities.

use leasehold::core::plan::{PRESETS, Plan, Preset};
use serde::Serialize;

use super::exact;
use crate::console::{Console, Table};
use crate::exit::Exit;
use crate::trouble::Trouble;

/// Said above the table.
const HEAD: &str = "numbers to begin with, and those of other systems in the words of this one";
/// Said below the table, because a table alone would judge too much.
const BELOW: &str = "\
GAP: after a holder died, at worst, until another holds it; of other systems by their own rules, with how late they notice
and how often others look. SAFE: the margin covers 0.1% of drift; without it only a fence keeps a late holder out. SURVIVES: one
lost renewal does not end the lease, if it is noticed only at the next one. `leasehold plan --preset NAME` judges the numbers of
one as leases of this system, whose gap is another.
";

#[derive(Serialize)]
struct PresetsJson {
    presets: Vec<PresetJson>,
}

#[derive(Serialize)]
struct PresetJson {
    name: &'static str,
    note: &'static str,
    ttl_ms: u64,
    renew_every_ms: u64,
    margin_ms: u64,
    unplanned_gap_ms: u64,
    safe: bool,
    survives_one_lost: bool,
    accepted: bool,
}

impl PresetJson {
    fn new(preset: &Preset) -> Self {
        let plan = Plan::of(preset.ask, 1, preset.policies);
        // Ours are told when it is their turn; of others only what they publish is counted.
        let gap = if preset.ours { plan.gaps.unplanned } else { preset.unplanned_gap() };
        Self {
            name: preset.name,
            note: preset.note,
            ttl_ms: plan.ttl.get(),
            renew_every_ms: plan.renew_every.get(),
            margin_ms: plan.margin.get(),
            unplanned_gap_ms: gap.get(),
            safe: plan.safety.holds,
            survives_one_lost: plan.availability.holds,
            accepted: plan.is_accepted(),
        }
    }

    fn row(&self) -> Vec<String> {
        let length = |millis| exact(leasehold::core::Millis::new(millis));
        let word = |yes| if yes { "yes" } else { "no" }.to_owned();
        vec![
            self.name.to_owned(),
            length(self.ttl_ms),
            length(self.renew_every_ms),
            length(self.margin_ms),
            length(self.unplanned_gap_ms),
            word(self.safe),
            word(self.survives_one_lost),
            self.note.to_owned(),
        ]
    }
}

pub(super) fn run(console: &Console) -> Result<Exit, Trouble> {
    let presets: Vec<PresetJson> = PRESETS.iter().map(PresetJson::new).collect();
    let mut table = Table::new(&["PRESET", "TTL", "RENEW", "MARGIN", "GAP", "SAFE", "SURVIVES", "NOTE"]);
    presets.iter().for_each(|preset| table.row(preset.row()));
    console.framed_table(HEAD, &table, BELOW, &PresetsJson { presets })?;
    Ok(Exit::OK)
}
