//! `get`, `list`, `sessions`, `history`, `check`: what is read, as text and as JSON.

use serde_json::{Value, json};

use super::stage::{Stage, eventually, masked};

/// The value with every length replaced, because those differ from run to run.
fn without_lengths(mut value: Value) -> Value {
    match &mut value {
        Value::Object(fields) => {
            for (name, field) in fields {
                *field = match field.is_u64() && name.ends_with("_ms") && name != "ttl_ms" {
                    true => json!("T"),
                    false => without_lengths(field.take()),
                };
            }
        }
        Value::Array(values) => values.iter_mut().for_each(|value| *value = without_lengths(value.take())),
        _ => {}
    }
    value
}

#[test]
fn the_status_of_a_directory_says_whether_it_can_be_used() {
    let stage = Stage::new();
    let url = format!("dir:{}", stage.store().display());
    let said = stage.say(&["status"]);
    assert_eq!(said.code, Some(122), "{said:?}");
    assert!(
        said.out.starts_with(&format!("store: {url}\nreachable: no\nwhy: there is no store at ")),
        "{said:?}"
    );
    assert!(!stage.store().exists(), "a look makes nothing");
    stage.good(&["run", "job", "true"]);
    assert_eq!(stage.good(&["status"]), format!("store: {url}\nreachable: yes\nalarms: none\n"));
    let expected = json!({
        "store": url, "healthy": true, "reachable": true, "why": null, "leader": null, "members": null,
        "restore_wait_ms": null, "alarms": [],
    });
    assert_eq!(stage.json(0, &["status"]), expected);
}

#[test]
fn get_shows_holder_and_waiters() {
    let stage = Stage::new();
    let (_holder, _) = stage.hold("jobs/a", &["--value", "host:80"]);
    let _waiter = stage.start(&["hold", "jobs/a", "--label", "waiter"]);
    let text = eventually("the waiter stands in line", || {
        Some(stage.good(&["get", "jobs/a"])).filter(|text| text.contains("waiting: 1"))
    });
    let expected = "resource: jobs/a\nmode: exclusive\nholder: holder\nstate: held\ntoken: 2\nsession: 1\n\
        acquired: T ago\nrenewed: T ago\nttl: T\nremaining: T\nvalue: host:80\nwaiter: waiter for T\nwaiting: 1\ngrants: 1";
    assert_eq!(masked(&text), expected);
    let expected = json!({
        "resource": "jobs/a", "held": true, "mode": "exclusive", "slots": null,
        "holders": [{
            "label": "holder", "session": "1", "token": "2", "fence_token": "2", "slot": null, "shared": false,
            "state": "held", "ttl_ms": 10_000, "remaining_ms": "T", "held_for_ms": "T", "renewed_ago_ms": "T",
            "value": "host:80", "value_hex": null, "value_left_out": false,
            "draining": null, "offer": null, "readiness": null,
        }],
        "holding": 1,
        "queue": [{"label": "waiter", "session": "3", "waiting_for_ms": "T", "overdue": false}],
        "waiting": 1, "cool_down_ms": null, "restore_wait_ms": null, "transitions": 1, "alarm": null,
    });
    assert_eq!(without_lengths(stage.json(0, &["get", "jobs/a"])), expected);
}

#[test]
fn what_nobody_holds_is_said_and_gives_1() {
    let stage = Stage::new();
    stage.good(&["run", "job", "--", "true"]);
    let said = stage.say(&["get", "job"]);
    assert_eq!((said.code, said.err.as_str()), (Some(1), ""));
    assert_eq!(said.out, "resource: job\nmode: exclusive\nholder: nobody\nwaiting: 0\ngrants: 1\n");
    let said = stage.say(&["get", "other"]);
    assert_eq!(
        (said.code, said.out.as_str()),
        (Some(1), "other: nobody holds it, and nothing is known of it\n")
    );
    let json = stage.json(1, &["get", "other"]);
    assert_eq!(
        (&json["resource"], &json["held"], &json["mode"]),
        (&json!("other"), &json!(false), &json!("unknown"))
    );
}

