//! What wrapper and guardian say to each other: orders one way, reports the other.
//!
//! One message is one packet of a SOCK_SEQPACKET pair, at most [`LONGEST`] bytes of JSON. Both ends are the same
//! binary on the same machine, so there is no version and no compatibility: a packet that cannot be read is a
//! bug, reported as `None` and never guessed at.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::clock::Point;

/// No message is longer. A packet that is longer was not written by us.
pub const LONGEST: usize = 160;

/// What the wrapper tells the guardian.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Order {
    /// Start the command now, with this deadline. The packet carries its stdin, stdout and stderr.
    Start(Point),
    /// The lease is confirmed up to this moment.
    Deadline(Point),
    /// Pass this signal to the command's process group.
    Signal(i32),
    /// Send this signal to every descendant, and wake those that are stopped.
    Terminate(i32),
    /// Kill every descendant now.
    Kill,
    /// Whether the lease is held cannot be said until a later deadline comes.
    Doubt,
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ending {
    /// It called exit with this code.
    Code(i32),
    /// This signal ended it.
    Signal(i32),
}

impl Ending {
    /// The exit code a shell would show for it.
    pub fn exit_code(self) -> i32 {
        match self {
            Self::Code(code) => code,
            Self::Signal(signal) => 128 + signal,
        }
    }
}

/// Why the command is being ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Cause {
    /// The deadline is near.
    Deadline,
    /// The wrapper is gone.
    WrapperGone,
    /// The wrapper asked for it.
    Order,
    /// It was asked to end and took too long.
    TooSlow,
}

/// What the guardian tells the wrapper.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Report {
    /// The command runs, as this process and process group.
    Started(i32),
    /// The command could not be started; the operating system's error number says why.
    FailedToStart(i32),
    /// This signal stopped the command.
    Stopped(i32),
    /// The command runs again.
    Continued,
    /// Every descendant was stopped by the guardian, because the lease is in doubt.
    Frozen,
    /// Those that were stopped so run again.
    Thawed,
    /// SIGTERM, or the signal ordered, went to every descendant.
    Terminating(Cause),
    /// SIGKILL goes to every descendant until none is left.
    Killing(Cause),
    /// The command ended; descendants of it may still be there.
    Exited(Ending),
    /// The command and every descendant are gone and reaped.
    AllGone,
}

/// What is sent as one packet.
pub trait Message: Serialize + DeserializeOwned {
    /// The packet for this message.
    fn encode(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("numbers and words are JSON, and memory takes all of it")
    }

    /// The message in this packet.
    fn decode(packet: &[u8]) -> Option<Self> {
        serde_json::from_slice(packet).ok()
    }
}

impl Message for Order {}
impl Message for Report {}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn every_order_reads_back_as_written_and_never_when_cut() {
        let point = Point::new(Duration::from_nanos(1), Duration::MAX);
        for order in [
            Order::Start(Point::new(Duration::MAX, Duration::MAX)),
            Order::Deadline(Point::new(Duration::MAX, Duration::MAX)),
            Order::Start(point),
            Order::Deadline(point),
            Order::Signal(15),
            Order::Terminate(2),
            Order::Kill,
            Order::Doubt,
        ] {
            let packet = order.encode();
            assert!(packet.len() <= LONGEST);
            assert_eq!(Order::decode(&packet), Some(order));
            assert_eq!(Order::decode(&packet[..packet.len() - 1]), None);
        }
    }

    #[test]
    fn every_report_reads_back_as_written_and_never_when_cut() {
        for report in [
            Report::Started(77),
            Report::FailedToStart(2),
            Report::Stopped(20),
            Report::Continued,
            Report::Terminating(Cause::Deadline),
            Report::Killing(Cause::WrapperGone),
            Report::Killing(Cause::Order),
            Report::Killing(Cause::TooSlow),
            Report::Frozen,
            Report::Thawed,
            Report::Exited(Ending::Code(3)),
            Report::Exited(Ending::Signal(9)),
            Report::AllGone,
        ] {
            let packet = report.encode();
            assert!(packet.len() <= LONGEST);
            assert_eq!(Report::decode(&packet), Some(report));
            assert_eq!(Report::decode(&packet[..packet.len() - 1]), None);
        }
    }
}
