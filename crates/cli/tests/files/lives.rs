//! A state that begins another life: tokens rise, nobody is granted anything too early, and nothing is done by halves.

use super::stage::Stage;
use std::fs;

#[test]
fn a_restored_service_grants_greater_tokens_and_a_second_restore_still_greater_ones() {
    let stage = Stage::new();
    let file = stage.backup("leases");
    let file = file.to_str().unwrap();
    let (code, said) = stage.run(&["data", "restore", file, "--data", "one"]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("--first-restore") && said.contains("--above"), "{said}");
    assert!(!stage.path("one").exists());

    let stopped = "--holders-are-stopped";
    let one = stage.json(&["data", "restore", file, "--data", "one", "--first-restore", stopped]);
    // A note of that restore lies beside the file, and still nobody but the operator knows of others.
    let (code, said) = stage.run(&["data", "restore", file, "--data", "two", stopped]);
    assert_eq!((code, said.contains("--above")), (Some(2), true), "{said}");
    let (code, said) =
        stage.run(&["data", "restore", file, "--data", "two", "--first-restore", stopped, "--json"]);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains(r#"{"event":"note-says-otherwise","epoch":1,"#), "{said}");
    let two: serde_json::Value = serde_json::from_str(said.lines().next().unwrap()).unwrap();
    assert_eq!((one["epoch"].as_u64(), two["epoch"].as_u64()), (Some(1), Some(2)));
    assert_ne!(one["incarnation"], two["incarnation"]);
    let token = |data: &str| stage.token(&stage.serve(data), "job");
    let (before, first, second) = (token("made"), token("one"), token("two"));
    assert!(before < first && first < second, "{before} {first} {second}");
    let (code, said) = stage.run(&["data", "restore", file, "--data", "one", "--first-restore", stopped]);
    assert_eq!((code, said.contains("exists already")), (Some(1), true), "{said}");
}

#[test]
fn a_restored_service_grants_nothing_while_holders_of_before_may_act() {
    let stage = Stage::new();
    let file = stage.backup("leases");
    let begun = stage.json(&["data", "restore", file.to_str().unwrap(), "--data", "one", "--first-restore"]);
    assert!(begun["wait_ms"].as_u64().unwrap() > 300_000, "{begun}");
    let serving = stage.serve("one");
    let words = ["--store", &serving.url, "run", "job", "--no-wait", "--", "true"];
    let (code, said) = stage.run(&words);
    assert_eq!(code, Some(120), "{said}");
    assert!(said.contains("restore"), "{said}");

    // And everybody sees why.
    let log = fs::read_to_string(stage.path("service.log")).unwrap();
    let line = log.lines().find(|line| line.contains("nothing is granted for another")).unwrap();
    let line: serde_json::Value = serde_json::from_str(line).unwrap();
    assert_eq!(line["level"], "WARN");
    assert!((290..=301).contains(&line["seconds"].as_u64().unwrap()), "{line}");
    assert!(line["message"].as_str().unwrap().contains("until about 20"), "{line}");
    let (_, ready) = serving.get("/readyz");
    assert!(ready.starts_with("ok\n") && ready.contains("nothing is granted for another"), "{ready}");
    let (_, numbers) = serving.get("/metrics");
    let wait = numbers.lines().find_map(|line| line.strip_prefix("leasehold_restore_wait_seconds "));
    assert!(wait.unwrap().parse::<f64>().unwrap() > 200.0, "{wait:?}");
    let (_, local) = serving.get("/v1/cluster/local");
    let local: serde_json::Value = serde_json::from_str(&local).unwrap();
    assert!(local["restore_wait_ms"].as_u64().unwrap() > 200_000, "{local}");
    let words = ["--store", &serving.url, "run", "job", "--wait", "5s", "--", "true"];
    let (code, said) = stage.run(&words);
    assert_eq!(code, Some(120), "{said}");
    let waits = "the state was restored, and nothing is granted for another";
    assert_eq!(said.matches(waits).count(), 2, "{said}");
}

#[test]
fn the_end_of_the_wait_is_told() {
    let stage = Stage::new();
    drop(stage.serve_with("data", &["--max-ttl", "3s"]));
    stage.json(&["data", "recover", "--data", "data", "--only-survivor"]);
    let serving = stage.serve("data");
    stage.token_with(&serving, "job", &["--ttl", "3s"]);
    let log = fs::read_to_string(stage.path("service.log")).unwrap();
    let place = |words: &str| log.find(words).unwrap_or_else(|| panic!("{words}: {log}"));
    assert!(
        place("nothing is granted for another 3s") < place("the wait after the restore is over"),
        "{log}"
    );
    let (_, numbers) = serving.get("/metrics");
    assert!(numbers.contains("leasehold_restore_wait_seconds 0.0\n"), "{numbers}");
    assert_eq!(serving.get("/readyz").1, "ok\n");
}

/// A second recovery is somebody's second thought, or a slip.
#[test]
fn a_life_that_was_never_served_is_given_up_with_a_word() {
    let stage = Stage::new();
    drop(stage.serve("data"));
    let recover = ["data", "recover", "--data", "data", "--only-survivor"];
    let (code, said) = stage.run(&[&recover[..], &["--above", "17"]].concat());
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("--above") && !said.contains("--store"), "{said}");
    let (code, said) = stage.run(&recover);
    assert_eq!((code, said.contains("had begun here before")), (Some(0), false), "{said}");
    let (code, said) = stage.run(&recover);
    assert_eq!((code, said.contains("epoch 1 had begun here before")), (Some(0), true), "{said}");
}

