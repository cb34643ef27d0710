//! Many processes want one name: one after the other, whatever is killed.

use std::fs::OpenOptions;
use std::path::Path;
use std::process::Child;
use std::time::Duration;

use super::stage::{Place, beside_others, eventually, is_alive, pause, signal_pid};
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

fn lines(text: &str) -> Vec<Line> {
    let line = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        Line { starts: words[0] == "start", token: words[1].parse().unwrap() }
    };
    text.lines().map(line).collect()
}

/// Every start is followed by its own end, and tokens rise.
fn one_after_the_other(lines: &[Line]) -> Result<(), String> {
    let mut last = 0;
    for pair in lines.chunks(2) {
        let [start, end] = pair else { return Err("a start without an end".into()) };
        if !start.starts || end.starts || start.token != end.token {
            return Err(format!("tokens {} and {} overlapped", start.token, end.token));
        }
        if start.token <= last {
            return Err(format!("token {} after {last}", start.token));
        }
        last = start.token;
    }
    Ok(())
}

fn twenty_at_once(place: &Place) {
    let log = place.file("log");
    let text = script(&log, "sleep 0.02");
    let run = || place.command(&["run", "job", "--", "sh", "-c", &text]).spawn().unwrap();
    let children: Vec<Child> = (0..20).map(|_| run()).collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    let lines = lines(&std::fs::read_to_string(&log).unwrap());
    assert_eq!(lines.len(), 40);
    one_after_the_other(&lines).unwrap();
}

#[test]
fn twenty_processes_at_once_run_one_after_the_other_with_rising_tokens() {
    let _beside = beside_others();
    twenty_at_once(&Place::new());
}

#[test]
fn over_tcp_twenty_processes_at_once_run_one_after_the_other_with_rising_tokens() {
    let _beside = beside_others();
    twenty_at_once(&Place::served());
}

/// So often a random process (holder, server or waiter) is killed, one every 100 ms, and replaced by a new one.
const KILLS: u64 = 301;
/// What starts in between. Each holder that is killed costs the others a ttl, and the time in which a service starts does not count.
const GRANTS: [u64; 2] = [21, 11];
/// After so many kills without a grant there are none until the next one: a busy machine starts processes more slowly than they are
/// killed here.
const KILLS_WITHOUT_A_GRANT: u64 = 14;

/// A holder that was killed leaves a start without an end; its command must be gone before the next begins, which its pid tells.
fn killed_at_random(place: &Place) {
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
    let run = || place.command(&["run", "--ttl", "2s", "job", "--", "sh", "-c", &text]).spawn().unwrap();
    OpenOptions::new().create(true).append(true).open(&log).unwrap();
    let mut children: Vec<Child> = (0..8).map(|_| run()).collect();
    let expected = GRANTS[usize::from(place.is_served())];
    let started = || std::fs::read_to_string(&log).unwrap().matches("start ").count() as u64;
    let (mut seen, mut since_seen) = (0, 0);
    let (mut random, mut kills, mut servers_killed) = (0x1234_5678_u64, 0, 0);
    while kills < KILLS {
        pause(Duration::from_millis(100));
        if since_seen >= KILLS_WITHOUT_A_GRANT {
            eventually("the next one is granted", || (started() > seen).then_some(()));
        }
        let granted = started();
        since_seen = if granted > seen { 1 } else { since_seen + 1 };
        seen = granted;
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let victim = usize::try_from((random >> 33) % children.len() as u64).unwrap();
        // Every fourth time the one that serves.
        if random >> 60 < 4 && kill_the_server(place, &children) {
            servers_killed += 1;
        } else {
            signal_pid(children[victim].id(), Signal::KILL);
        }
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
    let grants = judge(&text).unwrap();
    println!("{kills} kills, {servers_killed} of them of the server, {grants} grants");
    assert!(grants >= expected, "only {grants} grants between {kills} kills");
    // Nothing of it is left: the guardians outlive their wrappers only until the deadline.
    let last: u32 = text.lines().rev().find_map(|line| line.split(' ').nth(2)?.parse().ok()).unwrap();
    eventually("the last command has ended", || (!is_alive(last)).then_some(()));
}

/// A service is started again at once. A directory goes to the next of its processes.
fn kill_the_server(place: &Place, children: &[Child]) -> bool {
    if place.is_served() {
        place.service().kill();
        place.service().start_again();
        return true;
    }
    let server = place.server().filter(|server| children.iter().any(|child| child.id() == *server));
    server.inspect(|server| signal_pid(*server, Signal::KILL)).is_some()
}

/// Nobody found another one alive, and tokens rise. Gives how many began.
fn judge(text: &str) -> Result<u64, String> {
    if let Some(overlap) = text.lines().find(|line| line.starts_with("overlap")) {
        return Err(format!("token, pid of the other: {overlap}"));
    }
    let starts: Vec<u64> = lines(text).iter().filter(|line| line.starts).map(|line| line.token).collect();
    match starts.windows(2).find(|pair| pair[0] >= pair[1]) {
        Some(pair) => Err(format!("token {} after {}", pair[1], pair[0])),
        None => Ok(starts.len() as u64),
    }
}

#[test]
fn nothing_overlaps_while_processes_are_killed_at_random() {
    let _beside = beside_others();
    killed_at_random(&Place::new());
}

#[test]
fn over_tcp_nothing_overlaps_while_processes_are_killed_at_random() {
    let _beside = beside_others();
    killed_at_random(&Place::served());
}

/// The judges themselves: what they are there for is found.
#[test]
fn an_overlap_and_a_falling_token_are_found() {
    let order = |text: &str| one_after_the_other(&lines(text));
    assert_eq!(order("start 1 9\nend 1 9\nstart 4 8\nend 4 8"), Ok(()));
    assert!(order("start 1 9\nstart 2 8\nend 1 9\nend 2 8").unwrap_err().contains("overlapped"));
    assert!(order("start 4 9\nend 4 9\nstart 3 8\nend 3 8").unwrap_err().contains("token 3 after 4"));
    assert!(order("start 4 9\nend 4 9\nstart 5 8").is_err());
    assert_eq!(judge("start 1 9\nstart 2 8\nend 2 8"), Ok(2));
    assert!(judge("start 1 9\noverlap 2 9\nstart 2 8").unwrap_err().contains("overlap 2 9"));
    assert!(judge("start 2 9\nend 2 9\nstart 2 8").unwrap_err().contains("token 2 after 2"));
}
