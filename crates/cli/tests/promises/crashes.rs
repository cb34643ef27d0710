//! The serving process is killed two hundred times under load: nothing acknowledged is lost, no token comes twice.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::stage::{Place, Worker, number, pause, signal_pid, turn};
use rustix::process::Signal;

const KILLS: u32 = 200;
const WORKERS: usize = 5;
/// Many: a name whose holder was killed is taken for a ttl.
const NAMES: &str = "60";

struct Held {
    token: u64,
    from: u64,
    until: u64,
}

#[test]
fn killing_the_server_two_hundred_times_loses_no_grant_and_repeats_no_token() {
    let _turn = turn();
    let place = Place::new();
    let start = || place.worker("cycle", &[NAMES, "2000"]);
    let mut workers: Vec<Worker> = (0..WORKERS).map(|_| start()).collect();
    let mut lines: Vec<Vec<String>> = Vec::new();
    let mut killed = 0;
    while killed < KILLS {
        pause(Duration::from_millis(120));
        let server = place.server();
        for worker in &mut workers {
            lines.extend(worker.drain());
            if server == Some(worker.pid()) {
                signal_pid(worker.pid(), Signal::KILL);
                worker.child.wait().unwrap();
                lines.extend(worker.rest());
                *worker = start();
                killed += 1;
                break;
            }
        }
    }
    for worker in &mut workers {
        signal_pid(worker.pid(), Signal::KILL);
        worker.child.wait().unwrap();
        lines.extend(worker.rest());
    }
    judge(&lines);
}

/// Every acknowledged grant was known to the store while its holder believed; tokens are unique; and where a holder still
/// believed at the end, nobody else was granted the same name in between.
fn judge(lines: &[Vec<String>]) {
    let lost: Vec<_> = lines.iter().filter(|words| words[0] == "lost").collect();
    assert!(lost.is_empty(), "acknowledged and then not known: {lost:?}");
    let mut tokens = BTreeSet::new();
    let mut held: BTreeMap<String, BTreeMap<u64, Held>> = BTreeMap::new();
    for words in lines.iter().filter(|words| words[0] == "granted" && words.len() == 5) {
        let (name, token, from) = (words[1].clone(), number(&words[2]), number(&words[3]));
        assert!(tokens.insert(token), "token {token} was granted twice");
        held.entry(name).or_default().insert(token, Held { token, from, until: from });
    }
    for words in lines.iter().filter(|words| words[0] == "until" && words.len() == 6 && words[5] == "true") {
        let of_name = held.get_mut(&words[1]).expect("only what was granted is held");
        of_name.get_mut(&number(&words[2])).expect("only what was granted is held").until = number(&words[3]);
    }
    let mut grants = 0;
    for (name, of_name) in &held {
        // In the order of tokens, each ends before the next begins.
        let all: Vec<&Held> = of_name.values().collect();
        grants += all.len();
        for pair in all.windows(2) {
            assert!(
                pair[0].until <= pair[1].from,
                "{name}: token {} was believed in until {}, token {} was granted at {}",
                pair[0].token,
                pair[0].until,
                pair[1].token,
                pair[1].from
            );
        }
    }
    println!("{KILLS} kills of the server, {grants} acknowledged grants, all with their own token");
    assert!(grants > 500, "only {grants} grants: there was no load");
}
