//! Ports that stay free while a server is down.
//!
//! A port that the kernel hands out may be handed out again between death and restart, to any connection of any program. Ports below
//! that range are taken by servers only.

use std::net::{Ipv4Addr, TcpListener};
use std::sync::atomic::{AtomicU16, Ordering};

use anyhow::{Context, Result};

/// Below the range that Linux takes for outgoing connections, which begins at 32768, and above most ports that are known by number.
const FIRST: u16 = 20_000;
const COUNT: u16 = 12_000;

/// A port on 127.0.0.1 that nobody listens on, another one each time.
pub(crate) fn free() -> Result<u16> {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    // Other test processes look too: each begins elsewhere.
    let begin = std::process::id().wrapping_mul(31) % u32::from(COUNT);
    let candidates = (0..COUNT).map(|_| {
        let place = (begin + u32::from(NEXT.fetch_add(1, Ordering::Relaxed))) % u32::from(COUNT);
        FIRST + u16::try_from(place).expect("it is below COUNT")
    });
    let mut free = candidates.filter(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok());
    free.next().with_context(|| format!("no port from {FIRST} to {} is free", FIRST + COUNT - 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_port_is_given_twice() {
        let (one, other) = (free().unwrap(), free().unwrap());
        assert_ne!(one, other);
        assert!((FIRST..FIRST + COUNT).contains(&one));
    }
}
