//! The wrapper of `leasehold run` is killed or stopped, alone: everything it started is gone before the deadline.

use std::io::Write;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::Duration;

use super::stage::{Place, Worker, is_alive, leasehold, nanos, now, number, pause, turn};
use rustix::process::Signal;

const TRIES: usize = 20;
/// Fewer: how the wrapper learns of its lease is all that is different.
const TRIES_OVER_TCP: usize = 5;
const TTL: Duration = Duration::from_secs(1);

/// The command, its child, a grandchild, and one that has left its session: each says its pid.
const FAMILY: &str = "echo pid $$; \
    sh -c 'echo pid $$; sh -c \"echo pid \\$\\$; exec sleep 60\" & exec sleep 60' & \
    setsid sh -c 'echo pid $$; exec sleep 60' & \
    echo ready; wait";

struct Run {
    worker: Worker,
    family: Vec<u32>,
}

fn start(place: &Place) -> Run {
    let mut command = place.command(&["run", "--ttl", "1s", "job", "--", "sh", "-c", FAMILY]);
    command.stdout(Stdio::piped());
    let worker = Worker::start(command);
    let mut family = Vec::new();
    while family.len() < 4 {
        let pid = worker.wait_for("pid", Duration::from_secs(10)).expect("four processes say their pids");
        family.push(u32::try_from(number(&pid[1])).unwrap());
    }
    Run { worker, family }
}

/// Does something to the wrapper and waits until the whole family is gone. The last renewal was sent before that moment, so the
/// deadline lies at most ttl - margin after it.
fn gone_before_the_deadline(tries: usize, place: impl Fn() -> Place, hurt: impl Fn(&mut Worker)) {
    let _turn = turn();
    let mut worst = 0;
    for attempt in 0..tries {
        let place = place();
        let mut run = start(&place);
        // Anywhere between two renewals.
        pause(Duration::from_millis(100 + 29 * attempt as u64));
        let hurt_at = now();
        hurt(&mut run.worker);
        worst = worst.max(until_gone(&run.family, hurt_at));
    }
    report(worst);
}

/// How long it takes from `hurt_at` on until none of these is left; it must be less than the usable part of the ttl.
fn until_gone(family: &[u32], hurt_at: u64) -> u64 {
    let deadline = hurt_at + nanos(TTL - TTL / 10);
    while family.iter().any(|pid| is_alive(*pid)) {
        assert!(now() < deadline, "{family:?} still run");
        pause(Duration::from_millis(1));
    }
    now() - hurt_at
}

fn report(worst: u64) {
    println!("gone at the latest {} ms after, with a ttl of {} ms", worst / 1_000_000, TTL.as_millis());
}

#[test]
fn a_killed_wrapper_takes_everything_with_it() {
    gone_before_the_deadline(TRIES, Place::new, Worker::kill);
}

#[test]
fn over_tcp_a_killed_wrapper_takes_everything_with_it() {
    gone_before_the_deadline(TRIES_OVER_TCP, Place::served, Worker::kill);
}

#[test]
fn a_stopped_wrapper_loses_everything_in_time() {
    gone_before_the_deadline(TRIES, Place::new, |wrapper| wrapper.signal(Signal::STOP));
}

/// Revoked without `--now`: nobody else begins before everything of the first one is gone, however deaf it is.
#[test]
fn after_a_revoke_the_next_begins_only_when_the_first_is_gone() {
    let _turn = turn();
    let place = Place::new();
    let deaf = "trap '' TERM; echo pid $$; while :; do sleep 0.05; done";
    let mut command = place.command(&["run", "--ttl", "2s", "job", "--", "sh", "-c", deaf]);
    command.stdout(Stdio::piped());
    let first = Worker::start(command);
    let pid = first.wait_for("pid", Duration::from_secs(10)).expect("the first runs");
    let pid = u32::try_from(number(&pid[1])).unwrap();
    let text = format!("if kill -0 {pid} 2>/dev/null; then echo overlap; else echo alone; fi");
    let mut command = place.command(&["run", "job", "--", "sh", "-c", &text]);
    command.stdout(Stdio::piped());
    let second = Worker::start(command);
    pause(Duration::from_millis(300));
    let revoked = place.command(&["revoke", "job", "--reason", "test", "--yes"]).output().unwrap();
    assert!(revoked.status.success(), "{}", String::from_utf8_lossy(&revoked.stderr));
    let said = second.rest();
    assert_eq!(said, [["alone"]], "the second began beside the first");
}

/// A shell with job control on a terminal of its own, typed to by the test.
struct Terminal {
    program: Child,
    keyboard: ChildStdin,
}

impl Terminal {
    fn start() -> Self {
        let mut program = Command::new("script")
            .args(["-qfc", "bash --norc --noprofile -i", "/dev/null"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let keyboard = program.stdin.take().unwrap();
        Self { program, keyboard }
    }

    fn press(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).unwrap();
        self.keyboard.flush().unwrap();
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}

/// Ctrl-Z on a terminal stops the command and the wrapper with it: nothing is renewed, and everything is gone in time.
fn ctrl_z(tries: usize, place: impl Fn() -> Place) {
    let _turn = turn();
    let mut worst = 0;
    for attempt in 0..tries {
        let place = place();
        let (pids, family) = (place.file("pids"), place.file("family.sh"));
        let text = FAMILY.replace("echo pid", "echo").replace("$$;", &format!("$$ >> {};", pids.display()));
        let text = text.replace("\\$\\$;", &format!("\\$\\$ >> {};", pids.display()));
        std::fs::write(&family, text).unwrap();
        let mut terminal = Terminal::start();
        let (program, url, family) = (leasehold().display(), place.url(), family.display());
        terminal.press(&format!("{program} --store {url} run --ttl 1s job -- sh {family}\n"));
        let started = now();
        let said = loop {
            let said: Vec<u32> = std::fs::read_to_string(&pids)
                .unwrap_or_default()
                .lines()
                .filter_map(|line| line.parse().ok())
                .collect();
            if said.len() == 4 {
                break said;
            }
            assert!(now() - started < nanos(Duration::from_secs(10)), "only {said:?} started");
            pause(Duration::from_millis(2));
        };
        pause(Duration::from_millis(100 + 29 * attempt as u64));
        let pressed = now();
        terminal.press("\x1a");
        worst = worst.max(until_gone(&said, pressed));
    }
    report(worst);
}

#[test]
fn ctrl_z_on_a_terminal_ends_everything_in_time() {
    ctrl_z(TRIES, Place::new);
}

#[test]
fn over_tcp_ctrl_z_on_a_terminal_ends_everything_in_time() {
    ctrl_z(TRIES_OVER_TCP, Place::served);
}
