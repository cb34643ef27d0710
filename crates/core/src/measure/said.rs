//! A warning is said once, and again only when it has been good in between.

use core::time::Duration;

use crate::holder::Reading;

/// What was said is not said again sooner, whatever happened in between: a figure at the edge of its bound comes and goes.
pub const SAY_AGAIN_AFTER: Duration = Duration::from_secs(60);

/// What was said of one thing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Said {
    standing: bool,
    last: Option<Reading>,
}

impl Said {
    /// Looks again; says whether it is to be said now.
    pub fn look(&mut self, bad: bool, now: Reading) -> bool {
        if !bad {
            self.standing = false;
            return false;
        }
        let lately = self.last.is_some_and(|last| now.since(last).greater() < SAY_AGAIN_AFTER);
        if self.standing || lately {
            return false;
        }
        self.standing = true;
        self.last = Some(now);
        true
    }
}
