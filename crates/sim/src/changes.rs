//! What somebody wants otherwise than the seeds decide.

use crate::plan::{Faults, Plan};

/// Changes to the plan of every seed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Changes {
    /// Faults that are switched off.
    pub without: Faults,
    /// So many clients.
    pub clients: Option<usize>,
    /// Nanoseconds for which faults happen.
    pub fault_length: Option<u64>,
}

impl Changes {
    /// The plan of a seed, changed.
    pub fn plan(&self, seed: u64) -> Plan {
        let mut plan = Plan::of(seed);
        for fault in self.without.iter() {
            plan.faults = plan.faults.without(fault);
        }
        plan.clients = self.clients.unwrap_or(plan.clients);
        plan.fault_length = self.fault_length.unwrap_or(plan.fault_length);
        plan
    }

    /// Whether nothing is changed.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Fault;
    use crate::trace::SECOND;

    #[test]
    fn a_plan_has_what_was_asked_for_and_is_else_that_of_its_seed() {
        let seed = (0..).find(|seed| Plan::of(*seed).faults.has(Fault::Kill)).unwrap();
        assert_eq!(Changes::default().plan(seed), Plan::of(seed));
        let without = Faults::NONE.with(Fault::Kill);
        let changes = Changes { without, clients: Some(2), fault_length: Some(9 * SECOND) };
        let plan = changes.plan(seed);
        assert!(!plan.faults.has(Fault::Kill));
        assert_eq!((plan.clients, plan.fault_length), (2, 9 * SECOND));
        assert_eq!(plan.arguments(), format!("--seed {seed} --without kill --clients 2 --fault-ms 9000"));
        assert!(!changes.is_none());
    }
}
