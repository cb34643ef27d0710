//! Numbers to begin with, and those of other systems in our words, for comparison.
//!
//! A system is not judged by this: several of them have a fence that needs no margin, and all of them speak over connections that
//! repeat lost packets. The table says what their numbers come to if clocks and requests are as bad as ours are assumed to be.

use crate::command::Policies;
use crate::limits::LONGEST_MAX_TTL;
use crate::numbers::{Ask, Schedule};
use crate::time::Millis;

/// Numbers with a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Preset {
    /// What it is called.
    pub name: &'static str,
    /// Where the numbers are from and what else is to be known, in one line.
    pub note: &'static str,
    /// The numbers in our words.
    pub ask: Ask,
    /// Its policies in our words.
    pub policies: Policies,
    /// How much later than the ttl its service notices.
    pub late: Millis,
    /// How often those who wait look, if they are not told.
    pub poll: Millis,
    /// Whether these are ours to use, or another system's to compare with.
    pub ours: bool,
}

const NO_POLICIES: Policies = Policies { grace: Millis::ZERO, hard: Millis::ZERO, delay: Millis::ZERO };

const fn ask(ttl: u64, renew_every: u64, margin: u64) -> Ask {
    Ask {
        renew_every: Some(Millis::new(renew_every)),
        margin: Some(Millis::new(margin)),
        max_ttl: LONGEST_MAX_TTL,
        ..Ask::for_ttl(Millis::new(ttl))
    }
}

const fn own(name: &'static str, note: &'static str, ttl: u64, round_trip: u64, pause: u64) -> Preset {
    let ask = Ask {
        round_trip: Some(Millis::new(round_trip)),
        pause: Some(Millis::new(pause)),
        ..Ask::for_ttl(Millis::new(ttl))
    };
    Preset { name, note, ask, policies: NO_POLICIES, late: Millis::ZERO, poll: Millis::ZERO, ours: true }
}

const fn peer(name: &'static str, note: &'static str, ask: Ask) -> Preset {
    Preset { name, note, ask, policies: NO_POLICIES, late: Millis::ZERO, poll: Millis::ZERO, ours: false }
}

/// All of them: ours first.
pub const PRESETS: [Preset; 10] = [
    // Our default ttl; a round trip within a building, and a pause of a busy collector or a host under load.
    own("intra-dc", "one data centre", 10_000, 10, 2_000),
    // Half around the world and back is below 300 ms; whoever is so far away does not notice 30 s.
    own("cross-region", "nodes on several continents", 30_000, 300, 5_000),
    Preset {
        // client/v3/concurrency: session ttl 60 s. client/v3/lease.go: renews at a third, counts from receipt, keeps no margin.
        // server/lease/lessor.go: sweeps every 500 ms.
        late: Millis::new(500),
        ..peer("etcd", "session of concurrency, counted from receipt", ask(60_000, 20_000, 0))
    },
    Preset {
        // client-go leaderelection: LeaseDuration 15 s, RenewDeadline 10 s, RetryPeriod 2 s; others look every 2 s and up to 1.2
        // times as much again.
        poll: Millis::new(4_400),
        ..peer("kubernetes", "client-go 15/10/2s, no fence", ask(15_000, 2_000, 5_000))
    },
    Preset {
        // Session ttl 15 s, ended by the leader after twice that (SessionTTLMultiplier); api/session.go renews at half of 15 s and
        // gives up after 15 s; lock-delay 15 s; api/lock.go looks again after up to 5 s.
        policies: Policies { grace: Millis::ZERO, hard: Millis::ZERO, delay: Millis::new(15_000) },
        poll: Millis::new(5_000),
        ..peer("consul", "ttl 15s, ended after twice that, lock-delay 15s", ask(30_000, 7_500, 15_000))
    },
    Preset {
        // tickTime 2 s, longest session 20 ticks; ClientCnxn pings at a third and gives the connection up at two thirds; sessions
        // are rounded up to a tick.
        late: Millis::new(2_000),
        ..peer("zookeeper", "longest session of 20 ticks", ask(40_000, 13_333, 13_333))
    },
    Preset {
        // OSDI 2006: leases of 12 s, grace of 45 s. The master holds a KeepAlive until the lease is almost over, so there is no
        // interval; two thirds of the ttl is what is assumed here.
        policies: Policies { grace: Millis::new(45_000), hard: Millis::new(45_000), delay: Millis::ZERO },
        ..peer(
            "chubby",
            "12s, grace 45s while its master changes; renewals held open, taken as 8s",
            ask(12_000, 8_000, 0),
        )
    },
    Preset {
        // HdfsConstants: soft limit 60 s, hard limit 1 h; LeaseRenewer renews at half of the soft limit. DataNodes check generation
        // stamps.
        policies: Policies { grace: Millis::ZERO, hard: Millis::new(3_540_000), delay: Millis::ZERO },
        ..peer("hdfs", "60s if somebody asks, else 1h; fenced by generation stamps", ask(60_000, 30_000, 0))
    },
    // RFC 2131 4.4.5: T1 at a half, T2 at seven eighths, counted from the sending. The RFC names no lease; an hour is an example.
    peer(
        "dhcp",
        "an hour, T1 at 1/2 and T2 at 7/8",
        Ask { schedule: Schedule::Halves, renew_every: None, ..ask(3_600_000, 0, 0) },
    ),
    // ttl 30, loop_wait 10; the watchdog fires 5 s before the ttl.
    peer("patroni", "ttl 30, loop_wait 10, watchdog 5s before", ask(30_000, 10_000, 5_000)),
];

impl Preset {
    /// The one with this name.
    pub fn named(name: &str) -> Option<&'static Self> {
        PRESETS.iter().find(|preset| preset.name == name)
    }

    /// How long nobody acts at most after a holder died: ttl, how late that is noticed, grace, delay, and when others look.
    pub const fn unplanned_gap(&self) -> Millis {
        self.ask
            .ttl
            .saturating_add(self.late)
            .saturating_add(self.policies.grace)
            .saturating_add(self.policies.delay)
            .saturating_add(self.poll)
    }
}
