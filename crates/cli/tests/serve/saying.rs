//! What a service says to people, to programs, and to the service manager.

use std::os::unix::net::UnixDatagram;

use super::stage::{Stage, log};

#[test]
fn programs_are_told_every_key_and_the_address() {
    let stage = Stage::new();
    let serving = stage.serve(&["--set", "limits.max_watches=100"]);
    let address = serving.address.clone();
    let lines = log(&serving.stop());
    let messages: Vec<&str> = lines.iter().filter_map(|line| line["message"].as_str()).collect();
    assert!(messages.contains(&format!("listening on {address}").as_str()), "{messages:?}");
    assert_eq!(messages.last(), Some(&"stopped"));
    let settings: Vec<_> = lines.iter().filter(|line| line["message"] == "setting").collect();
    let printed = stage.good(&["serve", "--print-config"]);
    assert_eq!(settings.len(), printed.lines().filter(|line| line.contains(" = ")).count());
    let watches = settings.iter().find(|line| line["key"] == "limits.max_watches").unwrap();
    assert_eq!((&watches["value"], &watches["source"]), (&"100".into(), &"--set limits.max_watches".into()));
}

#[test]
fn people_are_told_what_differs_from_the_defaults() {
    let stage = Stage::new();
    let serving = stage.serve(&["--log-format", "human", "--name", "n1"]);
    let text = serving.stop();
    for part in [" INFO serving ", " as n1 on 127.0.0.1:", "name = \"n1\" from --name", " INFO listening on "]
    {
        assert!(text.contains(part), "{part:?} is not in {text}");
    }
    assert!(!text.contains("max_watches") && !text.contains('\u{1b}'), "{text}");
}

#[test]
fn nothing_is_said_when_nothing_is_to_be_said() {
    let stage = Stage::new();
    let serving = stage.serve(&["--log-level", "off"]);
    assert_eq!(serving.stop(), "");
}

#[test]
fn the_service_manager_is_told_when_it_serves_and_when_it_stops() {
    let stage = Stage::new();
    let path = stage.path("notify");
    let manager = UnixDatagram::bind(&path).unwrap();
    let data = stage.path("data");
    let arguments = ["serve", "--data", data.to_str().unwrap(), "--listen", "127.0.0.1:0"];
    let serving = stage.serve_with(stage.command(&arguments).env("NOTIFY_SOCKET", &path));
    let heard = || {
        let mut buffer = [0; 512];
        let length = manager.recv(&mut buffer).unwrap();
        String::from_utf8_lossy(&buffer[..length]).into_owned()
    };
    assert_eq!(heard(), format!("READY=1\nSTATUS=serving on {}\n", serving.address));
    serving.stop();
    assert!(heard().starts_with("STOPPING=1\n"));
}

#[test]
fn a_choice_that_an_existing_directory_does_not_take_over_is_warned_of() {
    let stage = Stage::new();
    let first = log(&stage.serve(&["--max-ttl", "1m", "--set", "drift_ppm=500"]).stop());
    assert!(first.iter().all(|line| line["level"] != "WARN"), "a first start has lost nothing: {first:?}");
    let new = format!("{} held no store: a NEW one", stage.path("data").display());
    let said =
        |line: &&serde_json::Value| line["message"].as_str().is_some_and(|said| said.starts_with(&new));
    assert_eq!(first.iter().filter(said).count(), 1, "{first:?}");
    assert!(first.iter().any(|line| line["message"] == "the directory is new"), "{first:?}");

    let again = log(&stage.serve(&["--max-ttl", "2m"]).stop());
    let warnings: Vec<_> = again.iter().filter(|line| line["level"] == "WARN").collect();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    let warning = warnings[0]["message"].as_str().unwrap();
    assert!(warning.starts_with("max_ttl_ms of 120000 (--max-ttl) does not apply: "), "{warning}");
    assert!(warning.ends_with(" was made with 60000 and keeps it"), "{warning}");
    // What is said to be in force is in force, also where nobody chose anything.
    for (key, value) in [("max_ttl_ms", "60000"), ("drift_ppm", "500")] {
        let setting = again.iter().find(|line| line["key"] == key).unwrap();
        assert_eq!((&setting["value"], &setting["source"]), (&value.into(), &"the directory".into()));
    }
    let same = log(&stage.serve(&["--max-ttl", "1m"]).stop());
    assert!(same.iter().all(|line| line["level"] != "WARN"), "{same:?}");
}

#[test]
fn what_was_recovered_is_said() {
    let stage = Stage::new();
    let serving = stage.serve(&[]);
    let mut hold = stage.start(&serving, &["hold", "job"]);
    assert!(hold.line().contains("job"));
    serving.stop();
    let lines = log(&stage.serve(&[]).stop());
    let found = lines.iter().find(|line| line["message"] == "recovered what was there").unwrap();
    assert_eq!((&found["sessions"], &found["leases"]), (&1.into(), &1.into()), "{found}");
    assert!(found["revision"].as_u64().unwrap() > 2, "{found}");
}

#[test]
fn a_service_that_others_can_reach_says_so_every_time() {
    let stage = Stage::new();
    stage.serve(&[]).stop();
    let lines = log(&stage.serve(&["--set", "listen=0.0.0.0:0", "--insecure"]).stop());
    let warnings: Vec<_> = lines.iter().filter(|line| line["level"] == "WARN").collect();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0]["message"].as_str().unwrap().contains("without TLS and authentication"));
    let here = log(&stage.serve(&["--insecure"]).stop());
    assert!(here.iter().all(|line| line["level"] != "WARN"), "nobody else reaches it: {here:?}");
}
