//! What is configured, where from, and what is refused.

use super::stage::{Stage, said};

/// Refused: exit code 2, one line with these parts, and nothing was made.
fn refused(stage: &Stage, arguments: &[&str], parts: &[&str]) {
    let mut with = vec!["serve"];
    with.extend(arguments);
    let said = stage.say(&with);
    assert_eq!((said.code, said.out.as_str()), (Some(2), ""), "{arguments:?}: {said:?}");
    assert_eq!(said.err.lines().count(), 1, "{said:?}");
    for part in parts {
        assert!(said.err.contains(part), "{part:?} is not in {said:?}");
    }
    assert!(!stage.path(".local").exists(), "nothing was made");
}

#[test]
fn an_address_that_others_reach_is_refused_unless_asked_for() {
    let stage = Stage::new();
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:7420"] {
        refused(&stage, &["--listen", address], &[address, "--insecure", "127.0.0.1"]);
    }
    let served = stage.serve(&["--set", "listen=0.0.0.0:0", "--insecure"]);
    assert!(served.address.starts_with("0.0.0.0:"), "{}", served.address);
    served.stop();
}

#[test]
fn a_name_of_this_machine_is_listened_on() {
    let stage = Stage::new();
    let data = stage.path("data");
    let words = ["serve", "--data", data.to_str().unwrap(), "--listen", "localhost:0"];
    let served = stage.serve_with(&mut stage.command(&words));
    let address: std::net::SocketAddr = served.address.parse().unwrap();
    assert!(address.ip().is_loopback() && address.port() != 0, "{address}");
    served.stop();
}

#[test]
fn flags_that_cannot_be_are_refused_by_name() {
    let stage = Stage::new();
    refused(&stage, &["--listen", "localhost"], &["--listen", "\"localhost\"", "localhost:7420"]);
    refused(&stage, &["--max-ttl", "100ms"], &["--max-ttl 100ms is below the minimum of 500ms"]);
    refused(&stage, &["--max-ttl", "2d"], &["--max-ttl 2d is above the maximum of 24h"]);
    refused(&stage, &["--data", "~/x"], &["--data", "\"~/x\"", "whole path"]);
    refused(&stage, &["--max-ttl", "10"], &["--max-ttl", "\"10\"", "10s"]);
    refused(&stage, &["--log-level", "inof"], &["--log-level", "\"inof\"", "debug"]);
    refused(&stage, &["--log-format", "xml"], &["--log-format", "\"xml\"", "json"]);
    refused(&stage, &["--name", "a b"], &["--name", "\"a b\""]);
    refused(&stage, &["--data", ""], &["--data", "empty"]);
    refused(&stage, &["--set", "listen"], &["--set", "\"listen\"", "KEY=VALUE"]);
    refused(
        &stage,
        &["--set", "limits.max_wotches=1"],
        &["limits.max_wotches", "did you mean limits.max_watches?"],
    );
    refused(&stage, &["--set", "http.max_body_bytes=65536"], &["http.max_body_bytes", "65536", "135168"]);
    refused(&stage, &["--store", "x"], &["--store", "--data"]);
}

#[test]
fn what_does_not_fit_together_is_refused_with_both_values() {
    let stage = Stage::new();
    refused(
        &stage,
        &["--set", "limits.max_watches=10"],
        &["of 64 (default)", "of 10 (--set limits.max_watches)", "max_watches_per_connection"],
    );
    refused(&stage, &["--set", "shutdown_grace_ms=500"], &["of 10000", "of 500", "request_timeout_ms"]);
    refused(
        &stage,
        &["--set", "limits.max_connections=1000000"],
        &["of 1000000", "descriptors", "LimitNOFILE"],
    );
}

#[test]
fn a_file_is_refused_with_its_line() {
    let stage = Stage::new();
    for (text, parts) in [
        ("name = \"a\"\nlisen = \"x\"\n", &[":2: ", "lisen", "did you mean listen?"][..]),
        ("nmae = \"a\"\n", &[":1: ", "nmae", "did you mean name?"]),
        ("\n[htpp]\nmax_body_bytes = 1\n", &[":2: ", "[htpp]", "did you mean [http]?"]),
        ("[http]\n\nmax_body_bytes = \"big\"\n", &[":3: ", "http.max_body_bytes", "\"big\""]),
        ("name = \n", &[":1: "]),
        ("[log]\nlevel = \"inof\"\n", &[":2: ", "log.level", "\"inof\""]),
    ] {
        let path = stage.file("c.toml", text);
        let mut parts = parts.to_vec();
        parts.push(&path);
        refused(&stage, &["--config", &path], &parts);
    }
    refused(&stage, &["--config", "/nowhere.toml"], &["/nowhere.toml", "No such file"]);
}

#[test]
fn a_variable_that_is_not_known_is_refused() {
    let stage = Stage::new();
    let said = said(stage.command(&["serve"]).env("LEASEHOLD_SERVE_LISEN", "127.0.0.1:1"));
    assert_eq!(said.code, Some(2), "{said:?}");
    assert_eq!(
        said.err,
        "leasehold: there is no variable LEASEHOLD_SERVE_LISEN; did you mean LEASEHOLD_SERVE_LISTEN?\n"
    );
}

#[test]
fn what_comes_later_wins_and_the_printed_configuration_reads_the_same() {
    let stage = Stage::new();
    let file = stage.file("c.toml", "name = \"file\"\nmax_ttl_ms = 1000\n[limits]\nmax_watches = 100\n");
    let first = said(
        stage
            .command(&["serve", "--print-config", "--config", &file, "--max-ttl", "3s"])
            .env("LEASEHOLD_SERVE_MAX_TTL_MS", "2000")
            .env("LEASEHOLD_SERVE_LIMITS_MAX_WATCHES", "200"),
    );
    assert_eq!(first.code, Some(0), "{first:?}");
    for line in ["name = \"file\"", "max_ttl_ms = 3000", "max_watches = 200", "listen = \"127.0.0.1:7420\""] {
        assert!(first.out.lines().any(|found| found == line), "{line} is not in {}", first.out);
    }
    let state = stage.path(".local/state/leasehold-service");
    assert!(first.out.contains(&format!("data = \"{}\"", state.display())), "{}", first.out);
    let printed = stage.file("printed.toml", &first.out);
    assert_eq!(stage.good(&["serve", "--print-config", "--config", &printed]), first.out);
    let by_variable =
        said(stage.command(&["serve", "--print-config"]).env("LEASEHOLD_SERVE_CONFIG", &printed));
    assert_eq!(by_variable.out, first.out);
    assert!(!stage.path(".local").exists(), "nothing was made");
}

#[test]
fn the_printed_configuration_as_json_says_where_each_value_came_from() {
    let stage = Stage::new();
    let out = stage.good(&["--json", "serve", "--print-config", "--name", "n1"]);
    let settings: serde_json::Value = serde_json::from_str(&out).unwrap();
    let of = |key: &str| settings.as_array().unwrap().iter().find(|setting| setting["key"] == key).unwrap();
    assert_eq!((&of("name")["value"], &of("name")["source"]), (&"n1".into(), &"--name".into()));
    assert_eq!((&of("insecure")["value"], &of("insecure")["source"]), (&false.into(), &"default".into()));
    assert_eq!(of("max_ttl_ms")["value"], 300_000);
    assert_eq!(of("log.format")["source"], "--json");
}
