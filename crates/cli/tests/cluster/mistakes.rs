//! Nodes that were started with the wrong words: each is told, and none does harm.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;

use super::stage::{Stage, eventually, take};

fn initial(stage: &Stage) -> String {
    let nodes: Vec<String> = (1..=3).map(|number| format!("n{number}={}", stage.address(number))).collect();
    nodes.join(",")
}

/// Stopped before it has met the others, and started with its name and address alone.
#[test]
fn a_directory_that_was_meant_for_a_cluster_founds_nothing_by_itself() {
    let stage = Stage::new();
    let list = initial(&stage);
    for words in [&["--initial-cluster", &list][..], &["--join"]] {
        let first = stage.start(1, words);
        first.says("listening on");
        first.kill();
        let (code, log) = stage.start(1, &[]).end();
        assert_eq!(code, Some(1), "{log}");
        assert!(log.contains("was made for a node of a cluster") && log.contains("--join"), "{log}");
        assert!(!log.contains("listening on") && !log.contains("recovered what was there"), "{log}");
        let again = stage.start(1, words);
        again.says("listening on");
        again.says("the directory holds nothing yet");
        again.kill();
        fs::remove_dir_all(stage.data(1)).unwrap();
    }
}

#[test]
fn a_node_with_the_directory_of_another_does_not_start() {
    let stage = Stage::new();
    let mut nodes = stage.three();
    for name in ["n1", "n2"] {
        take(&mut nodes, name).kill();
    }
    let aside = stage.data(9);
    for (from, to) in [(stage.data(1), aside.clone()), (stage.data(2), stage.data(1)), (aside, stage.data(2))]
    {
        fs::rename(from, to).unwrap();
    }
    for (number, other) in [(1, 2), (2, 1)] {
        let (code, log) = stage.start(number, &["--initial-cluster", &initial(&stage)]).end();
        assert_eq!(code, Some(1), "{log}");
        let words = format!("is the directory of node n{other}, and this node was started as n{number}");
        assert!(log.contains(&words) && log.contains(&format!("--name n{other}")), "{log}");
    }
}

