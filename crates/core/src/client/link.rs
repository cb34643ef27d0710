//! The connection: attaching, noticing that the streams do not move, and noticing silence.

use core::time::Duration;

use crate::holder::Reading;
use crate::id::{AttachNumber, ItemNumber};
use crate::numbers::Numbers;

/// A connection on which nothing was heard for this many request timeouts is given up: early enough to reach another node
/// before the deadline, late enough for a slow disk.
const SILENT_TIMEOUTS: u32 = 3;

#[derive(Debug, Clone)]
pub(super) struct Link {
    up: bool,
    attach: AttachNumber,
    /// The last item that was processed when the present attach was sent.
    attach_seen: ItemNumber,
    attached: bool,
    attach_wanted: bool,
    /// Since when something is missing without any progress.
    missing_since: Option<Reading>,
    backoff: Duration,
    shortest_backoff: Duration,
    longest_backoff: Duration,
    /// The first sending since something was heard.
    unheard_since: Option<Reading>,
    silence: Duration,
    given_up: bool,
}

impl Link {
    pub(super) fn new(numbers: &Numbers) -> Self {
        let timeout = numbers.request_timeout().duration();
        Self {
            up: false,
            attach: AttachNumber::NONE,
            attach_seen: ItemNumber::NONE,
            attached: false,
            attach_wanted: false,
            missing_since: None,
            backoff: timeout,
            shortest_backoff: timeout,
            longest_backoff: numbers.renew_every().duration(),
            unheard_since: None,
            silence: timeout * SILENT_TIMEOUTS,
            given_up: false,
        }
    }

    pub(super) fn connected(&mut self) {
        self.disconnected();
        self.up = true;
        self.attach_wanted = true;
        self.backoff = self.shortest_backoff;
    }

    pub(super) fn disconnected(&mut self) {
        self.up = false;
        self.attached = false;
        self.missing_since = None;
        self.unheard_since = None;
        self.given_up = false;
    }

    pub(super) const fn is_up(&self) -> bool {
        self.up
    }

    pub(super) const fn is_attached(&self) -> bool {
        self.up && self.attached
    }

    pub(super) const fn attach(&self) -> AttachNumber {
        self.attach
    }

    /// What the present attach said to have seen. Later items may overtake its answer.
    pub(super) const fn attached_seen(&self) -> ItemNumber {
        self.attach_seen
    }

    /// The number of the attach to send now, if one is due. Each sending takes a new number and doubles the pause to the next.
    pub(super) fn attach_due(&mut self, seen: ItemNumber, now: Reading) -> Option<AttachNumber> {
        let stuck = self.missing_since.is_some_and(|since| now.since(since).greater() >= self.backoff);
        if !self.up || !(self.attach_wanted || stuck) {
            return None;
        }
        if !self.attach_wanted {
            self.backoff = (self.backoff * 2).min(self.longest_backoff);
        }
        self.attach = self.attach.next();
        self.attach_seen = seen;
        self.attached = false;
        self.attach_wanted = false;
        self.missing_since = Some(now);
        Some(self.attach)
    }

    pub(super) fn attached(&mut self) {
        self.attached = true;
        self.missing_since = None;
    }

    /// Something is missing (an item, a command) that only a new attachment can bring: at once the first time, then with the
    /// pauses of the back-off.
    pub(super) fn trouble(&mut self) {
        if self.attached && self.backoff == self.shortest_backoff {
            self.backoff = (self.backoff * 2).min(self.longest_backoff);
            self.attach_wanted = true;
        }
    }

    /// A higher attachment than ours is known to the service.
    pub(super) fn overtaken_by(&mut self, current: AttachNumber) {
        self.attach = self.attach.max(current);
        self.attached = false;
    }

    /// Tells whether something is still missing.
    pub(super) fn missing(&mut self, missing: bool, now: Reading) {
        if missing && self.up {
            self.missing_since.get_or_insert(now);
        } else {
            self.missing_since = None;
        }
    }

    /// An item was processed: the streams move.
    pub(super) fn progress(&mut self) {
        self.missing_since = None;
        self.backoff = self.shortest_backoff;
    }

    pub(super) fn sent(&mut self, now: Reading) {
        self.unheard_since.get_or_insert(now);
    }

    pub(super) fn heard(&mut self) {
        self.unheard_since = None;
    }

    /// Others heard something on this connection, at this point: it is silent from there on, at most, and may be given up again.
    pub(super) fn heard_of(&mut self, at: Reading) {
        if let Some(since) = &mut self.unheard_since
            && !at.is_before(*since)
        {
            *since = since.latest(at);
            self.given_up = false;
        }
    }

    /// Whether the connection is to be given up now; said once per connection.
    pub(super) fn gives_up(&mut self, now: Reading) -> bool {
        let silent = self.unheard_since.is_some_and(|since| now.since(since).greater() >= self.silence);
        let gives_up = self.up && silent && !self.given_up;
        self.given_up |= gives_up;
        gives_up
    }

    /// How long until one of the timers here ends.
    pub(super) fn next_wake(&self, now: Reading) -> Option<Duration> {
        if !self.up {
            return None;
        }
        let left = |since: Reading, length: Duration| length.saturating_sub(now.since(since).greater());
        let stuck = self.missing_since.map(|since| left(since, self.backoff));
        let silent = self.unheard_since.filter(|_| !self.given_up).map(|since| left(since, self.silence));
        stuck.into_iter().chain(silent).min()
    }

    /// Whether an attach is due at once.
    pub(super) const fn wants_attach(&self) -> bool {
        self.up && self.attach_wanted
    }
}