#[test]
fn what_cannot_be_done_says_what_can() {
    let stage = Stage::new();
    let file = stage.backup("leases");
    let mut bytes = fs::read(&file).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(stage.path("bad"), bytes).unwrap();
    let copied =
        std::process::Command::new("cp").args(["-r", "made", "copy"]).current_dir(stage.path("")).status();
    assert!(copied.unwrap().success());
    for (words, next) in [
        (&["data", "recover", "--data", "nosuch", "--only-survivor"][..], "leasehold serve --data"),
        (&["data", "verify", "nosuch"], "leasehold serve --data"),
        (&["data", "restore", "bad", "--data", "new", "--first-restore"], "name another backup"),
        (&["data", "restore", "nosuch", "--data", "new", "--first-restore"], "name another backup"),
        (&["data", "verify", "bad"], "keep another backup"),
        (&["serve", "--data", "copy", "--listen", "127.0.0.1:0"], "leasehold data recover --data"),
        (&["serve", "--data", "new", "--advertise", "host"], "10.0.0.1:7420"),
    ] {
        let (code, said) = stage.run(words);
        assert!(matches!(code, Some(1 | 2)), "{words:?}: {said}");
        assert!(said.contains(next), "{words:?}: {said}");
    }
    let mut command = stage.command(&["data", "verify"]);
    let said = command.env("LEASEHOLD_STORE", "leasehold://127.0.0.1").output().unwrap();
    let said = String::from_utf8(said.stderr).unwrap();
    assert!(said.contains("Usage: ") && !said.contains("--store"), "{said}");
}

#[test]
fn a_recovered_node_goes_on_alone_with_greater_tokens_and_keeps_its_old_log() {
    let stage = Stage::new();
    let serving = stage.serve("data");
    let before = stage.token(&serving, "job");
    let (code, said) = stage.run(&["data", "recover", "--data", "data", "--only-survivor"]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("in use"), "{said}");
    drop(serving);
    let id = stage.json(&["data", "verify", "data"])["member"].clone();
    let (code, said) = stage.run(&["data", "recover", "--data", "data"]);
    assert_eq!(code, Some(2), "{said}");
    let begun =
        stage.json(&["data", "recover", "--data", "data", "--only-survivor", "--holders-are-stopped"]);
    assert!(fs::metadata(begun["kept"].as_str().map(|kept| stage.path(kept)).unwrap()).unwrap().is_dir());
    let found = stage.json(&["data", "verify", "data"]);
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
    let (code, said) = stage.run(&["data", "verify", "data"]);
    assert_eq!(code, Some(0), "{said}");
    let segment = stage.path("data/log/segment-00000000000000000001.log");
    let mut bytes = fs::read(&segment).unwrap();
    bytes[200 * 512] = 1;
    fs::write(&segment, &bytes).unwrap();

    let (code, said) = stage.run(&["data", "verify", "data"]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("segment-00000000000000000001.log") && said.contains("at byte 102400"), "{said}");
    assert!(said.contains("drawn before the damage: behind it there may be greater ones"), "{said}");
    let (code, said) = stage.run(&["data", "verify", "data", "--cut"]);
    assert_eq!((code, said.contains("--yes")), (Some(1), true), "{said}");
    assert_eq!(fs::read(&segment).unwrap(), bytes);
    let words = ["data", "verify", "data", "--cut", "--yes", "--holders-are-stopped"];
    let (code, said) = stage.run(&words);
    assert_eq!((code, said.contains("--only-survivor")), (Some(2), true), "{said}");
    assert_eq!(fs::read(&segment).unwrap(), bytes);
    let (code, said) = stage.run(&[&words[..], &["--only-survivor"]].concat());
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(stage.json(&["data", "verify", "data"])["good"], true);
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
        stage.json(&["data", "restore", file, "--data", data, "--first-restore", "--holders-are-stopped"]);
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
    let begun =
        stage.json(&["data", "restore", file.to_str().unwrap(), "--data", "there", "--first-restore"]);
    assert_eq!(begun["epoch"].as_u64(), Some(1));
    assert_eq!(stage.json(&["data", "verify", "there"])["good"], true);
}

/// Nothing is wrong with a run whose store was restored as it should be, and a history must be able to say so.
#[test]
fn a_history_says_that_a_lease_was_lost_by_a_restore() {
    let stage = Stage::new();
    let serving = stage.serve("data");
    let url = serving.url.clone();
    let run = ["--store", &url, "run", "job", "--history", "history", "--"];
    let (code, said) = stage.run(&[&run[..], &["true"]].concat());
    assert_eq!(code, Some(0), "{said}");
    // So long a ttl that it is told of its loss before the end of what was promised.
    let long = ["--store", &url, "run", "job", "--ttl", "60s", "--history", "history", "--", "sleep", "300"];
    let mut holder = stage.command(&long).spawn().unwrap();
    let history = || fs::read_to_string(stage.path("history")).unwrap();
    for _ in 0..3_000 {
        if history().matches("\"what\":\"granted\"").count() == 2 {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    stage.json(&["--store", &url, "backup", "leases"]);
    drop(serving);
    stage.json(&["data", "restore", "leases", "--data", "later", "--first-restore"]);
    let _serving = stage.serve_on(url.trim_start_matches("leasehold://"), "later", &[]);
    assert_eq!(holder.wait().unwrap().code(), Some(121), "{}", history());

    assert!(history().contains("\"why\":\"session-ended\",\"restored\":true"), "{}", history());
    let (code, said) = stage.run(&["check-history", "history"]);
    assert_eq!(code, Some(0), "{said}");
    // Without that word a store that forgot an acknowledged lease is accused, and rightly.
    fs::write(stage.path("silent"), history().replace(",\"restored\":true", "")).unwrap();
    let (code, said) = stage.run(&["check-history", "silent"]);
    assert_eq!(code, Some(3), "{said}");
    assert!(said.contains("kept  VIOLATED once"), "{said}");
}
