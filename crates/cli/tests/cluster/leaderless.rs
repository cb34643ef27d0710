//! Nodes without a leader say so, and say what is missing.

use super::stage::{Node, Stage, eventually, take};

/// The founders of a cluster of three.
fn founders(stage: &Stage) -> String {
    let each = (1..=3).map(|number| format!("n{number}={}", stage.address(number)));
    each.collect::<Vec<String>>().join(",")
}

#[test]
fn a_cluster_that_is_not_founded_yet_names_the_nodes_that_are_missing() {
    let stage = Stage::new();
    let initial = founders(&stage);
    let start = |number| stage.start(number, &["--initial-cluster", &initial]);
    let first = start(1);
    first.says("missing=\"n2, n3\"");
    let said = stage.say(1, &["--timeout", "1s", "list"]);
    assert_eq!(said.code, Some(122), "{said:?}");
    assert!(said.err.contains("n2, n3 did not answer yet"), "{said:?}");
    let status = stage.say(1, &["--timeout", "1s", "cluster", "status"]);
    assert_eq!(status.code, Some(122), "{status:?}");
    assert!(status.out.contains("it waits for n2, n3"), "{status:?}");
    let status = stage.say(1, &["--timeout", "1s", "cluster", "status", "--json"]);
    assert!(status.out.contains("it waits for n2, n3"), "{status:?}");
    // What is said follows what is there.
    let _second = start(2);
    eventually("only the third is missing", || {
        let said = stage.say(1, &["--timeout", "1s", "list"]);
        said.err.contains("and n3 did not answer yet").then_some(())
    });
    let _third = start(3);
    stage.token(3, "job");
}

#[test]
fn a_watch_says_that_no_leader_answers() {
    let stage = Stage::new();
    let mut nodes = stage.three();
    let mut watch = stage.begin(3, &["watch", "--timeout", "5m"]);
    watch.error_until("watching after revision");
    for name in ["n1", "n2"] {
        take(&mut nodes, name).kill();
    }
    watch.error_until("no leader answers");
    // One that begins now finds none. The node that is left may still name the leader that it had.
    let mut late = stage.begin(3, &["watch", "--timeout", "5m"]);
    late.error_until("trying until 5m are over");
    let _again: Vec<Node> = [1, 2].map(|number| stage.start(number, &["--join"])).into();
    watch.error_until("a leader answers");
    let token = stage.token(3, "job");
    let line = watch.line();
    assert!(line.contains(&format!("job token {token} granted")), "{line}");
}
