//! An answer that comes later than the ttl: a proxy on the socket holds it back.

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::stage::{Place, now, number, pause, turn};

/// Puts itself between the clients and the server of a directory. While `held` is set, nothing comes back from the server.
fn proxy(place: &Place, held: &Arc<AtomicBool>) {
    let (socket, real) = (place.store().join("socket"), place.store().join("real"));
    std::fs::rename(&socket, &real).unwrap();
    let listener = UnixListener::bind(&socket).unwrap();
    let held = Arc::clone(held);
    std::thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            let Ok(server) = UnixStream::connect(&real) else { return };
            let never = Arc::new(AtomicBool::new(false));
            copy(client.try_clone().unwrap(), server.try_clone().unwrap(), never);
            copy(server, client, Arc::clone(&held));
        }
    });
}

fn copy(mut from: UnixStream, mut to: UnixStream, held: Arc<AtomicBool>) {
    std::thread::spawn(move || {
        let mut buffer = [0; 65_536];
        while let Ok(count) = from.read(&mut buffer) {
            while held.load(Ordering::SeqCst) {
                std::thread::sleep(Duration::from_millis(1));
            }
            if count == 0 || to.write_all(&buffer[..count]).is_err() {
                return;
            }
        }
    });
}

#[test]
fn a_client_whose_answers_are_late_by_more_than_the_ttl_does_not_believe() {
    let _turn = turn();
    let place = Place::new();
    let server = place.worker("idle", &[]);
    server.wait_for("connected", Duration::from_secs(10)).expect("the server starts");
    let held = Arc::new(AtomicBool::new(false));
    proxy(&place, &held);
    let holder = place.worker("hold", &["job", "1000"]);
    holder.wait_for("granted", Duration::from_secs(10)).expect("the holder gets the lease through the proxy");
    pause(Duration::from_millis(200));
    held.store(true, Ordering::SeqCst);
    pause(Duration::from_millis(50));
    let last =
        holder.drain().into_iter().rev().find(|words| words[0] == "deadline").expect("it has a deadline");
    let deadline = number(&last[1]);
    pause(Duration::from_millis(1_500));
    held.store(false, Ordering::SeqCst);
    let delivered = now();
    pause(Duration::from_millis(200));
    for words in holder.drain() {
        if words[0] == "guard" {
            let at = number(&words[1]);
            assert!(
                at < deadline || at >= delivered,
                "a guard between the deadline and the arrival of the answers"
            );
        }
        if words[0] == "deadline" {
            // An answer that was held back for 1.5 s at a ttl of 1 s says nothing about now: only what was sent lately counts.
            let (new, at) = (number(&words[1]), delivered);
            assert!(new <= now() + 900_000_000, "deadline {new} lies more than the usable ttl after {at}");
        }
    }
}
