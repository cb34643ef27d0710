//! Programs without a runtime, and those that block the one they have.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use leasehold::blocking::{self, Store, wait};
use leasehold::fence::{Answer, Error as FenceError, Receiver, Seen, Stamp};
use leasehold::{Drain, Error, SessionOptions, Termination};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufStream};
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::Mutex;

const MOMENT: Duration = Duration::from_millis(50);

/// A receiver with one connection, which belongs to the runtime that it was made in, as those of a pool do.
#[derive(Debug)]
struct Connected(Mutex<BufStream<TcpStream>>);

impl Connected {
    async fn to(server: SocketAddr) -> Arc<Self> {
        Arc::new(Self(Mutex::new(BufStream::new(TcpStream::connect(server).await.unwrap()))))
    }
}

impl Receiver for Connected {
    fn place(&self) -> &str {
        "connected"
    }

    fn seal<'a>(&'a self, stamp: &'a Stamp) -> Answer<'a, ()> {
        Box::pin(async move {
            let failed = |error| FenceError::failed("connected", error);
            let mut stream = self.0.lock().await;
            stream.write_all(format!("{}\n", stamp.token()).as_bytes()).await.map_err(failed)?;
            stream.flush().await.map_err(failed)?;
            stream.read_line(&mut String::new()).await.map(drop).map_err(failed)
        })
    }

    fn look<'a>(&'a self, _: &'a str) -> Answer<'a, Seen> {
        Box::pin(async { Ok(Seen::default()) })
    }
}

/// Sends back every line.
fn server() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let stream = stream.unwrap();
            std::thread::spawn(move || {
                let mut writer = stream.try_clone().unwrap();
                for line in BufReader::new(stream).lines() {
                    let Ok(()) = writeln!(writer, "{}", line.unwrap_or_default()) else { return };
                }
            });
        }
    });
    address
}

fn store() -> (TempDir, Store) {
    let directory = TempDir::new().unwrap();
    let store = Store::connect(&format!("dir:{}", directory.path().display())).unwrap();
    (directory, store)
}

fn current_thread() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

fn acquired(store: &Store, receiver: Arc<Connected>) -> Result<(), Error> {
    let options = SessionOptions::new().ttl(Duration::from_secs(1)).seal_at(receiver);
    let session = store.session_with(&options)?;
    wait(session.acquire("job").into_future())?;
    wait(session.close())
}

#[test]
fn a_connection_of_a_runtime_that_is_blocked_cannot_be_sealed_and_the_error_says_what_to_do() {
    let ((_directory, store), server) = (store(), server());
    let runtime = current_thread();
    // The answer is waited for once, so that the connection is known to the runtime that made it.
    let receiver = runtime.block_on(async {
        let receiver = Connected::to(server).await;
        receiver.seal(&Stamp::new("job", 1).unwrap()).await.unwrap();
        receiver
    });
    let inside = runtime.block_on(async { acquired(&store, Arc::clone(&receiver)) });
    let outside = acquired(&store, receiver);
    for refused in [inside.unwrap_err(), outside.unwrap_err()] {
        assert!(matches!(refused, Error::NotSealed { .. }), "{refused:?}");
        let said = refused.to_string();
        assert!(said.contains("make them in leasehold::blocking::run, or acquire with .await"), "{said}");
    }
    store.close();
}

#[test]
fn a_connection_that_was_made_by_the_library_is_sealed_whoever_blocks() {
    let ((_directory, store), server) = (store(), server());
    let receiver = blocking::run(Connected::to(server)).unwrap();
    acquired(&store, Arc::clone(&receiver)).unwrap();
    current_thread().block_on(async { acquired(&store, Arc::clone(&receiver)) }).unwrap();
    let threads = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    threads.block_on(async { acquired(&store, receiver) }).unwrap();
    store.close();
}

#[test]
fn the_thread_of_the_library_does_not_wait_for_itself() {
    let nested = blocking::run(async { blocking::run(async { 1 }) }).unwrap();
    let said = nested.unwrap_err().to_string();
    assert!(said.contains("would wait for itself; use .await there"), "{said}");
}

/// Resigns, drains and waits for the end of a lease: all of them sleep in between.
fn gives_back_in_every_way(store: &Store) {
    let session = store.session().unwrap();
    let lease = wait(session.acquire("job").into_future()).unwrap();
    assert_eq!(wait(lease.resign(MOMENT)).unwrap().successor, None);
    let lease = wait(session.acquire("job").into_future()).unwrap();
    let (drain, other) = (Drain::new(), Drain::new());
    let work = drain.begin().unwrap();
    let unfinished = wait(drain.run(&lease, MOMENT)).unwrap_err();
    assert!(matches!(unfinished, Error::Unfinished { .. }), "{unfinished}");
    drop(work);
    assert_eq!(wait(other.run(&lease, MOMENT)).unwrap().successor, None);
    wait(session.close()).unwrap();
}

#[test]
fn a_program_without_a_runtime_resigns_and_drains() {
    let (_directory, store) = store();
    gives_back_in_every_way(&store);
    Termination::listen(Duration::from_secs(30), Duration::from_secs(1)).unwrap();
    store.close();
}

#[test]
fn so_does_one_that_blocks_its_runtime() {
    let (_directory, store) = store();
    current_thread().block_on(async { gives_back_in_every_way(&store) });
    store.close();
}
