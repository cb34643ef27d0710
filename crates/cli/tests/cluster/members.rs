//! Nodes come and go while the others serve.

use super::stage::{Stage, eventually, roles, take};

fn named(stage: &Stage, count: usize) -> Vec<String> {
    roles(&stage.status(count)).into_iter().map(|(name, _)| name).collect()
}

#[test]
fn a_node_is_replaced_by_another() {
    let stage = Stage::new();
    let mut nodes = stage.three();
    let before = stage.token(3, "job");
    let fourth = stage.start(4, &["--join"]);
    fourth.says("listening on");
    let new = format!("n4={}", stage.address(4));
    let said = stage.good(3, &["cluster", "add", &new, "--wait"]);
    assert!(said.starts_with(&format!("n4 at {} is a learner from revision ", stage.address(4))), "{said}");
    let learner = ("n4".to_owned(), "learner".to_owned());
    assert!(roles(&stage.status(3)).contains(&learner));
    let said = stage.say(3, &["cluster", "transfer", "n4"]);
    assert_eq!(said.code, Some(1));
    assert!(said.err.contains("learner"), "{said:?}");
    let said = stage.good(3, &["cluster", "promote", "n4", "--wait"]);
    assert!(said.starts_with("n4 is a voter from revision "), "{said}");
    let said = stage.say(3, &["--json", "cluster", "promote", "n4"]);
    assert!(said.err.contains("\"code\":\"is-voter\",\"kind\":\"refused\""), "{said:?}");
    // The first in the list, which is asked first; and then whoever leads.
    let said = stage.good(4, &["cluster", "remove", "n1"]);
    assert!(said.starts_with("n1 is no member from revision "), "{said}");
    let (code, log) = take(&mut nodes, "n1").end();
    assert_eq!(code, Some(1), "{log}");
    assert!(log.contains("this node was removed from its cluster"), "{log}");
    assert_eq!(named(&stage, 4), ["n2", "n3", "n4"]);
    assert!(stage.token(4, "job") > before);
}

#[test]
fn a_leader_that_is_removed_hands_over_first() {
    let stage = Stage::new();
    let mut nodes = stage.three();
    stage.transfer(3, "n2");
    let mut holder = stage.begin(3, &["hold", "kept"]);
    let token = holder.line().rsplit(' ').next().unwrap().to_owned();
    stage.good(3, &["cluster", "remove", "n2"]);
    let (code, log) = take(&mut nodes, "n2").end();
    assert_eq!(code, Some(1), "{log}");
    assert_eq!(named(&stage, 3), ["n1", "n3"]);
    let said = stage.good(3, &["get", "kept", "--json"]);
    assert!(said.contains(&format!("\"token\":\"{token}\"")), "{said}");
    assert_eq!(holder.stop().last().unwrap(), &format!("released kept token {token}"));
}

#[test]
fn the_last_of_a_majority_is_not_removed() {
    let stage = Stage::new();
    let _only = stage.start(1, &[]);
    stage.token(1, "job");
    let said = stage.say(1, &["cluster", "remove", "n1"]);
    assert_eq!(said.code, Some(1));
    assert!(said.err.contains("last voter"), "{said:?}");
    let said = stage.say(1, &["cluster", "remove", "n7"]);
    assert!(said.err.contains("no member \"n7\""), "{said:?}");
    let said = stage.say(1, &["cluster", "transfer"]);
    assert!(said.err.contains("no other voter"), "{said:?}");
}

#[test]
fn a_majority_that_would_not_be_left_is_kept() {
    let stage = Stage::new();
    let mut nodes = stage.three();
    stage.transfer(3, "n1");
    take(&mut nodes, "n3").kill();
    eventually("the leader misses it", || {
        let status = stage.status(3);
        let members = status["members"].as_array().unwrap();
        members.iter().any(|member| member["name"] == "n3" && member["reachable"] == false).then_some(())
    });
    let said = stage.say(3, &["cluster", "remove", "n2"]);
    assert!(said.code == Some(1) && said.err.contains("no majority"), "{said:?}");
    stage.good(3, &["cluster", "remove", "n3"]);
    assert_eq!(named(&stage, 3), ["n1", "n2"]);
}
