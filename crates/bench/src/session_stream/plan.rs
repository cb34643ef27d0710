//! What is measured: the cells of the table, and in which order they run.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// Who carries the messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Contender {
    /// Blocking sockets and threads: the floor.
    Raw,
    /// Length-prefixed frames on tokio.
    Framed,
    /// A bidirectional gRPC stream on tokio.
    Grpc,
}

/// The socket underneath.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Transport {
    /// A unix socket: embedded mode.
    Unix,
    /// TCP on loopback: the service, without the network.
    Tcp,
}

/// The tokio runtime of both processes; of no meaning to [`Contender::Raw`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Threads {
    /// One thread.
    Current,
    /// Two worker threads.
    Multi,
}

/// On which cores the two processes run.
///
/// Left alone, the scheduler puts a ping-pong now on one core, now on two, and the wake-up of an idle core costs
/// more than any carrier: a difference between carriers would drown in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Placement {
    /// Both on the first core: no wake-up of another core, the carrier's own path.
    Together,
    /// The server on the first core, the client on the second: as across machines.
    Apart,
    /// Wherever the scheduler likes.
    Free,
}

/// How sessions share connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Sharing {
    /// All sessions on one connection (gRPC: one stream each; frames: told apart by their session number).
    One,
    /// A connection for each session, as when each is a process of its own.
    Each,
}

/// What the client does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Work {
    /// One session sends one operation and waits for its answer, again and again.
    PingPong {
        /// Round trips measured, after a tenth of that to warm up.
        round_trips: u32,
    },
    /// Sessions send at a fixed rate, in turns of a millisecond, whether or not answers are there.
    Paced {
        /// Operations offered per second, over all sessions.
        ops_per_second: u32,
        /// Operations in each frame.
        ops_per_frame: u32,
        /// Sessions that share the rate.
        sessions: u32,
        /// Length of the measured time.
        length_ms: u32,
    },
}

/// One measurement: who, over what, doing what.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cell {
    /// Who carries the messages.
    pub contender: Contender,
    /// The socket underneath.
    pub transport: Transport,
    /// The runtime of both processes.
    pub threads: Threads,
    /// On which cores the two processes run.
    pub placement: Placement,
    /// How sessions share connections.
    pub sharing: Sharing,
    /// What the client does.
    pub work: Work,
}

impl Cell {
    /// Everything but the contender, for people.
    pub(crate) fn describe(&self) -> String {
        let work = match self.work {
            Work::PingPong { .. } => "ping-pong".to_owned(),
            Work::Paced { ops_per_second, ops_per_frame, sessions, .. } => {
                let rate = ops_per_second / 1_000;
                format!(
                    "{rate}k/s, {ops_per_frame} op/frame, {sessions} sessions, connection: {:?}",
                    self.sharing
                )
            }
        };
        format!("{:?}, {:?} thread, {:?}, {work}", self.transport, self.threads, self.placement)
            .to_lowercase()
    }
}

/// How much to measure.
#[derive(Clone, Debug, Serialize)]
pub struct Plan {
    /// Times each cell is measured.
    pub repeats: u32,
    /// Round trips of each ping-pong.
    pub round_trips: u32,
    /// Length of each paced run.
    pub paced_ms: u32,
    /// Only groups whose description contains this; empty for all.
    pub only: String,
}

/// The load at which the limit on processor time is stated.
const FULL_RATE: u32 = 100_000;

/// As much unbatched load as client and server carry on a core each: beyond it frames pile up, are sent
/// together after all, and look cheaper than they are. The cost is still stated for 100 000 operations.
const UNBATCHED_RATE: u32 = 30_000;

/// Few sessions that send much: several frames of each are there at once and share system calls.
const BUSY_SESSIONS: u32 = 16;

/// Many sessions that send little: nearly every frame arrives alone, and pays all its system calls itself.
const QUIET_SESSIONS: u32 = 400;

const ALL: &[Contender] = &[Contender::Raw, Contender::Framed, Contender::Grpc];
const ON_TOKIO: &[Contender] = &[Contender::Framed, Contender::Grpc];

impl Plan {
    /// The groups of the table; within a group the cells differ in nothing but the contender.
    pub(crate) fn groups(&self) -> Vec<Vec<Cell>> {
        use Placement::{Apart, Free, Together};
        use Sharing::{Each, One};
        use Threads::{Current, Multi};
        let ping_pong = Work::PingPong { round_trips: self.round_trips };
        let paced = |ops_per_second, sessions, ops_per_frame| Work::Paced {
            ops_per_second,
            ops_per_frame,
            sessions,
            length_ms: self.paced_ms,
        };
        let groups = [
            (ALL, Current, Together, Each, ping_pong),
            (ALL, Current, Apart, Each, ping_pong),
            (ALL, Current, Apart, Each, paced(FULL_RATE, BUSY_SESSIONS, 1)),
            (ALL, Current, Apart, Each, paced(FULL_RATE, BUSY_SESSIONS, 16)),
            (ALL, Current, Apart, One, paced(FULL_RATE, BUSY_SESSIONS, 1)),
            (ALL, Current, Apart, One, paced(FULL_RATE, BUSY_SESSIONS, 16)),
            // The floor is left out: two threads for each of so many connections would measure the scheduler.
            (ON_TOKIO, Current, Apart, Each, paced(UNBATCHED_RATE, QUIET_SESSIONS, 1)),
            (ON_TOKIO, Current, Apart, Each, paced(FULL_RATE, QUIET_SESSIONS, 1)),
            (ON_TOKIO, Multi, Free, Each, ping_pong),
            (ON_TOKIO, Multi, Free, Each, paced(FULL_RATE, BUSY_SESSIONS, 1)),
        ];
        let mut cells = Vec::new();
        for (contenders, threads, placement, sharing, work) in groups {
            for transport in [Transport::Unix, Transport::Tcp] {
                let cell = |&contender| Cell { contender, transport, threads, placement, sharing, work };
                let group: Vec<Cell> = contenders.iter().map(cell).collect();
                if group[0].describe().contains(&self.only) {
                    cells.push(group);
                }
            }
        }
        cells
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_of_a_group_differ_in_the_contender_alone() {
        let plan = Plan { repeats: 1, round_trips: 1, paced_ms: 1, only: String::new() };
        assert!(!plan.groups().is_empty());
        for group in plan.groups() {
            for cell in &group {
                assert_eq!(Cell { contender: group[0].contender, ..*cell }, group[0]);
            }
        }
    }
}
