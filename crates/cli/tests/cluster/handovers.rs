//! A handover in a cluster, with the holder, the successor or the leading node killed at every step of it: no double holder, no
//! stall.

use std::time::Duration;

use serde_json::Value;

use super::stage::{Node, Running, Stage, eventually, take, timed};

/// From the request to the successor's grant a handover takes some tens of milliseconds: kills fall before it, into it and behind it.
const KILL_AFTER_MS: [u64; 6] = [0, 4, 10, 20, 45, 150];
/// How much longer it may take than the end of a lease whose holder dies while nothing else happens: that is a ttl with its drift
/// factor and the start of a process, as long as they take on this machine now.
const RATIO: u32 = 4;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Victim {
    Holder,
    Successor,
    Leader,
}

/// Ends a little after it is asked to, as work does.
const COMMAND: &str = "trap 'sleep 0.02; exit 0' TERM; while :; do sleep 0.01; done";

fn holder(stage: &Stage, name: &str, label: &str, history: &str) -> Running {
    let run = ["run", name, "--ttl", "2s", "--label", label, "--history", history, "--", "sh", "-c", COMMAND];
    stage.begin(3, &run)
}

fn look(stage: &Stage, name: &str) -> Option<Value> {
    let said = stage.say(3, &["--json", "get", name]);
    serde_json::from_str(&said.out).ok()
}

fn label_of(seen: &Value) -> Option<String> {
    let holder = seen["holders"].get(0)?;
    Some(holder["label"].as_str().or(holder["holder"].as_str())?.to_owned())
}

/// How long a lease outlives its holder.
fn plain_death(stage: &Stage, name: &str, history: &str) -> Duration {
    let dies = holder(stage, name, name, history);
    eventually("it is held", || look(stage, name).as_ref().and_then(label_of));
    drop(dies);
    let ((), took) = timed(|| {
        eventually("it is free", || {
            look(stage, name).as_ref().is_some_and(|seen| label_of(seen).is_none()).then_some(())
        });
    });
    took
}

/// One handover with one death in it, and how long it took until a process that lives held the lease.
fn round(
    stage: &Stage,
    nodes: &mut Vec<Node>,
    victim: Victim,
    kill_after: u64,
    number: usize,
    history: &str,
) -> Duration {
    let name = format!("job/{number}");
    let labels = ["old", "other", "new"].map(|who| format!("{who}-{number}"));
    let old = holder(stage, &name, &labels[0], history);
    eventually("it is held", || look(stage, &name).as_ref().and_then(label_of));
    let other = holder(stage, &name, &labels[1], history);
    let waits = |count: usize| {
        eventually("they wait", || {
            look(stage, &name).filter(|seen| {
                seen["waiting"] == count || seen["queue"].as_array().is_some_and(|queue| queue.len() == count)
            })
        })
    };
    waits(1);
    let new = holder(stage, &name, &labels[2], history);
    waits(2);
    let leader = stage.leader(3);

    let asking = stage.begin(3, &["release", &name, "--to", &labels[2], "--wait", "20s"]);
    std::thread::sleep(Duration::from_millis(kill_after));
    let mut alive = vec![old, other, new];
    let dead = match victim {
        Victim::Holder => Some(0),
        Victim::Successor => Some(2),
        Victim::Leader => None,
    };
    if let Some(dead) = dead {
        drop(alive.remove(dead));
    } else {
        take(nodes, &leader).kill();
    }
    let ((), took) = timed(|| {
        eventually("somebody who lives holds it", || {
            let who = look(stage, &name).as_ref().and_then(label_of)?;
            (dead.is_none_or(|dead| who != labels[dead])).then_some(())
        });
    });
    if dead.is_none() {
        let number = leader.trim_start_matches('n').parse().unwrap();
        nodes.push(stage.start(number, &[]));
    }
    drop((asking, alive));
    took
}

#[test]
fn a_handover_survives_the_death_of_anybody_at_any_step() {
    let stage = Stage::new();
    let mut nodes = stage.three();
    let history = stage.data(9).with_file_name("history");
    let history = history.to_str().unwrap();
    let mut number = 0;
    for victim in [Victim::Holder, Victim::Successor, Victim::Leader] {
        let before = plain_death(&stage, &format!("plain/{number}"), history);
        let mut took = Vec::new();
        for kill_after in KILL_AFTER_MS {
            number += 1;
            took.push(round(&stage, &mut nodes, victim, kill_after, number, history));
        }
        // Both, because others begin or end their work on this machine in between.
        let plain = before.max(plain_death(&stage, &format!("plain/{number}"), history));
        println!("{victim:?} killed: {took:?}, and {plain:?} without a handover");
        assert!(took.iter().all(|took| *took < RATIO * plain), "{victim:?}: {took:?}, {plain:?} without one");
    }
    let judged = stage.say(3, &["check-history", history]);
    assert_eq!(judged.code, Some(0), "{judged:?}");
}
