//! What a service says to people, to programs, and to the service manager.

use std::os::unix::net::UnixDatagram;

use crate::stage::{Stage, log};

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
