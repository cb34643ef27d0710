//! Word to the service manager: it starts what depends on this service when that serves, and not before.
//!
//! One datagram to the socket that `NOTIFY_SOCKET` names. A manager that does not listen is no reason not to serve.

use std::ffi::OsStr;
use std::io;
use std::net::SocketAddr;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr as UnixAddress, UnixDatagram};

/// Names the socket.
pub(crate) const VARIABLE: &str = "NOTIFY_SOCKET";

/// It serves from now on.
pub(crate) fn ready(address: SocketAddr) {
    tell(&format!("READY=1\nSTATUS=serving on {address}\n"));
}

/// It was asked to stop.
pub(crate) fn stopping() {
    tell("STOPPING=1\nSTATUS=finishing what is under way\n");
}

fn tell(state: &str) {
    let Some(socket) = std::env::var_os(VARIABLE).filter(|socket| !socket.is_empty()) else { return };
    if let Err(error) = send(&socket, state.as_bytes()) {
        tracing::warn!("cannot tell the service manager at {}: {error}", socket.display());
    }
}

/// A path, or with an @ in front a name that no file system knows.
pub(crate) fn send(socket: &OsStr, state: &[u8]) -> io::Result<()> {
    let address = match socket.as_bytes().strip_prefix(b"@") {
        Some(name) => UnixAddress::from_abstract_name(name)?,
        None => UnixAddress::from_pathname(socket)?,
    };
    let unbound = UnixDatagram::unbound()?;
    // A manager that does not read must not hold up whoever tells it something.
    unbound.set_nonblocking(true)?;
    unbound.send_to_addr(state, &address).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(receiver: &UnixDatagram) -> String {
        let mut buffer = [0; 256];
        let length = receiver.recv(&mut buffer).unwrap();
        String::from_utf8(buffer[..length].to_vec()).unwrap()
    }

    #[test]
    fn a_path_and_an_abstract_name_are_reached() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("notify");
        let by_path = UnixDatagram::bind(&path).unwrap();
        send(path.as_os_str(), b"READY=1\n").unwrap();
        assert_eq!(heard(&by_path), "READY=1\n");

        let name = format!("leasehold-test-{}", std::process::id());
        let by_name = UnixDatagram::bind_addr(&UnixAddress::from_abstract_name(&name).unwrap()).unwrap();
        send(OsStr::new(&format!("@{name}")), b"STOPPING=1\n").unwrap();
        assert_eq!(heard(&by_name), "STOPPING=1\n");
    }

    #[test]
    fn nobody_there_is_an_error_and_no_more() {
        assert!(send(OsStr::new("/nowhere/at/all"), b"READY=1\n").is_err());
    }
}
