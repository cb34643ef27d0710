//! An answer that comes later than the ttl: a proxy on the socket holds it back.

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::proxied::late_answers;
use super::stage::{PATIENCE, Place, beside_others};

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
    let _beside = beside_others();
    let place = Place::new();
    let server = place.worker("idle", &[]);
    server.wait_for("connected", PATIENCE).expect("the server starts");
    let held = Arc::new(AtomicBool::new(false));
    proxy(&place, &held);
    late_answers(&place.url(), |hold| held.store(hold, Ordering::SeqCst));
}
