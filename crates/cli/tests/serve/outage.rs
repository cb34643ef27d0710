//! What the commands say when the service goes away under them: what is known, and no more.

use std::fs::File;
use std::io::Read;
use std::process::Stdio;
use std::time::Duration;

use leasehold_kit::Awaited;
use rustix::process::Signal;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use serde_json::Value;

use super::stage::{Running, Said, Serving, Stage, eventually};

/// Kills the service without a word.
fn gone(serving: Serving) {
    serving.running.signal(Signal::KILL);
    serving.running.end();
}

fn until_waiting(stage: &Stage, serving: &Serving) {
    eventually("somebody waits", || {
        let out = stage.good(&["--store", &serving.url(), "get", "job"]);
        out.lines().any(|line| line == "waiting: 1").then_some(())
    });
}

#[test]
fn whoever_waits_for_a_lease_is_told_that_nothing_was_run() {
    let stage = Stage::new();
    let serving = stage.serve(&[]);
    let mut holder = stage.start(&serving, &["hold", "job"]);
    assert!(holder.line().starts_with("granted job "));
    let waiter = stage.start(&serving, &["--timeout", "3s", "run", "job", "--", "echo", "ran"]);
    until_waiting(&stage, &serving);
    gone(serving);
    let said = waiter.end();
    assert_eq!((said.code, said.out.as_str()), (Some(123), ""), "{said:?}");
    assert!(
        said.err.lines().last().unwrap().contains("; nothing was run, and a lease that it may"),
        "{said:?}"
    );
}

#[test]
fn a_service_that_is_away_from_the_start_runs_nothing_either() {
    let stage = Stage::new();
    let serving = stage.serve(&[]);
    let url = serving.url();
    serving.stop();
    let said = stage.say(&["--store", &url, "--timeout", "200ms", "run", "job", "--", "echo", "ran"]);
    assert_eq!((said.code, said.out.as_str()), (Some(122), ""), "{said:?}");
    assert!(said.err.ends_with("; nothing was run\n"), "{said:?}");
    let said = stage.say(&["--store", &url, "--timeout", "200ms", "hold", "job"]);
    assert!(said.err.ends_with("; nothing is held\n"), "{said:?}");
}

/// What is known of a lease that could not be given back: neither when it is free, nor how long somebody waited.
fn only_what_is_known(said: &Said) {
    let last = said.err.lines().last().unwrap();
    assert!(last.starts_with("leasehold: could not tell the store that job is free: no "), "{last}");
    assert!(last.contains("after 30s without a renewal, not counting the time that it is down"), "{last}");
    assert!(!last.contains(" for ") && !last.contains("free in"), "{last}");
}

#[test]
fn a_lease_that_cannot_be_given_back_is_said_to_be_just_that() {
    let stage = Stage::new();
    let serving = stage.serve(&[]);
    let script = "echo begun; read line; exit 7";
    let command = ["--timeout", "3s", "run", "job", "--ttl", "30s", "--", "sh", "-c", script];
    let mut command = stage.command(&command);
    let (input, press) = std::io::pipe().unwrap();
    let mut run = Running::start(command.env("LEASEHOLD_STORE", serving.url()).stdin(input));
    drop(command);
    assert_eq!(run.line(), "begun");
    gone(serving);
    drop(press);
    let said = run.end();
    assert_eq!(said.code, Some(7), "the command ran to its end under a lease that was confirmed: {said:?}");
    only_what_is_known(&said);
}

#[test]
fn a_hold_that_ends_while_the_service_is_away_says_the_same() {
    let stage = Stage::new();
    let serving = stage.serve(&[]);
    let mut hold = stage.start(&serving, &["--timeout", "3s", "hold", "job", "--ttl", "30s"]);
    assert!(hold.line().starts_with("granted job "));
    gone(serving);
    hold.signal(Signal::TERM);
    let said = hold.end();
    assert!(matches!(said.code, Some(122 | 123)), "{said:?}");
    only_what_is_known(&said);
}

