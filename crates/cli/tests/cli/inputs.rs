//! Input that cannot be: one line that names the value, the limit and the next step, and exit code 2, or 125 of `run`.

use super::stage::Stage;

/// The exit code of a mistake: that of `run` does not look like its command's.
fn misuse(arguments: &[&str]) -> Option<i32> {
    Some(if arguments.first() == Some(&"run") { 125 } else { 2 })
}

fn refused(arguments: &[&str], parts: &[&str]) {
    let stage = Stage::new();
    let said = stage.say(arguments);
    assert_eq!((said.code, said.out.as_str()), (misuse(arguments), ""), "{arguments:?}: {said:?}");
    assert_eq!(said.err.lines().count(), 1, "{said:?}");
    assert!(said.err.len() < 300, "{} bytes", said.err.len());
    for part in parts {
        assert!(said.err.contains(part), "{part:?} is not in {said:?}");
    }
    assert!(!stage.store().exists(), "nothing was made");
}

#[test]
fn bad_lengths() {
    let run = |length: &str, parts: &[&str]| refused(&["run", "a", "--ttl", length, "--", "true"], parts);
    run("0s", &["--ttl 0s is below the minimum of 500ms", "longer"]);
    run("499ms", &["499ms", "500ms"]);
    for not_a_length in ["-1", "-1s", "NaN", "inf", "", "10", "9223372036854775808"] {
        run(not_a_length, &["--ttl", &format!("{not_a_length:?}"), "write it like 10s"]);
    }
    run("9223372036854775808s", &["above the maximum of 24h", "shorter"]);
    run("99999999999999999999999s", &["longer than any"]);
    refused(
        &["run", "a", "--wait", "25h", "--", "true"],
        &["--wait 25h is above the maximum of 24h", "shorter"],
    );
    refused(&["run", "a", "--grace", "25h", "--", "true"], &["--grace 25h", "24h"]);
    refused(&["run", "a", "--grace", "5s", "--hard", "1s", "--", "true"], &["1000 ms", "5000 ms"]);
}

#[test]
fn bad_names() {
    for (name, parts) in [
        ("", &["empty", "at least 1 byte"][..]),
        ("a#1", &["'#'", "byte 1", "choose another"]),
        ("a\nb", &["'\\n'", "byte 1"]),
        ("a\u{1b}[31m", &["'\\u{1b}'"]),
        (&"a".repeat(100_000), &["100000 bytes", "512 bytes", "shorter"]),
    ] {
        refused(&["get", name], parts);
        refused(&["run", name, "--", "true"], parts);
        refused(&["hold", name], parts);
    }
}

#[test]
fn bad_tokens_slots_reasons_and_values() {
    for token in ["", "x", "-1", "1.5"] {
        refused(&["get", "a", "--token", token], &[&format!("{token:?}"), "whole number"]);
    }
    for token in ["9223372036854775808", "99999999999999999999"] {
        refused(&["get", "a", "--token", token], &[token, "above the maximum of 9223372036854775807"]);
    }
    for slots in ["0", "-1", "10001", "x"] {
        refused(&["hold", "a", "--slots", slots], &[&format!("{slots:?}"), "1 to 10000"]);
    }
    refused(&["revoke", "a", "--reason", " "], &["reason is empty"]);
    refused(&["revoke", "a", "--reason", &"r".repeat(1_025)], &["1025 bytes", "1024 bytes"]);
    refused(&["hold", "a", "--value", &"v".repeat(65_537)], &["65537 bytes", "65536 bytes"]);
    refused(&["hold", "a", "--label", &"l".repeat(257)], &["257 bytes", "256 bytes"]);
}

#[test]
fn bad_stores() {
    refused(&["get", "a", "--store", ""], &["store is empty"]);
    refused(&["get", "a", "--store", "dir:"], &["store is empty"]);
    refused(&["get", "a", "--store", "ftp:x"], &["\"ftp:x\"", "dir:PATH"]);
    // What fence check prints looks as if it belonged there.
    for command in [&["get", "a"][..], &["run", "a"]] {
        let command = [
            command,
            &["--store", "dir:leases?token_floor=8"],
            if command[0] == "run" { &["--", "true"] } else { &[] },
        ];
        refused(
            &command.concat(),
            &["\"?token_floor=8\"", "a directory has none", "recover --data leases --above TOKEN"],
        );
    }
}

#[test]
fn a_mistake_before_the_word_run_is_one_of_run_too() {
    let codes = [
        &["--bogus", "run", "x", "true"][..],
        &["--timeout", "x", "run", "x", "true"],
        &["--bogus", "get", "run"],
    ]
    .map(|arguments| Stage::new().say(arguments).code);
    assert_eq!(codes, [Some(125), Some(125), Some(2)]);
}

#[test]
fn a_ttl_above_the_maximum_of_the_store_is_misuse_too() {
    let said = Stage::new().say(&["run", "a", "--ttl", "1h", "--", "true"]);
    assert_eq!(said.code, Some(125));
    assert_eq!(
        said.err,
        "leasehold: refused: ttl of 3600000 ms is outside 500 ms to 300000 ms; choose a ttl in between\n"
    );
}

#[test]
fn missing_and_contradictory_arguments() {
    let stage = Stage::new();
    for arguments in [
        &[][..],
        &["run", "a"],
        &["run", "a", "--tll", "1s", "true"],
        &["run", "a", "--wait", "1s", "--no-wait", "--", "true"],
        &["run", "a", "--shared", "--slots", "2", "--", "true"],
        &["revoke", "a"],
        &["get"],
    ] {
        let said = stage.say(arguments);
        assert_eq!((said.code, said.out.as_str()), (misuse(arguments), ""), "{arguments:?}");
        assert!(said.err.starts_with("leasehold: ") && said.err.contains("Usage:"), "{said:?}");
    }
}

#[test]
fn a_command_of_another_system_leads_to_ours() {
    refused(&["frobnicate"], &["leasehold: no command \"frobnicate\"; see leasehold --help"]);
    refused(&["lock", "a", "true"], &["no command \"lock\"", "leasehold run NAME CMD"]);
    refused(&["unlock", "a"], &["no command \"unlock\"", "leasehold release NAME"]);
}

#[test]
fn a_command_without_a_store_is_given_none() {
    refused(&["plan", "--store", "x"], &["plan uses no store; leave --store out"]);
    refused(&["--store", "x", "data", "verify", "x"], &["data verify uses no store; leave --store out"]);
    // A variable that is set for the other commands does no harm.
    assert_eq!(Stage::new().say(&["plan"]).code, Some(0));
}
