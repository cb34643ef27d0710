//! A directory and a backup that earlier code wrote, as an operator goes on with them.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::stage::Stage;

const SEGMENT: &str = "segment-00000000000000000001.log";

fn kept(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../host/fixtures/log-3").join(name)
}

/// What was written in version 3 of the log is there, and every lease of it ended with the restore.
fn goes_on(stage: &Stage, data: &str) {
    let serving = stage.serve(data);
    let ask = |words: &[&str]| stage.json(&[&["--store", &serving.url][..], words].concat());
    let past = ask(&["history", "leader"])["history"].clone();
    let of = |past: &Value| json!([past["token"], past["label"], past["ended"]]);
    assert_eq!(of(&past[0]), json!(["5", "web-2", "restored"]), "{past}");
    assert_eq!(of(&past[1]), json!(["4", "web-1", "expired"]), "{past}");
    let gaps = ask(&["gaps", "leader", "--all"])["names"][0]["gaps"].clone();
    let told = |gap: &Value| json!([gap["before"]["token"], gap["length_ms"], gap["at_least_ms"]]);
    assert_eq!(told(&gaps[1]), json!(["4", 1_005, 0]), "{gaps}");
    assert_eq!(gaps[0]["before"]["token"], "5", "{gaps}");
    let (_, register) = serving.get("/v1/registers/get?resource=leader&key=checkpoint");
    let register: Value = serde_json::from_str(&register).unwrap();
    assert_eq!(register["register"]["value"], "42", "{register}");
    assert!(stage.token(&serving, "leader") > 1 << 48);
}

#[test]
fn a_directory_of_before_is_read_and_goes_on_in_another_life() {
    let stage = Stage::new();
    let log = stage.path("data/log");
    fs::create_dir_all(&log).unwrap();
    for file in [SEGMENT, "snapshot-00000000000000000067.snap"] {
        fs::copy(kept(file), log.join(file)).unwrap();
    }
    // The zeroes behind what is written are not kept.
    fs::File::options().write(true).open(log.join(SEGMENT)).unwrap().set_len(256 << 10).unwrap();
    for file in ["node", "lock"] {
        fs::copy(kept(file), stage.path("data").join(file)).unwrap();
    }
    let (_, said) = stage.run(&["data", "verify", "data"]);
    assert!(said.contains("the directory was copied"), "{said}");
    let stopped = "--holders-are-stopped";
    stage.json(&["data", "recover", "--data", "data", "--only-survivor", stopped]);
    goes_on(&stage, "data");
}

#[test]
fn a_backup_of_before_is_restored() {
    let stage = Stage::new();
    fs::copy(kept("backup"), stage.path("backup")).unwrap();
    assert_eq!(stage.json(&["data", "verify", "backup"])["kind"], "backup");
    let stopped = "--holders-are-stopped";
    stage.json(&["data", "restore", "backup", "--data", "data", "--first-restore", stopped]);
    goes_on(&stage, "data");
}