#[test]
fn a_watch_says_where_to_go_on() {
    let stage = Stage::new();
    let serving = stage.serve(&[]);
    let mut watch = stage.start(&serving, &["--timeout", "3s", "--json", "watch"]);
    assert!(watch.error_line().contains("started"));
    let url = serving.url();
    stage.good(&["--store", &url, "run", "job", "--", "true"]);
    let (granted, ended) = (watch.line(), watch.line());
    assert!(granted.contains("granted") && ended.contains("ended"), "{granted} {ended}");
    gone(serving);
    let said = watch.end();
    assert_eq!(said.code, Some(122), "{said:?}");
    let error: Value = serde_json::from_str(said.err.lines().last().unwrap()).unwrap();
    let message = error["error"]["message"].as_str().unwrap();
    let (_, after) = message.rsplit_once("; go on with --after ").unwrap_or_else(|| panic!("{message}"));
    // And from there nothing is missed, and nothing comes again.
    let again = stage.serve(&[]);
    let mut watch = stage.start(&again, &["watch", "--after", after]);
    assert!(watch.error_line().contains(&format!("watching after revision {after}")));
    stage.good(&["--store", &again.url(), "run", "other", "--", "true"]);
    assert!(watch.line().contains(" other token "));
    again.stop();
}

#[test]
fn the_line_on_a_terminal_goes_on_and_counts_while_the_service_is_away() {
    let stage = Stage::new();
    let serving = stage.serve(&[]);
    let mut holder = stage.start(&serving, &["hold", "job", "--ttl", "30s", "--label", "holder"]);
    assert!(holder.line().starts_with("granted job "));
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&terminal).unwrap();
    unlockpt(&terminal).unwrap();
    let name = ptsname(&terminal, Vec::new()).unwrap();
    let slave = File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
    let mut command = stage.command(&["run", "job", "--", "true"]);
    command.env("LEASEHOLD_STORE", serving.url()).env("TERM", "xterm").stdout(Stdio::null()).stderr(slave);
    let mut waiter = command.spawn().unwrap();
    drop(command);
    let mut terminal = Terminal { file: Awaited::new(File::from(terminal)), seen: String::new() };
    terminal.until("waiting for job: held by holder");
    gone(serving);
    // Seconds that are counted: the line does not stand still.
    terminal.until_three("waiting for job: the store has not answered for ");
    waiter.kill().unwrap();
    waiter.wait().unwrap();
}

struct Terminal {
    file: Awaited<File>,
    seen: String,
}

impl Terminal {
    /// Reads on until this was written.
    fn until(&mut self, text: &str) {
        eventually(text, || {
            self.read();
            self.seen.contains(text).then_some(())
        });
    }

    /// Reads on until this was written with three different lengths of time behind it, each longer than the one before.
    fn until_three(&mut self, text: &str) {
        eventually(text, || {
            self.read();
            let seconds =
                self.seen.split(text).skip(1).filter_map(|rest| rest.split_once('s')?.0.parse().ok());
            let mut seconds: Vec<u32> = seconds.collect();
            assert!(seconds.is_sorted(), "{seconds:?}");
            seconds.dedup();
            (seconds.len() >= 3).then_some(())
        });
    }

    /// A terminal that nobody writes to any more ends with an error.
    fn read(&mut self) {
        let mut buffer = [0; 4_096];
        let count = self.file.read(&mut buffer).unwrap_or_else(|error| panic!("{error}: {}", self.seen));
        self.seen.push_str(&String::from_utf8_lossy(&buffer[..count]));
    }
}

/// There to find: renewals that were never answered, left out of the figures, and "the numbers hold" beside a service that stood still for longer
/// than they allow.
#[test]
fn a_probe_counts_renewals_that_the_service_never_answered() {
    let stage = Stage::new();
    let serving = stage.serve(&[]);
    let probing = stage.start(&serving, &["--json", "probe", "--for", "1h", "--ttl", "5s"]);
    let url = serving.url();
    eventually("it measures", || {
        stage.say(&["list", "--sessions", "--store", &url]).out.contains("probe").then_some(())
    });
    serving.running.signal(Signal::STOP);
    std::thread::sleep(Duration::from_secs(4));
    serving.running.signal(Signal::CONT);
    stage.good(&["list", "--sessions", "--store", &url]);
    probing.signal(Signal::INT);
    let said = probing.end();
    let report: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!((said.code, &report["holds"]), (Some(1), &false.into()), "{report}");
    assert!(report["numbers"]["round_trip_ms"].as_u64().unwrap() >= 3_900, "{report}");
}
