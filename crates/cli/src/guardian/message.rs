//! What wrapper and guardian say to each other: orders one way, reports the other.
//!
//! One message is one packet of a SOCK_SEQPACKET pair, at most [`LONGEST`] bytes: a tag, then numbers in little
//! endian. Both ends are the same binary on the same machine, so there is no version and no compatibility: a
//! packet that cannot be read is a bug, reported as `None` and never guessed at.

use std::time::Duration;

use super::clock::Point;

/// No message is longer. A packet that is longer was not written by us.
pub const LONGEST: usize = 32;

/// What the wrapper tells the guardian.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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

impl Order {
    /// The packet for this order.
    pub fn encode(self) -> Vec<u8> {
        match self {
            Self::Start(point) => with_point(1, point),
            Self::Deadline(point) => with_point(2, point),
            Self::Signal(signal) => with_number(3, signal),
            Self::Terminate(signal) => with_number(4, signal),
            Self::Kill => vec![5],
            Self::Doubt => vec![6],
        }
    }

    /// The order in this packet.
    pub fn decode(packet: &[u8]) -> Option<Self> {
        let (tag, body) = packet.split_first()?;
        match tag {
            1 => Some(Self::Start(point(body)?)),
            2 => Some(Self::Deadline(point(body)?)),
            3 => Some(Self::Signal(number(body)?)),
            4 => Some(Self::Terminate(number(body)?)),
            5 if body.is_empty() => Some(Self::Kill),
            6 if body.is_empty() => Some(Self::Doubt),
            _ => None,
        }
    }
}

impl Report {
    /// The packet for this report.
    pub fn encode(self) -> Vec<u8> {
        match self {
            Self::Started(pid) => with_number(1, pid),
            Self::FailedToStart(errno) => with_number(2, errno),
            Self::Stopped(signal) => with_number(3, signal),
            Self::Continued => vec![4],
            Self::Terminating(cause) => vec![5, cause_tag(cause)],
            Self::Killing(cause) => vec![6, cause_tag(cause)],
            Self::Exited(Ending::Code(code)) => with_number(7, code),
            Self::Exited(Ending::Signal(signal)) => with_number(8, signal),
            Self::AllGone => vec![9],
            Self::Frozen => vec![10],
            Self::Thawed => vec![11],
        }
    }

    /// The report in this packet.
    pub fn decode(packet: &[u8]) -> Option<Self> {
        let (tag, body) = packet.split_first()?;
        match (tag, body) {
            (1, _) => Some(Self::Started(number(body)?)),
            (2, _) => Some(Self::FailedToStart(number(body)?)),
            (3, _) => Some(Self::Stopped(number(body)?)),
            (4, []) => Some(Self::Continued),
            (5, [tag]) => Some(Self::Terminating(cause(*tag)?)),
            (6, [tag]) => Some(Self::Killing(cause(*tag)?)),
            (7, _) => Some(Self::Exited(Ending::Code(number(body)?))),
            (8, _) => Some(Self::Exited(Ending::Signal(number(body)?))),
            (9, []) => Some(Self::AllGone),
            (10, []) => Some(Self::Frozen),
            (11, []) => Some(Self::Thawed),
            _ => None,
        }
    }
}

fn with_point(tag: u8, point: Point) -> Vec<u8> {
    let mut packet = vec![tag];
    packet.extend(nanoseconds(point.boot()).to_le_bytes());
    packet.extend(nanoseconds(point.raw()).to_le_bytes());
    packet
}

fn with_number(tag: u8, number: i32) -> Vec<u8> {
    let mut packet = vec![tag];
    packet.extend(number.to_le_bytes());
    packet
}

/// A reading beyond 584 years of uptime is cut to that.
fn nanoseconds(reading: Duration) -> u64 {
    u64::try_from(reading.as_nanos()).unwrap_or(u64::MAX)
}

fn point(body: &[u8]) -> Option<Point> {
    let (boot, raw) = body.split_first_chunk::<8>()?;
    let raw: &[u8; 8] = raw.try_into().ok()?;
    Some(Point::new(
        Duration::from_nanos(u64::from_le_bytes(*boot)),
        Duration::from_nanos(u64::from_le_bytes(*raw)),
    ))
}

fn number(body: &[u8]) -> Option<i32> {
    Some(i32::from_le_bytes(body.try_into().ok()?))
}

fn cause_tag(cause: Cause) -> u8 {
    match cause {
        Cause::Deadline => 1,
        Cause::WrapperGone => 2,
        Cause::Order => 3,
        Cause::TooSlow => 4,
    }
}

fn cause(tag: u8) -> Option<Cause> {
    match tag {
        1 => Some(Cause::Deadline),
        2 => Some(Cause::WrapperGone),
        3 => Some(Cause::Order),
        4 => Some(Cause::TooSlow),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_order_reads_back_as_written_and_never_when_cut() {
        let point = Point::new(Duration::from_nanos(1), Duration::from_nanos(u64::MAX));
        for order in [
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
            assert_eq!(Report::decode(&packet), Some(report));
            assert_eq!(Report::decode(&packet[..packet.len() - 1]), None);
        }
    }
}
