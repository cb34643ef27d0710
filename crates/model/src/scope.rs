//! Bounds: how much of everything may happen, and which clocks there are.

use crate::table::CLIENTS;
use crate::time::Rate::{self, Fast, Slow};

/// How many nodes lead, one after the other or at once. Those that only vote show in what a change of leader does to the tail.
pub const NODES: usize = 2;

/// The rates of all clocks in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Rates {
    /// By node.
    pub nodes: [Rate; NODES],
    /// By client.
    pub clients: [Rate; CLIENTS],
}

/// How much of everything may happen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scope {
    /// What it looks at.
    pub name: &'static str,
    /// The last tick.
    pub ticks: u8,
    /// The clocks that are tried.
    pub rates: Vec<Rates>,
    /// Acquires of each client.
    pub acquires: [u8; CLIENTS],
    /// Renewals of each client.
    pub renewals: [u8; CLIENTS],
    /// Restarts of each client: at most [`LIVES`](crate::table::LIVES) less one.
    pub restarts: [u8; CLIENTS],
    /// Whether clients give leases back.
    pub releases: bool,
    /// Releases that arrive twice.
    pub repeated: u8,
    /// Whether clients write to the receiver, once with every token.
    pub writes: bool,
    /// Changes of leader, restarts of a leader among them.
    pub changes: u8,
    /// Entries that a leader may have behind the committed ones.
    pub tail: usize,
    /// Entries that carry nothing but time.
    pub times: u8,
    /// Restores, each from a backup taken at any moment.
    pub restores: u8,
    /// Whether the service does in each tick what is due in it, which is what bounds on lateness are about.
    pub prompt: bool,
}

const fn rates(nodes: [Rate; NODES], clients: [Rate; CLIENTS]) -> Rates {
    Rates { nodes, clients }
}

/// Leaders as fast as they may be and clients as slow: what is most dangerous.
const TIGHT: Rates = rates([Fast, Fast], [Slow, Slow]);

impl Scope {
    fn empty(name: &'static str) -> Scope {
        Scope {
            name,
            ticks: 5,
            rates: vec![TIGHT],
            acquires: [1, 1],
            renewals: [0, 0],
            restarts: [0, 0],
            releases: false,
            repeated: 0,
            writes: false,
            changes: 0,
            tail: 1,
            times: 0,
            restores: 0,
            prompt: false,
        }
    }

    /// One leader, every mix of clocks: acquire, renew, expire, late answers.
    pub fn clocks() -> Scope {
        let mut mixes = Vec::new();
        for node in [Fast, Slow] {
            for clients in [[Slow, Slow], [Slow, Fast], [Fast, Slow], [Fast, Fast]] {
                mixes.push(rates([node, node], clients));
            }
        }
        Scope { rates: mixes, renewals: [1, 1], ..Scope::empty("clocks") }
    }

    /// As `clocks`, with the most dangerous clocks alone.
    pub fn tight() -> Scope {
        Scope { name: "tight", rates: vec![TIGHT], ..Scope::clocks() }
    }

    /// Releases that arrive late or twice.
    pub fn releases() -> Scope {
        Scope {
            ticks: 4,
            acquires: [2, 1],
            renewals: [1, 1],
            releases: true,
            repeated: 1,
            ..Scope::empty("releases")
        }
    }

    /// Expiries proposed twice, and a client that restarts and asks again.
    pub fn expiries() -> Scope {
        Scope {
            ticks: 3,
            acquires: [2, 1],
            renewals: [0, 1],
            restarts: [1, 0],
            tail: 2,
            ..Scope::empty("expiries")
        }
    }

    /// Leaders that change twice, with tails that are cut, kept or revived, and a deposed one that goes on.
    pub fn leaders() -> Scope {
        Scope {
            rates: vec![TIGHT, rates([Slow, Fast], [Slow, Slow])],
            ticks: 3,
            releases: true,
            changes: 2,
            tail: 2,
            ..Scope::empty("leaders")
        }
    }

    /// Changes of leader amid renewals, with clocks that differ.
    pub fn failover() -> Scope {
        Scope {
            rates: vec![TIGHT, rates([Fast, Slow], [Slow, Slow])],
            ticks: 3,
            renewals: [0, 1],
            changes: 2,
            ..Scope::empty("failover")
        }
    }

    /// As `failover`, with one change and more time.
    pub fn patience() -> Scope {
        Scope { name: "patience", ticks: 4, changes: 1, ..Scope::failover() }
    }

    /// A backup at any moment, and a restore from it at any later one, with a renewal that arrives before or behind it.
    pub fn restore() -> Scope {
        Scope {
            ticks: 4,
            acquires: [1, 2],
            renewals: [1, 0],
            restarts: [0, 1],
            restores: 1,
            ..Scope::empty("restore")
        }
    }

    /// The same under leaders that change, before the restore or behind it. One client renews, the other holds and begins anew.
    pub fn lives() -> Scope {
        Scope { name: "lives", ticks: 3, acquires: [0, 2], changes: 1, ..Scope::restore() }
    }

    /// All of it at once. It takes minutes and gigabytes, so that it is run by hand.
    pub fn everything() -> Scope {
        Scope { name: "everything", changes: 1, ..Scope::restore() }
    }

    /// Writes of holders that were paused between the check and the write.
    pub fn fence() -> Scope {
        Scope { ticks: 5, renewals: [1, 0], releases: true, writes: true, ..Scope::empty("fence") }
    }

    /// A service that does what is due in each tick, under leaders that change: how late a dead holder's lease may end.
    pub fn lateness() -> Scope {
        Scope {
            rates: vec![rates([Slow, Slow], [Slow, Slow]), rates([Slow, Fast], [Slow, Slow]), TIGHT],
            ticks: 8,
            changes: 2,
            times: u8::MAX,
            prompt: true,
            ..Scope::empty("lateness")
        }
    }

    /// Without changes of leader and with one entry at a time nothing can come between an append and its commit but delay, and an
    /// answer may be delayed anyway: the two are one step then.
    pub fn commits_at_once(&self) -> bool {
        self.changes == 0 && self.restores == 0 && self.tail == 1 && !self.prompt
    }

    /// Every scope that the tests go through.
    pub fn all() -> Vec<Scope> {
        vec![
            Scope::clocks(),
            Scope::tight(),
            Scope::releases(),
            Scope::expiries(),
            Scope::leaders(),
            Scope::failover(),
            Scope::patience(),
            Scope::restore(),
            Scope::lives(),
            Scope::fence(),
            Scope::lateness(),
        ]
    }

    /// The scope of that name, also one that the tests do not go through.
    pub fn named(name: &str) -> Option<Scope> {
        Scope::all().into_iter().chain([Scope::everything()]).find(|scope| scope.name == name)
    }

    /// The same with so many more ticks and renewals, for runs that take longer.
    #[must_use]
    pub fn deeper(mut self, by: u8) -> Scope {
        self.ticks += by;
        for renewals in &mut self.renewals {
            *renewals += by;
        }
        self
    }
}