/// One that grew in place: its snapshot knows it alone, and its log the others.
#[test]
fn a_node_that_has_grown_is_known_by_its_log() {
    let stage = Stage::new();
    let first = stage.start(1, &[]);
    let second = stage.start(2, &["--join"]);
    second.says("listening on");
    stage.good(1, &["cluster", "add", &format!("n2={}", stage.address(2)), "--promote"]);
    first.kill();
    second.kill();
    let data = stage.data(1);
    let said = stage.good(1, &["data", "verify", data.to_str().unwrap(), "--json"]);
    let found: serde_json::Value = serde_json::from_str(&said).unwrap();
    let names: Vec<&str> =
        found["members"].as_array().unwrap().iter().map(|member| member["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["n1", "n2"], "{found}");
    let (code, log) = stage.start(1, &["--set", "name=n7"]).end();
    assert_eq!(code, Some(1), "{log}");
    assert!(log.contains("is the directory of node n1, and this node was started as n7"), "{log}");
}

/// Removed, and then the only one that is left.
#[test]
fn a_removed_node_that_is_recovered_keeps_its_name() {
    let stage = Stage::new();
    let first = stage.start(1, &[]);
    let second = stage.start(2, &["--join"]);
    second.says("listening on");
    stage.good(1, &["cluster", "add", &format!("n2={}", stage.address(2)), "--promote"]);
    stage.good(2, &["cluster", "remove", "n1"]);
    let (code, log) = first.end();
    assert_eq!(code, Some(1), "{log}");
    let data = stage.data(1);
    let said =
        stage.good(1, &["data", "recover", "--data", data.to_str().unwrap(), "--only-survivor", "--json"]);
    let begun: serde_json::Value = serde_json::from_str(&said).unwrap();
    assert_eq!(begun["name"], "n1", "{begun}");
    assert_eq!(begun["address"], stage.address(1), "{begun}");
}

#[test]
fn a_founder_that_listens_elsewhere_than_its_list_says_is_refused() {
    let stage = Stage::new();
    let (code, log) = stage.start(4, &["--set", "name=n1", "--initial-cluster", &initial(&stage)]).end();
    assert_eq!(code, Some(2), "{log}");
    assert!(log.contains(&stage.address(4)) && log.contains(&format!("n1 at {}", stage.address(1))), "{log}");
    assert!(!stage.data(4).exists());
}

#[test]
fn an_address_that_is_taken_is_told_with_the_next_step() {
    let stage = Stage::new();
    let _first = stage.start(1, &[]);
    stage.token(1, "job");
    let (code, log) = stage.start(1, &[]).end();
    assert_eq!(code, Some(1), "{log}");
    assert!(log.contains("ss -ltnp") && log.contains("--listen"), "{log}");
}

#[test]
fn what_repeats_itself_is_logged_once() {
    let stage = Stage::new();
    let mut nodes = stage.three();
    take(&mut nodes, "n3").kill();
    fs::remove_dir_all(stage.data(3)).unwrap();
    // Another node where n3 was: the others dial it several times a second, and it is not the one they want.
    let other = stage.start(3, &["--join"]);
    other.says("a node was not let in");
    let asks = 40;
    let answers = (0..asks).filter(|_| {
        let mut stream = TcpStream::connect(&other.address).unwrap();
        write!(stream, "GET /readyz HTTP/1.1\r\nhost: here\r\nconnection: close\r\n\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        stage.token(2, "job");
        text.starts_with("HTTP/1.1 503")
    });
    assert_eq!(answers.count(), asks);
    let log = other.logged();
    let count =
        |words: &str| log.lines().filter(|line| line.contains(" WARN ") && line.contains(words)).count();
    // Each of the other two once.
    assert!((1..=2).contains(&count("a node was not let in")), "{log}");
    assert_eq!(count("/readyz"), 1, "{log}");
}

/// It was added, and stopped before it had anything of the log on its disk.
#[test]
fn a_node_that_was_removed_before_it_had_the_log_is_told() {
    let stage = Stage::new();
    let _nodes = stage.three();
    let fourth = stage.start(4, &["--join"]);
    fourth.says("listening on");
    fourth.kill();
    let (log, kept) = (stage.data(4).join("log"), stage.data(4).with_extension("log"));
    let copied = std::process::Command::new("cp").arg("-r").arg(&log).arg(&kept).status();
    assert!(copied.unwrap().success());
    let fourth = stage.start(4, &["--join"]);
    fourth.says("listening on");
    stage.good(3, &["cluster", "add", &format!("n4={}", stage.address(4)), "--wait"]);
    fourth.kill();
    // The disk as it was before the first write that the others caused.
    fs::remove_dir_all(&log).unwrap();
    fs::rename(&kept, &log).unwrap();
    stage.good(3, &["cluster", "remove", "n4"]);
    let (code, log) = stage.start(4, &["--join"]).end();
    assert_eq!(code, Some(1), "{log}");
    assert!(log.contains("this node was removed from its cluster"), "{log}");
}

/// The last one of three goes on alone, and everybody sees why nothing is granted.
#[test]
fn the_wait_of_a_recovered_node_is_seen() {
    let stage = Stage::new();
    let nodes = stage.three();
    stage.token(3, "job");
    // What one node has is enough here, and it must be what was decided last.
    eventually("all have it", || {
        let status = stage.status(3);
        status["members"].as_array().unwrap().iter().all(|member| member["behind"] == 0).then_some(())
    });
    nodes.into_iter().for_each(super::stage::Node::kill);
    let data = stage.data(1);
    let said = stage.good(1, &["data", "recover", "--data", data.to_str().unwrap(), "--only-survivor"]);
    let hint = said.lines().last().unwrap();
    let words =
        format!("leasehold serve --name n1 --data {} --listen {} --join", data.display(), stage.address(1));
    assert_eq!(hint, words);
    let node = stage.start(1, &["--join"]);
    node.says("nothing is granted for another 5m");
    let status = eventually("it leads", || {
        let said = stage.say(1, &["cluster", "status"]);
        (said.code == Some(0)).then_some(said.out)
    });
    let waits = "the state was restored, and nothing is granted for another ";
    assert!(status.lines().nth(1).unwrap().starts_with(waits), "{status}");
    let got = stage.say(1, &["get", "job"]);
    assert!(got.out.contains(&format!("restore wait: {waits}")), "{got:?}");
    let listed = stage.good(1, &["list", "--all"]);
    assert!(listed.contains("\njob  restored  -  -  "), "{listed}");
}
