//! The proxy is killed, frozen, and asked to stop; the fence stands.

use rustix::process::Signal;

use super::stage::{Stage, eventually};

#[test]
fn a_stale_write_is_refused_before_and_after_a_kill() {
    let stage = Stage::new();
    let serving = stage.serve(&[]);
    assert_eq!(serving.write(33, "one"), 201);
    assert_eq!(serving.write(34, "two"), 201);
    assert_eq!(serving.write(33, "late"), 412);
    serving.signal(Signal::KILL);
    assert_eq!(serving.end().0, None);
    let again = stage.serve(&[]);
    assert!(again.first_line.ends_with("knows 1 fence names"), "{}", again.first_line);
    assert_eq!(again.write(33, "later"), 412);
    assert_eq!(again.write(34, "three"), 201);
    let log = stage.store.log();
    assert_eq!(log.iter().map(|(token, _)| *token).collect::<Vec<_>>(), [33, 34, 34]);
}

/// The new holder's request is raised and waits for the old one: killed in that moment, nothing of it was forwarded, and the token is known.
#[test]
fn killed_between_raise_and_forward_it_knows_the_token_and_has_sent_nothing() {
    let stage = Stage::new();
    let serving = stage.serve(&[]);
    stage.store.hold("old");
    let old = serving.begin(33, "old");
    stage.store.has("old");
    let new = serving.begin(34, "new");
    eventually("it is raised", || (serving.highest() == Some(34)).then_some(()));
    serving.signal(Signal::KILL);
    serving.end();
    assert_eq!((old.join().unwrap(), new.join().unwrap()), (0, 0), "nobody was told anything");
    assert!(!stage.store.ever_had("new"), "it was never forwarded");
    stage.store.let_go("old");
    eventually("the store goes on with what it has", || (stage.store.log().len() == 1).then_some(()));

    let again = stage.serve(&[]);
    assert_eq!(again.highest(), Some(34));
    assert_eq!(again.write(33, "late"), 412);
    assert_eq!(again.write(34, "new"), 201);
    assert_eq!(stage.store.log(), [(33, "old".to_owned()), (34, "new".to_owned())]);
}

/// A proxy that stood still for a while refuses by what it knows when it goes on.
#[test]
fn frozen_and_continued_it_still_refuses() {
    let stage = Stage::new();
    let serving = stage.serve(&[]);
    assert_eq!(serving.write(34, "one"), 201);
    serving.signal(Signal::STOP);
    let late = serving.begin(33, "late");
    let next = serving.begin(34, "two");
    serving.signal(Signal::CONT);
    assert_eq!((late.join().unwrap(), next.join().unwrap()), (412, 201));
}

#[test]
fn a_second_proxy_on_the_same_directory_is_refused_with_the_pid_of_the_first() {
    let stage = Stage::new();
    let serving = stage.serve(&[]);
    let said = stage.command(&["--json"]).output().unwrap();
    assert_eq!(said.status.code(), Some(1));
    let error: serde_json::Value = serde_json::from_slice(&said.stderr).unwrap();
    assert_eq!(error["error"]["code"], "service-failed");
    let message = error["error"]["message"].as_str().unwrap();
    assert!(message.contains(&format!("is used by process {}", serving.pid())), "{message}");
    // One that was killed leaves no lock behind.
    serving.signal(Signal::KILL);
    serving.end();
    drop(stage.serve(&[]));
}

#[test]
fn a_damaged_fence_is_refused_and_not_forgotten() {
    let stage = Stage::new();
    let serving = stage.serve(&[]);
    for token in [33, 34] {
        assert_eq!(serving.write(token, "x"), 201);
    }
    serving.signal(Signal::KILL);
    serving.end();
    let path = stage.fence().join("fence.log");
    let damaged = std::fs::read_to_string(&path).unwrap().replace("\"33\"", "\"32\"");
    std::fs::write(&path, damaged).unwrap();
    let said = stage.command(&[]).output().unwrap();
    let err = String::from_utf8(said.stderr).unwrap();
    assert_eq!(said.status.code(), Some(1), "{err}");
    assert!(err.contains("fence.log is damaged at byte 24"), "{err}");
}

#[test]
fn a_signal_answers_what_is_under_way_and_a_second_one_does_not_wait() {
    let stage = Stage::new();
    let serving = stage.serve(&[]);
    stage.store.hold("slow");
    let slow = serving.begin(34, "slow");
    stage.store.has("slow");
    serving.signal(Signal::TERM);
    eventually("the port is closed", || {
        std::net::TcpStream::connect(&serving.address).is_err().then_some(())
    });
    stage.store.let_go("slow");
    assert_eq!(slow.join().unwrap(), 201);
    let (code, err) = serving.end();
    assert_eq!(code, Some(0), "{err}");
    assert_eq!(err, "leasehold: finishing what is under way; each request has at most 30000 ms\n");

    let serving = stage.serve(&[]);
    stage.store.hold("stuck");
    let stuck = serving.begin(34, "stuck");
    stage.store.has("stuck");
    serving.signal(Signal::TERM);
    eventually("the port is closed", || {
        std::net::TcpStream::connect(&serving.address).is_err().then_some(())
    });
    serving.signal(Signal::TERM);
    assert_eq!(serving.end().0, Some(143));
    assert_eq!(stuck.join().unwrap(), 0);
    stage.store.let_go("stuck");
}
