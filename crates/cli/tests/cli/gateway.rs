//! What `cluster` says when a gateway, or a later release, answers in the place of a node that this release knows.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use super::stage::{Said, Stage};

/// Asks a service for changes that answers every one with this; gives what was said, and how many were asked for.
fn answered(status: u16, body: &str, arguments: &[&str]) -> (Said, usize) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("leasehold://{}", listener.local_addr().unwrap());
    let (posts, body) = (Arc::new(AtomicUsize::new(0)), body.to_owned());
    let counted = Arc::clone(&posts);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            serve(&stream.unwrap(), status, &body, &counted);
        }
    });
    let common = ["--store", &url, "--timeout", "300ms", "--json", "cluster"];
    let said = Stage::new().say(&[&common, arguments].concat());
    (said, posts.load(Ordering::Relaxed))
}

fn serve(stream: &TcpStream, status: u16, body: &str, posts: &AtomicUsize) {
    let mut reader = BufReader::new(stream);
    let (mut head, mut length) = (String::new(), 0);
    while !head.ends_with("\r\n\r\n") {
        let begin = head.len();
        reader.read_line(&mut head).unwrap();
        if let Some(value) = head[begin..].strip_prefix("content-length: ") {
            length = value.trim().parse().unwrap();
        }
    }
    reader.read_exact(&mut vec![0; length]).unwrap();
    let member = |name: &str, leads: bool| {
        json!({ "name": name, "id": name, "address": name, "role": "voter", "leader": leads, "reachable": leads,
            "matched": "7", "behind": 0, "receiving_snapshot": false })
    };
    let members = [member("n1", true), member("n2", false)];
    let known = json!({ "name": "n1", "id": "n1", "advertised": "n1", "incarnation": "1", "epoch": 0, "version": 1,
        "leader": "n1", "ready": true, "applied": "7", "term": "1", "committed": "7", "members": members });
    let (status, body) = match head.starts_with("POST ") {
        true => {
            posts.fetch_add(1, Ordering::Relaxed);
            (status, body.to_owned())
        }
        false => (200, known.to_string()),
    };
    let length = body.len();
    write!(&*stream, "HTTP/1.1 {status} X\r\ncontent-length: {length}\r\n\r\n{body}").unwrap();
}

fn error(said: &Said) -> Value {
    serde_json::from_str::<Value>(&said.err).unwrap_or_else(|_| panic!("{said:?}"))["error"].take()
}

fn problem(code: &str, kind: &str) -> String {
    json!({ "code": code, "kind": kind, "detail": "words" }).to_string()
}

#[test]
fn an_answer_that_is_no_problem_leaves_a_change_unknown_and_it_is_asked_for_once() {
    for (status, body) in [(502, "<html>"), (503, "<html>"), (504, "<html>"), (200, "<html>")] {
        let (said, posts) = answered(status, body, &["transfer"]);
        let error = error(&said);
        assert_eq!(
            (&error["code"], &error["kind"]),
            (&"outcome-unknown".into(), &"unknown".into()),
            "{said:?}"
        );
        assert_eq!((said.code, posts), (Some(123), 1), "{status} {said:?}");
        assert!(said.err.contains("the answer is not understood"), "{said:?}");
    }
}

#[test]
fn a_code_of_a_later_release_is_kept_and_judged_by_its_kind() {
    for (status, kind, code) in [(500, "unknown", 123), (409, "refused", 1), (429, "failed", 1)] {
        let (said, posts) = answered(status, &problem("brand-new", kind), &["transfer"]);
        let error = error(&said);
        assert_eq!((&error["code"], &error["kind"]), (&"brand-new".into(), &kind.into()), "{said:?}");
        assert_eq!((said.code, posts), (Some(code), 1), "{said:?}");
    }
}

#[test]
fn a_change_is_asked_for_again_where_it_has_failed() {
    let (said, posts) = answered(503, &problem("unavailable", "failed"), &["transfer"]);
    assert_eq!(said.code, Some(122), "{said:?}");
    assert!(posts > 1, "{posts}");
    let (_, posts) = answered(503, &problem("brand-new", "unknown"), &["transfer"]);
    assert_eq!(posts, 1);
}

#[test]
fn what_is_unknown_stays_so_beside_a_member_that_is_out_of_reach() {
    let (said, _) = answered(500, &problem("outcome-unknown", "unknown"), &["transfer", "n2"]);
    assert_eq!((said.code, error(&said)["kind"].as_str()), (Some(123), Some("unknown")), "{said:?}");
    assert!(said.err.contains("n2 at n2 does not answer the leader"), "{said:?}");
}
