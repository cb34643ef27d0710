//! The serving process is killed two hundred times under load: nothing acknowledged is lost, no token comes twice.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::stage::{Place, Worker, beside_others, nanos, now, number, pause, signal_pid};
use rustix::process::Signal;

const KILLS: u32 = 200;
const BETWEEN_KILLS: Duration = Duration::from_millis(120);
const WORKERS: usize = 5;
/// Fewer acknowledged grants are no load.
const GRANTS: usize = 501;
/// A busy machine takes its time to start processes and to grant.
const LIMIT: Duration = Duration::from_secs(240);
/// Many: a name whose holder was killed is taken for a ttl.
const NAMES: &str = "60";

struct Held {
    token: u64,
    from: u64,
    until: u64,
}

/// Takes what the workers say while their server is killed again and again; then kills all of them.
fn under_load(place: &Place, kill: impl Fn(&Place, &mut [Worker], &mut Vec<Vec<String>>) -> bool) {
    let mut workers: Vec<Worker> = (0..WORKERS).map(|_| start(place)).collect();
    let mut lines: Vec<Vec<String>> = Vec::new();
    let mut killed = 0;
    let end = now() + nanos(LIMIT);
    let granted = |lines: &[Vec<String>]| lines.iter().filter(|words| words[0] == "granted").count();
    while killed < KILLS || granted(&lines) < GRANTS && now() < end {
        pause(BETWEEN_KILLS);
        for worker in &workers {
            lines.extend(worker.drain());
        }
        killed += u32::from(kill(place, &mut workers, &mut lines));
    }
    for worker in &mut workers {
        signal_pid(worker.pid(), Signal::KILL);
        worker.child.wait().unwrap();
        lines.extend(worker.rest());
    }
    let grants = judge(&lines).unwrap();
    println!("{killed} kills of the server, {grants} acknowledged grants, all with their own token");
    assert!(grants >= GRANTS, "only {grants} grants: there was no load");
}

fn start(place: &Place) -> Worker {
    place.worker("cycle", &[NAMES, "2000"])
}

#[test]
fn killing_the_server_two_hundred_times_loses_no_grant_and_repeats_no_token() {
    let _beside = beside_others();
    under_load(&Place::new(), |place, workers, lines| {
        let server = place.server();
        let Some(worker) = workers.iter_mut().find(|worker| server == Some(worker.pid())) else {
            return false;
        };
        signal_pid(worker.pid(), Signal::KILL);
        worker.child.wait().unwrap();
        lines.extend(worker.rest());
        *worker = start(place);
        true
    });
}

#[test]
fn over_tcp_killing_the_server_two_hundred_times_loses_no_grant_and_repeats_no_token() {
    let _beside = beside_others();
    under_load(&Place::served(), |place, _, _| {
        let mut service = place.service();
        service.kill();
        service.start_again();
        // A start takes longer than the pause: without this there would be kills and hardly any load.
        service.wait_until_it_answers();
        true
    });
}

/// Every acknowledged grant was known to the store while its holder believed; tokens are unique; and where a holder still
/// believed at the end, nobody else was granted the same name in between. Gives how many grants there were.
pub(crate) fn judge(lines: &[Vec<String>]) -> Result<usize, String> {
    if let Some(lost) = lines.iter().find(|words| words[0] == "lost") {
        return Err(format!("acknowledged and then not known: {lost:?}"));
    }
    let mut tokens = BTreeSet::new();
    let mut held: BTreeMap<String, BTreeMap<u64, Held>> = BTreeMap::new();
    for words in lines.iter().filter(|words| words[0] == "granted" && words.len() == 5) {
        let (name, token, from) = (words[1].clone(), number(&words[2]), number(&words[3]));
        if !tokens.insert(token) {
            return Err(format!("token {token} was granted twice"));
        }
        held.entry(name).or_default().insert(token, Held { token, from, until: from });
    }
    for words in lines.iter().filter(|words| words[0] == "until" && words.len() == 6 && words[5] == "true") {
        let of_name = held.get_mut(&words[1]).expect("only what was granted is held");
        of_name.get_mut(&number(&words[2])).expect("only what was granted is held").until = number(&words[3]);
    }
    for (name, of_name) in &held {
        // In the order of tokens, each ends before the next begins.
        let all: Vec<&Held> = of_name.values().collect();
        if let Some(pair) = all.windows(2).find(|pair| pair[0].until > pair[1].from) {
            return Err(format!(
                "{name}: token {} was believed in until {}, token {} was granted at {}",
                pair[0].token, pair[0].until, pair[1].token, pair[1].from
            ));
        }
    }
    Ok(tokens.len())
}

/// The judge itself: a history with what it is there for.
#[test]
fn a_lost_grant_a_repeated_token_and_an_overlap_are_found() {
    let judged = |text: &str| {
        let lines: Vec<Vec<String>> =
            text.lines().map(|line| line.split(' ').map(str::to_owned).collect()).collect();
        judge(&lines)
    };
    let good = "granted a 1 10 10\nuntil a 1 20 20 true\ngranted a 2 20 20\ngranted b 3 5 5";
    assert_eq!(judged(good), Ok(3));
    assert!(judged("granted a 1 10 10\nlost a 1 Ended").unwrap_err().contains("not known"));
    assert!(judged("granted a 1 10 10\ngranted b 1 30 30").unwrap_err().contains("twice"));
    let overlap = "granted a 1 10 10\nuntil a 1 21 21 true\ngranted a 2 20 20";
    assert!(judged(overlap).unwrap_err().contains("believed in until 21"));
    // A holder that does not believe any more overlaps with nobody.
    assert_eq!(judged(&overlap.replace("true", "false")), Ok(2));
}