#[test]
fn list_shows_what_is_in_use_and_all_if_asked() {
    let stage = Stage::new();
    stage.good(&["run", "free", "--", "true"]);
    let (_a, a) = stage.hold("jobs/a", &[]);
    let (_b, b) = stage.hold("jobs/b", &["--slots", "1"]);
    let (_c, _) = stage.hold("other", &["--shared"]);
    let head = "NAME  STATE  TOKEN  HELD  REMAINING  WAITING  HOLDER";
    let rows = format!("jobs/a  held  {a}  T  T  0  holder\njobs/b#0  held  {b}  T  T  0  holder");
    assert_eq!(masked(&stage.good(&["list", "jobs/"])), format!("{head}\n{rows}"));
    assert!(!stage.good(&["list"]).contains("free"));
    assert!(stage.good(&["list", "--all"]).contains("\nfree  free  -  -  -  0  -\n"));
    let json = stage.json(0, &["list", "jobs/"]);
    let names: Vec<&Value> =
        json["leases"].as_array().unwrap().iter().map(|lease| &lease["resource"]).collect();
    assert_eq!(names, ["jobs/a", "jobs/b"]);
    assert_eq!(json["leases"][1]["slots"], 1);
    assert_eq!(stage.json(0, &["list", "nothing/"]), json!({"leases": []}));
}

#[test]
fn sessions_shows_who_is_alive_apart_from_who_owns() {
    let stage = Stage::new();
    let (_holder, _) = stage.hold("job", &["--ttl", "20s"]);
    let _waiter = stage.start(&["hold", "job", "--label", "waiter"]);
    let json = eventually("the waiter stands in line", || {
        Some(stage.json(0, &["list", "--sessions"])).filter(|json| json["sessions"][1]["waits"] == 1)
    });
    let expected = json!({"sessions": [
        {"session": "1", "label": "holder", "overdue": false, "ttl_ms": 20_000, "remaining_ms": "T", "age_ms": "T",
            "renewed_ago_ms": "T", "leases": 1, "waits": 0},
        {"session": "3", "label": "waiter", "overdue": false, "ttl_ms": 10_000, "remaining_ms": "T", "age_ms": "T",
            "renewed_ago_ms": "T", "leases": 0, "waits": 1},
    ]});
    assert_eq!(without_lengths(json), expected);
    let expected = "SESSION  STATE  TTL  REMAINING  AGE  RENEWED  LEASES  WAITS  LABEL\n\
        1  alive  T  T  T  T ago  1  0  holder\n3  alive  T  T  T  T ago  0  1  waiter";
    assert_eq!(masked(&stage.good(&["list", "--sessions"])), expected);
}

/// There to find: a name with a mistake in it that looks like one that nobody ever held for long.
#[test]
fn the_history_of_an_unknown_name_is_a_failure_as_for_get_and_gaps() {
    let stage = Stage::new();
    let (_holder, _) = stage.hold("job", &[]);
    assert_eq!(stage.json(0, &["history", "job"])["history"], json!([]), "it is held, and has no past");
    let said = stage.say(&["history", "other"]);
    assert_eq!((said.code, said.out.as_str()), (Some(1), "other: nothing is known of it\n"));
    let json = stage.json(1, &["history", "other"]);
    assert_eq!(json, json!({ "resource": "other", "holders": [], "history": [] }));
}

