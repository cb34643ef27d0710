//! The wrapper of `leasehold run` is killed or stopped, alone: everything it started is gone before the deadline.

use std::io::Write;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::Duration;

use super::stage::{
    PATIENCE, Place, Worker, beside_others, eventually, is_alive, leasehold, nanos, now, number, pause,
};
use rustix::process::Signal;

const TRIES: usize = 20;
/// Fewer: how the wrapper learns of its lease is all that is different.
const TRIES_OVER_TCP: usize = 5;
/// So long that there are 300 ms between the kill and the deadline.
const TTL: Duration = Duration::from_secs(3);
/// At the latest so long before the deadline the guardian kills.
const KILL_LEAD: Duration = Duration::from_millis(300);
/// So many tries run side by side: each of them mostly waits.
const AT_ONCE: usize = 5;

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
    let mut command = place.command(&["run", "--ttl", "3s", "job", "--", "sh", "-c", FAMILY]);
    command.stdout(Stdio::piped());
    let worker = Worker::start(command);
    let mut family = Vec::new();
    while family.len() < 4 {
        let pid = worker.wait_for("pid", PATIENCE).expect("four processes say their pids");
        family.push(u32::try_from(number(&pid[1])).unwrap());
    }
    Run { worker, family }
}

/// Does something to the wrapper and waits until the whole family is gone. The last renewal was sent before that moment, so the
/// deadline lies at most ttl - margin after it.
fn gone_before_the_deadline(
    tries: usize,
    place: impl Fn() -> Place + Sync,
    hurt: impl Fn(&mut Worker) + Sync,
) {
    let _beside = beside_others();
    side_by_side(tries, |attempt| {
        let place = place();
        let mut run = start(&place);
        pause(between_renewals(attempt));
        let hurt_at = now();
        hurt(&mut run.worker);
        until_gone(&run.family, hurt_at)
    });
}

/// Anywhere between two renewals, which come every second or sooner.
fn between_renewals(attempt: usize) -> Duration {
    Duration::from_millis(100 + 47 * attempt as u64)
}

/// Several tries, each of which gives how long it took.
fn side_by_side(tries: usize, attempt: impl Fn(usize) -> u64 + Sync) {
    let (mut worst, attempt) = (0, &attempt);
    for first in (0..tries).step_by(AT_ONCE) {
        std::thread::scope(|scope| {
            let batch = first..tries.min(first + AT_ONCE);
            let all: Vec<_> = batch.map(|number| scope.spawn(move || attempt(number))).collect();
            worst = all.into_iter().fold(worst, |worst, each| worst.max(each.join().unwrap()));
        });
    }
    println!("gone at the latest {} ms after, with a ttl of {} ms", worst / 1_000_000, TTL.as_millis());
}

/// How long it takes from `hurt_at` on until none of these is left; it must be less than the usable part of the ttl, but for the time in
/// which a busy machine held back the guardian, one of these or this thread after the guardian had to kill.
fn until_gone(family: &[u32], hurt_at: u64) -> u64 {
    let deadline = hurt_at + nanos(TTL - TTL / 10);
    // The guardian has started the command, which is the first.
    let mut acting: Vec<u32> = family.iter().copied().chain(parent(family[0])).collect();
    acting.dedup();
    let mut waited: Vec<u64> = vec![0; acting.len()];
    let mut before: Vec<u64> = acting.iter().map(|pid| nanos(leasehold_kit::held_back(*pid))).collect();
    let mut own = leasehold_kit::this_thread_was_held_back();
    while family.iter().any(|pid| is_alive(*pid)) {
        if now() + nanos(KILL_LEAD) < deadline {
            before = acting.iter().map(|pid| nanos(leasehold_kit::held_back(*pid))).collect();
            own = leasehold_kit::this_thread_was_held_back();
        }
        for ((pid, before), waited) in acting.iter().zip(&before).zip(&mut waited) {
            *waited = nanos(leasehold_kit::held_back(*pid)).saturating_sub(*before).max(*waited);
        }
        assert!(now() < deadline + nanos(PATIENCE), "{family:?} still run");
        pause(Duration::from_millis(1));
    }
    let seen = now();
    let own = nanos(leasehold_kit::this_thread_was_held_back().saturating_sub(own));
    let guardian = waited.pop().unwrap_or(0);
    let busy = guardian + own + waited.into_iter().max().unwrap_or(0);
    assert!(
        seen < deadline + busy,
        "{} us too late, held back for {} us",
        (seen - deadline) / 1_000,
        busy / 1_000
    );
    seen - hurt_at
}

fn parent(pid: u32) -> Option<u32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok()
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
    let _beside = beside_others();
    let place = Place::new();
    let deaf = "trap '' TERM; echo pid $$; while :; do sleep 0.05; done";
    let mut command = place.command(&["run", "--ttl", "2s", "job", "--", "sh", "-c", deaf]);
    command.stdout(Stdio::piped());
    let first = Worker::start(command);
    let pid = first.wait_for("pid", PATIENCE).expect("the first runs");
    let pid = u32::try_from(number(&pid[1])).unwrap();
    let text = format!("if kill -0 {pid} 2>/dev/null; then echo overlap; else echo alone; fi");
    let mut command = place.command(&["run", "job", "--", "sh", "-c", &text]);
    command.stdout(Stdio::piped());
    let second = Worker::start(command);
    eventually("the second waits", || {
        let shown = place.command(&["get", "--json", "job"]).output().unwrap();
        String::from_utf8_lossy(&shown.stdout).contains("\"waiting\":1").then_some(())
    });
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
fn ctrl_z(tries: usize, place: impl Fn() -> Place + Sync) {
    let _beside = beside_others();
    side_by_side(tries, |attempt| {
        let place = place();
        let (pids, family) = (place.file("pids"), place.file("family.sh"));
        let text = FAMILY.replace("echo pid", "echo").replace("$$;", &format!("$$ >> {};", pids.display()));
        let text = text.replace("\\$\\$;", &format!("\\$\\$ >> {};", pids.display()));
        std::fs::write(&family, text).unwrap();
        let mut terminal = Terminal::start();
        let (program, url, family) = (leasehold().display(), place.url(), family.display());
        terminal.press(&format!("{program} --store {url} run --ttl 3s job -- sh {family}\n"));
        let said = eventually("four processes say their pids", || {
            let said = std::fs::read_to_string(&pids).unwrap_or_default();
            let said: Vec<u32> = said.lines().filter_map(|line| line.parse().ok()).collect();
            (said.len() == 4).then_some(said)
        });
        pause(between_renewals(attempt));
        let pressed = now();
        terminal.press("\x1a");
        until_gone(&said, pressed)
    });
}

#[test]
fn ctrl_z_on_a_terminal_ends_everything_in_time() {
    ctrl_z(TRIES, Place::new);
}

#[test]
fn over_tcp_ctrl_z_on_a_terminal_ends_everything_in_time() {
    ctrl_z(TRIES_OVER_TCP, Place::served);
}
