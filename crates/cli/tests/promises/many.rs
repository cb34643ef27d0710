//! Many processes want one name: one after the other, whatever is killed.

use std::fs::OpenOptions;
use std::path::Path;
use std::process::Child;
use std::time::Duration;

use super::stage::{Place, is_alive, nanos, now, pause, signal_pid, turn};
use rustix::process::Signal;

/// What each process runs: one line when it begins, one when it ends, each with its token, appended in one write.
fn script(log: &Path, work: &str) -> String {
    let log = log.display();
    format!("echo start $LEASEHOLD_TOKEN $$ >> {log}; {work}; echo end $LEASEHOLD_TOKEN $$ >> {log}")
}

struct Line {
    starts: bool,
    token: u64,
}

fn lines(log: &Path) -> Vec<Line> {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    let line = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        Line { starts: words[0] == "start", token: words[1].parse().unwrap() }
    };
    text.lines().map(line).collect()
}

#[test]
fn twenty_processes_at_once_run_one_after_the_other_with_rising_tokens() {
    let _turn = turn();
    let place = Place::new();
    let log = place.file("log");
    let text = script(&log, "sleep 0.02");
    let run = || place.command(&["run", "job", "--", "sh", "-c", &text]).spawn().unwrap();
    let children: Vec<Child> = (0..20).map(|_| run()).collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    let lines = lines(&log);
    assert_eq!(lines.len(), 40);
    let mut last = 0;
    for pair in lines.chunks(2) {
        assert!(pair[0].starts && !pair[1].starts && pair[0].token == pair[1].token, "two overlapped");
        assert!(pair[0].token > last, "token {} after {last}", pair[0].token);
        last = pair[0].token;
    }
}

/// Sixty seconds in which a random process (holder, server or waiter) is killed every 100 ms and replaced by a new one. A holder
/// that was killed leaves a start without an end; its command must be gone before the next begins, which its pid tells.
#[test]
fn nothing_overlaps_while_processes_are_killed_at_random() {
    let _turn = turn();
    let seconds: u64 = std::env::var("LEASEHOLD_CHAOS_SECONDS").map_or(60, |text| text.parse().unwrap());
    let place = Place::new();
    let log = place.file("log");
    let held = place.file("held");
    // A fence that does not know leases: a file that can be made only once. Whoever finds it there overlaps with somebody. The
    // shell is killed with its children by the guardian, so it takes the file away first when it can, and otherwise the next
    // one looks whether the process named in it still lives.
    let text = format!(
        "if [ -s {held} ] && kill -0 $(cat {held}) 2>/dev/null; then echo overlap $LEASEHOLD_TOKEN $(cat {held}) >> {log}; fi; \
         echo $$ > {held}; echo start $LEASEHOLD_TOKEN $$ >> {log}; sleep 0.05; : > {held}; \
         echo end $LEASEHOLD_TOKEN $$ >> {log}",
        held = held.display(),
        log = log.display(),
    );
    let run = || place.command(&["run", "--ttl", "1s", "job", "--", "sh", "-c", &text]).spawn().unwrap();
    OpenOptions::new().create(true).append(true).open(&log).unwrap();
    let mut children: Vec<Child> = (0..8).map(|_| run()).collect();
    let end = now() + nanos(Duration::from_secs(seconds));
    let (mut random, mut kills, mut servers_killed) = (0x1234_5678_u64, 0, 0);
    while now() < end {
        pause(Duration::from_millis(100));
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let victim = usize::try_from((random >> 33) % children.len() as u64).unwrap();
        // Every fourth time the one that serves.
        let pid = match place.server() {
            Some(server) if random >> 60 < 4 && children.iter().any(|child| child.id() == server) => {
                servers_killed += 1;
                server
            }
            _ => children[victim].id(),
        };
        signal_pid(pid, Signal::KILL);
        kills += 1;
        for child in &mut children {
            if child.try_wait().unwrap().is_some() {
                *child = run();
            }
        }
    }
    for child in &mut children {
        signal_pid(child.id(), Signal::KILL);
        child.wait().unwrap();
    }
    let text = std::fs::read_to_string(&log).unwrap();
    let overlaps: Vec<&str> = text.lines().filter(|line| line.starts_with("overlap")).collect();
    assert!(overlaps.is_empty(), "{overlaps:?}");
    let starts: Vec<Line> = lines(&log).into_iter().filter(|line| line.starts).collect();
    println!("{kills} kills, {servers_killed} of them of the server, {} grants", starts.len());
    // Each holder that is killed costs the others a ttl.
    assert!(starts.len() as u64 > seconds / 3, "only {} grants in {seconds} s", starts.len());
    let fell = starts.windows(2).find(|pair| pair[0].token >= pair[1].token);
    assert!(fell.is_none(), "a token fell: {:?}", fell.map(|pair| (pair[0].token, pair[1].token)));
    // Nothing of it is left: the guardians outlive their wrappers only until the deadline.
    pause(Duration::from_millis(1_200));
    let last: u32 = text.lines().rev().find_map(|line| line.split(' ').nth(2)?.parse().ok()).unwrap();
    assert!(!is_alive(last), "the last command still runs");
}
