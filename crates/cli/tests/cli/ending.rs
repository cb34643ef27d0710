//! `release` and `revoke`.

use rustix::process::Signal;
use serde_json::json;

use super::stage::Stage;

#[test]
fn there_is_nothing_to_release_or_revoke_where_nobody_holds() {
    let stage = Stage::new();
    stage.good(&["run", "job", "--", "true"]);
    for arguments in [&["release", "job"][..], &["revoke", "job", "--reason", "r", "--yes"]] {
        let said = stage.say(arguments);
        assert_eq!((said.code, said.err.as_str()), (Some(1), "leasehold: refused: nobody holds job\n"));
    }
    let said = stage.say(&["release", "job", "--token", "2"]);
    assert_eq!(
        (said.code, said.err.as_str()),
        (Some(1), "leasehold: refused: token 2 of job is not current\n")
    );
}

#[test]
fn release_gives_json() {
    let stage = Stage::new();
    let (_holder, token) = stage.hold("job", &[]);
    let expected = json!({
        "resource": "job", "token": token, "holder": "holder", "ended": "drained", "by": null, "reason": null,
        "successor": null, "taken_by": null,
    });
    assert_eq!(stage.json(0, &["release", "job"]), expected);
}

#[test]
fn a_holder_that_does_not_answer_is_named_and_revoke_pointed_to() {
    let stage = Stage::new();
    // Whoever comes first serves the directory; the one that is stopped comes second.
    let (_server, _) = stage.hold("other", &[]);
    let (holder, token) = stage.hold("job", &["--ttl", "60s"]);
    holder.signal(Signal::STOP);
    let said = stage.say(&["release", "job", "--wait", "100ms"]);
    assert_eq!(said.code, Some(120), "{said:?}");
    let expected = format!("leasehold: holder was asked but still holds job with token {token}; ");
    assert!(said.err.starts_with(&expected), "{said:?}");
    assert!(said.err.ends_with(&format!("leasehold revoke job --token {token} --reason TEXT\n")), "{said:?}");
    // As it said: the holder does not know, so the name is held back, unless asked otherwise.
    let revoked = stage.json(0, &["revoke", "job", "--token", &token, "--reason", "stopped", "--yes"]);
    assert!(revoked["held_back_ms"].as_u64().unwrap() > 1_000, "{revoked}");
    let said = stage.say(&["run", "job", "--no-wait", "--", "true"]);
    assert_eq!(said.code, Some(120));
    assert!(
        said.err.contains(&format!("token {token} was revoked, and its holder may not know for another ")),
        "{said:?}"
    );
    assert_eq!(stage.say(&["get", "job"]).code, Some(1), "a revoked holder holds nothing");
    let now = stage.good(&["revoke", "job", "--token", &token, "--reason", "stopped", "--now", "--yes"]);
    assert!(now.contains("only tokens protect against the old holder"), "{now}");
    stage.good(&["run", "job", "--no-wait", "--", "true"]);
}

#[test]
fn revoke_shows_the_token_and_acts_only_when_confirmed() {
    let stage = Stage::new();
    let (_holder, token) = stage.hold("job", &[]);
    let said = stage.say(&["revoke", "job", "--reason", "r"]);
    assert_eq!((said.code, said.out.as_str()), (Some(2), ""));
    let expected = format!("leasehold: job is held by holder with token {token} for ");
    assert!(said.err.starts_with(&expected) && said.err.ends_with("--yes\n"), "{said:?}");
    assert_eq!(stage.say(&["get", "job", "--token", &token]).code, Some(0), "nothing was done");
    let said = stage.say(&["revoke", "job", "--reason", "r", "--yes"]);
    let expected = format!(
        "job: token {token} of holder is revoked; it goes to nobody until the holder has stopped, at most "
    );
    assert_eq!((said.code, said.out.starts_with(&expected)), (Some(0), true), "{said:?}");
}

#[test]
fn an_old_token_never_ends_a_newer_lease() {
    let stage = Stage::new();
    stage.good(&["run", "job", "--", "true"]);
    let (_holder, token) = stage.hold("job", &[]);
    assert_eq!(stage.say(&["release", "job", "--token", "2"]).code, Some(1));
    assert_eq!(stage.say(&["revoke", "job", "--token", "2", "--reason", "r", "--yes"]).code, Some(1));
    assert_eq!(stage.say(&["get", "job", "--token", &token]).code, Some(0));
}

#[test]
fn one_of_several_holders_must_be_named() {
    let stage = Stage::new();
    let (_one, first) = stage.hold("job", &["--slots", "2"]);
    let (_two, second) = stage.hold("job", &["--slots", "2"]);
    let said = stage.say(&["revoke", "job", "--reason", "r", "--yes"]);
    assert_eq!(said.code, Some(2));
    assert_eq!(said.err, format!("leasehold: job has 2 holders; name one with --token: {first}, {second}\n"));
    stage.good(&["revoke", "job", "--reason", "r", "--yes", "--token", &second]);
    assert_eq!(stage.say(&["get", "job", "--token", &first]).code, Some(0));
    assert_eq!(stage.say(&["get", "job", "--token", &second]).code, Some(1));
}
