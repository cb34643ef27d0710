//! `data verify`: whether a directory or a backup is as it was written.

use leasehold_host::{Extent, Problem, Verified};
use serde::Serialize;

use crate::args::VerifyArgs;
use crate::commands::restore::{choices, say, trouble};
use crate::console::{Console, Table};
use crate::exit::Exit;
use crate::trouble::Trouble;
use crate::words;

#[derive(Serialize)]
struct VerifiedJson {
    path: String,
    kind: &'static str,
    good: bool,
    member: Option<String>,
    members: Vec<MemberJson>,
    incarnation: Option<String>,
    epoch: Option<u16>,
    newest: Option<String>,
    revision: Option<u64>,
    term: Option<u64>,
    segments: Vec<SegmentJson>,
    snapshot: Option<SnapshotJson>,
    entries: u64,
    never_synced_bytes: u64,
    damage: Vec<ProblemJson>,
}

#[derive(Serialize)]
struct MemberJson {
    id: String,
    name: String,
    address: String,
}

#[derive(Serialize)]
struct SegmentJson {
    file: String,
    bytes: u64,
    used_bytes: u64,
    batches: u64,
}

#[derive(Serialize)]
struct SnapshotJson {
    revision: u64,
    term: u64,
    bytes: u64,
}

#[derive(Serialize)]
struct ProblemJson {
    file: String,
    offset: Option<u64>,
    what: String,
}

/// What is said beside the table when something would be given up.
#[derive(Serialize)]
struct LostJson {
    lost_after_revision: Option<u64>,
    yes: bool,
}

pub(super) fn run(console: &Console, args: &VerifyArgs) -> Result<Exit, Trouble> {
    let found = leasehold_host::verify(&args.path).map_err(trouble)?;
    let is_good = found.problems.is_empty();
    if !(args.cut && args.yes && !is_good) {
        console.table(&table(&found), &json(&found))?;
    }
    match (is_good, args.cut) {
        (true, _) => Ok(Exit::OK),
        (false, false) => {
            console.note(next_step(&found), &LostJson { lost_after_revision: found.index, yes: false });
            Ok(Exit::FAILURE)
        }
        (false, true) => cut(console, args, &found),
    }
}

/// What to do about damage. Where others have everything, that is the last thing to be cut.
fn next_step(found: &Verified) -> String {
    let path = found.path.display();
    if found.kind == "backup" {
        return "it cannot be restored: keep another backup".to_owned();
    }
    let shows = format!("`leasehold data verify {path} --cut` shows what would be lost without the damage");
    if found.members.len() < 2 {
        return shows;
    }
    format!(
        "if other nodes of its cluster serve, remove it there with `leasehold cluster remove NAME` and add it again with an empty directory: \
         they send it everything. Only if none is left: {shows}"
    )
}

fn cut(console: &Console, args: &VerifyArgs, found: &Verified) -> Result<Exit, Trouble> {
    if found.kind == "backup" {
        return Err(Trouble::Misuse("a damaged backup cannot be cut; restore an older one".to_owned()));
    }
    let lost = match found.index {
        Some(index) => format!("everything after revision {index} is lost, and every session and lease ends"),
        None => "nothing is left to go on with; restore a backup".to_owned(),
    };
    if !args.yes || found.index.is_none() {
        let next = if found.index.is_some() { "; nothing was changed yet: say --yes to go on" } else { "" };
        let json = LostJson { lost_after_revision: found.index, yes: args.yes };
        console.note(format!("{lost}{next}"), &json);
        return Ok(Exit::FAILURE);
    }
    let choices = choices(&args.life, args.only_survivor);
    let begun = leasehold_host::recover(&args.path, Extent::UpToDamage, &choices).map_err(trouble)?;
    say(console, &format!("cut {}: {lost}; it goes on as", args.path.display()), &begun)
}

