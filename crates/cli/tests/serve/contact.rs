//! What a person meets first: a service and a command that do not find each other, or find nothing.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::process::Command;

use rustix::net::{AddressFamily, SocketType, bind, getsockname, socket};

use super::stage::{Running, Stage, log, said};

/// As long as no test waits.
const LONG: &str = "5m";

/// A command without a store, on a machine whose service listens here.
fn without_store(stage: &Stage, listens: &str, arguments: &[&str]) -> Command {
    let mut command = stage.command(arguments);
    command.env("LEASEHOLD_SERVE_LISTEN", listens);
    command
}

/// An address at which nobody listens, and nobody else can as long as this is kept.
fn deserted() -> (OwnedFd, SocketAddr) {
    let kept = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    bind(&kept, &SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).unwrap();
    let address = getsockname(&kept).unwrap().try_into().unwrap();
    (kept, address)
}

#[test]
fn a_service_says_how_clients_name_it() {
    let stage = Stage::new();
    let serving = stage.serve(&[]);
    let line = format!("for clients: export LEASEHOLD_STORE={}", serving.url());
    let lines = log(&serving.stop());
    assert!(lines.iter().any(|said| said["message"] == line.as_str()), "{lines:?}");
}

#[test]
fn a_service_on_every_address_is_named_as_clients_of_this_machine_reach_it() {
    let stage = Stage::new();
    let serving = stage.serve(&["--set", "listen=0.0.0.0:0", "--insecure"]);
    let line =
        format!("for clients: export LEASEHOLD_STORE={}", serving.url().replace("0.0.0.0", "127.0.0.1"));
    let lines = log(&serving.stop());
    assert!(lines.iter().any(|said| said["message"] == line.as_str()), "{lines:?}");
}

#[test]
fn a_command_on_the_default_directory_says_that_a_service_listens() {
    let stage = Stage::new();
    let serving = stage.serve(&[]);
    let export = format!("export LEASEHOLD_STORE={}", serving.url());
    let work = ["run", "job", "--", "echo", "done"];
    let ran = said(&mut without_store(&stage, &serving.address, &work));
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "done\n"), "{ran:?}");
    assert!(ran.err.contains(&export) && ran.err.contains(".local/state/leasehold"), "{ran:?}");

    let listed = said(&mut without_store(&stage, &serving.address, &["list", "--json"]));
    assert_eq!(listed.code, Some(0), "{listed:?}");
    serde_json::from_str::<serde_json::Value>(&listed.out).unwrap();
    let note = &log(&listed.err)[0];
    assert_eq!(
        (&note["event"], &note["service"]),
        (&"service-not-used".into(), &serving.url().into()),
        "{note}"
    );

    // Whoever names a store has chosen.
    let own = stage.path("own").to_str().unwrap().to_owned();
    for store in [own, serving.url()] {
        let ran = said(without_store(&stage, &serving.address, &work).env("LEASEHOLD_STORE", &store));
        assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{store}: {ran:?}");
    }
}

#[test]
fn nothing_is_said_on_the_default_directory_without_a_service() {
    let stage = Stage::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let work = ["run", "job", "--", "true"];
    // It takes connections and is no service.
    let beside = said(&mut without_store(&stage, &address, &work));
    assert_eq!((beside.code, beside.err.as_str()), (Some(0), ""), "{beside:?}");
    let (_kept, address) = deserted();
    let alone = said(&mut without_store(&stage, &address.to_string(), &work));
    assert_eq!((alone.code, alone.err.as_str()), (Some(0), ""), "{alone:?}");
}

/// A silent command looks like one that hangs. What it tries, and for how long, is said long before the time is over.
#[test]
fn a_store_that_does_not_answer_is_named_while_it_is_tried() {
    let stage = Stage::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let store = format!("leasehold://{address}");
    for command in [&["list"][..], &["hold", "job"], &["watch"], &["cluster", "status"]] {
        let mut words = vec!["--store", &store, "--timeout", LONG];
        words.extend(command);
        // It answers nothing.
        let mut silent = Running::start(&mut stage.command(&words));
        let said = silent.error_line();
        assert!(said.contains(&address.to_string()), "{command:?}: {said}");
        assert!(said.ends_with("trying until 5m are over (--timeout)"), "{command:?}: {said}");
    }
    // It is not even there.
    let (_kept, address) = deserted();
    let store = format!("leasehold://{address}");
    let words = ["--store", &store, "--timeout", LONG, "--json", "list"];
    let mut refused = Running::start(&mut stage.command(&words));
    let said = log(&refused.error_line());
    assert_eq!(said[0]["event"], "no-answer-yet", "{said:?}");
    assert!(said[0]["message"].as_str().unwrap().contains("refused"), "{said:?}");
}
