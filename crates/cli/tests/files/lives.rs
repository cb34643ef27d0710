//! A state that begins another life: tokens rise, nobody is granted anything too early, and nothing is done by halves.

use crate::stage::Stage;
use std::fs;

#[test]
fn a_restored_service_grants_greater_tokens_and_a_second_restore_still_greater_ones() {
    let stage = Stage::new();
    let file = stage.backup("leases");
    let file = file.to_str().unwrap();
    let (code, said) = stage.run(&["restore", file, "--data", "one"]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("--first-restore") && said.contains("--above"), "{said}");
    assert!(!stage.path("one").exists());

    let stopped = "--holders-are-stopped";
    let one = stage.json(&["restore", file, "--data", "one", "--first-restore", stopped]);
    // A note of that restore lies beside the file, and still nobody but the operator knows of others.
    let (code, said) = stage.run(&["restore", file, "--data", "two", stopped]);
    assert_eq!((code, said.contains("--above")), (Some(2), true), "{said}");
    let two = stage.json(&["restore", file, "--data", "two", "--first-restore", stopped]);
    assert_eq!((one["epoch"].as_u64(), two["epoch"].as_u64()), (Some(1), Some(2)));
    assert_ne!(one["incarnation"], two["incarnation"]);
    let token = |data: &str| stage.token(&stage.serve(data), "job");
    let (before, first, second) = (token("made"), token("one"), token("two"));
    assert!(before < first && first < second, "{before} {first} {second}");
    let (code, said) = stage.run(&["restore", file, "--data", "one", "--first-restore", stopped]);
    assert_eq!((code, said.contains("exists already")), (Some(1), true), "{said}");
}

#[test]
fn a_restored_service_grants_nothing_while_holders_of_before_may_act() {
    let stage = Stage::new();
    let file = stage.backup("leases");
    let begun = stage.json(&["restore", file.to_str().unwrap(), "--data", "one", "--first-restore"]);
    assert!(begun["wait_ms"].as_u64().unwrap() > 300_000, "{begun}");
    let serving = stage.serve("one");
    let words = ["--store", &serving.url, "run", "job", "--no-wait", "--", "true"];
    let (code, said) = stage.run(&words);
    assert_eq!(code, Some(120), "{said}");
    assert!(said.contains("restore"), "{said}");
}

#[test]
fn a_recovered_node_goes_on_alone_with_greater_tokens_and_keeps_its_old_log() {
    let stage = Stage::new();
    let serving = stage.serve("data");
    let before = stage.token(&serving, "job");
    let (code, said) = stage.run(&["recover", "--data", "data", "--only-survivor"]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("in use"), "{said}");
    drop(serving);
    let id = stage.json(&["verify", "data"])["member"].clone();
    let (code, said) = stage.run(&["recover", "--data", "data"]);
    assert_eq!(code, Some(2), "{said}");
    let begun = stage.json(&["recover", "--data", "data", "--only-survivor", "--holders-are-stopped"]);
    assert!(fs::metadata(begun["kept"].as_str().map(|kept| stage.path(kept)).unwrap()).unwrap().is_dir());
    let found = stage.json(&["verify", "data"]);
    assert_eq!((&found["member"], &found["epoch"]), (&begun["member"], &begun["epoch"]));
    assert_ne!(found["member"], id);
    assert!(stage.token(&stage.serve("data"), "job") > before);
}

#[test]
fn damage_is_named_by_file_and_byte_and_is_cut_only_when_asked_for_twice() {
    let stage = Stage::new();
    let serving = stage.serve("data");
    let before = stage.token(&serving, "job");
    drop(serving);
    let (code, said) = stage.run(&["verify", "data"]);
    assert_eq!(code, Some(0), "{said}");
    let segment = stage.path("data/log/segment-00000000000000000001.log");
    let mut bytes = fs::read(&segment).unwrap();
    bytes[200 * 512] = 1;
    fs::write(&segment, &bytes).unwrap();

    let (code, said) = stage.run(&["verify", "data"]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("segment-00000000000000000001.log") && said.contains("at byte 102400"), "{said}");
    let (code, said) = stage.run(&["verify", "data", "--cut"]);
    assert_eq!((code, said.contains("--yes")), (Some(1), true), "{said}");
    assert_eq!(fs::read(&segment).unwrap(), bytes);
    let words = ["verify", "data", "--cut", "--yes", "--holders-are-stopped"];
    let (code, said) = stage.run(&words);
    assert_eq!((code, said.contains("--only-survivor")), (Some(2), true), "{said}");
    assert_eq!(fs::read(&segment).unwrap(), bytes);
    let (code, said) = stage.run(&[&words[..], &["--only-survivor"]].concat());
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(stage.json(&["verify", "data"])["good"], true);
    assert!(stage.token(&stage.serve("data"), "job") > before);
}

/// The backup of Tuesday is restored, then that of Monday, each of them for the first time.
#[test]
fn two_backups_of_one_store_that_lie_beside_each_other_never_grant_the_same_token() {
    let stage = Stage::new();
    let serving = stage.serve("data");
    let backup = |name: &str| stage.json(&["--store", &serving.url, "backup", name]);
    backup("monday");
    stage.token(&serving, "job");
    backup("tuesday");
    drop(serving);
    let mut tokens = Vec::new();
    for (file, data) in [("tuesday", "one"), ("monday", "two")] {
        stage.json(&["restore", file, "--data", data, "--first-restore", "--holders-are-stopped"]);
        let serving = stage.serve(data);
        tokens.extend((0..3).map(|_| stage.token(&serving, "job")));
    }
    assert!(tokens.is_sorted_by(|a, b| a < b), "{tokens:?}");
}

/// As the help shows it: the unit file or the image has made the directory already.
#[test]
fn an_empty_directory_is_restored_into() {
    let stage = Stage::new();
    let file = stage.backup("leases");
    fs::create_dir(stage.path("there")).unwrap();
    let begun = stage.json(&["restore", file.to_str().unwrap(), "--data", "there", "--first-restore"]);
    assert_eq!(begun["epoch"].as_u64(), Some(1));
    assert_eq!(stage.json(&["verify", "there"])["good"], true);
}