#[test]
fn history_says_how_leases_ended_newest_first() {
    let stage = Stage::new();
    stage.good(&["run", "job", "--label", "first", "--", "true"]);
    let (holder, _) = stage.hold("job", &[]);
    stage.good(&["release", "job"]);
    holder.end();
    let (holder, _) = stage.hold("job", &[]);
    // The moment that each row begins with is of today.
    let rows = |text: &str| -> Vec<String> {
        let moment = "2026-11-17T05:39:13Z  ".len();
        masked(text).lines().skip(1).map(|row| row[moment..].to_owned()).collect()
    };
    let text = stage.good(&["history", "job"]);
    assert!(text.starts_with("SINCE  AGO  HELD  TOKEN  READY AFTER  HOLDER  HOW\n20"), "{text}");
    assert_eq!(rows(&text)[0], "T  T  6  -  holder  held now");
    let json = stage.json(0, &["history", "job"]);
    assert_eq!((&json["holders"][0]["token"], json["history"].as_array().unwrap().len()), (&json!("6"), 2));
    stage.good(&["revoke", "job", "--reason", "stuck for hours", "--yes"]);
    holder.end();
    let rows = rows(&stage.good(&["history", "job"]));
    assert!(
        rows[0].starts_with("T  T  6  -  holder  revoked by ") && rows[0].ends_with(": stuck for hours"),
        "{rows:?}"
    );
    assert_eq!(rows[1..], ["T  T  4  -  holder  drained and released", "T  T  2  -  first  released"]);
    let mut json = without_lengths(stage.json(0, &["history", "job"]));
    let by = json["history"][0]["by"].take();
    assert!(by.as_str().unwrap().contains('@'), "{by}");
    let expected = json!({
        "token": "6", "label": "holder", "session": "5", "held_for_ms": "T", "ended_ago_ms": "T", "ready_after_ms": null,
        "ended": "revoked", "by": null, "reason": "stuck for hours", "successor": null, "taken_by": null,
    });
    assert_eq!(json["history"][0], expected);
    assert_eq!(json["history"][2]["ended"], "released");
}

#[test]
fn check_says_whether_a_token_is_current() {
    let stage = Stage::new();
    stage.good(&["run", "job", "--", "true"]);
    let (_holder, token) = stage.hold("job", &[]);
    assert_eq!(stage.good(&["get", "job", "--token", &token]), format!("job: token {token} is current\n"));
    let said = stage.say(&["get", "job", "--token", "2"]);
    assert_eq!((said.code, said.out.as_str()), (Some(1), "job: token 2 is not current: released\n"));
    let said = stage.say(&["get", "job", "--token", "1"]);
    assert_eq!(
        (said.code, said.out.as_str()),
        (Some(1), "job: token 1 is not current, and nothing is known of it\n")
    );
    assert_eq!(
        stage.json(0, &["get", "job", "--token", &token]),
        json!({"resource": "job", "token": token, "state": "current", "ending": null, "newest": null})
    );
    assert_eq!(stage.json(1, &["get", "job", "--token", "1"])["state"], "not-known");
    assert_eq!(stage.json(1, &["get", "job", "--token", "2"])["ending"]["ended"], "released");
}

#[test]
fn a_look_makes_no_directory() {
    let stage = Stage::new();
    let looks: [&[&str]; 11] = [
        &["get", "a"],
        &["list"],
        &["list", "--sessions"],
        &["history", "a"],
        &["gaps"],
        &["gaps", "a"],
        &["get", "a", "--token", "1"],
        &["release", "a"],
        &["revoke", "a", "--reason", "r", "--yes"],
        &["alarms"],
        &["alarms", "clear", "a", "--reason", "r", "--yes"],
    ];
    for look in looks {
        let said = stage.say(look);
        assert_eq!((said.code, said.out.as_str()), (Some(122), ""), "{look:?}");
        let expected = format!("leasehold: there is no store at {}; ", stage.store().display());
        assert!(said.err.starts_with(&expected), "{said:?}");
        assert!(!stage.store().exists(), "{look:?}");
    }
    // Nor does it turn a directory that is there for something else into a store.
    std::fs::create_dir(stage.store()).unwrap();
    assert_eq!(stage.say(&["list"]).code, Some(122));
    assert_eq!(std::fs::read_dir(stage.store()).unwrap().count(), 0);
}
