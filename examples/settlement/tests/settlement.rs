//! The example does what its page says: it pays twice without the fence, and never with it.

use std::process::Command;

use leasehold_kit::{Receiver as _, postgres};

#[test]
fn a_payment_that_was_on_its_way_is_made_twice_without_the_fence_and_refused_with_it() {
    let server = postgres::Server::start().expect("a database");
    let mut show = Command::new(env!("CARGO_BIN_EXE_settlement"));
    let output = show.args(["show", "--postgres", &server.url()]).output().expect("the example runs");
    let (said, complaints) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    println!("{said}");
    assert!(output.status.success(), "{said}{complaints}");
    let rows: Vec<Vec<&str>> = said.lines().map(|line| line.split_whitespace().collect()).collect();
    assert!(rows.contains(&vec!["payments", "11", "10"]), "{said}");
    assert!(rows.contains(&vec!["invoices", "paid", "twice", "1", "0"]), "{said}");
    assert!(said.contains("a: invoice 3: refused by the database: token "), "{said}");
}

#[test]
fn a_server_that_is_down_is_said_to_be_down_and_soon() {
    let mut show = Command::new(env!("CARGO_BIN_EXE_settlement"));
    let output = show.args(["show", "--postgres", "postgres://app:secret@127.0.0.1:1/x"]).output();
    let complaints = String::from_utf8(output.expect("the example runs").stderr).expect("text");
    assert!(complaints.contains("postgres://127.0.0.1:1 cannot be used: "), "{complaints}");
    assert!(complaints.contains("see that the server runs"), "{complaints}");
    assert!(!complaints.contains("without the fence") && !complaints.contains("secret"), "{complaints}");
}