fn table(found: &Verified) -> Table {
    let mut table = Table::new(&["WHAT", "FOUND"]);
    let mut row = |what: String, found: String| table.row(vec![what, found]);
    let who = found.member.map_or_else(String::new, |id| {
        let name =
            found.members.iter().find(|member| member.id == id).map(|member| format!(" ({})", member.name));
        format!(", member {id}{}", name.unwrap_or_default())
    });
    row("kind".into(), format!("{}{who}", found.kind));
    if let Some(log) = &found.log {
        for segment in &log.segments {
            let (used, bytes, batches) = (segment.used_bytes, segment.bytes, segment.batches);
            row(format!("log/{}", segment.file), format!("{batches} batches, {used} of {bytes} bytes used"));
        }
        if let Some(meta) = log.snapshot {
            row(
                "snapshot".into(),
                format!("revision {}, term {}, {} bytes", meta.index, meta.term.0, meta.len),
            );
        }
        if let (Some((first, last)), Some((from, to))) = (log.entries, found.terms) {
            row("entries".into(), format!("{first} to {last}, terms {from} to {to}"));
        }
        if let Some(cut) = &log.cut {
            let text = format!("{} bytes at {} were being written when it stopped", cut.bytes, cut.offset);
            row(format!("log/{}", cut.file), format!("{text}: no damage"));
        }
    }
    if let (Some(index), Some(epoch), Some((sessions, resources))) = (found.index, found.epoch, found.sizes) {
        row(
            "state".into(),
            format!(
                "revision {index}, epoch {epoch}, {}, {}",
                words::count(sessions, "session"),
                words::count(resources, "resource")
            ),
        );
    }
    if let Some(newest) = known_newest(found) {
        let until = if found.problems.is_empty() {
            ""
        } else {
            " before the damage: behind it there may be greater ones"
        };
        row("newest".into(), format!("{newest}, the greatest token or session id drawn{until}"));
    }
    if let Some(incarnation) = found.incarnation {
        row("incarnation".into(), incarnation.to_string());
    }
    for member in &found.members {
        row(format!("member {}", member.name), format!("{} at {}", member.id, member.address));
    }
    for Problem { file, offset, what } in &found.problems {
        let place = offset.map_or_else(String::new, |offset| format!("at byte {offset}: "));
        row(format!("damage in {file}"), format!("{place}{what}"));
    }
    if found.problems.is_empty() {
        row("damage".into(), "none".into());
    }
    table
}

/// Before damage a zero says that nothing was read, not that nothing was drawn.
fn known_newest(found: &Verified) -> Option<u64> {
    found.newest.filter(|newest| *newest > 0 || found.problems.is_empty())
}

fn json(found: &Verified) -> VerifiedJson {
    let log = found.log.as_ref();
    VerifiedJson {
        path: found.path.display().to_string(),
        kind: found.kind,
        good: found.problems.is_empty(),
        member: found.member.map(|id| id.to_string()),
        members: found
            .members
            .iter()
            .map(|member| MemberJson {
                id: member.id.to_string(),
                name: member.name.clone(),
                address: member.address.clone(),
            })
            .collect(),
        incarnation: found.incarnation.map(|incarnation| incarnation.to_string()),
        epoch: found.epoch,
        newest: known_newest(found).map(|newest| newest.to_string()),
        revision: found.index,
        term: log.map(|log| log.hard_state.term.0),
        segments: log
            .into_iter()
            .flat_map(|log| &log.segments)
            .map(|segment| SegmentJson {
                file: format!("log/{}", segment.file),
                bytes: segment.bytes,
                used_bytes: segment.used_bytes,
                batches: segment.batches,
            })
            .collect(),
        snapshot: log.and_then(|log| log.snapshot).map(|meta| SnapshotJson {
            revision: meta.index.0,
            term: meta.term.0,
            bytes: meta.len,
        }),
        entries: found.entries,
        never_synced_bytes: log.and_then(|log| log.cut.as_ref()).map_or(0, |cut| cut.bytes),
        damage: found
            .problems
            .iter()
            .map(|problem| ProblemJson {
                file: problem.file.clone(),
                offset: problem.offset,
                what: problem.what.clone(),
            })
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use leasehold::core::protocol::{Member, MemberId};

    fn damaged(newest: u64, members: u64) -> Verified {
        let member = |id| Member::new(MemberId(id), &format!("n{id}"), "10.0.0.1:7420").unwrap();
        Verified {
            path: "data".into(),
            kind: "served",
            log: None,
            entries: 0,
            terms: None,
            index: Some(1),
            member: None,
            members: (1..=members).map(member).collect(),
            incarnation: None,
            epoch: Some(0),
            newest: Some(newest),
            sizes: Some((1, 0)),
            problems: vec![Problem { file: "log".into(), offset: None, what: "bad".into() }],
        }
    }

    #[test]
    fn before_damage_nothing_read_is_not_shown_as_nothing_drawn() {
        assert_eq!(json(&damaged(0, 1)).newest, None);
        assert_eq!(json(&damaged(5, 1)).newest, Some("5".to_owned()));
        let good = Verified { problems: Vec::new(), ..damaged(0, 1) };
        assert_eq!(json(&good).newest, Some("0".to_owned()));
    }

    #[test]
    fn where_others_have_everything_cutting_is_the_last_word() {
        assert!(next_step(&damaged(5, 1)).starts_with("`leasehold data verify data --cut`"));
        let several = next_step(&damaged(5, 3));
        assert!(several.find("cluster remove") < several.find("--cut"), "{several}");
        assert!(several.contains("cluster remove"), "{several}");
    }
}
