//! `run --on-loss freeze`: the service goes away under a command, and comes back or does not.

use std::fs;
use std::time::Duration;

use leasehold_cli::guardian::clock::Point;
use leasehold_cli::guardian::tree::{self, Stat};
use rustix::process::{Pid, Signal};

use super::stage::{Running, Serving, Stage, eventually};

/// Says its number and its token, and would say if it were asked to end.
const SCRIPT: &str = "trap 'echo asked' TERM; echo $$ $LEASEHOLD_TOKEN; while :; do sleep 0.05; done";

/// The guardian kills no earlier before a deadline.
const LONGEST_KILL_LEAD: Duration = Duration::from_secs(1);

/// A frozen command under a lease with this ttl; the service stands still.
struct Frozen {
    run: Running,
    serving: Serving,
    command: Pid,
    token: String,
}

impl Frozen {
    fn new(stage: &Stage, ttl: &str) -> Self {
        let serving = stage.serve(&[]);
        let history = stage.path("history");
        let options =
            ["run", "job", "--ttl", ttl, "--on-loss", "freeze", "--history", history.to_str().unwrap()];
        let mut run = stage.start(&serving, &[&options[..], &["--", "sh", "-c", SCRIPT]].concat());
        let line = run.line();
        let (pid, token) = line.split_once(' ').unwrap();
        let command = Pid::from_raw(pid.parse().unwrap()).unwrap();
        serving.running.signal(Signal::STOP);
        let frozen = Self { run, serving, command, token: token.to_owned() };
        eventually("the command stands still", || frozen.stands_still().then_some(()));
        frozen
    }

    fn stands_still(&self) -> bool {
        let is_stopped = |pid| Stat::read(pid).is_some_and(|stat| stat.is_stopped());
        // A shell whose child is stopped between vfork and exec sleeps in the kernel until that child goes on.
        let sleeps = Stat::read(self.command).is_some_and(|stat| stat.state == b'D');
        is_stopped(self.command) || sleeps && tree::children(self.command).into_iter().any(is_stopped)
    }
}

/// Until when the wrapper believed, on the boot clock, by what it wrote down.
fn last_deadline(stage: &Stage) -> Duration {
    let text = fs::read_to_string(stage.path("history")).unwrap();
    let until = text.lines().filter_map(|line| {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        line["until_ns"].as_u64()
    });
    Duration::from_nanos(until.max().unwrap())
}

/// Strictly, but for the time in which a busy machine held back the guardian, the command or this thread after the guardian had to kill.
fn gone_before_the_deadline(stage: &Stage, command: Pid) {
    let deadline = last_deadline(stage);
    let acting = [Stat::read(command).and_then(|stat| stat.parent), Some(command)].map(|pid| pid.map(number));
    let held_back = |at: usize| acting[at].map(leasehold_kit::held_back).unwrap_or_default();
    let look = || [held_back(0), held_back(1), leasehold_kit::this_thread_was_held_back()];
    let (mut before, mut waited) = (look(), [Duration::ZERO; 3]);
    let gone = eventually("the command is gone", || {
        let now = look();
        if Point::now().boot() + LONGEST_KILL_LEAD < deadline {
            (before, waited) = (now, [Duration::ZERO; 3]);
        }
        for ((waited, now), before) in waited.iter_mut().zip(now).zip(before) {
            // Nothing is counted of a process that is gone.
            *waited = now.saturating_sub(before).max(*waited);
        }
        Stat::read(command).is_none_or(|stat| stat.is_dead()).then(Point::now)
    });
    let busy: Duration = waited.iter().sum();
    assert_eq!(last_deadline(stage), deadline, "nothing was confirmed meanwhile");
    let late = gone.boot().saturating_sub(deadline);
    assert!(gone.boot() < deadline + busy, "{late:?} after the deadline, and held back for {busy:?}");
}

fn number(pid: Pid) -> u32 {
    pid.as_raw_nonzero().get().unsigned_abs()
}

#[test]
fn a_command_goes_on_with_its_token_when_the_service_is_back_in_time() {
    let stage = Stage::new();
    let mut frozen = Frozen::new(&stage, "20s");
    let said = frozen.run.error_line();
    assert_eq!(said, "leasehold: job could not be confirmed; halting the command until it is");
    assert!(frozen.stands_still());
    frozen.serving.running.signal(Signal::CONT);
    eventually("the command goes on", || (!frozen.stands_still()).then_some(()));
    let said = frozen.run.error_line();
    assert_eq!(said, "leasehold: job is confirmed again; the command goes on");
    stage.good(&["--store", &frozen.serving.url(), "get", "job", "--token", &frozen.token]);
    // It was not asked to end, and is only now.
    frozen.run.signal(Signal::TERM);
    assert_eq!(frozen.run.line(), "asked");
    frozen.run.signal(Signal::KILL);
    gone_before_the_deadline(&stage, frozen.command);
    frozen.serving.stop();
}

#[test]
fn a_command_whose_service_stays_away_is_killed_before_the_deadline() {
    let stage = Stage::new();
    let frozen = Frozen::new(&stage, "6s");
    gone_before_the_deadline(&stage, frozen.command);
    let said = frozen.run.end();
    assert_eq!((said.code, said.out.as_str()), (Some(121), ""), "it was never asked: {said:?}");
    assert!(said.err.contains("lost job with token "), "{said:?}");
}

#[test]
fn a_wrapper_that_is_killed_while_the_command_stands_still_leaves_nothing() {
    let stage = Stage::new();
    let frozen = Frozen::new(&stage, "8s");
    frozen.run.signal(Signal::KILL);
    gone_before_the_deadline(&stage, frozen.command);
    // The stream ends when the last process that could write to it is gone.
    assert_eq!(frozen.run.end().out, "asked\n", "woken to be asked, and deaf");
}

#[test]
fn a_frozen_command_that_is_asked_to_end_does() {
    let stage = Stage::new();
    let mut frozen = Frozen::new(&stage, "15s");
    frozen.run.signal(Signal::TERM);
    assert_eq!(frozen.run.line(), "asked");
    eventually("it runs, to end", || (!frozen.stands_still()).then_some(()));
    gone_before_the_deadline(&stage, frozen.command);
}
