//! The open: repeated under its nonce until it is answered or the nonce is worn out.

use core::time::Duration;

use crate::holder::Reading;
use crate::id::Nonce;
use crate::numbers::Numbers;

#[derive(Debug, Clone)]
pub(super) struct Opening {
    pub(super) nonce: Nonce,
    pub(super) first_sent: Option<Reading>,
    pub(super) last_sent: Reading,
    /// Whether to send at once.
    pub(super) wanted: bool,
}

impl Opening {
    pub(super) const fn new(nonce: Nonce) -> Self {
        Self { nonce, first_sent: None, last_sent: Reading { boot: 0, raw: 0 }, wanted: true }
    }

    /// Whether a session made by the first sending would have lapsed by now: the nonce is of no more use.
    pub(super) fn is_worn_out(&self, numbers: &Numbers, now: Reading) -> bool {
        self.first_sent.is_some_and(|sent| now.since(sent).greater() >= numbers.usable().duration())
    }

    pub(super) fn is_due(&self, numbers: &Numbers, now: Reading) -> bool {
        self.wanted || now.since(self.last_sent).greater() >= numbers.request_timeout().duration()
    }

    pub(super) fn next_wake(&self, numbers: &Numbers, up: bool, now: Reading) -> Option<Duration> {
        let left = |since: Reading, length: Duration| length.saturating_sub(now.since(since).greater());
        let worn_out = self.first_sent.map(|sent| left(sent, numbers.usable().duration()));
        let again = match (up, self.wanted) {
            (false, _) => None,
            (true, true) => Some(Duration::ZERO),
            (true, false) => Some(left(self.last_sent, numbers.request_timeout().duration())),
        };
        again.into_iter().chain(worn_out).min()
    }

    /// Notes a sending.
    pub(super) fn sent(&mut self, now: Reading) {
        self.first_sent.get_or_insert(now);
        self.last_sent = now;
        self.wanted = false;
    }
}
