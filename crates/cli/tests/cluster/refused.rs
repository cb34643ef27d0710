//! Nodes that are not who they are taken for.

use std::fs;

use super::stage::{Stage, roles, take};

#[test]
fn a_wiped_node_is_not_the_one_it_was() {
    let stage = Stage::new();
    let mut nodes = stage.three();
    let token = stage.token(3, "job");
    take(&mut nodes, "n3").kill();
    fs::remove_dir_all(stage.data(3)).unwrap();
    let initial: Vec<String> = (1..=3).map(|number| format!("n{number}={}", stage.address(number))).collect();
    let wiped = stage.start(3, &["--initial-cluster", &initial.join(",")]);
    let (code, log) = wiped.end();
    assert_eq!(code, Some(1), "{log}");
    assert!(log.contains("cluster add"), "{log}");
    assert!(stage.token(3, "job") > token);
    // The way back: the old one is removed, the new one is added.
    stage.good(2, &["cluster", "remove", "n3"]);
    fs::remove_dir_all(stage.data(3)).unwrap();
    let again = stage.start(3, &["--join"]);
    again.says("listening on");
    stage.good(2, &["cluster", "add", &format!("n3={}", stage.address(3)), "--promote"]);
    assert!(stage.token(3, "job") > token);
}

#[test]
fn a_removed_node_that_comes_back_is_refused_and_says_so() {
    let stage = Stage::new();
    let mut nodes = stage.three();
    stage.transfer(3, "n1");
    take(&mut nodes, "n3").kill();
    stage.good(2, &["cluster", "remove", "n3"]);
    let (code, log) = stage.start(3, &[]).end();
    assert_eq!(code, Some(1), "{log}");
    assert!(log.contains("removed"), "{log}");
}

#[test]
fn what_cannot_be_added_is_refused_with_words() {
    let stage = Stage::new();
    let _nodes = stage.three();
    let refused = |arguments: &[&str], code: &str, words: &str| {
        let said = stage.say(3, &[&["--json", "cluster", "add"][..], arguments].concat());
        assert_eq!(said.code, Some(1), "{said:?}");
        let found = (said.err.contains(&format!("\"code\":\"{code}\"")), said.err.contains(words));
        assert_eq!(found, (true, true), "{code}, {words}: {said:?}");
    };
    let at = |name: &str, number: usize| format!("{name}={}", stage.address(number));
    refused(&[&at("n4", 4)], "node-unreachable", "serve --join");
    let alone = stage.start(4, &[]);
    alone.says("listening on");
    refused(&[&at("n4", 4)], "node-not-blank", "another cluster");
    refused(&[&at("n5", 4)], "wrong-node", "add it by that name");
    refused(&[&at("n5", 2)], "wrong-node", "is called");
    // One that is a member already stays what it is.
    stage.good(3, &["cluster", "add", &at("n2", 2)]);
    assert!(roles(&stage.status(3)).contains(&("n2".to_owned(), "voter".to_owned())));
    let waits = stage.start(5, &["--join"]);
    waits.says("listening on");
    refused(&[&at("n6", 5)], "wrong-node", "is called");
    let said = stage.say(3, &["cluster", "add", "n6"]);
    assert_eq!(said.code, Some(2), "{said:?}");
    let said = stage.command(&["--store", "dir:here", "cluster", "status"]).output().unwrap();
    assert_eq!(said.status.code(), Some(2));
}
