//! What commands say when nodes are missing, or are of another life: what is wrong, and what to do.

use std::time::Duration;

use super::stage::{Node, Said, Stage, eventually, take, timed};

/// Far less than any command waits by itself.
const AT_ONCE: Duration = Duration::from_secs(3);

/// Waits until the leader misses a member.
fn missed(stage: &Stage, name: &str) {
    eventually("the leader misses it", || {
        let status = stage.status(3);
        let members = status["members"].as_array().unwrap();
        members.iter().any(|member| member["name"] == name && member["reachable"] == false).then_some(())
    });
}

/// Waits until a member has some of the log: a founder that the others have not brought up yet is part of nothing.
fn brought_up(stage: &Stage, name: &str) {
    eventually("it has some of the log", || {
        let status = stage.status(3);
        let members = status["members"].as_array().unwrap();
        members.iter().any(|member| member["name"] == name && member["matched"] != "0").then_some(())
    });
}

#[test]
fn without_a_leader_every_command_says_so_and_where_to_look() {
    let stage = Stage::new();
    let mut nodes = stage.three();
    brought_up(&stage, "n2");
    for name in ["n1", "n3"] {
        take(&mut nodes, name).kill();
    }
    // A leader that has lost the others notices it by itself.
    eventually("nobody leads", || {
        let said = stage.say(3, &["--timeout", "1s", "cluster", "status"]);
        (said.code == Some(122)).then_some(())
    });
    let commands: [&[&str]; 7] = [
        &["get", "job"],
        &["list"],
        &["sessions"],
        &["run", "job", "--", "true"],
        &["hold", "job"],
        &["cluster", "transfer"],
        &["cluster", "remove", "n3"],
    ];
    for command in commands {
        let said = stage.say(3, &[&["--timeout", "1s"], command].concat());
        assert_eq!(said.code, Some(122), "{command:?}: {said:?}");
        let names = said.err.contains(&stage.address(2)) && said.err.contains("no leader was known");
        assert!(names && said.err.contains("`leasehold cluster status`"), "{command:?}: {said:?}");
        assert!(!said.err.contains("no connection"), "{command:?}: {said:?}");
    }
    let said = stage.say(3, &["--timeout", "1s", "--json", "get", "job"]);
    assert!(said.err.contains("\"code\":\"no-leader\",\"kind\":\"failed\""), "{said:?}");
    drop(nodes);
    let said = stage.say(3, &["--timeout", "1s", "get", "job"]);
    assert!(said.err.contains("no connection"), "{said:?}");
}

#[test]
fn a_dead_node_neither_takes_over_nor_votes_and_is_named() {
    let stage = Stage::new();
    let mut nodes = stage.three();
    stage.good(3, &["cluster", "transfer", "n1"]);
    take(&mut nodes, "n3").kill();
    missed(&stage, "n3");
    nodes[0].says("peer is out of reach peer=\"n3\"");
    let is_named = |said: &Said, name: &str, next: &str| {
        assert_eq!(said.code, Some(1), "{said:?}");
        assert!(said.err.contains(name) && said.err.contains("does not answer the leader"), "{said:?}");
        assert!(said.err.contains(next), "{said:?}");
    };
    let said = stage.say(3, &["cluster", "transfer", "n3"]);
    is_named(&said, &format!("n3 at {}", stage.address(3)), "`leasehold cluster status`");
    let fourth = stage.start(4, &["--join"]);
    fourth.says("listening on");
    stage.good(3, &["cluster", "add", &format!("n4={}", stage.address(4))]);
    fourth.kill();
    missed(&stage, "n4");
    // Enough entries that it has certainly not caught up.
    for _ in 0..40 {
        stage.token(3, "job");
    }
    let said = stage.say(3, &["cluster", "promote", "n4"]);
    is_named(&said, &format!("n4 at {}", stage.address(4)), "`leasehold cluster remove n4`");
}

/// Node 1 of a life that is over runs beside node 2 of the next one.
fn two_lives(stage: &Stage) -> [Node; 2] {
    let mut nodes = stage.three();
    for _ in 0..5 {
        stage.token(3, "job");
    }
    brought_up(stage, "n2");
    take(&mut nodes, "n2").kill();
    // The old life is further in the log than the new one will be, and does not count for more.
    for _ in 0..20 {
        stage.token(3, "job");
    }
    nodes.into_iter().for_each(Node::kill);
    let data = stage.data(2);
    let words = ["--only-survivor", "--holders-are-stopped", "--data", data.to_str().unwrap()];
    stage.good(3, &[&["recover"], &words[..]].concat());
    let old = stage.start(1, &["--join"]);
    old.says("listening on");
    let new = stage.start(2, &["--join"]);
    new.says("listening on");
    [old, new]
}

#[test]
fn a_node_of_an_earlier_life_is_not_waited_for_and_gives_no_backup() {
    let stage = Stage::new();
    let _nodes = two_lives(&stage);
    let (said, took) = timed(|| stage.say(2, &["cluster", "status"]));
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.out.contains(" epoch 1 ") && said.out.contains("led by n2"), "{said:?}");
    assert!(said.err.contains(&format!("{} has another life", stage.address(1))), "{said:?}");
    assert!(took < AT_ONCE, "{took:?}");
    let file = stage.data(1).with_file_name("backup");
    let said = stage.good(2, &["backup", "--stale", file.to_str().unwrap()]);
    assert!(
        said.contains("epoch 1\n") && said.contains(&format!("taken from {}", stage.address(2))),
        "{said}"
    );
    let others = said.lines().find(|line| line.starts_with(&format!("{} has revision ", stage.address(1))));
    assert!(others.expect(&said).ends_with(", epoch 0"), "{said}");
    let said = stage.good(2, &["--json", "backup", "--stale", file.to_str().unwrap()]);
    let json: serde_json::Value = serde_json::from_str(&said).unwrap();
    assert_eq!((&json["from"], &json["epoch"]), (&stage.address(2).into(), &1.into()));
    assert_eq!(
        (&json["others"][0]["epoch"], &json["others"][0]["why"]),
        (&0.into(), &serde_json::Value::Null)
    );
}
