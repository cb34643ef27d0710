//! A server made by hand, which falls silent when a test says so: the library must not wait for it for ever.

use std::fs::File;
use std::os::unix::net::UnixListener as StdListener;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use leasehold::core::answer::{Opened, Renewed};
use leasehold::core::protocol::{Query, ReadAnswer, Request, Response, Status, ToClient};
use leasehold::core::{CommandNumber, Drift, ItemNumber, Millis, Reply, Revision, SessionId};
use leasehold_wire::{Hello, OpeningReader, decode_client_frame, encode_opening, encode_server};
use rustix::fs::{FlockOperation, flock};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};

/// Holds the lock of a directory and answers opens, attaches, renewals and reads; commands it swallows.
pub(crate) struct Impostor {
    lock: File,
    /// Answers nothing any more, not even a hello, and hangs up on nobody.
    pub(crate) silent: Arc<AtomicBool>,
}

impl Impostor {
    pub(crate) fn new(path: &Path) -> Self {
        std::fs::create_dir_all(path).unwrap();
        let text = format!("leasehold     1 embedded founded=yes pid={:10}\n", std::process::id());
        std::fs::write(path.join("lock"), text).unwrap();
        let lock = File::open(path.join("lock")).unwrap();
        flock(&lock, FlockOperation::NonBlockingLockExclusive).unwrap();
        let listener = StdListener::bind(path.join("socket")).unwrap();
        listener.set_nonblocking(true).unwrap();
        let listener = UnixListener::from_std(listener).unwrap();
        let silent = Arc::new(AtomicBool::new(false));
        let is_silent = Arc::clone(&silent);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(talk(stream, Arc::clone(&is_silent)));
            }
        });
        Self { lock, silent }
    }

    pub(crate) fn fall_silent(&self) {
        self.silent.store(true, Ordering::SeqCst);
    }

    /// Still the one that holds the lock.
    pub(crate) fn holds_the_lock(&self) -> bool {
        self.lock.metadata().is_ok()
    }
}

async fn talk(mut stream: UnixStream, silent: Arc<AtomicBool>) {
    let quiet = || silent.load(Ordering::SeqCst);
    let mut bytes = Vec::new();
    let mut opening = OpeningReader::new();
    let mut buffer = vec![0; 65_536];
    while !quiet() && opening.hello().unwrap().is_none() {
        let count = stream.read(&mut buffer).await.unwrap();
        opening.push(&buffer[..count]);
    }
    if quiet() {
        return std::future::pending().await;
    }
    encode_opening(&Hello::new("impostor", std::process::id(), ""), &mut bytes).unwrap();
    let mut frames = opening.into_frames().unwrap();
    loop {
        while let Some(frame) = frames.next_frame().unwrap() {
            for (id, request) in decode_client_frame(frame).unwrap() {
                if let Some(response) = answer(request.unwrap()).filter(|_| !quiet()) {
                    encode_server(&[ToClient::Response { id, response }], &mut bytes).unwrap();
                }
            }
        }
        if stream.write_all(&bytes).await.is_err() {
            return;
        }
        bytes.clear();
        match stream.read(&mut buffer).await {
            Ok(0) | Err(_) => return,
            Ok(count) => frames.push(&buffer[..count]),
        }
    }
}

fn answer(request: Request) -> Option<Response> {
    let reply = match request {
        Request::Open(open) => Reply::Opened(Opened {
            session: SessionId::from_u64(1),
            ttl: open.ttl,
            drift: Drift::default(),
            repeated: false,
        }),
        Request::Attach { .. } => {
            Reply::Attached { last_command: CommandNumber::NONE, last_item: ItemNumber::NONE }
        }
        Request::Renew { number, .. } => {
            Reply::Renewed(Renewed { number, after: ItemNumber::NONE, holdings: None })
        }
        Request::Read(Query::Status) => {
            let status = Status {
                version: "0".into(),
                pid: std::process::id(),
                sessions: 1,
                resources: 0,
                applied: 1,
                log_time: Millis::ZERO,
                cut: Millis::ZERO,
            };
            let answer = ReadAnswer::Status(status);
            return Some(Response::Read { revision: Revision::new(1), answer });
        }
        _ => return None,
    };
    Some(Response::Reply(reply))
}
