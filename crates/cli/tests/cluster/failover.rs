//! A leader goes: killed, asked to stop, or asked to hand over. Holders keep their leases and others get theirs.

use std::time::Duration;

use rustix::process::Signal;

use super::stage::{Stage, eventually, take, timed};

/// An election takes 300 to 600 ms; this machine may be busy with other things.
const SOON: Duration = Duration::from_secs(4);

#[test]
fn a_killed_leader_costs_no_holder_its_lease_and_others_little_time() {
    let stage = Stage::new();
    let mut nodes = stage.three();
    let mut holder = stage.begin(3, &["hold", "kept"]);
    let granted = holder.line();
    let token = granted.strip_prefix("granted kept token ").expect(&granted).to_owned();
    let mut watcher = stage.begin(3, &["watch", "after"]);
    // It prints nothing before there is something to tell; a grant shows that it watches.
    eventually("the watch has begun", || {
        stage.token(3, "after/begun");
        Some(())
    });
    let leader = stage.leader(3);
    take(&mut nodes, &leader).kill();
    let (next, took) = timed(|| stage.token(3, "after/kill"));
    println!("the next grant took {took:?}");
    assert!(took < SOON, "the next grant took {took:?}");
    assert!(next > token.parse().unwrap());
    let line = eventually("the watch goes on at another node", || {
        let line = watcher.line();
        line.contains("after/kill").then_some(line)
    });
    assert!(line.contains(&format!("token {next} granted")), "{line}");
    assert_ne!(stage.leader(3), leader);
    let said = stage.good(3, &["get", "kept", "--json"]);
    assert!(said.contains(&format!("\"token\":\"{token}\"")), "{said}");
    // It said nothing of a lapse or an end in between.
    let told = holder.stop();
    let only = |line: &String| line.starts_with("retrying") || line.starts_with("held");
    assert_eq!(told.last().unwrap(), &format!("released kept token {token}"));
    assert!(told[..told.len() - 1].iter().all(only), "{told:?}");
}

#[test]
fn a_health_check_tells_a_lost_node_from_a_lost_majority() {
    let stage = Stage::new();
    let mut nodes = stage.three();
    let said = stage.say(3, &["status"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.out.contains("\nmembers: 3, all reachable\n"), "{said:?}");
    let leader = stage.leader(3);
    let lost = ["n1", "n2", "n3"].into_iter().find(|name| *name != leader).unwrap();
    take(&mut nodes, lost).kill();
    eventually("the leader misses it", || {
        let said = stage.say(3, &["status"]);
        let missed = said.out.contains(&format!("\nmembers: 3, unreachable: {lost} ("));
        (said.code == Some(1) && missed).then_some(())
    });
    take(&mut nodes, &leader).kill();
    let said = stage.say(3, &["--timeout", "2s", "status"]);
    assert_eq!(said.code, Some(122), "{said:?}");
    assert!(said.out.contains("\nreachable: yes\nleader: none\nwhy: "), "{said:?}");
}

#[test]
fn a_leader_that_is_asked_to_stop_hands_over_first() {
    let stage = Stage::new();
    let mut nodes = stage.three();
    stage.token(3, "job");
    let leader = stage.leader(3);
    let old = take(&mut nodes, &leader);
    old.signal(Signal::TERM);
    let (code, log) = old.end();
    assert_eq!(code, Some(0), "{log}");
    let ((), took) = timed(|| {
        stage.token(3, "job");
    });
    assert!(took < SOON, "the next grant took {took:?}");
    assert_ne!(stage.leader(3), leader);
}

#[test]
fn leadership_goes_where_it_is_told_to() {
    let stage = Stage::new();
    let _nodes = stage.three();
    let mut holder = stage.begin(3, &["hold", "kept"]);
    let token = holder.line().rsplit(' ').next().unwrap().to_owned();
    for to in ["n1", "n2", "n3", "n1"] {
        stage.transfer(3, to);
    }
    let said = stage.good(3, &["cluster", "transfer", "--json"]);
    let leader = stage.leader(3);
    assert_ne!(leader, "n1");
    assert!(said.contains(&format!("\"leader\":\"{leader}\"")), "{said}");
    assert!(stage.good(3, &["get", "kept", "--json"]).contains(&format!("\"token\":\"{token}\"")));
    assert_eq!(holder.stop().last().unwrap(), &format!("released kept token {token}"));
}

#[test]
fn without_a_majority_nothing_is_granted_and_nothing_is_lost() {
    let stage = Stage::new();
    let mut nodes = stage.three();
    let before = stage.token(3, "job");
    take(&mut nodes, "n1").kill();
    take(&mut nodes, "n2").kill();
    let said = stage.say(3, &["--timeout", "2s", "run", "job", "--", "true"]);
    assert!(matches!(said.code, Some(122 | 123)), "{said:?}");
    let said = stage.say(3, &["--timeout", "2s", "cluster", "status"]);
    assert_eq!(said.code, Some(122), "{said:?}");
    let _second = stage.start(2, &[]);
    assert!(stage.token(3, "job") > before);
}
