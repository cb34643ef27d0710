//! Answers that are late or lost, and connections that break or die without a word, between a holder and a service.

use std::future::IntoFuture;
use std::time::Duration;

use leasehold::blocking::wait;
use leasehold::core::protocol::TokenCheck;
use leasehold::{Error, ResourceName, Session, SessionOptions, Store, Token};

use super::crashes::judge;
use super::proxy::Proxy;
use super::stage::{Place, Worker, millis, nanos, now, number, pause, turn, worker_at};

fn proxied() -> (Place, Proxy) {
    let mut place = None;
    let proxy = Proxy::in_front(|advertised| {
        let service = place.insert(Place::served_as(&["--advertise", advertised]));
        service.service().address()
    });
    (place.expect("the proxy is in front of it"), proxy)
}

/// Looks until there is something to see.
fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let end = now() + nanos(Duration::from_secs(20));
    loop {
        if let Some(seen) = look() {
            return seen;
        }
        assert!(now() < end, "waited in vain: {what}");
        pause(Duration::from_millis(2));
    }
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

#[test]
fn over_tcp_a_client_whose_answers_are_late_by_more_than_the_ttl_does_not_believe() {
    let _turn = turn();
    let (_place, proxy) = proxied();
    let holder = worker_at(&proxy.url(), "hold", &["job", "1000"]);
    holder.wait_for("granted", Duration::from_secs(10)).expect("the holder gets the lease through the proxy");
    pause(Duration::from_millis(200));
    proxy.hold_answers(true);
    pause(Duration::from_millis(50));
    let last =
        holder.drain().into_iter().rev().find(|words| words[0] == "deadline").expect("it has a deadline");
    let deadline = number(&last[1]);
    pause(Duration::from_millis(1_500));
    let delivered = now();
    proxy.hold_answers(false);
    pause(Duration::from_millis(200));
    let lines = holder.drain();
    let lapsed = lines.iter().any(|words| words[0] == "state" && words[1] == "lapsed");
    assert!(lapsed, "answers were held back past the deadline, and it did not notice");
    for words in lines {
        let at = number(&words[words.len() - 2]);
        if words[0] == "guard" {
            assert!(at < deadline || at >= delivered, "a guard between the deadline and the answers");
        }
        if words[0] == "deadline" {
            // What was held back for 1.5 s at a ttl of 1 s says nothing about now: only what was sent lately counts.
            assert!(at <= now() + 900_000_000, "deadline {at} lies more than the usable ttl ahead");
        }
    }
}

/// The service grants, the answer is lost, the connection breaks: the client attaches again and is told the same grant.
#[test]
fn over_tcp_a_grant_whose_answer_was_lost_is_told_again_and_not_made_again() {
    let _turn = turn();
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
    let _turn = turn();
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

/// A connection that carries nothing and is not closed: it is given up in time, and the lease is never in danger.
#[test]
fn over_tcp_a_connection_that_dies_without_a_word_is_replaced_before_the_deadline() {
    let _turn = turn();
    let (_place, proxy) = proxied();
    let holder = worker_at(&proxy.url(), "hold", &["job", "2000"]);
    holder.wait_for("granted", Duration::from_secs(10)).expect("the holder gets the lease through the proxy");
    for _ in 0..3 {
        pause(Duration::from_millis(300));
        assert!(proxy.deaden() > 0);
        pause(Duration::from_millis(2_500));
    }
    let lines = holder.drain();
    let said = |word: &str| lines.iter().filter(|words| words[0] == "state" && words[1] == word).count();
    println!("held {}, retrying {}, lapsed {}", said("held"), said("retrying"), said("lapsed"));
    assert_eq!(said("lapsed") + said("ended"), 0, "the lease was in danger");
    let last = lines.iter().rev().find(|words| words[0] == "state").expect("the holder speaks");
    assert_eq!(last[1], "held");
}

/// Connections are cut at random moments, in the middle of whatever they carry.
#[test]
fn over_tcp_cut_connections_lose_no_grant_and_repeat_no_token() {
    let _turn = turn();
    let (_place, proxy) = proxied();
    let mut workers: Vec<Worker> =
        (0..4).map(|_| worker_at(&proxy.url(), "cycle", &["20", "2000"])).collect();
    let end = now() + nanos(Duration::from_secs(8));
    let (mut random, mut cuts) = (0x9876_5432_u64, 0);
    while now() < end {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        pause(Duration::from_millis(20 + (random >> 33) % 60));
        cuts += proxy.cut();
    }
    let mut lines = Vec::new();
    for worker in &mut workers {
        worker.kill();
        lines.extend(worker.rest());
    }
    let grants = judge(&lines).unwrap();
    println!("{cuts} connections were cut, {grants} grants");
    assert!(cuts > 100 && grants > 200, "{cuts} cuts and {grants} grants: there was no load");
}
