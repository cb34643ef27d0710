//! Something between clients and a service that delays, swallows and cuts.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// A proxy in front of a service. It lives as long as the test process.
pub(crate) struct Proxy {
    address: SocketAddr,
    mood: Arc<Mood>,
}

/// What happens to everything that comes by.
#[derive(Default)]
struct Mood {
    /// Answers wait.
    holds: AtomicBool,
    /// Answers are lost.
    swallows: AtomicBool,
    lines: Mutex<Vec<Arc<Line>>>,
}

/// One connection through the proxy.
struct Line {
    client: TcpStream,
    server: TcpStream,
    /// Neither side hears anything of the other any more, and neither is told.
    dead: AtomicBool,
}

impl Proxy {
    /// A service that is reached through it alone: it names no other address to its clients.
    pub(crate) fn in_front(start: impl FnOnce(&str) -> SocketAddr) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let (address, mood) = (listener.local_addr().unwrap(), Arc::new(Mood::default()));
        let proxy = Self { address, mood: Arc::clone(&mood) };
        let service = start(&address.to_string());
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                // A service that is away refuses its clients, and so does this.
                let Ok(server) = TcpStream::connect(service) else { continue };
                for stream in [&client, &server] {
                    stream.set_nodelay(true).unwrap();
                }
                let line = Arc::new(Line { client, server, dead: AtomicBool::new(false) });
                mood.lines().push(Arc::clone(&line));
                line.carry(&mood);
            }
        });
        proxy
    }

    pub(crate) fn url(&self) -> String {
        format!("leasehold://{}", self.address)
    }

    /// From now on answers wait, or do not wait any more.
    pub(crate) fn hold_answers(&self, hold: bool) {
        self.mood.holds.store(hold, Ordering::SeqCst);
    }

    /// From now on requests arrive and their answers do not; or everything arrives again.
    pub(crate) fn swallow_answers(&self, swallow: bool) {
        self.mood.swallows.store(swallow, Ordering::SeqCst);
    }

    /// Ends every connection there is. Gives how many there were.
    pub(crate) fn cut(&self) -> usize {
        let lines = std::mem::take(&mut *self.mood.lines());
        for line in &lines {
            line.end();
        }
        lines.len()
    }

    /// Every connection there is looks alive to both sides and carries nothing. New ones are good.
    pub(crate) fn deaden(&self) -> usize {
        let lines = self.mood.lines();
        for line in lines.iter() {
            line.dead.store(true, Ordering::SeqCst);
        }
        lines.len()
    }
}

impl Mood {
    fn lines(&self) -> std::sync::MutexGuard<'_, Vec<Arc<Line>>> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Line {
    fn carry(self: &Arc<Self>, mood: &Arc<Mood>) {
        let line = Arc::clone(self);
        std::thread::spawn(move || line.copy(&line.client, &line.server, None));
        let (line, mood) = (Arc::clone(self), Arc::clone(mood));
        std::thread::spawn(move || line.copy(&line.server, &line.client, Some(&mood)));
    }

    /// Copies in one direction; answers as the mood is.
    fn copy(&self, mut from: &TcpStream, mut to: &TcpStream, mood: Option<&Mood>) {
        let mut buffer = [0; 65_536];
        while let Ok(count @ 1..) = from.read(&mut buffer) {
            while mood.is_some_and(|mood| mood.holds.load(Ordering::SeqCst)) {
                std::thread::sleep(Duration::from_millis(1));
            }
            let lost = mood.is_some_and(|mood| mood.swallows.load(Ordering::SeqCst));
            if lost || self.dead.load(Ordering::SeqCst) {
                continue;
            }
            if to.write_all(&buffer[..count]).is_err() {
                break;
            }
        }
        if !self.dead.load(Ordering::SeqCst) {
            self.end();
        }
    }

    fn end(&self) {
        // Either side may have ended it already.
        let _ = self.client.shutdown(Shutdown::Both);
        let _ = self.server.shutdown(Shutdown::Both);
    }
}
