//! A node without its directory, and nodes without a majority.

use std::fs;
use std::path::PathBuf;

use super::stage::{Node, Stage, eventually, take};

/// Where the directory of a node is while its volume is not mounted.
fn away(stage: &Stage, number: usize) -> PathBuf {
    stage.data(number).with_extension("away")
}

fn unmount(stage: &Stage, number: usize) {
    fs::rename(stage.data(number), away(stage, number)).unwrap();
}

/// Started with its name and address alone, it looks like a node that was never there before.
#[test]
fn a_node_whose_directory_is_gone_does_not_found_a_second_cluster() {
    let stage = Stage::new();
    let mut nodes = stage.three();
    let before = stage.token(3, "job");
    take(&mut nodes, "n1").kill();
    unmount(&stage, 1);
    let (code, log) = stage.start(1, &[]).end();
    assert_eq!(code, Some(1), "{log}");
    assert!(log.contains("a NEW one was founded"), "{log}");
    let warned = |line: &str| line.contains(" WARN ") && line.contains("looks for one of its members here");
    assert!(log.lines().any(warned), "{log}");
    assert!(log.contains(stage.data(1).to_str().unwrap()), "{log}");
    assert!(log.contains("nodes of another cluster expect their member"), "{log}");
    // A service manager starts it again, and nothing is granted meanwhile.
    let (code, log) = stage.start(1, &[]).end();
    assert_eq!(code, Some(1), "{log}");
    assert!(log.contains("expected-elsewhere") && !log.contains("listening on"), "{log}");
    fs::remove_dir_all(stage.data(1)).unwrap();
    fs::rename(away(&stage, 1), stage.data(1)).unwrap();
    let _again = stage.start(1, &[]);
    eventually("the node is back", || {
        let status = stage.status(3);
        let members = status["members"].as_array().unwrap();
        members.iter().all(|member| member["reachable"] == true).then_some(())
    });
    assert!(stage.token(3, "job") > before);
}

/// As the guide starts nodes: with the list, every time.
#[test]
fn a_node_that_is_told_of_the_others_founds_nothing_without_its_directory() {
    let stage = Stage::new();
    let mut nodes = stage.three();
    take(&mut nodes, "n1").kill();
    unmount(&stage, 1);
    let initial: Vec<String> = (1..=3).map(|number| format!("n{number}={}", stage.address(number))).collect();
    let (code, log) = stage.start(1, &["--initial-cluster", &initial.join(",")]).end();
    assert_eq!(code, Some(1), "{log}");
    assert!(log.contains("exists already and does not know this data directory"), "{log}");
    assert!(
        log.contains("Is its volume mounted?") && log.contains("`leasehold cluster remove n1` first"),
        "{log}"
    );
    assert!(!log.contains("a NEW one was founded"), "{log}");
}

/// A store that was founded on purpose, where a node of a cluster that is no more was once.
#[test]
fn an_old_node_that_is_no_majority_stops_nobody() {
    let stage = Stage::new();
    stage.three().into_iter().for_each(Node::kill);
    unmount(&stage, 1);
    let mut new = stage.start(1, &[]);
    let before = stage.token(1, "job");
    let _old = stage.start(3, &["--join"]);
    new.says("no majority of it says so, and this node goes on");
    assert!(stage.token(1, "job") > before);
    assert!(new.is_running());
}

#[test]
fn a_node_is_not_added_where_the_first_one_is_recorded_elsewhere() {
    let stage = Stage::new();
    let first = stage.start(1, &[]);
    stage.token(1, "job");
    first.stop();
    let other = "127.0.0.1:1";
    let first = stage.start(1, &["--advertise", other]);
    first.says(&format!("is reached at {other}, but is recorded at {}", stage.address(1)));
    let second = stage.start(2, &["--join"]);
    second.says("listening on");
    let new = format!("n2={}", stage.address(2));
    let said = stage.say(1, &["--json", "cluster", "add", &new]);
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(said.err.contains("\"code\":\"address-differs\""), "{said:?}");
    assert!(said.err.contains(&stage.address(1)) && said.err.contains("--listen-address"), "{said:?}");
    first.stop();
    let _first = stage.start(1, &[]);
    stage.good(1, &["cluster", "add", &new, "--promote"]);
}

