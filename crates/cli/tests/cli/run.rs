//! `run`.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use rustix::process::Signal;

use super::stage::{Stage, eventually};

/// A command that says when it runs and then goes on until it is ended.
const WAITS: [&str; 4] = ["--", "sh", "-c", "echo ready; exec sleep 300"];

fn run<'a>(options: &[&'a str], command: &[&'a str]) -> Vec<&'a str> {
    [&["run"], options, command].concat()
}

#[test]
fn the_code_of_the_command_passes_through() {
    let stage = Stage::new();
    for code in ["0", "3", "255"] {
        let said = stage.say(&["run", "job", "--", "sh", "-c", &format!("exit {code}")]);
        assert_eq!(said.code, code.parse().ok());
        assert_eq!((said.out.as_str(), said.err.as_str()), ("", ""));
    }
}

#[test]
fn death_by_a_signal_gives_128_and_its_number() {
    let said = Stage::new().say(&["run", "job", "--", "sh", "-c", "kill -9 $$"]);
    assert_eq!(said.code, Some(137), "{said:?}");
}

#[test]
fn the_command_finds_its_lease_in_its_environment() {
    let stage = Stage::new();
    let script = "echo $LEASEHOLD_TOKEN $LEASEHOLD_RESOURCE $LEASEHOLD_SESSION $LEASEHOLD_STORE";
    let out = stage.good(&["run", "jobs/a", "--", "sh", "-c", script]);
    assert_eq!(out, format!("2 jobs/a 1 dir:{}\n", stage.store().display()));
    let out = stage.good(&["run", "many", "--slots", "3", "--", "sh", "-c", "echo $LEASEHOLD_RESOURCE"]);
    assert!(["many#0\n", "many#1\n"].contains(&out.as_str()), "{out}");
}

#[test]
fn a_relative_store_is_passed_on_as_an_absolute_one() {
    let stage = Stage::new();
    let mut command =
        stage.command(&["--store", "here", "run", "a", "--", "sh", "-c", "echo $LEASEHOLD_STORE"]);
    let said = super::stage::said(command.current_dir(stage.dir.path()));
    let path = stage.dir.path().canonicalize().unwrap().join("here");
    assert_eq!(said.out, format!("dir:{}\n", path.display()));
}

#[test]
fn tokens_rise_from_run_to_run() {
    let stage = Stage::new();
    let token = || -> u64 {
        stage.good(&["run", "job", "--", "sh", "-c", "echo $LEASEHOLD_TOKEN"]).trim().parse().unwrap()
    };
    let (first, second, third) = (token(), token(), token());
    assert!(first < second && second < third, "{first} {second} {third}");
}

#[test]
fn a_held_name_is_not_run_and_the_holder_is_named() {
    let stage = Stage::new();
    let (holder, token) = stage.hold("job", &[]);
    let said = stage.say(&["run", "job", "--no-wait", "--", "echo", "ran"]);
    assert_eq!((said.code, said.out.as_str()), (Some(120), ""));
    let expected = format!("leasehold: job was not acquired: held by holder with token {token} for ");
    assert!(said.err.starts_with(&expected) && said.err.lines().count() == 1, "{said:?}");
    let said = stage.say(&["run", "job", "--no-wait", "--quiet", "--", "echo", "ran"]);
    assert_eq!((said.code, said.out.as_str(), said.err.as_str()), (Some(120), "", ""), "for cron");
    let said = stage.say(&["run", "job", "--wait", "1500ms", "--quiet", "--", "echo", "ran"]);
    assert_eq!((said.code, said.out.as_str(), said.err.as_str()), (Some(120), "", ""), "nor while it waits");
    let said = stage.say(&["run", "job", "--wait", "50ms", "--", "echo", "ran"]);
    assert_eq!((said.code, said.out.as_str()), (Some(120), ""));
    assert!(said.err.contains(&format!("waited 50ms, held by holder with token {token} for ")), "{said:?}");
    drop(holder);
}

#[test]
fn what_is_shown_with_the_lease_is_seen_by_others() {
    let stage = Stage::new();
    let mut running = stage.start(&run(&["job", "--value", "host:80"], &WAITS));
    assert_eq!(running.line(), "ready");
    assert!(stage.good(&["get", "job"]).contains("host:80"));
}

#[test]
fn renewals_come_as_often_as_is_said() {
    let stage = Stage::new();
    let history = stage.dir.path().join("history");
    let file = history.to_str().unwrap();
    // By itself it would be renewed once in 20 seconds.
    let options = ["run", "job", "--ttl", "60s", "--renew-every", "100ms", "--history", file];
    let script =
        format!("for i in $(seq 150); do [ $(grep -c confirmed {file}) -lt 3 ] || exit 0; sleep 0.1; done");
    stage.good(&[&options[..], &["--", "sh", "-c", &script]].concat());
    let confirmed = fs::read_to_string(&history).unwrap().matches("\"what\":\"confirmed\"").count();
    assert!(confirmed >= 2, "{confirmed}");
    let said = stage.say(&["run", "job", "--ttl", "2s", "--renew-every", "1900ms", "--", "true"]);
    assert_eq!(said.code, Some(125), "{said:?}");
    assert!(said.err.contains("1900"), "{said:?}");
}

#[test]
fn whoever_waits_is_told_for_whom_and_gets_it_next() {
    let stage = Stage::new();
    let (holder, token) = stage.hold("job", &[]);
    let mut waiter = stage.start(&["run", "job", "--label", "waiter", "--", "echo", "ran"]);
    let told = waiter.error_line();
    let expected = format!("leasehold: waiting for job: held by holder with token {token} for ");
    assert!(told.starts_with(&expected), "{told}");
    holder.signal(Signal::TERM);
    let said = waiter.end();
    assert_eq!((said.code, said.out.as_str(), said.err.as_str()), (Some(0), "ran\n", ""), "said once");
}

#[test]
fn a_command_that_cannot_be_started_gives_the_lease_back() {
    let stage = Stage::new();
    // What only the start itself finds out: the interpreter is missing.
    let file = stage.dir.path().join("script");
    fs::write(&file, "#!/no/such/interpreter\n").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    for _ in 0..2 {
        let said = stage.say(&["run", "job", file.to_str().unwrap()]);
        assert_eq!(said.code, Some(127), "{said:?}");
        assert!(said.err.contains("was not found"), "{said:?}");
    }
    assert!(stage.say(&["get", "job"]).out.contains("holder: nobody"));
    assert_eq!(stage.good(&["history", "job"]).matches("released").count(), 2);
}

#[test]
fn a_mistyped_command_is_told_at_once_and_before_any_lease_is_asked_for() {
    let stage = Stage::new();
    let file = stage.dir.path().join("data");
    fs::write(&file, "").unwrap();
    let file = file.to_str().unwrap();
    for (program, code, why) in [
        ("no-such-program", 127, "command \"no-such-program\" was not found\n"),
        ("/no/such/program", 127, "command \"/no/such/program\" was not found\n"),
        (file, 126, "cannot be executed: Permission denied"),
        ("/", 126, "cannot be executed: Permission denied"),
    ] {
        let said = stage.say(&["run", "job", program]);
        assert_eq!(said.code, Some(code), "{said:?}");
        assert!(said.err.contains(why), "{said:?}");
    }
    assert!(!stage.store().exists(), "no store was made for it");
    let mut holder = stage.start(&run(&["job"], &WAITS));
    assert_eq!(holder.line(), "ready");
    // It would wait for a day.
    assert_eq!(stage.say(&["run", "job", "no-such-program"]).code, Some(127));
}

#[test]
fn a_held_name_gives_the_exit_code_that_was_asked_for() {
    let stage = Stage::new();
    let mut holder = stage.start(&run(&["job"], &WAITS));
    assert_eq!(holder.line(), "ready");
    for code in [0, 7] {
        let wanted = code.to_string();
        let said = stage.say(&["run", "-n", "-E", &wanted, "job", "echo", "ran"]);
        assert_eq!((said.code, said.out.as_str()), (Some(code), ""), "{said:?}");
        assert!(said.err.contains("job was not acquired"), "{said:?}");
        let said = stage.say(&["run", "-q", "-w", "10ms", "-E", &wanted, "job", "echo", "ran"]);
        assert_eq!((said.code, said.out.as_str(), said.err.as_str()), (Some(code), "", ""));
    }
    let json = stage.say(&["--json", "run", "-n", "-E", "9", "job", "echo", "ran"]);
    assert!(json.err.contains("\"exit_code\":9"), "{json:?}");
    // The command's own 120 is no held name.
    assert_eq!(stage.say(&["run", "-E", "0", "free", "sh", "-c", "exit 120"]).code, Some(120));
}

#[test]
fn sigterm_ends_the_command_and_then_the_lease() {
    let stage = Stage::new();
    for (signal, code) in [(Signal::TERM, 143), (Signal::INT, 130), (Signal::HUP, 129)] {
        let mut running = stage.start(&run(&["job"], &WAITS));
        assert_eq!(running.line(), "ready");
        running.signal(signal);
        let said = running.end();
        assert_eq!(said.code, Some(code), "{said:?}");
        assert!(stage.good(&["history", "job"]).lines().nth(1).unwrap().ends_with("released"));
    }
}

#[test]
fn a_signal_while_waiting_leaves_the_line() {
    let stage = Stage::new();
    let (_holder, _) = stage.hold("job", &[]);
    let waiter = stage.start(&run(&["job"], &WAITS));
    eventually("the waiter stands in line", || {
        stage.good(&["get", "job"]).contains("waiting: 1").then_some(())
    });
    waiter.signal(Signal::TERM);
    assert_eq!(waiter.end().code, Some(143));
    assert!(stage.good(&["get", "job"]).contains("waiting: 0"));
}

#[test]
fn the_lease_is_kept_until_the_last_descendant_is_gone() {
    let stage = Stage::new();
    let fifo = stage.dir.path().join("fifo");
    let script = format!("mkfifo {0}; (setsid cat {0} >/dev/null 2>&1 &); echo ready", fifo.display());
    let mut running = stage.start(&["run", "job", "--", "sh", "-c", &script]);
    assert_eq!(running.line(), "ready");
    // The command itself has ended or is about to; its daemon reads from the fifo.
    assert_eq!(stage.say(&["run", "job", "--wait", "300ms", "--", "true"]).code, Some(120));
    fs::write(&fifo, "").unwrap();
    assert_eq!(running.end().code, Some(0));
    assert_eq!(stage.say(&["run", "job", "--no-wait", "--", "true"]).code, Some(0));
}

#[test]
fn a_request_to_release_drains_the_command() {
    let stage = Stage::new();
    let script = "trap 'echo finishing; exit 7' TERM; echo ready; while :; do sleep 0.05; done";
    let mut running = stage.start(&["run", "job", "--label", "runner", "--", "sh", "-c", script]);
    assert_eq!(running.line(), "ready");
    assert_eq!(stage.good(&["release", "job"]), "job: token 2 of runner: drained and released\n");
    let said = running.end();
    assert_eq!((said.code, said.out.as_str()), (Some(7), "finishing\n"));
    assert!(said.err.contains(" asks for job; ending the command"), "{said:?}");
}

#[test]
fn a_revoked_lease_ends_the_command_and_is_reported_as_lost() {
    let stage = Stage::new();
    let mut running = stage.start(&run(&["job"], &WAITS));
    assert_eq!(running.line(), "ready");
    stage.good(&["revoke", "job", "--reason", "stuck", "--yes"]);
    let said = running.end();
    assert_eq!(said.code, Some(121), "{said:?}");
    assert!(
        said.err.starts_with("leasehold: lost job with token 2: revoked by ")
            && said.err.contains(": stuck; it was confirmed until 2"),
        "{said:?}"
    );
    // The holder's farewell frees the name before its ttl is over.
    stage.good(&["run", "job", "--wait", "30s", "--", "true"]);
}

#[test]
fn a_wrapper_that_cannot_renew_loses_its_command_before_the_lease_is_over() {
    let stage = Stage::new();
    // Another process serves the directory, so that the store goes on while the wrapper stands still.
    let (_server, _) = stage.hold("other", &[]);
    let mut running = stage.start(&run(&["job", "--ttl", "3s"], &WAITS));
    assert_eq!(running.line(), "ready");
    running.signal(Signal::STOP);
    // The output ends when the last process that could write to it is gone.
    eventually("the lease is over", || (stage.say(&["get", "job"]).code == Some(1)).then_some(()));
    running.signal(Signal::CONT);
    let said = running.end();
    assert_eq!(said.code, Some(121), "{said:?}");
    assert!(said.err.contains("lost job with token"), "{said:?}");
}

#[test]
fn a_command_may_run_for_longer_than_two_ttls() {
    let stage = Stage::new();
    let history = stage.dir.path().join("history");
    let file = history.to_str().unwrap();
    // A renewal comes every third of the ttl, or sooner.
    let script = format!("until [ $(grep -c '\"confirmed\"' {file}) -gt 6 ]; do sleep 0.1; done; echo done");
    let said = stage.say(&["run", "job", "--ttl", "5s", "--history", file, "--", "sh", "-c", &script]);
    assert_eq!((said.code, said.out.as_str(), said.err.as_str()), (Some(0), "done\n", ""));
}

#[test]
fn shared_holders_run_side_by_side_and_slots_are_counted() {
    let stage = Stage::new();
    let mut first = stage.start(&run(&["job", "--shared"], &WAITS));
    assert_eq!(first.line(), "ready");
    assert_eq!(stage.say(&["run", "job", "--shared", "--no-wait", "--", "true"]).code, Some(0));
    assert_eq!(stage.say(&["run", "job", "--no-wait", "--", "true"]).code, Some(120));
    let mut slots = [(); 2].map(|()| stage.start(&run(&["builds", "--slots", "2"], &WAITS)));
    for slot in &mut slots {
        assert_eq!(slot.line(), "ready");
    }
    assert_eq!(stage.say(&["run", "builds", "--slots", "2", "--no-wait", "--", "true"]).code, Some(120));
    let said = stage.say(&["run", "builds", "--no-wait", "--", "true"]);
    assert_eq!(said.code, Some(125), "a name keeps its kind: {said:?}");
    let expected = "leasehold: builds is a name with 2 slots; it was asked for without --shared or --slots\n";
    assert_eq!(said.err, expected);
    let said = stage.say(&["hold", "job", "--slots", "2", "--no-wait"]);
    assert_eq!(said.code, Some(1));
    assert_eq!(said.err, "leasehold: job is an exclusive name; it was asked for with --slots 2\n");
}
