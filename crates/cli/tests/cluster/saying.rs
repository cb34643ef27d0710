//! What commands say when nodes are missing, or are of another life: what is wrong, and what to do.

use std::io::{Read, Write};
use std::net::TcpStream;
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
        &["list", "--sessions"],
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
    stage.transfer(3, "n1");
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
    stage.good(3, &[&["data", "recover"], &words[..]].concat());
    let old = stage.start(1, &["--join"]);
    old.says("listening on");
    let new = stage.start(2, &["--join"]);
    new.says("listening on");
    [old, new]
}

/// Waits until a node says that it answers.
fn ready(node: &Node) {
    eventually("it is ready", || fetch(node, "/readyz")?.starts_with("HTTP/1.1 200").then_some(()));
}

/// What a node answers to a GET, if it does.
fn fetch(node: &Node, path: &str) -> Option<String> {
    let mut stream = TcpStream::connect(&node.address).ok()?;
    write!(stream, "GET {path} HTTP/1.1\r\nhost: here\r\nconnection: close\r\n\r\n").ok()?;
    let mut text = String::new();
    stream.read_to_string(&mut text).ok()?;
    Some(text)
}

#[test]
fn a_founder_that_waits_says_for_whom() {
    let stage = Stage::new();
    let initial: Vec<String> = (1..=3).map(|number| format!("n{number}={}", stage.address(number))).collect();
    let [first, _second] =
        [1, 2].map(|number| stage.start(number, &["--initial-cluster", &initial.join(",")]));
    eventually("it waits for the third alone", || {
        let said = fetch(&first, "/readyz")?;
        (said.starts_with("HTTP/1.1 503") && said.contains("no cluster yet: it waits for n3\"")).then_some(())
    });
}

/// The log of any node tells what became of the cluster, and what a node waits for.
#[test]
fn the_logs_tell_who_came_who_went_and_that_nobody_leads() {
    let stage = Stage::new();
    let mut nodes = stage.three();
    // One that has not caught up does not know what is news.
    nodes.iter().for_each(ready);
    let fourth = stage.start(4, &["--join"]);
    let new = format!("n4={}", stage.address(4));
    fourth.says(&format!("waits to be added to a cluster: `leasehold cluster add {new}`"));
    stage.good(3, &["cluster", "add", &new, "--promote"]);
    fourth.says("this node belongs to a cluster now");
    stage.good(3, &["cluster", "remove", "n4"]);
    let where_it_was = format!("member=\"n4\" address=\"{}\"", stage.address(4));
    for node in &nodes {
        for what in ["was added, as a learner", "was promoted: it is a voter now", "a member was removed"] {
            node.says(what);
        }
        let told = node.logged().lines().filter(|line| line.contains(&where_it_was)).count();
        assert_eq!(told, 3, "{}", node.logged());
    }
    for name in ["n2", "n3"] {
        take(&mut nodes, name).kill();
    }
    let words = "nobody has led the cluster for 5 s";
    nodes[0].says(words);
    let second = stage.start(2, &[]);
    nodes[0].says("the cluster is led again");
    let log = nodes[0].logged();
    let count = |words: &str| log.lines().filter(|line| line.contains(words)).count();
    assert_eq!((count(words), count("the cluster is led again")), (1, 1), "{log}");
    second.says("leadership");
    let log = second.logged();
    let warned = "started with neither --join nor --initial-cluster";
    assert!(log.contains(warned) && log.contains("docs/guides/operate-a-cluster.md"), "{log}");
    assert!(log.contains("holds the log of a member of a cluster"), "{log}");
    assert!(!log.contains("recovered what was there") && !log.contains(&where_it_was), "told again: {log}");
}

/// An old life that is started by mistake grants beside the new one, and both logs say so.
#[test]
fn nodes_of_two_lives_say_which_is_the_older() {
    let stage = Stage::new();
    let [old, new] = two_lives(&stage);
    new.says("a node of an OLDER life of this cluster is running");
    old.says("this node is of an OLDER life of its cluster");
    let line = |node: &Node, words: &str| {
        let log = node.logged();
        let lines: Vec<String> = log.lines().filter(|line| line.contains(words)).map(str::to_owned).collect();
        assert!(lines.len() == 1 && lines[0].contains(" WARN "), "{log}");
        lines[0].clone()
    };
    let said = line(&new, "OLDER life");
    let parts = ["node=\"n1\"", "epoch_there=\"0\"", "epoch_here=1", "Stop that node"];
    assert!(parts.iter().all(|part| said.contains(part)), "{said}");
    let said = line(&old, "OLDER life");
    let parts = ["node=\"n2\"", "epoch_there=\"1\"", "epoch_here=0", "Stop this node"];
    assert!(parts.iter().all(|part| said.contains(part)), "{said}");
    for node in [&old, &new] {
        let numbers = fetch(node, "/metrics").unwrap();
        let count =
            numbers.lines().find_map(|line| line.strip_prefix("leasehold_other_life_contacts_total "));
        assert!(count.unwrap().parse::<u64>().unwrap() > 0, "{numbers}");
    }
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
