//! Every limit of the table, each with its reason. A limit refuses new things; it never stands in the way of a release, a
//! cancel, a renewal or a close.

use serde::{Deserialize, Serialize};

use crate::time::Millis;

/// Shortest ttl. Below it one lost request and one scheduling delay already use up the lease.
pub const MIN_TTL: Millis = Millis::new(500);
/// Longest ttl unless the directory or cluster was made with another maximum: a restore waits this long before it grants.
pub const DEFAULT_MAX_TTL: Millis = Millis::new(5 * 60 * 1000);
/// The longest maximum that may be chosen: nobody waits longer than a day for a restore.
pub const LONGEST_MAX_TTL: Millis = Millis::new(24 * 60 * 60 * 1000);
/// Longest grace, hard limit and cool-down. Longer ones are a plan, not a lease.
pub const MAX_POLICY: Millis = Millis::new(24 * 60 * 60 * 1000);
/// Longest wait in a queue and longest offer. Whoever waits longer asks again.
pub const MAX_WAIT: Millis = Millis::new(24 * 60 * 60 * 1000);
/// Longest resource name in bytes: long enough for a path, short enough for an index of any database.
pub const MAX_NAME_BYTES: usize = 512;
/// Longest label of a holder in bytes.
pub const MAX_LABEL_BYTES: usize = 256;
/// Longest reason given with a revoke, in bytes: one line for the history.
pub const MAX_REASON_BYTES: usize = 1024;
/// Longest key of a register in bytes.
pub const MAX_REGISTER_KEY_BYTES: usize = 128;
/// Largest value of a lease or register in bytes: an address or a cursor, not a document.
pub const MAX_VALUE_BYTES: usize = 64 * 1024;
/// Most slots of one name. More is a queueing system.
pub const MAX_SLOTS: u32 = 10_000;
/// Most resources in one acquire: a unit is granted in one step, and every step is bounded.
pub const MAX_UNIT: usize = 64;
/// Most leases of one session: ending it is one bounded piece of work.
pub const MAX_LEASES_PER_SESSION: usize = 32_768;
/// Most leases and waits of one plain session: the answer to each of its renewals lists them.
pub const MAX_PLAIN_HOLDINGS: usize = 1_024;
/// Most numbered calls of one plain session that are remembered: a client that does not settle them has that many under way.
pub const MAX_CALLS_REMEMBERED: usize = 64;
/// Most waits of one session.
pub const MAX_WAITS_PER_SESSION: usize = 4_096;
/// Most sessions: about half a kilobyte each.
pub const MAX_SESSIONS: usize = 2_000_000;
/// Most waiters of one resource.
pub const MAX_WAITERS_PER_RESOURCE: usize = 16_384;
/// Most names that the table knows.
pub const MAX_RESOURCES: usize = 4_000_000;
/// Names that nobody holds or waits for are remembered for their history up to this many, the longest idle forgotten first.
pub const MAX_IDLE_RESOURCES: usize = 65_536;
/// Endings remembered per resource.
pub const MAX_HISTORY: usize = 32;
/// Gaps remembered per resource: as many as endings.
pub const MAX_GAPS: usize = 32;
/// Parts of one gap that are told apart. A holder that dies in its warm-up again and again makes more: those are added to the ones before.
pub const MAX_GAP_PARTS: usize = 16;
/// Outages remembered of the whole log: a failover an hour for ten days.
pub const MAX_OUTAGES: usize = 256;
/// The longest outage that is believed: a length that a clock gave must not be able to pass the end of anything.
pub const MAX_OUTAGE: Millis = Millis::new(365 * 24 * 60 * 60 * 1000);
/// Registers of one resource.
pub const MAX_REGISTERS_PER_RESOURCE: usize = 16;
/// Answers and events that a client may leave unseen before its acquires are refused. At twice this number only what lets go of
/// something (release, cancel, close) is taken in until the client says what it has seen.
pub const MAX_UNSEEN: usize = 4_096;
/// Requests to release that are pushed to one holder for one lease; later ones find the request already made.
pub const MAX_ASKS_PER_LEASE: u32 = 8;
/// Alarms that are raised at most. What is shown beyond is refused, and stops nothing.
pub const MAX_ALARMS: usize = 1_024;
/// Names that one session can stop by showing tokens that were never granted.
pub const MAX_ALARMS_PER_SESSION: u32 = 16;
/// Leases ended by one tidying command: expiry of very many is spread over bounded entries.
pub const MAX_TIDY_LEASES: usize = 1_024;

/// The limits that bound what clients can create, as a value, so that tests can meet them at small sizes. They are part of the
/// replicated state: every replica refuses the same command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// See [`MAX_LEASES_PER_SESSION`].
    pub leases_per_session: usize,
    /// See [`MAX_WAITS_PER_SESSION`].
    pub waits_per_session: usize,
    /// See [`MAX_SESSIONS`].
    pub sessions: usize,
    /// See [`MAX_WAITERS_PER_RESOURCE`].
    pub waiters_per_resource: usize,
    /// See [`MAX_RESOURCES`].
    pub resources: usize,
    /// See [`MAX_IDLE_RESOURCES`].
    pub idle_resources: usize,
    /// See [`MAX_HISTORY`].
    pub history: usize,
    /// See [`MAX_REGISTERS_PER_RESOURCE`].
    pub registers_per_resource: usize,
    /// See [`MAX_UNSEEN`].
    pub unseen: usize,
    /// See [`MAX_TIDY_LEASES`].
    pub tidy_leases: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            leases_per_session: MAX_LEASES_PER_SESSION,
            waits_per_session: MAX_WAITS_PER_SESSION,
            sessions: MAX_SESSIONS,
            waiters_per_resource: MAX_WAITERS_PER_RESOURCE,
            resources: MAX_RESOURCES,
            idle_resources: MAX_IDLE_RESOURCES,
            history: MAX_HISTORY,
            registers_per_resource: MAX_REGISTERS_PER_RESOURCE,
            unseen: MAX_UNSEEN,
            tidy_leases: MAX_TIDY_LEASES,
        }
    }
}
