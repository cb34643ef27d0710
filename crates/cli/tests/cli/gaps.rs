//! `gaps`, and what makes a gap shorter or longer: readiness, releases, revokes.

use std::os::unix::net::UnixDatagram;

use rustix::process::Signal;
use serde_json::{Value, json};

use super::stage::{Running, Stage, eventually};

/// Says where it is to say that it is ready, and ends when it is asked to.
const ASKED_FOR_READINESS: &str =
    "exec 2>/dev/null; trap 'exit 0' TERM; echo $NOTIFY_SOCKET; while :; do sleep 0.05; done";

fn say(socket: &str, state: &str) {
    UnixDatagram::unbound().unwrap().send_to(state.as_bytes(), socket).unwrap();
}

fn warming_up(stage: &Stage, names: &[&str]) -> (Running, String) {
    let command = ["--label", "web-2", "--ready", "notify", "--", "sh", "-c", ASKED_FOR_READINESS];
    let mut running = stage.start(&[&["run"], names, command.as_slice()].concat());
    let socket = running.line();
    (running, socket)
}

fn readiness(stage: &Stage, name: &str) -> Value {
    stage.json(0, &["get", name])["holders"][0]["readiness"].clone()
}

#[test]
fn a_name_without_gaps_and_an_unknown_one() {
    let stage = Stage::new();
    let (_holder, _) = stage.hold("job", &[]);
    let text = stage.good(&["gaps", "job"]);
    assert!(text.starts_with("job: no gap in the last 24h\n  ..."), "{text}");
    assert_eq!(stage.good(&["gaps"]), "no gaps in the last 24h\n");
    let said = stage.say(&["gaps", "other"]);
    assert_eq!((said.code, said.out.as_str()), (Some(1), "other: nothing is known of it\n"));
    assert_eq!(stage.json(1, &["gaps", "other"])["names"], json!([]));
    assert_eq!(stage.say(&["gaps", "--last", "0s"]).code, Some(2));
}

#[test]
fn what_was_let_go_of_is_counted_and_shown_only_if_asked_for() {
    let stage = Stage::new();
    stage.good(&["run", "cron", "--label", "nightly", "--", "true"]);
    stage.good(&["run", "cron", "--label", "nightly", "--", "true"]);
    let text = stage.good(&["gaps"]);
    assert!(
        text.starts_with(
            "no gaps in the last 24h; 1 name was released and nobody has taken it: --all lists it\n\n\
             1 name only released, with nobody asking: "
        ),
        "{text}"
    );
    assert!(text.ends_with(" in all; --all lists it\n"), "{text}");
    for whole in [["gaps", "--all"], ["gaps", "cron"]] {
        let text = stage.good(&whole);
        assert!(text.contains("nightly (token 2) released it; "), "{text}");
        assert!(text.contains("and lasts: it is free, and nobody asks for it\n"), "{text}");
        assert!(text.contains("cron has been without a holder for "), "{text}");
        assert!(text.contains("q queue"), "{text}");
    }
    let json = stage.json(0, &["gaps", "cron"]);
    let name = &json["names"][0];
    assert_eq!((&name["lasts"], &name["gaps"][0]["idle"]), (&json!(true), &json!(true)));
    assert_eq!(name["leaderless_ms"], name["idle_ms"]);
    let gap = &name["gaps"][1];
    assert_eq!(
        (&gap["before"]["token"], &gap["before"]["ending"]["ended"]),
        (&json!("2"), &json!("released"))
    );
    assert_eq!((&gap["after"]["label"], &gap["parts"][0]["cause"]), (&json!("nightly"), &json!("queue")));
    assert_eq!(gap["length_ms"], gap["parts"][0]["length_ms"]);
    assert!(stage.good(&["gaps", "cron", "--min", "1h"]).contains("2 more gaps shorter than 1h"));
}

#[test]
fn a_revoke_is_named_with_its_reason_and_comes_first() {
    let stage = Stage::new();
    stage.good(&["run", "cron", "--", "true"]);
    let (holder, token) = stage.hold("app", &[]);
    stage.good(&["revoke", "app", "--reason", "stuck for hours", "--yes"]);
    holder.end();
    let text = stage.good(&["gaps"]);
    assert!(text.contains("1 name without one right now"), "{text}");
    assert!(text.contains(&format!("holder (token {token}) was revoked by ")), "{text}");
    assert!(text.contains("(stuck for hours)"), "{text}");
    assert!(!text.contains("cron:"), "{text}");
    let json = stage.json(0, &["gaps"]);
    assert_eq!(json["names"][0]["resource"], "app", "{json}");
    assert_eq!(json["names"][1]["resource"], "cron", "{json}");
    assert_eq!(stage.json(0, &["gaps", "--prefix", "cr"])["names"][0]["resource"], "cron");
    assert_eq!(json["names"][0]["gaps"][0]["before"]["ending"]["reason"], "stuck for hours");
}

#[test]
fn a_command_that_says_when_it_is_ready_is_warming_up_until_then() {
    let stage = Stage::new();
    stage.good(&["run", "app", "--label", "web-1", "--", "true"]);
    let (running, socket) = warming_up(&stage, &["app", "--also", "side"]);
    for name in ["app", "side"] {
        eventually("it is shown", || (readiness(&stage, name)["state"] == "warming-up").then_some(()));
    }
    assert!(stage.good(&["get", "app"]).contains("\nready: not yet, warming up\n"));
    assert!(stage.good(&["list"]).contains("app  held, warming up  "));
    let gaps = stage.json(0, &["gaps", "app"]);
    assert_eq!(gaps["names"][0]["gaps"][0]["right_now"], "its holder is warming up", "{gaps}");

    say(&socket, "STATUS=filling caches\n");
    assert_eq!(readiness(&stage, "app")["state"], "warming-up");
    say(&socket, "READY=1\n");
    for name in ["app", "side"] {
        eventually("it is shown", || (readiness(&stage, name)["state"] == "ready").then_some(()));
    }
    let after = readiness(&stage, "app")["ready_after_ms"].as_u64().unwrap();
    assert!(stage.good(&["get", "app"]).contains(" after the grant\n"));
    let gaps = stage.json(0, &["gaps", "app"]);
    let gap = &gaps["names"][0]["gaps"][0];
    assert!(gap["ended_ago_ms"].is_u64(), "{gap}");
    assert_eq!(gap["parts"].as_array().unwrap().last().unwrap()["length_ms"], after, "{gap}");
    assert!(gap["message"].as_str().unwrap().contains(" needed "), "{gap}");

    let present = stage.json(0, &["history", "app"])["holders"][0]["readiness"]["ready_after_ms"].clone();
    assert_eq!(present, after);
    running.signal(Signal::TERM);
    assert_eq!(running.end().code, Some(0));
    assert!(!std::path::Path::new(&socket).parent().unwrap().exists(), "nothing is left behind");
    assert_eq!(stage.json(0, &["history", "app"])["history"][0]["ready_after_ms"], after);
}

#[test]
fn a_command_that_never_says_it_is_nothing_special() {
    let stage = Stage::new();
    let said = stage.say(&["run", "app", "--ready", "notify", "--", "sh", "-c", "test -S $NOTIFY_SOCKET"]);
    assert_eq!((said.code, said.err.as_str()), (Some(0), ""));
    assert_eq!(stage.say(&["run", "app", "--", "sh", "-c", "exit ${#NOTIFY_SOCKET}"]).code, Some(0));
}
