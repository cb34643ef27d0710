//! What the command says: to people, to programs, and to those who make a mistake.

use rustix::process::Signal;

use super::stage::Stage;

#[test]
fn it_says_where_it_listens_in_plain_text_or_json() {
    let stage = Stage::new();
    let serving = stage.serve(&[]);
    let fence = stage.fence().display().to_string();
    let plain =
        format!("listening on {} for {}; {fence} knows 0 fence names", serving.address, stage.store.url);
    assert_eq!(serving.first_line, plain);
    serving.signal(Signal::TERM);
    assert_eq!(serving.end().0, Some(0));

    let serving = stage.serve(&["--json"]);
    let line: serde_json::Value = serde_json::from_str(&serving.first_line).unwrap();
    assert_eq!(
        (line["event"].as_str(), line["address"].as_str()),
        (Some("listening"), Some(serving.address.as_str()))
    );
    assert_eq!((line["fence"].as_str(), line["names"].as_u64()), (Some(fence.as_str()), Some(0)));
    serving.signal(Signal::TERM);
    let (code, err) = serving.end();
    let line: serde_json::Value = serde_json::from_str(&err).unwrap();
    assert_eq!((code, line["event"].as_str()), (Some(0), Some("stopping")));
}

#[test]
fn mistakes_are_named_with_the_next_step() {
    let stage = Stage::new();
    for (more, part) in [
        (vec!["--timeout", "0s"], "--timeout 0s is below the minimum of 10ms"),
        (vec!["--timeout", "2"], "is not a length of time"),
        (vec!["--listen", "0.0.0.0:0"], "accept that with --insecure"),
        (vec!["--listen", "nonsense"], "\"nonsense\" is not an address with a port from 0 to 65535"),
        (vec!["--upstream", "https://a"], "there is no TLS here"),
        // Not where the proxy itself would listen.
        (vec!["--upstream", "nonsense"], "write it like http://127.0.0.1:8080"),
        (vec!["--upstream", "http://me:secret@a"], "user name or password"),
        (vec!["--name", ""], "a fence name is empty"),
    ] {
        let mut command = stage.command(&[]);
        // What is said twice is said last.
        if more[0] != "--timeout" && more[0] != "--name" {
            command = without(&stage, more[0]);
        }
        let said = command.args(&more).output().unwrap();
        let err = String::from_utf8(said.stderr).unwrap();
        assert_eq!(said.status.code(), Some(2), "{more:?}: {err}");
        assert!(err.contains(part) && !err.contains("secret"), "{more:?}: {err}");
    }
    assert!(!stage.fence().exists(), "nothing was made");
}

#[test]
fn a_proxy_is_not_its_own_service() {
    let stage = Stage::new();
    for (upstream, listen) in [
        ("http://127.0.0.1:7421", "127.0.0.1:7421"),
        ("http://localhost:7421/reports", "127.0.0.1:7421"),
        ("http://127.0.0.1", "127.0.0.1:80"),
        ("http://0.0.0.0:7421", "127.0.0.1:7421"),
        ("http://localhost:7421", "[::1]:7421"),
    ] {
        let mut command = std::process::Command::new(stage.command(&[]).get_program());
        command.args(["fence", "proxy", "--upstream", upstream, "--listen", listen, "--fence"]);
        let said = command.arg(stage.fence()).output().unwrap();
        let err = String::from_utf8(said.stderr).unwrap();
        assert_eq!(said.status.code(), Some(2), "{err}");
        let part = format!("the upstream {upstream:?} is where this proxy listens ({listen})");
        assert!(err.contains(&part), "{err}");
    }
    assert!(!stage.fence().exists(), "nothing was made");
}

#[test]
fn what_cannot_be_taken_is_said_with_the_next_step() {
    let stage = Stage::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let said = without(&stage, "--listen").args(["--listen", &address]).output().unwrap();
    let err = String::from_utf8(said.stderr).unwrap();
    assert_eq!(said.status.code(), Some(1), "{err}");
    assert!(err.contains("in use") && err.contains("another port with --listen"), "{err}");

    let stage = Stage::new();
    std::fs::write(stage.fence(), "text").unwrap();
    let said = stage.command(&[]).output().unwrap();
    let err = String::from_utf8(said.stderr).unwrap();
    assert_eq!(said.status.code(), Some(2), "{err}");
    assert!(err.contains("is a file; name a directory"), "{err}");
}

/// The command without one of its options.
fn without(stage: &Stage, option: &str) -> std::process::Command {
    let whole = stage.command(&[]);
    let mut command = std::process::Command::new(whole.get_program());
    let mut arguments = whole.get_args();
    while let Some(argument) = arguments.next() {
        if argument == option {
            arguments.next();
            continue;
        }
        command.arg(argument);
    }
    command
}

#[test]
fn refusals_are_kept_with_the_time_of_day_and_counted() {
    let stage = Stage::new();
    let serving = stage.serve(&["--name", "a", "--timeout", "5s"]);
    assert_eq!(serving.write(34, "x"), 201);
    assert_eq!(serving.write(33, "x"), 412);
    let (_, body) = serving.ask("GET", "/.leasehold/fence?name=a", None, "");
    let body: serde_json::Value = serde_json::from_str(&body).unwrap();
    let refused = &body["refusals"][0];
    assert_eq!((refused["token"].as_str(), refused["holder"].as_str()), (Some("33"), Some("holder-33")));
    assert!(refused["at"].as_str().unwrap().ends_with('Z'), "{body}");
    let (_, page) = serving.ask("GET", "/.leasehold/metrics", None, "");
    assert!(page.contains("outcome=\"stale\"} 1"), "{page}");
}

#[test]
fn help_says_what_it_cannot_do() {
    let said = std::process::Command::new(env!("CARGO_BIN_EXE_leasehold"))
        .args(["fence", "proxy", "--help"])
        .output()
        .unwrap();
    let help = String::from_utf8(said.stdout).unwrap();
    for part in
        ["--upstream <URL>", "--settle", "[default: 30s]", "weaker than a check", "may still carry out"]
    {
        assert!(help.replace('\n', " ").contains(part) || help.contains(part), "{part}: {help}");
    }
    assert!(!help.contains("without a connection"), "its time-out is its own: {help}");
}
