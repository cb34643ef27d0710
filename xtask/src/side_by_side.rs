//! Runs test programs: several at once where a busy machine cannot disturb them, the others afterwards, one at a time.
//!
//! Each has a time limit and prints one line of progress when it ends. What it printed is shown only if it failed.

use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use anyhow::{Context, Result};

use crate::clock;
use crate::programs::Program;
use crate::report::{Outcome, details, judge};
use crate::run::wrapped;
use crate::steps::timed;

/// Programs at once. Most tests wait for processes and sockets, so that more than one for each core keeps the cores busy.
const AT_ONCE: usize = 4;
/// A test that hangs must not hang the run. The longest program takes a quarter of this on two cores.
const MINUTES: u64 = 15;
/// What `timeout` leaves then.
const TIMED_OUT: i32 = 124;

/// Programs whose tests measure real time, or load this machine so much that others would miss their deadlines, with the reason. They run
/// last, one at a time.
const ALONE: [(&str, &str); 12] = [
    ("crates/bench/tests/contest.rs", "runs the load of the benchmarks"),
    ("crates/cli/tests/cluster.rs", "nodes must elect a leader in time"),
    ("crates/cli/tests/guardian.rs", "commands must be gone before the deadlines of their leases"),
    ("crates/cli/tests/promises.rs", "holders and their successors are measured by the clocks"),
    ("crates/cli/tests/service.rs", "tens of thousands of connections to one service"),
    ("crates/cli/tests/stopwatch.rs", "gaps are measured by the clocks"),
    ("crates/client/tests/embedded.rs", "many processes with real leases, and the memory of this one"),
    ("crates/client/tests/reading.rs", "counts threads and descriptors of its process while the clock runs"),
    ("crates/host/tests/idle.rs", "counts how often a process wakes while it has nothing to do"),
    ("crates/nemesis/tests/quick.rs", "faults on a cluster, with bounds on the time until it serves again"),
    ("examples/rust/tests/deploys.rs", "measures how long no replica leads"),
    ("examples/rust/tests/gap.rs", "stages an incident that must be as long as planned"),
];

/// Runs every program. `prepare` adds what tests are told, to each command. `beside` is done while programs run one at a time: they wait for
/// most of their time, and are right on a busy machine.
pub(crate) fn run(
    programs: Vec<Program>,
    prepare: impl Fn(&mut Command) + Sync,
    beside: impl FnOnce() -> Result<()> + Send,
) -> Result<Outcome> {
    let all = programs.len();
    let (alone, mut together): (Vec<Program>, Vec<Program>) =
        programs.into_iter().partition(|program| is_alone(&program.name));
    // The long ones first, so that none of them is left for the end.
    together.sort_by_key(Program::is_unit);
    let done = AtomicUsize::new(0);
    let one = |program: &Program| {
        one(program, &prepare, || format!("[{}/{all}]", done.fetch_add(1, Ordering::Relaxed) + 1))
    };
    let mut outcome = timed("tests side by side", || at_once(&together, AT_ONCE, one))?;
    let what = "tests of real deadlines, one program at a time";
    let (alone, beside) = thread::scope(|scope| {
        let beside = scope.spawn(beside);
        (timed(what, || at_once(&alone, 1, one)), beside.join())
    });
    beside.map_err(|_| anyhow::anyhow!("a step beside the tests panicked"))??;
    outcome.add(alone?);
    Ok(outcome)
}

pub(crate) fn is_alone(name: &str) -> bool {
    ALONE.iter().any(|(program, _)| *program == name)
}

/// Runs so many at once, each new one when another has ended.
fn at_once<T: Sync>(all: &[T], many: usize, one: impl Fn(&T) -> Result<Outcome> + Sync) -> Result<Outcome> {
    let next = AtomicUsize::new(0);
    let outcome = Mutex::new(Ok(Outcome::default()));
    thread::scope(|scope| {
        for _ in 0..many {
            scope.spawn(|| {
                while let Some(program) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let ended = one(program);
                    let mut outcome = outcome.lock().expect("adding up does not panic");
                    match (outcome.as_mut(), ended) {
                        (Ok(outcome), Ok(ended)) => outcome.add(ended),
                        (Ok(_), Err(error)) => *outcome = Err(error),
                        (Err(_), _) => {}
                    }
                }
            });
        }
    });
    outcome.into_inner().expect("adding up does not panic")
}

