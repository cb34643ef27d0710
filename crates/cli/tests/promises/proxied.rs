//! Answers that are late or lost, and connections that break or die without a word, between a holder and a service.

use std::future::IntoFuture;
use std::time::Duration;

use leasehold::blocking::wait;
use leasehold::core::protocol::TokenCheck;
use leasehold::{Error, ResourceName, Session, SessionOptions, Store, Token};

use super::crashes::judge;
use super::proxy::Proxy;
use super::stage::{
    PATIENCE, Place, Worker, beside_others, eventually, millis, nanos, now, number, pause, worker_at,
};

fn proxied() -> (Place, Proxy) {
    let mut place = None;
    let proxy = Proxy::in_front(|advertised| {
        let service = place.insert(Place::served_as(&["--advertise", advertised]));
        service.service().address()
    });
    (place.expect("the proxy is in front of it"), proxy)
}

/// A session whose commands go out at once: the first answer has shown that it has its connection.
fn attached(store: &Store, options: &SessionOptions) -> Session {
    let session = wait(store.session_with(options)).unwrap();
    wait(wait(session.acquire("first").into_future()).unwrap().release()).unwrap();
    session
}

/// The token of the lease that a store shows.
fn shown(store: &Store, name: &ResourceName) -> Option<Token> {
    wait(store.lease(name)).unwrap().and_then(|view| view.holders.first().map(|holder| holder.token))
}

/// What the holder may use of its ttl of a second, in nanoseconds.
const USABLE: u64 = 900_000_000;

/// A holder whose answers are held back for longer than its ttl: it lapses, and what arrives then says nothing about now.
pub(crate) fn late_answers(url: &str, hold_answers: impl Fn(bool)) {
    let holder = worker_at(url, "hold", &["job", "1000"]);
    holder.wait_for("granted", PATIENCE).expect("the holder gets the lease through the proxy");
    let deadline_of = |words: &[String]| (words[0] == "deadline").then(|| number(&words[1]));
    let mut lines = holder.until("a renewal is confirmed", |words| words[0] == "deadline");
    hold_answers(true);
    // What was on its way is there by then.
    pause(Duration::from_millis(50));
    let held = now();
    let is_lapsed = |words: &[String]| words[0] == "state" && words[1] == "lapsed";
    lines.extend(holder.until("answers are held back past the deadline, and it notices", is_lapsed));
    pause(Duration::from_millis(500));
    lines.extend(holder.drain());
    let delivered = now();
    hold_answers(false);
    let deadline = lines.iter().filter_map(|words| deadline_of(words)).max().expect("it has a deadline");
    assert!(deadline <= held + USABLE, "deadline {deadline} counts answers that it has not got");
    lines.extend(holder.until("it goes on", |words| {
        words[0] == "state" && words[1] != "lapsed" && number(&words[2]) >= delivered
    }));
    for words in lines {
        let at = number(&words[words.len() - 2]);
        if words[0] == "guard" {
            assert!(at < deadline || at >= delivered, "a guard between the deadline and the answers");
        }
        // An answer that was held back for longer than the ttl says nothing about now: only what was sent lately counts.
        assert!(
            words[0] != "deadline" || at <= now() + USABLE,
            "deadline {at} lies more than the usable ttl ahead"
        );
    }
}

#[test]
fn over_tcp_a_client_whose_answers_are_late_by_more_than_the_ttl_does_not_believe() {
    let _beside = beside_others();
    let (_place, proxy) = proxied();
    late_answers(&proxy.url(), |hold| proxy.hold_answers(hold));
}

/// The service grants, the answer is lost, the connection breaks: the client attaches again and is told the same grant.
#[test]
fn over_tcp_a_grant_whose_answer_was_lost_is_told_again_and_not_made_again() {
    let _beside = beside_others();
    let (place, proxy) = proxied();
    let direct = wait(Store::connect(&place.url())).unwrap();
    let store = wait(Store::connect(&proxy.url())).unwrap();
    let session = attached(&store, &SessionOptions::new());
    for attempt in 0..10 {
        let name = ResourceName::new(&format!("job-{attempt}")).unwrap();
        proxy.swallow_answers(true);
        let (granted, lease) = std::thread::scope(|scope| {
            let asking = scope.spawn(|| wait(session.acquire(name.as_str()).into_future()));
            let granted = eventually("the service grants", || shown(&direct, &name));
            assert!(!asking.is_finished(), "the answer was swallowed");
            proxy.swallow_answers(false);
            proxy.cut();
            (granted, asking.join().unwrap().expect("the grant is told after all"))
        });
        assert_eq!(lease.granted().token, granted);
        assert!(lease.guard(Duration::from_millis(1)).is_ok());
        assert_eq!(wait(direct.check(&name, granted)).unwrap(), TokenCheck::Current);
        assert_eq!(wait(direct.history(&name)).unwrap().len(), 0, "there was one grant and no more");
        wait(lease.release()).unwrap();
    }
}

