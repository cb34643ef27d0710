//! A directory with very many leases is as quick to ask as a small one, because whoever asks opens no log.

use std::process::Command;
use std::time::Duration;

use super::stage::{Place, Worker, leasehold, now, turn};

const ASKED: usize = 21;

const SESSIONS: usize = 10;
const LEASES_EACH: usize = 10_000;
/// What a process uses of a processor from its start to its end, on average.
const PROCESSOR_TIME: Duration = Duration::from_millis(20);
/// How much longer it may take than in a directory with one lease, in the median.
const RATIO: u32 = 2;
/// In which the kernel counts processor time: a hundred in a second.
const TICK: Duration = Duration::from_millis(10);
/// A hundred thousand leases are taken in this time, on a machine that may be busy.
const FILLED: Duration = Duration::from_secs(240);

fn filled(sessions: usize, each: usize) -> (Place, Worker) {
    let place = Place::new();
    let worker = place.worker("fill", &[&sessions.to_string(), &each.to_string()]);
    let filled = worker.wait_for("filled", FILLED).expect("very many leases are taken in time");
    println!("{} leases in {} ms", sessions * each, filled[1]);
    assert_eq!(place.server(), Some(worker.pid()));
    (place, worker)
}

#[test]
fn a_question_about_one_of_a_hundred_thousand_leases_takes_no_time_and_opens_no_log() {
    let _turn = turn();
    let (place, worker) = filled(SESSIONS, LEASES_EACH);
    let (small, _small_worker) = filled(1, 1);
    let (mut took, mut took_small, mut used) = (Vec::new(), Vec::new(), Duration::ZERO);
    for number in 0..ASKED {
        let name = format!("job-{}-{}", number % SESSIONS, number * 470);
        let before = used_by_children();
        took.push(asked(&place, &name));
        used += used_by_children() - before;
        // In turn, so that both find the machine equally busy.
        took_small.push(asked(&small, "job-0-0"));
    }
    took.sort_unstable();
    took_small.sort_unstable();
    let used = used / u32::try_from(ASKED).unwrap();
    println!("from start to end: {took:?}, with one lease {took_small:?}; {used:?} of a processor each");

    let opened = files_opened(&place, "job-3-1234");
    let store = place.store().display().to_string();
    let ours: Vec<&String> = opened.iter().filter(|line| line.contains(&store)).collect();
    // The trace would show it: the lock file is opened by everybody.
    assert!(ours.iter().any(|line| line.contains("/lock")), "{opened:#?}");
    assert!(!ours.iter().any(|line| line.contains("/log")), "{ours:#?}");

    assert!(used <= PROCESSOR_TIME, "a question takes {used:?} of a processor, above {PROCESSOR_TIME:?}");
    let (median, small) = (took[ASKED / 2], took_small[ASKED / 2]);
    assert!(median <= RATIO * small, "{median:?} in the median, {small:?} in a directory with one lease");
    assert!(super::stage::is_alive(worker.pid()));
}

/// How long it takes to ask about one lease, from the start of the process to its end.
fn asked(place: &Place, name: &str) -> Duration {
    let began = now();
    let shown = place.command(&["get", name]).output().unwrap();
    let took = Duration::from_nanos(now() - began);
    assert!(shown.status.success(), "{}", String::from_utf8_lossy(&shown.stderr));
    assert!(String::from_utf8_lossy(&shown.stdout).contains(name));
    took
}

/// What processes that this one has waited for have used of a processor.
fn used_by_children() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let (_, fields) = stat.rsplit_once(") ").unwrap();
    // The sixteenth and seventeenth field of the line; the first of these is the third.
    let ticks: u32 = fields.split(' ').skip(13).take(2).map(|field| field.parse::<u32>().unwrap()).sum();
    ticks * TICK
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
