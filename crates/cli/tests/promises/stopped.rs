//! Processes that stand still and go on.

use std::time::Duration;

use super::stage::{PATIENCE, Place, Waits, Worker, beside_others, millis, now, number, pause};
use rustix::process::Signal;

/// Holders that were stopped for three ttl say that they lost the lease before they are given any further guard.
fn stopped_holders(place: &Place, names: &[&str]) {
    let hold = |name: &&str| place.worker("hold", &[name, "1000"]);
    let holders: Vec<Worker> = names.iter().map(hold).collect();
    for holder in &holders {
        holder.wait_for("granted", PATIENCE).expect("the holder gets the lease");
    }
    pause(Duration::from_millis(200));
    for holder in &holders {
        holder.signal(Signal::STOP);
    }
    pause(Duration::from_millis(50));
    let stopped = now();
    let nexts: Vec<Worker> = names.iter().map(hold).collect();
    let granted_at: Vec<u64> = nexts
        .iter()
        .map(|next| next.wait_for("granted", PATIENCE).expect("the next one gets the lease"))
        .map(|granted| number(&granted[2]))
        .collect();
    pause(Duration::from_millis(3_000).saturating_sub(Duration::from_nanos(now() - stopped)));
    for (holder, granted_at) in holders.iter().zip(granted_at) {
        holder.drain();
        holder.signal(Signal::CONT);
        let lines = holder.rest();
        assert!(
            lines.iter().any(|words| words[0] == "state" && words[1] == "ended"),
            "it never says that it lost it"
        );
        for words in lines.iter().filter(|words| words[0] == "guard") {
            assert!(number(&words[1]) < granted_at, "a guard after the next holder's grant");
        }
    }
}

#[test]
fn a_stopped_holder_learns_of_its_loss_before_any_guard() {
    let _beside = beside_others();
    for _ in 0..3 {
        let place = Place::new();
        let _server = place.idle_server();
        stopped_holders(&place, &["job"]);
    }
}

#[test]
fn over_tcp_a_stopped_holder_learns_of_its_loss_before_any_guard() {
    let _beside = beside_others();
    stopped_holders(&Place::served(), &["one", "two", "three"]);
}

/// The serving process is stopped for three ttl: a live holder may lapse but gets its lease back, a dead one's is freed on time
/// after that.
#[test]
fn a_stopped_server_costs_no_live_holder_its_lease() {
    let _beside = beside_others();
    let place = Place::new();
    let server = place.worker("idle", &[]);
    server.wait_for("connected", PATIENCE).expect("the server starts");
    let living = place.worker("hold", &["living", "1000"]);
    let mut dead = place.worker("hold", &["dead", "1000"]);
    for holder in [&living, &dead] {
        holder.wait_for("granted", PATIENCE).expect("both get their leases");
    }
    let waiter = place.worker("hold", &["dead", "1000"]);
    pause(Duration::from_millis(300));
    server.signal(Signal::STOP);
    dead.kill();
    pause(Duration::from_millis(3_000));
    assert!(
        waiter.wait_for("granted", Duration::from_millis(10)).is_none(),
        "nobody steals from a stopped server"
    );
    living.drain();
    let waits = Waits::of(&[server.pid(), waiter.pid()]);
    server.signal(Signal::CONT);
    let continued = now();
    let granted = waiter.wait_for("granted", PATIENCE).expect("the dead holder's lease is freed");
    let late = millis(number(&granted[2]).saturating_sub(continued + waits.so_far()));
    println!("the dead holder's lease was freed {late} ms after the server went on");
    assert!(late <= 1_000 * 1_003 / 1_000 + 200, "freed {late} ms after the server went on");
    let mut states = living.drain();
    states.extend(living.until("the living holder has its lease", |words| {
        words[0] == "state" && words[1] == "held" && number(&words[2]) > continued
    }));
    assert!(!states.iter().any(|words| words[0] == "state" && words[1] == "ended"), "it was never lost");
}

/// Whoever meets a stopped server is told its pid, and steals nothing.
#[test]
fn a_stopped_server_is_named_by_its_pid() {
    let _beside = beside_others();
    let place = Place::new();
    let server = place.worker("idle", &[]);
    server.wait_for("connected", PATIENCE).expect("the server starts");
    server.signal(Signal::STOP);
    let shown = place.command(&["get", "job"]).output().unwrap();
    server.signal(Signal::CONT);
    assert_eq!(shown.status.code(), Some(122));
    let text = String::from_utf8_lossy(&shown.stderr).into_owned();
    assert!(text.contains(&format!("process {}", server.pid())) && text.contains("stopped"), "{text}");
}
