//! Something between a replica and the service that loses requests.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use anyhow::{Context as _, Result};

use crate::deploys::now;

/// A proxy in front of a service. It lives as long as the process.
#[derive(Debug)]
pub struct Proxy {
    address: String,
    losing: Arc<Losing>,
}

/// Which requests are lost.
#[derive(Debug)]
struct Losing {
    /// Those that name this.
    name: String,
    /// From this reading on.
    from: AtomicU64,
    /// So many more.
    left: AtomicU32,
}

impl Proxy {
    /// Loses the first `count` requests for `name` that come after the moment that [`lose_from`](Self::lose_from) names.
    ///
    /// # Errors
    /// When no port is free.
    pub fn start(service: &str, name: &str, count: u32) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("no port for a proxy")?;
        let address = listener.local_addr().context("a port has an address")?.to_string();
        let losing =
            Losing { name: name.to_owned(), from: AtomicU64::new(u64::MAX), left: AtomicU32::new(count) };
        let losing = Arc::new(losing);
        let (service, shared) = (service.to_owned(), Arc::clone(&losing));
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let Ok(server) = TcpStream::connect(&service) else { continue };
                let _ = (client.set_nodelay(true), server.set_nodelay(true));
                let (Ok(back), Ok(home)) = (server.try_clone(), client.try_clone()) else { continue };
                let losing = Arc::clone(&shared);
                std::thread::spawn(move || copy(client, server, Some(&losing)));
                std::thread::spawn(move || copy(back, home, None));
            }
        });
        Ok(Self { address, losing })
    }

    /// How a program is told of it.
    pub fn url(&self) -> String {
        format!("leasehold://{}", self.address)
    }

    /// From this reading of CLOCK_BOOTTIME on.
    pub fn lose_from(&self, reading: u64) {
        self.losing.from.store(reading, Ordering::SeqCst);
    }
}

impl Losing {
    /// Whether what comes by is lost: it names what is asked for, and its time has come.
    fn loses(&self, bytes: &[u8]) -> bool {
        let named = bytes.windows(self.name.len()).any(|window| window == self.name.as_bytes());
        let less = |left: u32| left.checked_sub(1);
        named
            && now() >= self.from.load(Ordering::SeqCst)
            && self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, less).is_ok()
    }
}

/// Copies in one direction. Behind a request that was lost nothing of that connection arrives any more.
fn copy(mut from: TcpStream, mut to: TcpStream, losing: Option<&Losing>) {
    let mut buffer = [0; 65_536];
    let mut lost = false;
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        lost |= losing.is_some_and(|losing| losing.loses(&buffer[..count]));
        if !lost && to.write_all(&buffer[..count]).is_err() {
            break;
        }
    }
    // Either side may have ended it already.
    let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}