/// The request arrives, and no answer ever does while the session lives: nobody can say, and nobody acts.
#[test]
fn over_tcp_a_grant_that_is_never_answered_is_unknown_and_ends_with_its_session() {
    let _beside = beside_others();
    let (place, proxy) = proxied();
    let direct = wait(Store::connect(&place.url())).unwrap();
    let store = wait(Store::connect(&proxy.url())).unwrap();
    let session = attached(&store, &SessionOptions::new().ttl(Duration::from_secs(1)));
    let name = ResourceName::new("job").unwrap();
    proxy.swallow_answers(true);
    let outcome = std::thread::scope(|scope| {
        let asking = scope.spawn(|| wait(session.acquire("job").into_future()));
        let granted = eventually("the service grants", || shown(&direct, &name));
        let began = now();
        eventually("the session ends", || shown(&direct, &name).is_none().then_some(()));
        println!("token {granted} ended after {} ms without an answer", millis(now() - began));
        proxy.swallow_answers(false);
        asking.join().unwrap()
    });
    assert!(matches!(outcome, Err(Error::OutcomeUnknown)), "{outcome:?}");
    // The store is as good as before.
    let session = wait(store.session_with(&SessionOptions::new())).unwrap();
    wait(session.acquire("job").into_future()).expect("the name is free again");
}

/// In milliseconds, and long enough that only a connection that is not replaced puts the lease in danger.
const TTL: u64 = 4_000;

/// A connection that carries nothing and is not closed: it is given up in time, and the lease is never in danger.
#[test]
fn over_tcp_a_connection_that_dies_without_a_word_is_replaced_before_the_deadline() {
    let _beside = beside_others();
    let (_place, proxy) = proxied();
    let holder = worker_at(&proxy.url(), "hold", &["job", &TTL.to_string()]);
    holder.wait_for("granted", PATIENCE).expect("the holder gets the lease through the proxy");
    let mut lines = Vec::new();
    for _ in 0..3 {
        pause(Duration::from_millis(300));
        assert!(proxy.deaden() > 0);
        let deadened = now();
        // A deadline that counts from a later send was confirmed over another connection.
        lines.extend(holder.until("a renewal is confirmed over another connection", |words| {
            words[0] == "deadline"
                && number(&words[1]) > deadened + nanos(Duration::from_millis(TTL * 9 / 10))
        }));
    }
    lines.extend(holder.until("it is held", |words| words[0] == "state" && words[1] == "held"));
    let said = |word: &str| lines.iter().filter(|words| words[0] == "state" && words[1] == word).count();
    println!("held {}, retrying {}, lapsed {}", said("held"), said("retrying"), said("lapsed"));
    assert_eq!(said("lapsed") + said("ended"), 0, "the lease was in danger");
}

/// Connections are cut at random moments, in the middle of whatever they carry.
#[test]
fn over_tcp_cut_connections_lose_no_grant_and_repeat_no_token() {
    let _beside = beside_others();
    let (_place, proxy) = proxied();
    let mut workers: Vec<Worker> =
        (0..4).map(|_| worker_at(&proxy.url(), "cycle", &["20", "2000"])).collect();
    let end = now() + nanos(Duration::from_secs(120));
    let (mut random, mut cuts, mut lines) = (0x9876_5432_u64, 0, Vec::new());
    let granted = |lines: &[Vec<String>]| lines.iter().filter(|words| words[0] == "granted").count();
    while (cuts <= 100 || granted(&lines) <= 200) && now() < end {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        pause(Duration::from_millis(20 + (random >> 33) % 60));
        cuts += proxy.cut();
        workers.iter().for_each(|worker| lines.extend(worker.drain()));
    }
    for worker in &mut workers {
        worker.kill();
        lines.extend(worker.rest());
    }
    let grants = judge(&lines).unwrap();
    println!("{cuts} connections were cut, {grants} grants");
    assert!(cuts > 100 && grants > 200, "{cuts} cuts and {grants} grants: there was no load");
}
