//! `check-history`, and the histories that `run --history` writes.

use std::fs;
use std::io::Write as _;
use std::process::Stdio;

use super::stage::{Said, Stage, eventually};

fn path(stage: &Stage, name: &str) -> String {
    stage.dir.path().join(name).to_str().unwrap().to_owned()
}

/// A lease of a client: asked for, granted, confirmed once, given back; all in milliseconds, with a ttl of a second.
fn lease(client: &str, token: u64, from: u64, to: u64) -> String {
    let ms = |at: u64| at * 1_000_000;
    let held = |at: u64| format!(r#""until_ns":{},"promised_ns":{}"#, ms(at + 900), ms(at + 1000));
    let lines = [
        (from - 5, "asked", r#""resource":"job""#.to_owned()),
        (from, "granted", format!(r#""resource":"job","token":"{token}",{}"#, held(from))),
        (from + 10, "confirmed", format!(r#""token":"{token}",{}"#, held(from + 10))),
        (to, "giving-back", format!(r#""token":"{token}""#)),
    ];
    let line = |(at, what, rest): &(u64, &str, String)| {
        format!("{{\"at_ns\":{},\"what\":\"{what}\",\"client\":\"{client}\",{rest}}}\n", ms(*at))
    };
    lines.iter().map(line).collect()
}

fn check(stage: &Stage, text: &str, more: &[&str]) -> Said {
    fs::write(path(stage, "history"), text).unwrap();
    stage.say(&[&["check-history", &path(stage, "history")], more].concat())
}

#[test]
fn a_good_history_holds_and_says_what_was_judged() {
    let stage = Stage::new();
    let said = check(&stage, &(lease("a", 2, 100, 300) + &lease("b", 3, 310, 400)), &[]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let expected = "8 lines, 2 grants
CHECK  VERDICT  JUDGED  WHAT HOLDS
exclusion  held  1 window  no two believe at once
token-order  held  1 grant  tokens rise and are never given twice
renewals  held  1 grant  confirmed renewals are honoured for their ttl
kept  nothing to judge  -  no acknowledged grant is lost
claims  held  2 grants  nobody believes for longer than was promised
queue  nothing to judge  -  first come, first served
writes  nothing to judge  -  no stale write is taken
";
    assert_eq!((said.out.as_str(), said.err.as_str()), (expected, ""));
}

#[test]
fn a_violation_is_shown_with_its_lines() {
    let stage = Stage::new();
    let said = check(&stage, &(lease("a", 2, 100, 300) + &lease("b", 3, 290, 400)), &[]);
    assert_eq!(said.code, Some(3), "{said:?}");
    assert!(said.out.contains("exclusion  VIOLATED once  1 window"), "{}", said.out);
    let words = "  job: client a believes in token 2 until 300.000 ms, and client b in token 3 from 290.000 ms on: 10ms too long\n";
    assert!(said.out.contains(words), "{}", said.out);
    assert!(said.out.contains("    line 6: {\"at_ns\":290000000,\"what\":\"granted\""), "{}", said.out);
    let json = stage.json(3, &["check-history", &path(&stage, "history")]);
    assert_eq!(json["held"], false);
    assert_eq!(
        (&json["checks"][0]["check"], &json["checks"][0]["verdict"]),
        (&"exclusion".into(), &"violated".into())
    );
    let lines = &json["checks"][0]["violations"][0]["lines"];
    assert_eq!((lines[0]["line"].as_u64(), lines[1]["line"].as_u64()), (Some(3), Some(6)));
    assert!(lines[0]["text"].as_str().unwrap().contains("confirmed"), "{json}");
}

#[test]
fn what_a_history_says_is_not_obeyed_by_the_terminal() {
    let stage = Stage::new();
    let escape = "\\u001b[2J\u{202e}";
    let text = lease(escape, 2, 100, 300) + &lease("b", 3, 290, 400);
    let said = check(&stage, &text, &[]);
    assert_eq!(said.code, Some(3), "{said:?}");
    assert!(said.out.contains("client \\u{1b}[2J\\u{202e} believes in token 2"), "{}", said.out);
    assert!(!said.out.contains(['\u{1b}', '\u{202e}']), "{}", said.out);
    let said = check(&stage, "{\"at_ns\":1,\"what\":\"\\u001b[2J\"}\n", &[]);
    assert!(said.err.contains("`\\u{1b}[2J`: not a kind") && !said.err.contains('\u{1b}'), "{said:?}");
}

#[test]
fn an_empty_history_is_no_proof() {
    let stage = Stage::new();
    for text in ["", "\n\n", "{\"at_ns\":1,\"what\":\"finishing\"}\n"] {
        let said = check(&stage, text, &[]);
        assert_eq!(said.code, Some(4), "{said:?}");
        assert_eq!(said.out.matches("nothing to judge").count(), 7, "{}", said.out);
        assert_eq!(said.err, "leasehold: nothing in it could be judged: this is no proof of anything\n");
    }
    assert_eq!(stage.json(4, &["check-history", &path(&stage, "history")])["held"], false);
}

#[test]
fn what_cannot_be_used_is_named_by_its_line() {
    let stage = Stage::new();
    let said = check(&stage, &(lease("a", 2, 100, 300) + "{\"at_ns\":1,\"what\":\"acquired\"}\n"), &[]);
    assert_eq!((said.code, said.out.as_str()), (Some(4), ""), "{said:?}");
    assert!(
        said.err
            .contains("history: line 5: `acquired`: not a kind of event that is known; known are `asked`, "),
        "{said:?}"
    );
    let said = stage.say(&["check-history", "one", "two"]);
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(said.err.contains("`cat one two | leasehold check-history -`"), "{said:?}");
    let said = stage.say(&["--json", "check-history", &path(&stage, "nothing")]);
    assert_eq!(said.code, Some(4));
    assert!(
        said.err.starts_with("{\"error\":{\"code\":\"history-unusable\",\"kind\":\"failed\""),
        "{said:?}"
    );
}

#[test]
fn standard_input_is_read_from_a_pipe_and_from_a_file() {
    let stage = Stage::new();
    let text = lease("a", 2, 100, 300) + &lease("b", 3, 290, 400);
    let mut child =
        stage.command(&["check-history", "-"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let piped = child.wait_with_output().unwrap();
    fs::write(path(&stage, "history"), &text).unwrap();
    let mut command = stage.command(&["check-history", "-"]);
    let from_file = command.stdin(fs::File::open(path(&stage, "history")).unwrap()).output().unwrap();
    assert_eq!((piped.status.code(), from_file.status.code()), (Some(3), Some(3)));
    let (piped, from_file) =
        (String::from_utf8(piped.stdout).unwrap(), String::from_utf8(from_file.stdout).unwrap());
    assert_eq!(piped, from_file);
    assert!(piped.contains("    line 6: {\"at_ns\":290000000"), "{piped}");
}

#[test]
fn clocks_of_several_machines_need_a_skew() {
    let stage = Stage::new();
    let of = |clock: &str, text: String| text.replace('}', &format!(",\"clock\":\"{clock}\"}}"));
    let text = of("one", lease("a", 2, 100, 300)) + &of("two", lease("b", 3, 290, 400));
    let said = check(&stage, &text, &[]);
    assert_eq!(said.code, Some(4), "{said:?}");
    assert!(said.err.contains("whether two held at once could not be judged"), "{said:?}");
    assert!(check(&stage, &text, &["--json"]).out.contains("\"held\":false"));
    assert!(said.err.contains("times of 2 clocks; nothing was compared between two of them"), "{said:?}");
    assert!(said.out.contains("exclusion  nothing to judge"), "{said:?}");
    assert_eq!(check(&stage, &text, &["--skew", "9ms"]).code, Some(3));
    assert_eq!(check(&stage, &text, &["--skew", "10ms"]).code, Some(0));
}

/// One line of a client, in milliseconds.
fn line(at: u64, what: &str, client: &str, rest: &str) -> String {
    format!("{{\"at_ns\":{},\"what\":\"{what}\",\"client\":\"{client}\"{rest}}}\n", at * 1_000_000)
}

fn held(resource: &str, token: u64, until: u64) -> String {
    format!(
        r#","resource":"{resource}","token":"{token}","until_ns":{until}000000,"promised_ns":{until}000000"#
    )
}

#[test]
fn a_slot_and_the_whole_are_never_held_at_once() {
    let stage = Stage::new();
    let both = |second: &str| {
        line(0, "granted", "a", &held("job#0", 1, 1000)) + &line(100, "granted", "b", &held(second, 2, 1100))
    };
    assert_eq!(check(&stage, &both("job"), &[]).code, Some(3));
    assert_eq!(check(&stage, &both("job#0"), &[]).code, Some(3));
    assert!(!check(&stage, &both("job#1"), &[]).out.contains("VIOLATED"));
}

#[test]
fn a_waiter_that_was_passed_on_another_slot_is_found() {
    let stage = Stage::new();
    let passed = |promised: &str| {
        line(0, "asked", "a", r#","resource":"job""#)
            + &line(5, "queued", "a", promised)
            + &line(10, "asked", "b", r#","resource":"job""#)
            + &line(20, "granted", "b", &held("job#1", 3, 1020))
            + &line(30, "granted", "a", &held("job#0", 4, 1030))
    };
    let said = check(&stage, &passed(r#","promised_ns":1000000000"#), &[]);
    assert_eq!(said.code, Some(3), "{said:?}");
    assert!(said.out.contains("queue  VIOLATED once"), "{}", said.out);
    // Overdue by the time of its grant, or nobody knows: it may have been passed rightly.
    for may_be_overdue in [r#","promised_ns":29000000"#, ""] {
        let said = check(&stage, &passed(may_be_overdue), &[]);
        assert!(said.out.contains("queue  nothing to judge"), "{}", said.out);
    }
}

#[test]
fn between_clocks_one_who_shares_does_not_hide_another() {
    let stage = Stage::new();
    let text = line(0, "granted", "g", &(held("job", 1, 500) + r#","shared":true,"clock":"a""#))
        + &line(99, "granted", "f", &(held("job", 2, 1000) + r#","shared":true,"clock":"a""#))
        + &line(100, "granted", "w", &(held("job", 3, 105) + r#","clock":"b""#));
    let said = check(&stage, &text, &["--skew", "10ms"]);
    assert_eq!(said.code, Some(3), "{said:?}");
    assert!(said.out.contains("exclusion  VIOLATED once"), "{}", said.out);
}

#[test]
fn belief_after_giving_back_counts() {
    let stage = Stage::new();
    let text = line(0, "granted", "a", &held("job", 1, 1000))
        + &line(500, "giving-back", "a", r#","token":"1""#)
        + &line(510, "confirmed", "a", r#","token":"1","until_ns":20000000000,"promised_ns":20000000000"#)
        + &line(600, "granted", "b", &held("job", 2, 1600));
    let said = check(&stage, &text, &[]);
    assert_eq!(said.code, Some(3), "{said:?}");
    assert!(said.out.contains("exclusion  VIOLATED once"), "{}", said.out);
    // Of one that was given back for good it is said that nothing was made of it.
    let text = text.replacen("giving-back", "gave-back", 1);
    let said = check(&stage, &text, &[]);
    assert!(
        said.err.contains("1 line speaks of a grant") && said.err.contains("the first is line 3"),
        "{said:?}"
    );
}

#[test]
fn a_lone_holder_is_no_proof() {
    let stage = Stage::new();
    let said = check(&stage, &lease("a", 2, 100, 300), &[]);
    assert_eq!(said.code, Some(4), "{said:?}");
    assert_eq!(said.err, "leasehold: whether two held at once could not be judged: this is no proof of it\n");
    assert_eq!(stage.json(4, &["check-history", &path(&stage, "history")])["held"], false);
}

#[test]
fn those_who_contend_write_histories_that_hold() {
    let stage = Stage::new();
    let (one, two) = (path(&stage, "one"), path(&stage, "two"));
    let go = path(&stage, "go");
    let run = |file: &str| {
        let often = ["run", "job", "--ttl", "10s", "--renew-every", "150ms", "--history", file];
        // Until the other has found it in its way and it was renewed itself.
        let confirmed = format!("$(grep -c confirmed {file})");
        let script = format!(
            "n={confirmed}; until [ -e {go} ] && [ {confirmed} -gt $n ]; do sleep 0.05; done; sleep 0.4"
        );
        stage.start(&[&often[..], &["--", "sh", "-c", &script]].concat())
    };
    for _ in 0..2 {
        let (first, second) = (run(&one), run(&two));
        eventually("one waits", || stage.say(&["get", "job"]).out.contains("waiting: 1").then_some(()));
        fs::write(&go, "").unwrap();
        for running in [first, second] {
            let said = running.end();
            assert_eq!(said.code, Some(0), "{said:?}");
        }
        fs::remove_file(&go).unwrap();
    }
    let both = fs::read_to_string(&one).unwrap() + &fs::read_to_string(&two).unwrap();
    for what in ["asked", "granted", "confirmed", "giving-back", "gave-back"] {
        assert!(both.matches(&format!("\"what\":\"{what}\"")).count() >= 4, "{what}: {both}");
    }
    let said = check(&stage, &both, &[]);
    assert_eq!((said.code, said.err.as_str()), (Some(0), ""), "{said:?}");
    // In each round one found the other in its way, and renewed its session while it waited.
    assert!(both.matches("\"what\":\"queued\"").count() > 2, "{both}");
    for judged in [
        "exclusion  held  3 windows",
        "token-order  held  3 grants",
        "renewals  held  3 grants",
        "kept  nothing to judge",
        "queue  held  2 grants",
    ] {
        assert!(said.out.contains(judged), "{judged}: {}", said.out);
    }
    // The same history with one holder that began before the other had ended is not let through.
    let second_grant = both
        .lines()
        .filter(|line| line.contains("\"granted\""))
        .map(str::to_owned)
        .max_by_key(|line| at(line))
        .unwrap();
    let early = second_grant.replacen(
        &at(&second_grant).to_string(),
        &(at(&second_grant) - 300_000_000).to_string(),
        1,
    );
    let early = both.replace(&second_grant, &early);
    // What it said before would stand behind it now.
    let client_order = early.replace("\"asked\"", "\"finishing\"").replace("\"queued\"", "\"finishing\"");
    assert_eq!(check(&stage, &client_order, &[]).code, Some(3));
}

/// The time of a line.
fn at(line: &str) -> u64 {
    let value: serde_json::Value = serde_json::from_str(line).unwrap();
    value["at_ns"].as_u64().unwrap()
}

#[test]
fn a_lease_that_is_lost_or_refused_is_in_the_history() {
    let stage = Stage::new();
    let file = path(&stage, "one");
    let mut running =
        stage.start(&["run", "job", "--history", &file, "--", "sh", "-c", "echo ready; exec sleep 300"]);
    assert_eq!(running.line(), "ready");
    let refused = stage.say(&["run", "job", "--no-wait", "--history", &file, "--", "true"]);
    assert_eq!(refused.code, Some(120), "{refused:?}");
    stage.good(&["revoke", "job", "--reason", "test", "--yes"]);
    assert_eq!(running.end().code, Some(121));
    let text = fs::read_to_string(&file).unwrap();
    assert!(text.contains("\"what\":\"refused\"") && text.contains("\"why\":\"not-free\""), "{text}");
    assert!(text.contains("\"why\":\"revoked\",\"revoked\":true"), "{text}");
    let said = stage.say(&["check-history", &file]);
    assert_eq!(said.code, Some(4), "{said:?}");
    assert!(!said.out.contains("VIOLATED"), "{said:?}");
}

#[test]
fn a_history_is_not_written_to_standard_output() {
    let stage = Stage::new();
    let said = stage.say(&["run", "job", "--history", "-", "--", "true"]);
    assert_eq!(said.code, Some(125), "{said:?}");
    assert!(said.err.contains("name a file, such as run.jsonl"), "{said:?}");
}

#[test]
fn a_history_that_cannot_be_written_is_said_before_anything_is_run() {
    let stage = Stage::new();
    let said = stage.say(&["run", "job", "--history", &path(&stage, "no/such/place"), "--", "echo", "ran"]);
    assert_eq!((said.code, said.out.as_str()), (Some(125), ""), "{said:?}");
    assert!(said.err.contains("nothing was run"), "{said:?}");
    let said = stage.say(&["run", "job", "--history", "/dev/full", "--", "echo", "ran"]);
    assert_eq!((said.code, said.out.as_str()), (Some(0), "ran\n"), "{said:?}");
    assert!(said.err.contains("the history in /dev/full is not whole"), "{said:?}");
}

#[test]
fn the_program_in_the_reference_writes_a_history() {
    let stage = Stage::new();
    let reference = include_str!("../../../../docs/reference/history.md");
    let (_, rest) = reference.split_once("```python\n").unwrap();
    let (program, _) = rest.split_once("```").unwrap();
    let mut python = std::process::Command::new("python3");
    let ended = python.args(["-c", program]).current_dir(stage.dir.path()).status().unwrap();
    assert!(ended.success());
    // One holder is no proof that two never hold at once.
    let json = stage.json(4, &["check-history", &path(&stage, "python.jsonl")]);
    assert_eq!((json["lines"].as_u64(), json["grants"].as_u64()), (Some(5), Some(1)));
    assert_eq!((&json["lines_not_judged"], &json["checks"][0]["violated"]), (&0.into(), &0.into()));
}
