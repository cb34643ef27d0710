//! `alarms`, and what other commands say of an alarm, in a directory without a service.

use std::io::Write;
use std::os::unix::net::UnixStream;

use leasehold::core::protocol::{Plain, Request, RequestId};
use leasehold::core::{Millis, Nonce, Op, Open, Policies, SessionKind};
use leasehold::{Label, ResourceName, SessionId, Token};
use leasehold_wire::{Hello, encode_client, encode_opening};
use serde_json::{Value, json};

use super::stage::{Stage, eventually, masked};

/// Above every token that is granted here.
const AHEAD: u64 = 4_711;

/// A session that gives back a token which was never granted: no command does that by itself.
fn show_ahead(stage: &Stage, name: &str) {
    let nonce = Nonce([7; 16]);
    let open = Open {
        nonce,
        label: Label::new("ghost").unwrap(),
        ttl: Millis::new(60_000),
        policies: Policies::default(),
        kind: SessionKind::Plain,
    };
    let mut bytes = Vec::new();
    encode_opening(&Hello::new("test", std::process::id(), ""), &mut bytes).unwrap();
    encode_client(&[(RequestId(1), Request::Open(open))], &mut bytes).unwrap();
    let mut stream = UnixStream::connect(stage.store().join("socket")).unwrap();
    stream.write_all(&bytes).unwrap();
    let session = eventually("the session is open", || {
        let sessions = stage.json(0, &["list", "--sessions"]);
        let ghost = |session: &&Value| session["label"] == "ghost";
        let found = sessions["sessions"].as_array().unwrap().iter().find(ghost).cloned();
        found.map(|session| session["session"].as_str().unwrap().parse().unwrap())
    });
    let op = Op::Release {
        resource: ResourceName::new(name).unwrap(),
        token: Token::from_u64(AHEAD),
        drained: false,
    };
    let plain = Plain::Command { op, hold: false, numbered: None };
    let release = Request::Plain { session: SessionId::from_u64(session), nonce, plain };
    let mut bytes = Vec::new();
    encode_client(&[(RequestId(2), release)], &mut bytes).unwrap();
    stream.write_all(&bytes).unwrap();
    eventually("the alarm is raised", || {
        let alarms = stage.json(0, &["alarms"]);
        (alarms["alarms"] != json!([])).then_some(())
    });
}

#[test]
fn an_alarm_is_shown_by_every_look() {
    let stage = Stage::new();
    let (_server, _) = stage.hold("other", &[]);
    assert_eq!(stage.good(&["alarms"]), "NAME  TOKEN SHOWN  BY  SINCE\n");
    stage.good(&["run", "job", "--", "true"]);
    let (_holder, token) = stage.hold("held", &[]);
    show_ahead(&stage, "job");
    let expected = format!("NAME  TOKEN SHOWN  BY  SINCE\njob  {AHEAD}  ghost  T ago");
    assert_eq!(masked(&stage.good(&["alarms"])), expected);
    let mut json = stage.json(0, &["alarms"]);
    assert!(json["alarms"][0]["age_ms"].take().is_u64(), "{json}");
    let alarm = json!({"resource": "job", "token": AHEAD.to_string(), "by": "ghost", "age_ms": null});
    assert_eq!(json, json!({"alarms": [alarm]}));
    let said = stage.say(&["get", "job"]);
    let line = format!(
        "alarm: token {AHEAD} was shown by ghost T ago and was never granted here, so it goes to nobody; see `leasehold alarms`"
    );
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(masked(&said.out).contains(&line), "{said:?}");
    assert_eq!(stage.json(1, &["get", "job"])["alarm"]["token"], AHEAD.to_string());
    assert!(masked(&stage.good(&["list"])).contains("\njob  alarm  -  -  -  0  -\n"));
    let said = stage.say(&["status"]);
    assert_eq!(said.code, Some(1), "a health check sees it: {said:?}");
    assert!(said.out.ends_with("alarms: 1, of job; see `leasehold alarms`\n"), "{said:?}");
    show_ahead(&stage, "held");
    let row = format!("held  held, alarm  {token}  ");
    eventually("the other one is listed too", || stage.good(&["list"]).contains(&row).then_some(()));
}

