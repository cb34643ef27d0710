//! `status`: whether a store serves, for people and for health checks.
//!
//! A store that cannot be reached is a result here and no error: that is what was asked.

use leasehold::core::table::AlarmView;
use leasehold_api::view;
use serde::Serialize;

use super::nodes::Nodes;
use crate::console::Console;
use crate::exit::Exit;
use crate::place::Place;
use crate::trouble::Trouble;
use crate::words;

#[derive(Debug, Default, Serialize)]
struct StatusJson {
    store: String,
    /// It serves, and nothing needs attention.
    healthy: bool,
    reachable: bool,
    /// Why it cannot be reached, or has no leader.
    why: Option<String>,
    leader: Option<String>,
    /// None of a directory, which has no nodes.
    members: Option<Vec<view::Member>>,
    restore_wait_ms: Option<u64>,
    alarms: Option<Vec<view::Alarm>>,
}

pub(super) async fn run(console: &Console, place: &Place) -> Result<Exit, Trouble> {
    let mut status = StatusJson { store: place.url().to_owned(), ..StatusJson::default() };
    let mut lines = vec![format!("store: {}", place.url())];
    let found = look(place, &mut status, &mut lines).await;
    let exit = match found {
        Ok(()) => {
            let members = status.members.iter().flatten();
            let attention = members.clone().any(|member| !member.reachable)
                || status.restore_wait_ms.is_some()
                || status.alarms.as_ref().is_some_and(|alarms| !alarms.is_empty());
            status.healthy = !attention;
            if attention { Exit::FAILURE } else { Exit::OK }
        }
        Err(trouble) if [Exit::UNREACHABLE, Exit::UNKNOWN].contains(&trouble.exit()) => {
            if !status.reachable {
                lines.push("reachable: no".to_owned());
            }
            lines.push(format!("why: {trouble}"));
            status.why = Some(trouble.to_string());
            Exit::UNREACHABLE
        }
        Err(trouble) => return Err(trouble),
    };
    console.result(lines.join("\n"), &status)?;
    Ok(exit)
}

/// Asks for everything, and notes what is known until the first thing that is not answered.
async fn look(place: &Place, status: &mut StatusJson, lines: &mut Vec<String>) -> Result<(), Trouble> {
    if place.directory().is_none() {
        of_nodes(place, status, lines).await?;
    }
    let alarms = place.ask(async |store| store.alarms().await).await?;
    if !status.reachable {
        status.reachable = true;
        lines.push("reachable: yes".to_owned());
    }
    lines.push(format!("alarms: {}", alarms_in_words(&alarms)));
    status.alarms = Some(alarms.iter().map(view::Alarm::new).collect());
    Ok(())
}

async fn of_nodes(place: &Place, status: &mut StatusJson, lines: &mut Vec<String>) -> Result<(), Trouble> {
    let nodes = Nodes::of(place)?;
    let cluster = nodes.cluster().await;
    status.reachable = cluster.is_ok() || nodes.look().await.anybody().is_some();
    if status.reachable {
        let leader = cluster.as_ref().ok().and_then(|cluster| cluster.leader.as_deref());
        lines.extend(["reachable: yes".to_owned(), format!("leader: {}", leader.unwrap_or("none"))]);
    }
    let cluster = cluster?;
    lines.push(format!("members: {}", members_in_words(&cluster.members)));
    if let Some(left) = cluster.restore_wait_ms {
        lines.push(format!("restore: {}", words::restore_wait(leasehold::core::Millis::new(left))));
    }
    status.leader = cluster.leader;
    status.restore_wait_ms = cluster.restore_wait_ms;
    status.members = Some(cluster.members);
    Ok(())
}

fn members_in_words(members: &[view::Member]) -> String {
    let away: Vec<String> = members
        .iter()
        .filter(|member| !member.reachable)
        .map(|member| format!("{} ({})", member.name, member.address))
        .collect();
    match away.as_slice() {
        [] => format!("{}, all reachable", members.len()),
        away => format!("{}, unreachable: {}", members.len(), away.join(", ")),
    }
}

fn alarms_in_words(alarms: &[AlarmView]) -> String {
    let names: Vec<&str> = alarms.iter().map(|alarm| alarm.resource.as_str()).collect();
    match names.as_slice() {
        [] => "none".to_owned(),
        [name] => format!("1, of {name}; see `leasehold alarms`"),
        names => format!("{}, the first of {}; see `leasehold alarms`", names.len(), names[0]),
    }
}
