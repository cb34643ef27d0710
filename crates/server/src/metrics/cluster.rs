//! The numbers of the nodes. Names of nodes are the only label that somebody chooses, and it is the operator; there are few of them.

use std::fmt;

use leasehold_core::protocol::ClusterView;
use leasehold_host::Inspection;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;

use super::{as_i64, counter, gauge};

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
    fn encode(&self, mut to: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let to = &mut to;
        let flag = |value: bool| ConstGauge::new(i64::from(value));
        gauge(to, "ready", "Whether this node answers, by itself or through its leader", &flag(self.ready))?;
        gauge(to, "leader", "Whether this node leads", &flag(self.leads))?;
        gauge(to, "has_leader", "Whether this node knows who leads", &flag(self.has_leader))?;
        gauge(
            to,
            "members",
            "Nodes of the cluster, learners included",
            &ConstGauge::new(as_i64(self.members)),
        )?;
        gauge(to, "epoch", "How often the state was restored", &ConstGauge::new(i64::from(self.epoch)))?;
        let contacts = "Times that a node of another life of this cluster was met";
        counter(to, "other_life_contacts", contacts, self.other_life_contacts)?;
        let Some(view) = &self.view else { return Ok(()) };
        gauge(to, "term", "The term of the leader", &ConstGauge::new(number(view.term)))?;
        each(to, "member_reachable", "Whether the leader heard of a node lately", view, |member| {
            i64::from(member.reachable)
        })?;
        each(to, "member_behind_entries", "Entries that a node is not known to have yet", view, |member| {
            number(view.committed.saturating_sub(member.matched))
        })
    }
}

/// One gauge for every node.
fn each(
    to: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    view: &ClusterView,
    value: impl Fn(&leasehold_core::protocol::MemberView) -> i64,
) -> Result<(), fmt::Error> {
    let mut family = to.encode_descriptor(name, help, None, MetricType::Gauge)?;
    for seen in &view.members {
        let labels = [("member", seen.member.name.as_str())];
        ConstGauge::new(value(seen)).encode(family.encode_family(&labels)?)?;
    }
    Ok(())
}

fn number(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