#[test]
fn whoever_asks_for_it_is_told_why_and_where_to_look() {
    let stage = Stage::new();
    let (_server, _) = stage.hold("other", &[]);
    show_ahead(&stage, "job");
    for arguments in [&["run", "job", "--no-wait", "--", "true"][..], &["hold", "job", "--no-wait"]] {
        let said = stage.say(arguments);
        assert_eq!(said.code, Some(120), "{said:?}");
        let expected = format!(
            "leasehold: job was not acquired: token {AHEAD} was shown, which was never granted here: see `leasehold alarms`\n"
        );
        assert_eq!(said.err, expected);
    }
    let said = stage.say(&["run", "job", "--wait", "100ms", "--", "true"]);
    let expected = format!("waited 100ms, token {AHEAD} was shown by ghost ");
    assert!(said.code == Some(120) && said.err.contains(&expected), "{said:?}");
    let mut waiter = stage.start(&["hold", "job", "--label", "waiter"]);
    let line = waiter.error_line();
    assert!(
        line.starts_with(&format!("leasehold: waiting for job: token {AHEAD} was shown by ghost ")),
        "{line}"
    );
    stage.good(&["alarms", "clear", "job", "--reason", "looked", "--yes"]);
    assert!(waiter.line().starts_with("granted job token "));
}

#[test]
fn clear_shows_the_token_and_answers_only_what_was_looked_at() {
    let stage = Stage::new();
    let (_server, _) = stage.hold("other", &[]);
    let said = stage.say(&["alarms", "clear", "job", "--reason", "r", "--yes"]);
    let expected = "leasehold: no alarm is raised for job; `leasehold alarms` lists those that are\n";
    assert_eq!((said.code, said.err.as_str()), (Some(1), expected));
    show_ahead(&stage, "job");
    let said = stage.say(&["alarms", "clear", "job", "--reason", "r"]);
    assert_eq!((said.code, said.out.as_str()), (Some(2), ""));
    let known = format!("leasehold: job: token {AHEAD} was shown by ghost ");
    let without = format!("; nobody can be asked here: clear it with --token {AHEAD} --yes\n");
    assert!(said.err.starts_with(&known) && said.err.ends_with(&without), "{said:?}");
    let said = stage.say(&["alarms", "clear", "job", "--reason", "r", "--token", "4710", "--yes"]);
    let expected = format!(
        "leasehold: refused: no alarm with token 4710 is raised for job; the one that is raised has token {AHEAD}\n"
    );
    assert_eq!((said.code, said.err), (Some(1), expected));
    assert_eq!(stage.say(&["run", "job", "--no-wait", "--", "true"]).code, Some(120), "nothing was done");
    let cleared = stage.good(&["alarms", "clear", "job", "--reason", "r", "--token", "4711", "--yes"]);
    assert_eq!(cleared, format!("job: the alarm of token {AHEAD} is cleared; it is granted again\n"));
    stage.good(&["run", "job", "--no-wait", "--", "true"]);
    assert_eq!(stage.json(0, &["alarms"]), json!({"alarms": []}));
}

#[test]
fn an_alarm_outlives_whoever_served_the_directory() {
    let stage = Stage::new();
    let (server, _) = stage.hold("other", &[]);
    show_ahead(&stage, "job");
    server.end();
    assert_eq!(stage.json(0, &["alarms"])["alarms"][0]["token"], AHEAD.to_string());
    assert_eq!(stage.say(&["run", "job", "--no-wait", "--", "true"]).code, Some(120));
}

#[test]
fn a_question_says_that_a_token_is_ahead_and_raises_nothing() {
    let stage = Stage::new();
    let (_holder, token) = stage.hold("job", &[]);
    let said = stage.say(&["get", "job", "--token", "4711"]);
    let expected = format!(
        "job: token 4711 is not current: it was never granted here, where the newest number is {token}\n\
         the state may have been set back: find out where the token comes from; if a receiver has seen it, restore again with \
         --above 4711\n"
    );
    assert_eq!((said.code, said.out), (Some(1), expected));
    let json = stage.json(1, &["get", "job", "--token", "4711"]);
    let expected =
        json!({"resource": "job", "token": "4711", "state": "ahead", "ending": null, "newest": token});
    assert_eq!(json, expected);
    assert_eq!(stage.json(0, &["alarms"]), json!({"alarms": []}));
}
