//! `data verify`: whether a directory or a backup is as it was written.

use leasehold_host::{Extent, Problem, Verified};
use serde::Serialize;

use crate::args::VerifyArgs;
use crate::commands::restore::{choices, say, trouble};
use crate::console::{Console, Table};
use crate::exit::Exit;
use crate::trouble::Trouble;
use crate::words;

pub(super) fn run(console: &Console, args: &VerifyArgs) -> Result<Exit, Trouble> {
    let found = leasehold_host::verify(&args.path).map_err(trouble)?;
    let is_good = found.problems.is_empty();
    if !(args.cut && args.yes && !is_good) {
        console.table(&table(&found), &json(&found))?;
    }
    match (is_good, args.cut) {
        (true, _) => Ok(Exit::OK),
        (false, false) => {
            console.note(next_step(&found), &object! { lost_after_revision: found.index, yes: false });
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
        let json = object! { lost_after_revision: found.index, yes: args.yes };
        console.note(format!("{lost}{next}"), &json);
        return Ok(Exit::FAILURE);
    }
    let choices = choices(&args.life, args.only_survivor);
    let begun = leasehold_host::recover(&args.path, Extent::UpToDamage, &choices).map_err(trouble)?;
    say(console, &format!("cut {}: {lost}; it goes on as", args.path.display()), &begun)
}

fn table(found: &Verified) -> Table {
    let mut rows = Vec::new();
    let mut row = |what: String, found: String| rows.push([what, found]);
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
            let (index, term, bytes) = (meta.index, meta.term.0, meta.len);
            row("snapshot".into(), format!("revision {index}, term {term}, {bytes} bytes"));
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
        let (sessions, resources) = (words::count(sessions, "session"), words::count(resources, "resource"));
        row("state".into(), format!("revision {index}, epoch {epoch}, {sessions}, {resources}"));
    }
    if let Some(newest) = known_newest(found) {
        let until = match found.problems.is_empty() {
            true => "",
            false => " before the damage: behind it there may be greater ones",
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
    Table::new(["WHAT", "FOUND"], rows)
}

/// Before damage a zero says that nothing was read, not that nothing was drawn.
fn known_newest(found: &Verified) -> Option<u64> {
    found.newest.filter(|newest| *newest > 0 || found.problems.is_empty())
}

fn json(found: &Verified) -> impl Serialize {
    let log = found.log.as_ref();
    let members = found.members.iter().map(|member| {
        object! { id: member.id.to_string(), name: &member.name, address: &member.address }
    });
    let segments = log.into_iter().flat_map(|log| &log.segments).map(|segment| {
        let (file, used_bytes) = (format!("log/{}", segment.file), segment.used_bytes);
        object! { file, bytes: segment.bytes, used_bytes, batches: segment.batches }
    });
    let snapshot = log.and_then(|log| log.snapshot);
    let damage = found.problems.iter().map(|Problem { file, offset, what }| object! { file, offset, what });
    object! {
        path: found.path.display().to_string(),
        kind: found.kind,
        good: found.problems.is_empty(),
        member: found.member.map(|id| id.to_string()),
        members: members.collect::<Vec<_>>(),
        incarnation: found.incarnation.map(|incarnation| incarnation.to_string()),
        epoch: found.epoch,
        newest: known_newest(found).map(|newest| newest.to_string()),
        revision: found.index,
        term: log.map(|log| log.hard_state.term.0),
        segments: segments.collect::<Vec<_>>(),
        snapshot: snapshot.map(|meta| object! { revision: meta.index.0, term: meta.term.0, bytes: meta.len }),
        entries: found.entries,
        never_synced_bytes: log.and_then(|log| log.cut.as_ref()).map_or(0, |cut| cut.bytes),
        damage: damage.collect::<Vec<_>>(),
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
        let newest = |found: &Verified| serde_json::to_value(json(found)).unwrap()["newest"].take();
        assert_eq!(newest(&damaged(0, 1)), serde_json::Value::Null);
        assert_eq!(newest(&damaged(5, 1)), "5");
        let good = Verified { problems: Vec::new(), ..damaged(0, 1) };
        assert_eq!(newest(&good), "0");
    }

    #[test]
    fn where_others_have_everything_cutting_is_the_last_word() {
        assert!(next_step(&damaged(5, 1)).starts_with("`leasehold data verify data --cut`"));
        let several = next_step(&damaged(5, 3));
        assert!(several.find("cluster remove") < several.find("--cut"), "{several}");
        assert!(several.contains("cluster remove"), "{several}");
    }
}