/// Runs one program and prints its line.
fn one(program: &Program, prepare: impl Fn(&mut Command), number: impl Fn() -> String) -> Result<Outcome> {
    let mut command = program.command();
    prepare(&mut command);
    let began = clock::now();
    let (output, ended) = captured(&command, MINUTES * 60)?;
    let took = clock::seconds(clock::now().saturating_sub(began));
    let outcome = judge(&program.name, &output, ended.as_deref());
    let (name, passed) = (&program.name, outcome.passed);
    // One call for each program: lines of two do not mix.
    match outcome.failures.len() {
        0 => println!("{} {name}: {passed} passed, {took}", number()),
        failed => {
            println!("{}\n{} {name}: {passed} passed, {failed} FAILED, {took}", details(&output), number());
        }
    }
    Ok(outcome)
}

/// Runs a command with a limit. Gives back what it printed on both streams, and how it ended if that was not well.
pub(crate) fn captured(command: &Command, seconds: u64) -> Result<(String, Option<String>)> {
    let words = command.get_program().to_string_lossy().into_owned();
    let mut limited = wrapped(&["timeout", "--kill-after=10s", &format!("{seconds}s")], command);
    // In a file and not through a pipe: a process that a test left behind does not keep it open for us. Both streams keep their order.
    let file = rustix::fs::memfd_create("output", rustix::fs::MemfdFlags::CLOEXEC)
        .context("no memory for what a test prints")?;
    let mut file = std::fs::File::from(file);
    limited.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file.try_clone()?);
    let status = limited.status().with_context(|| format!("{words} does not start"))?;
    let mut output = Vec::new();
    std::io::Seek::rewind(&mut file)?;
    std::io::Read::read_to_end(&mut file, &mut output)?;
    let ended = match status.code() {
        Some(0) => None,
        Some(TIMED_OUT) => Some(format!("ended after {seconds} s")),
        _ => Some(status.to_string()),
    };
    Ok((String::from_utf8_lossy(&output).into_owned(), ended))
}

#[cfg(test)]
mod unit {
    use super::*;
    use crate::run::root;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn what_is_printed_is_kept_in_its_order_and_a_bad_end_is_told() {
        let (output, ended) = captured(&shell("echo one; echo two >&2; echo three"), 60).unwrap();
        assert_eq!((output.as_str(), ended), ("one\ntwo\nthree\n", None));
        let (_, ended) = captured(&shell("exit 3"), 60).unwrap();
        assert_eq!(ended.as_deref(), Some("exit status: 3"));
    }

    #[test]
    fn a_program_that_hangs_is_ended() {
        let (_, ended) = captured(&shell("exec sleep 60"), 1).unwrap();
        assert_eq!(ended.as_deref(), Some("ended after 1 s"));
    }

    #[test]
    fn all_are_run_and_no_more_at_once_than_asked_for() {
        let (now, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let one = |_: &usize| {
            most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            thread::yield_now();
            now.fetch_sub(1, Ordering::SeqCst);
            Ok(Outcome { passed: 1, failures: Vec::new() })
        };
        let outcome = at_once(&Vec::from_iter(0..100), 3, one).unwrap();
        assert_eq!(outcome.passed, 100);
        assert!(most.into_inner() <= 3);
    }

    #[test]
    fn a_program_that_does_not_start_is_an_error() {
        assert!(at_once(&[0], 1, |_| anyhow::bail!("it does not start")).is_err());
    }

    #[test]
    fn every_program_of_the_list_exists() {
        for (name, _) in ALONE {
            assert!(root().join(name).is_file(), "{name}");
        }
    }
}
