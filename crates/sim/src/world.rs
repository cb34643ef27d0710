//! The world: nodes, clients and receivers, what lies between them, and the one loop that moves true time.
//!
//! Every machine runs the real code: nodes are `leasehold_node` over `leasehold_wal` on a disk in memory, clients are the session machine
//! with its scheduler. What stands between them here takes the place of the drivers, and does what they do: it takes in all that has arrived, reads the
//! clocks, takes one turn, and carries out what comes of it.

mod app;
mod clients;
mod connections;
mod dialling;
mod disk;
mod faults;
mod instants;
mod nodes;
mod notes;
mod operators;
mod peers;
mod plain;
mod process;
mod receivers;
mod wire;

use leasehold_core::protocol::{MemberId, Request, RequestId, Response, ToClient};
use leasehold_node::PeerMessage;
use leasehold_node::payload::SnapshotImage;

use crate::plan::Plan;
use crate::queue::Queue;
use crate::random::Random;
use crate::record::LogId;
use crate::trace::{SECOND, Trace};

pub(crate) use app::Names;
pub use notes::Totals;

use clients::Client;
use connections::Connection;
use faults::Undo;
use operators::Operators;
use peers::Link;
use process::Process;
use receivers::Receivers;

/// Something that is to happen at a point of true time.
#[derive(Debug)]
enum Event {
    /// A message of a member arrives; `link` names the connection it was sent on.
    PeerArrives { from: usize, to: usize, link: u32, message: Box<PeerMessage> },
    /// A node tries to reach another.
    PeerDials { from: usize, to: usize, life: u32 },
    /// A connection between nodes on which nothing was acknowledged.
    LinkTimesOut { from: usize, to: usize, link: u32 },
    /// A node notices that it has lost another.
    PeerLost { at: usize, life: u32, peer: MemberId },
    /// The sender of a snapshot hears of its fate.
    SnapshotSent { at: usize, life: u32, to: MemberId, arrived: bool },
    /// The bytes of a snapshot are made, for the disk or for another member.
    SnapshotMade { at: usize, life: u32, image: Box<SnapshotImage>, for_disk: bool },
    /// What a disk was doing is done.
    DiskDone { at: usize, life: u32, job: u64 },
    /// A disk without space is looked at again.
    DiskLooks { at: usize, life: u32 },
    /// A process begins.
    Starts { at: usize, life: u32 },
    /// Requests arrive at a node.
    ToNode { connection: u64, frame: Vec<(RequestId, Request)> },
    /// Messages arrive at a client.
    ToClient { connection: u64, log: LogId, frame: Vec<ToClient> },
    /// A node notices that a client's connection has ended.
    NodeSeesEnd { connection: u64 },
    /// A client notices that its connection has ended.
    ClientSeesEnd { connection: u64 },
    /// A client's attempt to connect arrives.
    Dialled { client: usize, dial: u64, at: usize },
    /// A node's hello arrives at a client.
    Hello { client: usize, dial: u64, at: usize, hello: Box<dialling::Hello> },
    /// A client's attempt has failed.
    DialFailed { client: usize, dial: u64 },
    /// A client tries to connect.
    Dials { client: usize, dial: u64 },
    /// A caller with a plain session looks at what it has.
    PlainActs { client: usize, life: u32 },
    /// A call arrives at a node.
    PlainArrives { at: usize, id: u64, request: Box<Request> },
    /// Its answer arrives.
    PlainAnswered { client: usize, id: u64, response: Box<Response> },
    /// A write reaches a receiver.
    Write(Box<receivers::Write>),
    /// The holder has sealed.
    Sealed { client: usize, life: u32, token: leasehold_core::Token },
    /// Time for the next fault.
    Fault,
    /// An interesting instant: a fault right now.
    FaultNow,
    /// A node would vote for a candidate, whom the others do not hear any more.
    CandidateCut { at: usize, candidate: usize },
    /// A node that has just voted dies.
    VoterDies { at: usize, life: u32, candidate: usize },
    /// A fault is over.
    Undo(Undo),
    /// Time for whoever looks after the cluster.
    Operator,
    /// Nobody answered an operator.
    CallTimesOut { id: RequestId },
    /// Faults stop.
    Heal,
}

/// Where the run stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Faults,
    Healing,
}

/// A world in the course of one run.
pub struct World {
    plan: Plan,
    now: u64,
    phase: Phase,
    queue: Queue<Event>,
    processes: Vec<Process>,
    links: Vec<Link>,
    clients: Vec<Client>,
    connections: Vec<Connection>,
    /// One for each client.
    plain: Vec<plain::Plain>,
    receivers: Receivers,
    operators: Operators,
    names: Names,
    net: Random,
    chance: Random,
    faults: faults::State,
    trace: Trace,
    totals: Totals,
    notes: notes::Notes,
}

/// Slots for processes: those of the beginning, and some for members that are added.
const SPARE_SLOTS: usize = 2;

