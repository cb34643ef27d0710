//! The numbers of the nodes. Names of nodes are the only label that somebody chooses, and it is the operator; there are few of them.

use leasehold_core::protocol::{ClusterView, MemberView};
use leasehold_host::Inspection;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::metrics::gauge::ConstGauge;

use super::{Written, counter, family, gauge, whole};

/// What this node knows of the others: all of them know who they are, and the leader how they stand.
#[derive(Debug)]
pub(super) struct Cluster {
    leads: bool,
    ready: bool,
    has_leader: bool,
    members: usize,
    epoch: u16,
    other_life_contacts: u64,
    view: Option<ClusterView>,
}

impl Cluster {
    pub(super) fn new(look: &Inspection, other_life_contacts: u64, view: Option<ClusterView>) -> Self {
        Self {
            leads: look.leader == Some(look.membership.me),
            ready: look.ready,
            has_leader: look.leader.is_some(),
            members: look.membership.members.len(),
            epoch: look.membership.epoch,
            other_life_contacts,
            view,
        }
    }
}

impl Collector for Cluster {
    fn encode(&self, mut to: DescriptorEncoder<'_>) -> Written {
        let to = &mut to;
        gauge(to, "ready", "Whether this node answers, by itself or through its leader", self.ready)?;
        gauge(to, "leader", "Whether this node leads", self.leads)?;
        gauge(to, "has_leader", "Whether this node knows who leads", self.has_leader)?;
        gauge(to, "members", "Nodes of the cluster, learners included", self.members)?;
        gauge(to, "epoch", "How often the state was restored", self.epoch)?;
        let contacts = "Times that a node of another life of this cluster was met";
        counter(to, "other_life_contacts", contacts, self.other_life_contacts)?;
        let Some(view) = &self.view else { return Ok(()) };
        gauge(to, "term", "The term of the leader", view.term)?;
        each(to, "member_reachable", "Whether the leader heard of a node lately", view, |member| {
            whole(member.reachable)
        })?;
        each(to, "member_behind_entries", "Entries that a node is not known to have yet", view, |member| {
            whole(view.committed.saturating_sub(member.matched))
        })
    }
}

/// One gauge for every node.
fn each(
    to: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    view: &ClusterView,
    value: impl Fn(&MemberView) -> ConstGauge<i64>,
) -> Written {
    let members = view.members.iter().map(|seen| ([("member", seen.member.name.as_str())], value(seen)));
    family(to, name, help, None, members)
}
