//! The commands that use a store, with a service for a store.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;

use rustix::process::Signal;

use super::stage::{Stage, log};

#[test]
fn every_command_works_over_the_network() {
    let stage = Stage::new();
    let serving = stage.serve(&[]);
    let url = serving.url();
    let mut holder = stage.start(&serving, &["hold", "jobs/a", "--label", "holder", "--value", "host:80"]);
    let line = holder.line();
    let token = line.strip_prefix("granted jobs/a token ").unwrap_or_else(|| panic!("{line:?}"));
    let with = |arguments: &[&str]| {
        let mut all = vec!["--store", url.as_str()];
        all.extend(arguments);
        stage.say(&all)
    };
    assert!(with(&["get", "jobs/a"]).out.contains("holder: holder"));
    assert!(with(&["list", "jobs/"]).out.contains("jobs/a"));
    assert!(with(&["list", "--sessions"]).out.contains("holder"));
    assert_eq!(with(&["get", "jobs/a", "--token", token]).code, Some(0));
    let refused = with(&["run", "jobs/a", "--no-wait", "--", "true"]);
    assert_eq!(refused.code, Some(120), "{refused:?}");
    assert!(refused.err.contains("held by holder"), "{refused:?}");
    let released = with(&["release", "jobs/a"]);
    assert_eq!(released.code, Some(0), "{released:?}");
    assert_eq!(holder.end().code, Some(0));
    assert!(with(&["history", "jobs/a"]).out.contains("drained"));
    let run = with(&["run", "jobs/a", "--", "sh", "-c", "echo $LEASEHOLD_STORE"]);
    assert_eq!((run.code, run.out.trim()), (Some(0), url.as_str()), "{run:?}");
    let status = with(&["status"]);
    assert_eq!(status.code, Some(0), "{status:?}");
    let expected =
        format!("store: {url}\nreachable: yes\nleader: leasehold\nmembers: 1, all reachable\nalarms: none\n");
    assert_eq!(status.out, expected);
    serving.stop();
    let status = with(&["--timeout", "300ms", "status"]);
    assert_eq!(status.code, Some(122), "{status:?}");
    assert!(status.out.starts_with(&format!("store: {url}\nreachable: no\nwhy: ")), "{status:?}");
}

#[test]
fn a_service_that_nobody_uses_still_says_how_long_ago_something_was() {
    let stage = Stage::new();
    let serving = stage.serve(&[]);
    let url = serving.url();
    let json = |arguments: &[&str]| -> serde_json::Value {
        let said = stage.say(&[&["--store", url.as_str(), "--json"], arguments].concat());
        serde_json::from_str(&said.out).unwrap_or_else(|error| panic!("{error}: {said:?}"))
    };
    assert_eq!(stage.say(&["--store", &url, "run", "job", "--", "true"]).code, Some(0));
    // Nobody has a session any more, so nothing is put into the log.
    let gap = || json(&["gaps", "job"])["names"][0]["leaderless_ms"].as_u64().unwrap();
    let ended = || json(&["history", "job"])["history"][0]["ended_ago_ms"].as_u64().unwrap();
    let (gap_before, ended_before) = (gap(), ended());
    std::thread::sleep(std::time::Duration::from_millis(300));
    assert!(gap() >= gap_before + 200, "{} after {gap_before}", gap());
    assert!(ended() >= ended_before + 200, "{} after {ended_before}", ended());
    serving.stop();
}

#[test]
fn a_service_that_is_not_there_is_named() {
    let stage = Stage::new();
    let serving = stage.serve(&[]);
    let (url, address) = (serving.url(), serving.address.clone());
    serving.stop();
    let said = stage.say(&["--store", &url, "--timeout", "200ms", "get", "job"]);
    assert_eq!(said.code, Some(122), "{said:?}");
    assert!(said.err.contains(&address), "{said:?}");
}

#[test]
fn a_watch_prints_what_happens_in_order() {
    let stage = Stage::new();
    let serving = stage.serve(&[]);
    let url = serving.url();
    let mut watch = stage.start(&serving, &["watch", "jobs/"]);
    assert!(watch.error_line().starts_with("leasehold: watching after revision "));
    stage.good(&["--store", &url, "run", "other", "--", "true"]);
    stage.good(&["--store", &url, "run", "jobs/a", "--label", "me", "--value", "v", "--", "true"]);
    let granted = watch.line();
    let mut words = granted.split(' ');
    let revision: u64 = words.next().unwrap().parse().unwrap();
    let rest = words.collect::<Vec<_>>().join(" ");
    assert!(rest.starts_with("jobs/a token ") && rest.ends_with(" granted to me with value \"v\""), "{rest}");
    assert!(watch.line().ends_with(" of me ended: released"));
    watch.signal(Signal::INT);
    assert_eq!(watch.end().code, Some(0));

    // From there again, for a program.
    let after = (revision - 1).to_string();
    let mut again = stage.start(&serving, &["--json", "watch", "jobs/", "--after", &after]);
    let line = again.line();
    let first = &log(&line)[0];
    assert_eq!(first["revision"], revision.to_string());
    let event = &first["events"][0];
    assert_eq!(
        (&event["kind"], &event["label"], &event["value"]),
        (&"granted".into(), &"me".into(), &"v".into())
    );
    again.signal(Signal::TERM);
    assert_eq!(again.end().code, Some(0));
    serving.stop();
}

/// The changes of the next revision that the service tells over HTTP.
fn next_over_http(stream: &mut impl BufRead) -> serde_json::Value {
    let mut event = String::new();
    loop {
        let mut line = String::new();
        assert!(stream.read_line(&mut line).unwrap() > 0, "the stream ended");
        match line.trim_end().split_once(": ") {
            Some(("event", name)) => event = name.to_owned(),
            Some(("data", data)) if event == "changes" => return serde_json::from_str(data).unwrap(),
            _ => {}
        }
    }
}

#[test]
fn the_command_and_the_service_tell_the_same() {
    let stage = Stage::new();
    let serving = stage.serve(&[]);
    let url = serving.url();
    let long = "v".repeat(60_000);
    for value in ["", "short", &long] {
        stage.good(&["--store", &url, "run", "job", "--value", value, "--", "true"]);
    }
    stage.good(&["--store", &url, "run", "pool", "--slots", "2", "--", "true"]);
    let mut stream = TcpStream::connect(&serving.address).unwrap();
    let request = format!("GET /v1/watch?after=1 HTTP/1.1\r\nhost: {}\r\n\r\n", serving.address);
    stream.write_all(request.as_bytes()).unwrap();
    let mut stream = BufReader::new(stream);
    let mut command = stage.start(&serving, &["--json", "watch", "--after", "1"]);
    // Four grants and four endings, each under a revision of its own.
    for _ in 0..8 {
        assert_eq!(next_over_http(&mut stream), log(&command.line())[0]);
    }
    serving.stop();
}

#[test]
fn a_revision_that_does_not_exist_is_refused() {
    let stage = Stage::new();
    let serving = stage.serve(&[]);
    let said = stage.say(&["--store", &serving.url(), "watch", "--after", "1000000"]);
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(said.err.contains("revision 1000000 is ahead of the newest"), "{said:?}");
    serving.stop();
}