impl World {
    /// A world as its plan says, before anything has happened.
    pub fn new(plan: Plan, trace: Trace) -> Self {
        let mut seeds = Random::new(plan.seed).fork(2);
        let slots = plan.nodes + SPARE_SLOTS;
        let names = Names::new(&plan);
        let mut world = Self {
            now: 0,
            phase: Phase::Faults,
            queue: Queue::default(),
            processes: Vec::new(),
            links: (0..slots * slots).map(|_| Link::default()).collect(),
            clients: Vec::new(),
            connections: Vec::new(),
            plain: Vec::new(),
            receivers: Receivers::default(),
            operators: Operators::default(),
            net: seeds.fork(1),
            chance: seeds.fork(2),
            faults: faults::State::new(slots, plan.clients),
            trace,
            totals: Totals::default(),
            notes: notes::Notes::new(&plan),
            names,
            plan,
        };
        world.make_processes(slots, &mut seeds.fork(3));
        world.make_clients(&mut seeds.fork(4));
        world.make_plain(&mut seeds.fork(5));
        world.queue.push(world.plan.fault_length, Event::Heal);
        world.queue.push(SECOND / 2, Event::Operator);
        world.note_lasting_faults();
        if world.plan.faults.iter().next().is_none() && !world.plan.tight {
            // Nothing goes wrong in this world, so that everything is promised from the beginning on.
            world.notes.record.push(crate::record::TrueTime::ZERO, crate::record::Event::FaultsStopped);
        }
        world.plan_next_fault();
        world
    }

    /// Runs to the end: faults, healing, and the proof that everybody is served again.
    pub fn run(&mut self) {
        while self.phase == Phase::Faults || !self.is_served() {
            if self.phase == Phase::Healing && self.now > self.plan.fault_length + crate::plan::HEAL_LENGTH {
                self.report_not_served();
                break;
            }
            if self.notes.is_hopeless() {
                break;
            }
            self.step();
        }
        self.end();
    }

    /// The next thing that happens: an event, or a machine that wakes.
    fn step(&mut self) {
        let planned = self.queue.next_at();
        let (mut wake, mut node, mut client) = (u64::MAX, None, None);
        for (number, process) in self.processes.iter().enumerate() {
            if process.wake_at < wake {
                (wake, node) = (process.wake_at, Some(number));
            }
        }
        for (number, own) in self.clients.iter().enumerate() {
            if own.wake_at < wake {
                (wake, node, client) = (own.wake_at, None, Some(number));
            }
        }
        if planned <= wake {
            let (at, event) =
                self.queue.pop().expect("something is always planned: the next fault or the next look");
            self.now = at;
            self.happen(event);
        } else {
            self.now = wake;
            match (node, client) {
                (Some(node), _) => self.node_turn(node),
                (None, Some(client)) => self.client_turn(client),
                (None, None) => unreachable!("somebody wakes"),
            }
        }
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::PeerArrives { from, to, link, message } => self.peer_arrives(from, to, link, message),
            Event::PeerDials { from, to, life } => self.peer_dials(from, to, life),
            Event::LinkTimesOut { from, to, link } => self.link_times_out(from, to, link),
            Event::PeerLost { at, life, peer } => self.peer_lost(at, life, peer),
            Event::SnapshotSent { at, life, to, arrived } => self.snapshot_sent(at, life, to, arrived),
            Event::SnapshotMade { at, life, image, for_disk } => {
                self.snapshot_made(at, life, &image, for_disk);
            }
            Event::DiskDone { at, life, job } => self.disk_done(at, life, job),
            Event::DiskLooks { at, life } => self.disk_looks(at, life),
            Event::Starts { at, life } => self.starts(at, life),
            Event::ToNode { connection, frame } => self.arrives_at_node(connection, frame),
            Event::ToClient { connection, log, frame } => self.arrives_at_client(connection, log, frame),
            Event::NodeSeesEnd { connection } => self.node_sees_end(connection),
            Event::ClientSeesEnd { connection } => self.client_sees_end(connection),
            Event::Dialled { client, dial, at } => self.dialled(client, dial, at),
            Event::Hello { client, dial, at, hello } => self.hello(client, dial, at, *hello),
            Event::DialFailed { client, dial } => self.dial_failed(client, dial),
            Event::Dials { client, dial } => self.dials(client, dial),
            Event::PlainActs { client, life } => self.plain_acts(client, life),
            Event::PlainArrives { at, id, request } => self.plain_arrives(at, id, *request),
            Event::PlainAnswered { client, id, response } => self.plain_answered(client, id, response),
            Event::Write(write) => self.receive_write(*write),
            Event::Sealed { client, life, token } => self.sealed(client, life, token),
            Event::Fault => self.next_fault(),
            Event::FaultNow => self.fault_now(),
            Event::CandidateCut { at, candidate } => self.candidate_cut(at, candidate),
            Event::VoterDies { at, life, candidate } => self.voter_dies(at, life, candidate),
            Event::Undo(undo) => self.undo(undo),
            Event::Operator => self.operate(),
            Event::CallTimesOut { id } => self.call_times_out(id),
            Event::Heal => self.heal(),
        }
    }

    /// True time now.
    pub const fn now(&self) -> u64 {
        self.now
    }

    /// The hash over everything that happened.
    pub const fn hash(&self) -> u64 {
        self.trace.hash()
    }

    /// How much happened.
    pub const fn events(&self) -> u64 {
        self.trace.events()
    }
}
