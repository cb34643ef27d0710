//! The table of presets: numbers of other systems by our inequalities.

use leasehold::core::plan::{PRESETS, Plan};

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

pub(super) fn run(console: &Console) -> Result<Exit, Trouble> {
    let (mut rows, mut presets) = (Vec::new(), Vec::new());
    for preset in &PRESETS {
        let plan = Plan::of(preset.ask, 1, preset.policies);
        // Ours are told when it is their turn; of others only what they publish is counted.
        let gap = if preset.ours { plan.gaps.unplanned } else { preset.unplanned_gap() };
        let (name, note) = (preset.name, preset.note);
        let [safe, survives_one_lost] = [plan.safety.holds, plan.availability.holds];
        let [ttl, every, margin, longest] = [plan.ttl, plan.renew_every, plan.margin, gap].map(exact);
        let [covers, survives] =
            [safe, survives_one_lost].map(|yes| if yes { "yes" } else { "no" }.to_owned());
        rows.push([name.to_owned(), ttl, every, margin, longest, covers, survives, note.to_owned()]);
        presets.push(object! {
            name,
            note,
            ttl_ms: plan.ttl.get(),
            renew_every_ms: plan.renew_every.get(),
            margin_ms: plan.margin.get(),
            unplanned_gap_ms: gap.get(),
            safe,
            survives_one_lost,
            accepted: plan.is_accepted(),
        });
    }
    let table = Table::new(["PRESET", "TTL", "RENEW", "MARGIN", "GAP", "SAFE", "SURVIVES", "NOTE"], rows);
    console.framed_table(HEAD, &table, BELOW, &object! { presets })
}