#[test]
fn without_a_majority_status_shows_what_each_node_knows_and_a_backup_must_be_asked_for_twice() {
    let stage = Stage::new();
    let mut nodes = stage.three();
    stage.token(3, "job");
    let file = stage.data(1).with_file_name("backup");
    let file = file.to_str().unwrap();
    for name in ["n2", "n3"] {
        take(&mut nodes, name).kill();
    }
    let backup = |more: &[&str]| stage.say(1, &[&["--timeout", "1s", "backup", file], more].concat());
    let said = backup(&[]);
    assert_eq!(said.code, Some(122), "{said:?}");
    assert!(said.err.contains("no leader was known") && said.err.contains("--stale"), "{said:?}");
    assert!(!said.err.contains('{'), "{said:?}");
    assert!(!fs::exists(file).unwrap());
    let said = backup(&["--stale"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.out.contains("revision ") && said.out.contains("STALE"), "{said:?}");
    // Members that the list does not name were asked too.
    assert!(
        (2..=3).all(|number| said.out.contains(&format!("{} gave nothing: ", stage.address(number)))),
        "{said:?}"
    );
    let said = backup(&["--stale", "--json"]);
    assert!(said.out.contains("\"stale\":true"), "{said:?}");

    for listed in [3, 1] {
        let said = stage.say(listed, &["--timeout", "1s", "cluster", "status"]);
        assert_eq!(said.code, Some(122), "{said:?}");
        assert!(said.out.starts_with("no leader"), "{said:?}");
        let lines: Vec<&str> = said.out.lines().collect();
        assert_eq!(lines.len(), 5, "{said:?}");
        let mine = format!("{}  n1  voter  ", stage.address(1));
        assert!(lines[2].starts_with(&mine) && lines[2].contains(&stage.address(3)), "{said:?}");
        assert!(lines[3].starts_with(&format!("{}  -  -  -  -  ", stage.address(2))), "{said:?}");
    }
    let said = stage.say(3, &["--timeout", "1s", "--json", "cluster", "status"]);
    let json: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!((said.code, &json["leader"]), (Some(122), &serde_json::Value::Null));
    assert_eq!(json["nodes"][0]["local"]["name"], "n1");
    assert!(json["nodes"][1]["why"].is_string(), "{json}");
    drop(nodes);
    let said = stage.say(3, &["--timeout", "1s", "cluster", "status"]);
    assert_eq!((said.code, said.out.as_str()), (Some(122), ""), "{said:?}");
}

/// A follower gives one too, with everything that was decided when it was asked.
#[test]
fn a_backup_of_any_node_has_what_was_decided_before() {
    let stage = Stage::new();
    let nodes = stage.three();
    let file = stage.data(1).with_file_name("backup");
    for node in &nodes {
        stage.token(3, "job");
        let decided: u64 = stage.status(3)["committed"].as_str().unwrap().parse().unwrap();
        let said = stage.good_at(node, &["backup", file.to_str().unwrap(), "--json"]);
        let saved: serde_json::Value = serde_json::from_str(&said).unwrap();
        assert!(saved["revision"].as_u64().unwrap() >= decided, "{decided}: {saved}");
        assert_eq!(saved["stale"], false);
    }
    // Which of the three is to go on, it does not know.
    let data = stage.data(4);
    let restore =
        ["data", "restore", file.to_str().unwrap(), "--data", data.to_str().unwrap(), "--first-restore"];
    let said = stage.say(3, &restore);
    assert_eq!(said.code, Some(0), "{said:?}");
    let warned = ["WARNING", "leasehold at 127.0.0.1:7420", "--name NAME", "--listen-address HOST:PORT"];
    assert!(warned.iter().all(|words| said.err.contains(words)), "{said:?}");
}
