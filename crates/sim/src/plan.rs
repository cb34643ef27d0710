//! What a seed decides before anything happens: how large the world is, how its clocks run, and which faults are switched on.
//!
//! Each seed turns on a random subset of the faults (a swarm): with all of them on at once nothing would ever work, and rare combinations would
//! never be alone. A quarter of the seeds is quiet. Whoever shrinks a failure takes faults away from a plan and leaves all else.

use leasehold_core::limits::MAX_TIDY_LEASES;
use leasehold_node::Options;

use crate::random::Random;
use crate::trace::{MICRO, MILLI, SECOND};

macro_rules! faults {
    ($($(#[$doc:meta])* $name:ident = $word:literal,)*) => {
        /// One kind of fault that a plan can switch on.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Fault {
            $($(#[$doc])* $name,)*
        }

        impl Fault {
            /// All kinds.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The word for it on the command line.
            pub const fn word(self) -> &'static str {
                match self { $(Self::$name => $word,)* }
            }
        }
    };
}

faults! {
    /// Messages between nodes are lost one by one.
    PeerLoss = "peer-loss",
    /// Messages between nodes take long, and not always equally long.
    PeerDelay = "peer-delay",
    /// Messages of raft arrive twice.
    PeerDuplicate = "peer-duplicate",
    /// Messages of raft overtake each other.
    PeerReorder = "peer-reorder",
    /// Old messages of raft arrive again much later.
    PeerReplay = "peer-replay",
    /// Some nodes do not reach some others, one way or both.
    Cut = "cut",
    /// The leader reaches nobody.
    IsolateLeader = "isolate-leader",
    /// Frames between clients and nodes are lost on connections that live.
    ClientLoss = "client-loss",
    /// Requests of clients arrive twice.
    DuplicateRequests = "duplicate-requests",
    /// Frames between clients and nodes take long.
    ClientDelay = "client-delay",
    /// A client does not reach some or all nodes for about a ttl.
    ClientCut = "client-cut",
    /// A disk is slow.
    DiskSlow = "disk-slow",
    /// A disk stands still.
    DiskStuck = "disk-stuck",
    /// A write or sync fails.
    DiskError = "disk-error",
    /// A disk is full.
    DiskFull = "disk-full",
    /// A process is killed; what it wrote stays.
    Kill = "kill",
    /// Power is lost: what was not synced may be gone.
    PowerLoss = "power-loss",
    /// All nodes lose power at once.
    PowerLossOfAll = "power-loss-of-all",
    /// A bit of a stopped node's files flips.
    BitFlip = "bit-flip",
    /// A node's process is stopped for a while.
    PauseNode = "pause-node",
    /// A node is asked to stop and starts again.
    Drain = "drain",
    /// A client's process is stopped for a while.
    PauseClient = "pause-client",
    /// A client's process dies and another begins.
    CrashClient = "crash-client",
    /// A machine sleeps: its two clocks disagree afterwards.
    Suspend = "suspend",
    /// The rates of clocks wander within the bound.
    Rates = "rates",
    /// Clocks run wrong by more than the bound.
    RatesBeyond = "rates-beyond",
    /// A client's machine is stopped from outside with its clocks.
    Freeze = "freeze",
    /// Leadership is handed over on request.
    Transfer = "transfer",
    /// Nodes are added, removed and replaced.
    Members = "members",
    /// Everything is lost but a backup, which is restored.
    Restore = "restore",
    /// Many clients act at the same instant.
    Storm = "storm",
    /// An operator revokes leases.
    Revoke = "revoke",
    /// Applications give up waits and close sessions often.
    Abandon = "abandon",
    /// Nodes are brought to the next release one by one, and sometimes set back.
    Upgrade = "upgrade",
    /// A restore is told what is not so: an epoch was used before, or holders are said to have stopped.
    RestoreWrong = "restore-wrong",
    /// Writes to receivers are now and then on their way for longer than anybody counts on.
    LateWrites = "late-writes",
    /// Beside each client there is a plain session, as callers over HTTP have it.
    Plain = "plain",
    /// Frames between clients and nodes go through their bytes.
    Wire = "wire",
    /// A node dies in the middle of what its disk does or right after it, also while it opens its log.
    CrashAtDisk = "crash-at-disk",
    /// The files of a stopped node are put back to an earlier copy of themselves, as a snapshot of its machine would.
    RolledBack = "rolled-back",
    /// Applications now and then show a token that was never granted here: they have it from another cluster, or made it up.
    StrangeTokens = "strange-tokens",
    /// Many clients die at the same instant.
    CrashClients = "crash-clients",
}

impl Fault {
    const fn bit(self) -> u64 {
        1 << self as u64
    }

    /// Whether exclusion is not promised while this happens.
    pub const fn is_beyond_assumptions(self) -> bool {
        matches!(self, Self::RatesBeyond | Self::Freeze | Self::RestoreWrong | Self::RolledBack)
    }

    /// In how many seeds that are not quiet this one is on, if it is drawn by itself. Those that came later are: what a seed decided
    /// before they were there, it still decides.
    const fn drawn_apart(self) -> Option<u64> {
        match self {
            Self::RolledBack => Some(12),
            Self::StrangeTokens | Self::CrashClients => Some(6),
            _ => None,
        }
    }
}

/// The faults that are on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Faults(u64);

impl Faults {
    /// None at all.
    pub const NONE: Self = Self(0);

    /// Whether one is on.
    pub const fn has(self, fault: Fault) -> bool {
        self.0 & fault.bit() != 0
    }

    /// With one more.
    #[must_use]
    pub const fn with(self, fault: Fault) -> Self {
        Self(self.0 | fault.bit())
    }

    /// Without one.
    #[must_use]
    pub const fn without(self, fault: Fault) -> Self {
        Self(self.0 & !fault.bit())
    }

    /// Those that are on.
    pub fn iter(self) -> impl Iterator<Item = Fault> {
        Fault::ALL.iter().copied().filter(move |fault| self.has(*fault))
    }
}

/// Everything that a seed decides beforehand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The seed.
    pub seed: u64,
    /// Nodes at the beginning.
    pub nodes: usize,
    /// Clients.
    pub clients: usize,
    /// Exclusive and shared resources; two more have slots.
    pub resources: usize,
    /// True time in which faults happen.
    pub fault_length: u64,
    /// What is switched on.
    pub faults: Faults,
    /// Mean time between two faults.
    pub fault_pause: u64,
    /// The bound of rate errors that the cluster is made with, in millionths.
    pub drift_ppm: u32,
    /// The rate errors that clocks really have at most, in millionths: the same, unless somebody wants to see what happens otherwise.
    pub clock_ppm: u32,
    /// No delays, the leader's clock fastest, the holders' slowest, holders cut off for about a ttl.
    pub tight: bool,
    /// Milliseconds of the shortest and longest ttl.
    pub ttl: (u64, u64),
    /// The longest ttl of the cluster.
    pub max_ttl: u64,
    /// Nanoseconds that a message between nodes takes.
    pub peer_delay: (u64, u64),
    /// Nanoseconds that a frame between client and node takes.
    pub client_delay: (u64, u64),
    /// Nanoseconds that a write to disk takes.
    pub disk_delay: (u64, u64),
    /// Millionths of messages lost between nodes.
    pub peer_loss: u64,
    /// Millionths of frames lost between clients and nodes.
    pub client_loss: u64,
    /// Millionths of messages of raft that arrive twice, late, or again.
    pub disorder: u64,
    /// Leases that one entry ends at most because they are due.
    pub tidy_leases: usize,
    /// Entries between two snapshots.
    pub snapshot_entries: u64,
    /// Up to this many renewals at once nobody is asked to renew at another time.
    pub renewals_at_once: usize,
    /// Mean time between two acts of an application.
    pub act_pause: u64,
    /// How long a write to a receiver may be on its way.
    pub in_flight: u64,
}

/// How long everything may take to work again after the last fault: the longest wait after a restore, a ttl with grace and hard
/// limit, an election, a reconnection.
pub const HEAL_LENGTH: u64 = 120 * SECOND;

impl Plan {
    /// The world that speed is measured with: three nodes, twenty clients, no faults.
    pub fn for_speed(seed: u64) -> Self {
        let quiet = Self::of(seed);
        let (peer_delay, client_delay) = ((200 * MICRO, 400 * MICRO), (200 * MICRO, 400 * MICRO));
        Self {
            nodes: 3,
            clients: 20,
            resources: 8,
            fault_length: 500 * SECOND,
            faults: Faults::NONE,
            tight: false,
            drift_ppm: 1_000,
            clock_ppm: 1_000,
            ttl: (5_000, 10_000),
            max_ttl: 10_000,
            peer_delay,
            client_delay,
            disk_delay: (30 * MICRO, 400 * MICRO),
            peer_loss: 0,
            client_loss: 0,
            disorder: 0,
            tidy_leases: MAX_TIDY_LEASES,
            snapshot_entries: 500,
            renewals_at_once: Options::default().renewals_at_once,
            act_pause: SECOND,
            ..quiet
        }
    }

    /// The arguments that make this plan again from its seed.
    pub fn arguments(&self) -> String {
        let whole = Self::of(self.seed);
        let mut words = format!("--seed {}", self.seed);
        for fault in whole.faults.iter().filter(|fault| !self.faults.has(*fault)) {
            words.push_str(&format!(" --without {}", fault.word()));
        }
        if self.clients != whole.clients {
            words.push_str(&format!(" --clients {}", self.clients));
        }
        if self.fault_length != whole.fault_length {
            words.push_str(&format!(" --fault-ms {}", self.fault_length / MILLI));
        }
        words
    }

    /// What a seed decides.
    pub fn of(seed: u64) -> Self {
        let mut random = Random::new(seed).fork(1);
        let is_quiet = random.one_in(4);
        let tight = random.one_in(5);
        let mut faults = Faults::NONE;
        if !is_quiet {
            // Few or many: the chance itself is drawn.
            let chance = *random.pick(&[80_000, 150_000, 300_000, 500_000]);
            for fault in Fault::ALL.iter().filter(|fault| fault.drawn_apart().is_none()) {
                let chance = if fault.is_beyond_assumptions() { chance / 3 } else { chance };
                if random.millionths(chance) {
                    faults = faults.with(*fault);
                }
            }
            if faults.has(Fault::Restore) && random.one_in(4) {
                faults = faults.with(Fault::RestoreWrong);
            }
            if faults.has(Fault::RestoreWrong) {
                faults = faults.with(Fault::Restore);
            }
            let mut apart = Random::new(seed).fork(8);
            for fault in Fault::ALL {
                if fault.drawn_apart().is_some_and(|seeds| apart.one_in(seeds)) {
                    faults = faults.with(*fault);
                }
            }
        }
        // Few clients and small entries, in place of many and large ones.
        let few = Random::new(seed).fork(9).one_in(6);
        // A simulated world has too few sessions to be a burden: in half of them two renewals at once are many.
        let easily_many = Random::new(seed).fork(10).one_in(2);
        let shortest = *random.pick(&[1_000, 1_000, 2_000, 5_000]);
        let longest = shortest * random.between(1, 3);
        let delay = if tight { 20 * MICRO } else { random.between(50, 2_000) * MICRO };
        let slow_peers = faults.has(Fault::PeerDelay) && !tight;
        let slow_clients = faults.has(Fault::ClientDelay) && !tight;
        let spread = |random: &mut Random, slow: bool, most: u64| {
            let most = if slow { random.between(5, most) * MILLI } else { delay * 2 };
            (delay.min(most), most)
        };
        let level = |random: &mut Random, on: bool| {
            if on { *random.pick(&[1_000, 10_000, 50_000, 200_000]) } else { 0 }
        };
        let disorder = faults.has(Fault::PeerDuplicate)
            || faults.has(Fault::PeerReorder)
            || faults.has(Fault::PeerReplay);
        let drift_ppm = if tight { 50_000 } else { *random.pick(&[1_000, 1_000, 10_000, 50_000]) };
        Self {
            seed,
            clock_ppm: drift_ppm,
            nodes: if random.one_in(4) { 5 } else { 3 },
            clients: usize::try_from(random.between(3, 24)).expect("a few"),
            resources: usize::try_from(random.between(1, 8)).expect("a few"),
            fault_length: random.between(30, 240) * SECOND,
            faults,
            fault_pause: random.between(300, 8_000) * MILLI,
            drift_ppm,
            tight,
            ttl: (shortest, longest),
            max_ttl: longest.max(10_000),
            peer_delay: spread(&mut random, slow_peers, 150),
            client_delay: spread(&mut random, slow_clients, 300),
            disk_delay: (30 * MICRO, if tight { 60 * MICRO } else { 400 * MICRO }),
            peer_loss: level(&mut random, faults.has(Fault::PeerLoss)),
            client_loss: level(&mut random, faults.has(Fault::ClientLoss)),
            disorder: level(&mut random, disorder),
            tidy_leases: if few { 4 } else { MAX_TIDY_LEASES },
            snapshot_entries: *random.pick(&[20, 100, 500, 8_192]),
            renewals_at_once: if easily_many { 1 } else { Options::default().renewals_at_once },
            act_pause: random.between(50, 2_000) * MILLI,
            in_flight: *random.pick(&[0, 20, 100]) * MILLI,
        }
    }
}
