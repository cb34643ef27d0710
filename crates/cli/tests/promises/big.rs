//! A directory with very many leases is as quick to ask as a small one, because whoever asks opens no log.

use std::process::Command;
use std::time::Duration;

use super::stage::{Place, Worker, leasehold, now, turn};

const SESSIONS: usize = 10;
const LEASES_EACH: usize = 10_000;
/// From the start of the process to its end.
const MEDIAN: Duration = Duration::from_millis(20);
/// A hundred thousand leases are taken in this time, on a machine that may be busy.
const FILLED: Duration = Duration::from_secs(60);

fn filled() -> (Place, Worker) {
    let place = Place::new();
    let worker = place.worker("fill", &[&SESSIONS.to_string(), &LEASES_EACH.to_string()]);
    let filled = worker.wait_for("filled", FILLED).expect("a hundred thousand leases are taken in time");
    println!("{} leases in {} ms", SESSIONS * LEASES_EACH, filled[1]);
    assert_eq!(place.server(), Some(worker.pid()));
    (place, worker)
}

#[test]
fn a_question_about_one_of_a_hundred_thousand_leases_takes_no_time_and_opens_no_log() {
    let _turn = turn();
    let (place, mut worker) = filled();
    let mut took: Vec<Duration> = (0..20)
        .map(|number| {
            let name = format!("job-{}-{}", number % SESSIONS, number * 499);
            let began = now();
            let shown = place.command(&["get", &name]).output().unwrap();
            let took = Duration::from_nanos(now() - began);
            assert!(shown.status.success(), "{}", String::from_utf8_lossy(&shown.stderr));
            assert!(String::from_utf8_lossy(&shown.stdout).contains(&name));
            took
        })
        .collect();
    took.sort_unstable();
    println!("from start to end: {took:?}");

    let opened = files_opened(&place, "job-3-1234");
    let store = place.store().display().to_string();
    let ours: Vec<&String> = opened.iter().filter(|line| line.contains(&store)).collect();
    // The trace would show it: the lock file is opened by everybody.
    assert!(ours.iter().any(|line| line.contains("/lock")), "{opened:#?}");
    assert!(!ours.iter().any(|line| line.contains("/log")), "{ours:#?}");

    assert!(took[10] <= MEDIAN, "the median of {took:?} is above {MEDIAN:?}");
    assert!(super::stage::is_alive(worker.pid()));
    worker.kill();
}

/// The files that the command opens, as the kernel saw it.
fn files_opened(place: &Place, name: &str) -> Vec<String> {
    let trace = place.file("trace");
    let mut command = Command::new("strace");
    command.args(["-f", "-e", "trace=open,openat,openat2,creat", "-o"]).arg(&trace);
    command.arg(leasehold()).args(["--store", &place.url(), "get", name]);
    let output = command.output().unwrap_or_else(|error| panic!("strace is needed by this test: {error}"));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    std::fs::read_to_string(trace).unwrap().lines().map(str::to_owned).collect()
}
