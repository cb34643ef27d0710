//! What the log of a service says of its table: alarms that are raised and answered, and the end of the wait after a restore.
//!
//! Each is said once, by every node. Nothing is said before the node is current: the log that is read again at a start tells of alarms that were
//! answered long ago.

use std::collections::BTreeSet;
use std::sync::Arc;

use leasehold_core::protocol::{Change, Changes};
use leasehold_core::table::AlarmView;
use leasehold_core::{LeaseTable, ResourceName};

/// What was said.
#[derive(Debug, Default)]
pub(super) struct Notices {
    /// Whether the table was looked at since it was read or replaced.
    looked: bool,
    /// Names whose alarm was said to be raised.
    alarms: BTreeSet<ResourceName>,
    /// Whether nothing was granted at the last look.
    waits: bool,
}

impl Notices {
    /// Whether the node was current at the last look, with the table that it has now.
    pub(super) fn is_current(&self) -> bool {
        self.looked
    }

    /// The table is another one.
    pub(super) fn replaced(&mut self) {
        self.looked = false;
    }

    /// Says what is new. `changed` is what was applied since the last look.
    pub(super) fn say(&mut self, table: &LeaseTable, current: bool, changed: &[Arc<Changes>]) {
        if !current {
            self.looked = false;
            return;
        }
        let waits = table.restore_wait().is_some();
        if std::mem::replace(&mut self.waits, waits) && !waits {
            tracing::info!("the wait after the restore is over: leases are granted from now on");
        }
        if !std::mem::replace(&mut self.looked, true) {
            return self.look(table.alarms());
        }
        for change in changed.iter().flat_map(|changes| &changes.changes) {
            match change {
                Change::AlarmRaised { resource, token, by } => {
                    self.raised(resource, token.get(), by.as_str());
                }
                Change::AlarmCleared { resource, token, by, reason } => {
                    self.alarms.remove(resource);
                    let (token, by, reason) = (token.get(), by.as_str(), reason.as_str());
                    tracing::info!(%resource, token, by, reason, "the alarm was cleared: the name is granted again");
                }
                _ => {}
            }
        }
    }

    fn look(&mut self, present: impl Iterator<Item = AlarmView>) {
        let mut gone = self.alarms.clone();
        for alarm in present {
            gone.remove(&alarm.resource);
            self.raised(&alarm.resource, alarm.token.get(), alarm.by.as_str());
        }
        for resource in gone {
            self.alarms.remove(&resource);
            tracing::info!(%resource, "the alarm was cleared: the name is granted again");
        }
    }

    fn raised(&mut self, resource: &ResourceName, token: u64, by: &str) {
        // A greater token for the same name is no news, and whoever shows one after the other may not fill the log.
        if self.alarms.insert(resource.clone()) {
            tracing::warn!(
                %resource, token, by,
                "ALARM: a token was shown that was never granted here, so the name goes to nobody until an operator answers; see `leasehold alarms`"
            );
        }
    }
}
