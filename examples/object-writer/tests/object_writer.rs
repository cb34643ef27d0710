//! The example does what its page says: an older version overwrites a newer one without the fence, and is refused with it.

use std::process::Command;

use leasehold_kit::{Receiver as _, s3};

#[test]
fn a_version_that_was_on_its_way_overwrites_a_newer_one_without_the_fence_and_is_refused_with_it() {
    let server = s3::Server::start().expect("an object store");
    server.make_bucket("reports").expect("a bucket");
    let mut show = Command::new(env!("CARGO_BIN_EXE_object-writer"));
    show.args(["show", "--endpoint", &server.url(), "--bucket", "reports"]);
    // The server checks none.
    show.envs([("AWS_ACCESS_KEY_ID", "test"), ("AWS_SECRET_ACCESS_KEY", "test")]);
    let output = show.output().expect("the example runs");
    let (said, complaints) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    println!("{said}");
    assert!(output.status.success(), "{said}{complaints}");
    let (without, with) = said.split_once("with the fence\n").expect("both plays are told");
    assert!(without.contains("b: wrote version 3\n"), "{said}");
    assert!(
        without.contains("-- the bytes of a arrive at the store, and a goes on\n  a: wrote version 2\n"),
        "{said}"
    );
    assert!(with.contains("b: wrote version 3\n"), "{said}");
    assert!(with.contains("a goes on\n  a: version 2: refused by the store: token "), "{said}");
    let rows: Vec<Vec<&str>> = said.lines().map(|line| line.split_whitespace().collect()).collect();
    assert!(rows.contains(&"newest version acknowledged 3 by b 3 by b".split(' ').collect()), "{said}");
    assert!(rows.contains(&"version in the store 2 by a 3 by b".split(' ').collect()), "{said}");
}

#[test]
fn an_endpoint_that_cannot_be_held_back_is_refused() {
    let mut show = Command::new(env!("CARGO_BIN_EXE_object-writer"));
    let output = show
        .args(["show", "--endpoint", "https://s3.example.org", "--bucket", "reports"])
        .output()
        .expect("it runs");
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{complaints}");
    assert!(complaints.contains("write it like http://127.0.0.1:9000"), "{complaints}");
}
