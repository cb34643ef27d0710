//! A dead holder is replaced on time: never before its ttl, and hardly later.

use std::time::Duration;

use super::stage::{Place, Worker, millis, number, pause, turn};

const TTL: u64 = 2_000;
/// What the holder gives up of its ttl: a tenth.
const MARGIN: u64 = TTL / 10;

/// When the last confirmed renewal of a holder was sent: its deadline less what it may use of the ttl.
fn last_sent(holder: &Worker) -> u64 {
    let last = holder.rest().into_iter().rev().find(|words| words[0] == "deadline");
    let last = last.expect("the holder said a deadline");
    number(&last[1]) - (TTL - MARGIN) * 1_000_000
}

fn replaced_after(place: &Place, kill_after: Duration) -> u64 {
    let ttl = TTL.to_string();
    let mut holder = place.worker("hold", &["job", &ttl]);
    holder.wait_for("granted", Duration::from_secs(10)).expect("the first holder gets the lease");
    let next = place.worker("hold", &["job", &ttl]);
    pause(kill_after);
    holder.kill();
    let granted = next.wait_for("granted", Duration::from_secs(10)).expect("the next holder gets the lease");
    number(&granted[2]) - last_sent(&holder)
}

/// Counted from the sending of the last confirmed renewal. In every other try the holder also serves the directory.
#[test]
fn a_killed_holder_is_replaced_after_its_ttl_and_not_before() {
    let _turn = turn();
    let mut late = Vec::new();
    for attempt in 0..20_u64 {
        let place = Place::new();
        let server = (attempt % 2 == 0).then(|| place.worker("idle", &[]));
        if let Some(server) = &server {
            server.wait_for("connected", Duration::from_secs(10)).expect("the server starts");
        }
        let after = replaced_after(&place, Duration::from_millis(300 + attempt * 67));
        assert!(
            after >= TTL * 1_000_000,
            "try {attempt}: replaced after {} ms, before the ttl",
            millis(after)
        );
        late.push(millis(after) - TTL);
        let limit = TTL * 1_003 / 1_000 + 100;
        assert!(
            millis(after) <= limit,
            "try {attempt}: replaced after {} ms, limit {limit} ms",
            millis(after)
        );
    }
    println!("later than the ttl by, in ms: {late:?}");
}

/// Nobody serves the directory between two runs: the time in between counts.
#[test]
fn time_without_a_server_counts() {
    let _turn = turn();
    let place = Place::new();
    let mut holder = place.worker("hold", &["job", "1000"]);
    holder.wait_for("granted", Duration::from_secs(10)).expect("the holder gets the lease");
    holder.kill();
    let held = place.command(&["run", "--no-wait", "job", "--", "true"]).output().unwrap();
    assert_eq!(held.status.code(), Some(120), "the lease of the dead holder has not ended yet");
    pause(Duration::from_millis(1_100));
    let free = place.command(&["run", "--no-wait", "job", "--", "true"]).output().unwrap();
    assert!(free.status.success(), "{}", String::from_utf8_lossy(&free.stderr));
}

/// The process that serves is killed; another takes over in 100 ms, and its holder keeps its lease.
#[test]
fn another_process_takes_over_the_directory() {
    let _turn = turn();
    let mut worst = 0;
    for _ in 0..10 {
        let place = Place::new();
        let mut server = place.worker("idle", &[]);
        server.wait_for("connected", Duration::from_secs(10)).expect("the server starts");
        let holder = place.worker("hold", &["job", "2000"]);
        let granted = holder.wait_for("granted", Duration::from_secs(10)).expect("the holder gets the lease");
        let killed = super::stage::now();
        server.kill();
        while place.server() != Some(holder.pid()) {
            pause(Duration::from_millis(1));
            assert!(millis(super::stage::now() - killed) < 5_000, "nobody takes over");
        }
        // Serving means answering: another process is told who holds the lease.
        let shown = place.command(&["get", "--json", "job"]).output().unwrap();
        let took = millis(super::stage::now() - killed);
        worst = worst.max(took);
        let text = String::from_utf8_lossy(&shown.stdout).into_owned();
        assert!(text.contains(&format!("\"{}\"", granted[1])), "token {} is not in {text}", granted[1]);
        assert!(took < 400, "takeover and an answer took {took} ms");
    }
    println!("takeover and an answer to another process: at worst {worst} ms");
}
