//! The pair of sockets between wrapper and guardian.
//!
//! SOCK_SEQPACKET: one send is one packet, and the end of the other process is the end of the stream. Both
//! ends are close-on-exec, so the command holds neither and the end really arrives. Nothing here ever
//! blocks: the one end must keep its deadlines while the other is stopped with a full buffer.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, Shutdown, SocketFlags, SocketType, recvmsg, sendmsg, shutdown,
    socketpair,
};

use super::message::LONGEST;

/// The command's stdin, stdout and stderr travel together.
pub const STANDARD_STREAMS: usize = 3;

/// One end of the pair.
#[derive(Debug)]
pub struct Link(OwnedFd);

/// What a look at the link gave.
#[derive(Debug)]
pub enum Received {
    /// One packet, with the file descriptors it carried.
    Packet(Vec<u8>, Vec<OwnedFd>),
    /// Nothing more for now.
    Nothing,
    /// The other end is gone, or will say nothing more.
    End,
}

/// What became of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sent {
    /// The other end will read it.
    Yes,
    /// The other end is not reading; nothing was sent.
    Full,
    /// The other end is gone.
    Gone,
}

impl Link {
    /// Two connected ends.
    pub fn pair() -> Result<(Self, Self), Errno> {
        let (a, b) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
        Ok((Self(a), Self(b)))
    }

    /// The end that is already open as `fd`, through a copy that is closed on exec.
    pub fn from_inherited(fd: BorrowedFd<'_>) -> Result<Self, Errno> {
        // 3 keeps the copy away from the standard streams.
        rustix::io::fcntl_dupfd_cloexec(fd, 3).map(Self)
    }

    /// Gives up the end as a plain descriptor.
    pub fn into_fd(self) -> OwnedFd {
        self.0
    }

    /// Sends one packet, without waiting.
    pub fn send(&self, packet: &[u8], streams: Option<[BorrowedFd<'_>; STANDARD_STREAMS]>) -> Sent {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(STANDARD_STREAMS))];
        let mut carried = SendAncillaryBuffer::new(&mut space);
        if let Some(streams) = &streams {
            let fits = carried.push(SendAncillaryMessage::ScmRights(streams));
            assert!(fits, "the space was measured for exactly these descriptors");
        }
        loop {
            let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
            match sendmsg(&self.0, &[IoSlice::new(packet)], &mut carried, flags) {
                Ok(_) => return Sent::Yes,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN | Errno::NOBUFS | Errno::NOMEM) => return Sent::Full,
                Err(_) => return Sent::Gone,
            }
        }
    }

    /// Takes one packet, without waiting.
    pub fn receive(&self) -> Received {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(STANDARD_STREAMS))];
        let mut carried = RecvAncillaryBuffer::new(&mut space);
        let mut packet = [0_u8; LONGEST];
        loop {
            let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
            match recvmsg(&self.0, &mut [IoSliceMut::new(&mut packet)], &mut carried, flags) {
                Ok(message) if message.bytes == 0 => return Received::End,
                Ok(message) => {
                    let fds = carried.drain().filter_map(rights).flatten().collect();
                    return Received::Packet(packet[..message.bytes].to_vec(), fds);
                }
                // Said once when the other end went without having read everything; what it sent before
                // that is still to be read.
                Err(Errno::INTR | Errno::CONNRESET) => {}
                Err(Errno::AGAIN) => return Received::Nothing,
                Err(_) => return Received::End,
            }
        }
    }

    /// Says that nothing more will be sent: the other end sees the end, while this one can still read.
    pub fn finish(&self) {
        // It fails only when the other end is gone, which is the same outcome.
        let _ = shutdown(&self.0, Shutdown::Write);
    }
}

impl AsFd for Link {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

fn rights<'a>(message: RecvAncillaryMessage<'a>) -> Option<impl Iterator<Item = OwnedFd> + 'a> {
    match message {
        RecvAncillaryMessage::ScmRights(fds) => Some(fds),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_keep_their_bounds_and_their_descriptors() {
        let (a, b) = Link::pair().unwrap();
        let fd = a.as_fd();
        assert_eq!(a.send(b"one", Some([fd, fd, fd])), Sent::Yes);
        assert_eq!(a.send(b"two", None), Sent::Yes);
        assert!(matches!(b.receive(), Received::Packet(p, fds) if p == b"one" && fds.len() == 3));
        assert!(matches!(b.receive(), Received::Packet(p, fds) if p == b"two" && fds.is_empty()));
        assert!(matches!(b.receive(), Received::Nothing));
    }

    #[test]
    fn what_was_sent_before_the_end_is_read_even_when_the_other_side_left_packets_unread() {
        let (a, b) = Link::pair().unwrap();
        assert_eq!(b.send(b"never read", None), Sent::Yes);
        assert_eq!(a.send(b"last words", None), Sent::Yes);
        drop(a);
        assert!(matches!(b.receive(), Received::Packet(p, _) if p == b"last words"));
        assert!(matches!(b.receive(), Received::End));
        assert_eq!(b.send(b"too late", None), Sent::Gone);
    }

    #[test]
    fn a_reader_that_does_not_read_makes_the_link_full_not_stuck() {
        let (a, _b) = Link::pair().unwrap();
        let outcome = (0..100_000).map(|_| a.send(b"x", None)).find(|sent| *sent != Sent::Yes);
        assert_eq!(outcome, Some(Sent::Full));
    }
}
