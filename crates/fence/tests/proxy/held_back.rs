//! Bytes that were sent and are held back on the way, by a wire between two parties that can be stopped.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use leasehold_fence::http::Proxy;
use leasehold_fence::proxy::Settings;
use leasehold_fence::{Outcome, Receiver};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::proxy::stage::{Serving, Store, eventually, highest, stamp, write};

/// A wire to an address. While it is stopped, what was sent into it stays in it, also when the sender goes away.
struct Wire {
    address: SocketAddr,
    stopped: Arc<AtomicBool>,
    taken: Arc<AtomicBool>,
}

impl Wire {
    async fn to(target: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stopped, taken) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let wire = Self { address, stopped: Arc::clone(&stopped), taken: Arc::clone(&taken) };
        tokio::spawn(async move {
            loop {
                let (from, _) = listener.accept().await.unwrap();
                let to = TcpStream::connect(target).await.unwrap();
                let ((from_read, from_write), (to_read, to_write)) = (from.into_split(), to.into_split());
                let (stopped, taken) = (Arc::clone(&stopped), Arc::clone(&taken));
                tokio::spawn(carry(from_read, to_write, Some((stopped, taken))));
                tokio::spawn(carry(to_read, from_write, None));
            }
        });
        wire
    }

    fn stop(&self) {
        self.taken.store(false, Ordering::SeqCst);
        self.stopped.store(true, Ordering::SeqCst);
    }

    fn go_on(&self) {
        self.stopped.store(false, Ordering::SeqCst);
    }

    /// Waits until something is held back in it.
    async fn has_something(&self) {
        eventually("something is in the wire", || self.taken.load(Ordering::SeqCst)).await;
    }
}

async fn carry(
    mut from: tokio::net::tcp::OwnedReadHalf,
    mut to: tokio::net::tcp::OwnedWriteHalf,
    held: Option<(Arc<AtomicBool>, Arc<AtomicBool>)>,
) {
    let mut buffer = [0; 4096];
    while let Ok(read @ 1..) = from.read(&mut buffer).await {
        if let Some((stopped, taken)) = &held {
            taken.store(true, Ordering::SeqCst);
            while stopped.load(Ordering::SeqCst) {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        }
        if to.write_all(&buffer[..read]).await.is_err() {
            return;
        }
    }
    // The end of a connection travels no faster than what was sent on it, and may be lost. A store that hears of it in time may well drop
    // the request, as this one would; that is luck and no promise.
    tokio::time::sleep(Duration::from_secs(1)).await;
}

fn address(url: &str) -> SocketAddr {
    url.strip_prefix("http://").unwrap().parse().unwrap()
}

/// Between the old holder and the proxy: what counts is when it arrives.
#[tokio::test]
async fn a_write_that_was_sent_before_the_seal_and_arrives_after_it_is_refused() {
    let store = Store::default();
    let directory = tempfile::tempdir().unwrap();
    let serving = Serving::start(Settings::new(store.serve().await, directory.path())).await;
    let wire = Wire::to(serving.address).await;
    let old = Proxy::new(&format!("http://{}", wire.address)).unwrap();
    assert_eq!(write(&old, 33, "/append/a", "one").await.unwrap(), 201);
    wire.stop();
    let late = tokio::spawn(async move { write(&old, 33, "/append/a", "late").await });
    wire.has_something().await;
    let new = serving.proxy();
    new.seal(&stamp(34)).await.unwrap();
    assert_eq!(write(&new, 34, "/append/a", "new").await.unwrap(), 201);
    wire.go_on();
    assert_eq!(highest(late.await.unwrap()), Some(34));
    assert_eq!(store.order(), [(33, "one".to_owned()), (34, "new".to_owned())]);
}

/// Between the proxy and the store: the new holder waits until the old write is answered.
#[tokio::test]
async fn a_write_that_is_on_its_way_to_the_store_is_waited_for() {
    let store = Store::default();
    let directory = tempfile::tempdir().unwrap();
    let wire = Wire::to(address(&store.serve().await)).await;
    let serving = Serving::start(Settings::new(format!("http://{}", wire.address), directory.path())).await;
    let proxy = serving.proxy();
    wire.stop();
    let old = tokio::spawn({
        let proxy = proxy.clone();
        async move { write(&proxy, 33, "/append/a", "old").await }
    });
    wire.has_something().await;
    let new = tokio::spawn(async move {
        proxy.seal(&stamp(34)).await.unwrap();
        write(&proxy, 34, "/append/a", "new").await
    });
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(!new.is_finished(), "nobody has heard of the old one yet");
    wire.go_on();
    assert_eq!(old.await.unwrap().unwrap(), 201);
    assert_eq!(new.await.unwrap().unwrap(), 201);
    assert_eq!(store.order(), [(33, "old".to_owned()), (34, "new".to_owned())]);
}

/// The same for longer than the time-out. What the network still has cannot be called back: this is what a proxy cannot do.
#[tokio::test]
async fn not_covered_bytes_that_the_network_delivers_after_they_were_given_up() {
    let store = Store::default();
    let directory = tempfile::tempdir().unwrap();
    let upstream = store.serve().await;
    let wire = Wire::to(address(&upstream)).await;
    let settings = Settings {
        timeout: Duration::from_secs(3),
        ..Settings::new(format!("http://{}", wire.address), directory.path())
    };
    let serving = Serving::start(settings).await;
    wire.stop();
    let old = write(&serving.proxy(), 33, "/held/old", "").await.unwrap_err();
    assert_eq!(old.outcome(), Outcome::Unknown, "the holder was told the truth");
    serving.proxy().seal(&stamp(34)).await.unwrap();
    wire.go_on();
    eventually("it arrives late", || store.log().len() == 1).await;
    assert_eq!(write(&serving.proxy(), 34, "/append/a", "new").await.unwrap(), 201);
    assert_eq!(
        store.order()[0],
        (33, "old".to_owned()),
        "taken after the seal of 34: this is the corruption"
    );
}
