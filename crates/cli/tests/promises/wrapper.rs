//! The wrapper of `leasehold run` is killed or stopped, alone: everything it started is gone before the deadline.

use std::process::Stdio;
use std::time::Duration;

use super::stage::{Place, Worker, is_alive, nanos, now, number, pause, turn};
use rustix::process::Signal;

const TRIES: usize = 20;
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
fn gone_before_the_deadline(hurt: impl Fn(&mut Worker)) {
    let _turn = turn();
    let mut worst = 0;
    for attempt in 0..TRIES {
        let place = Place::new();
        let mut run = start(&place);
        // Anywhere between two renewals.
        pause(Duration::from_millis(100 + 29 * attempt as u64));
        let hurt_at = now();
        hurt(&mut run.worker);
        let deadline = hurt_at + nanos(TTL - TTL / 10);
        while run.family.iter().any(|pid| is_alive(*pid)) {
            assert!(now() < deadline, "try {attempt}: {:?} still run", run.family);
            pause(Duration::from_millis(1));
        }
        worst = worst.max(now() - hurt_at);
    }
    println!("gone at the latest {} ms after, with a ttl of {} ms", worst / 1_000_000, TTL.as_millis());
}

#[test]
fn a_killed_wrapper_takes_everything_with_it() {
    gone_before_the_deadline(Worker::kill);
}

#[test]
fn a_stopped_wrapper_loses_everything_in_time() {
    gone_before_the_deadline(|wrapper| wrapper.signal(Signal::STOP));
}
