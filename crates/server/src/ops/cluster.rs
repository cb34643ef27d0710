//! The nodes that keep the log: how they stand, changes of who they are, and a backup of what they keep.

use std::time::Duration;

use leasehold_api::answer::{ClusterState, LocalNode, Transferred};
use leasehold_api::{ApiError, bad_field, request};
use leasehold_core::Revision;
use leasehold_core::protocol::{
    ClusterCommand, ClusterReply, Failure, Member, Query, ReadAnswer, Request, Response,
};
use leasehold_host::{Inspection, backup_file};

use super::{Operations, Outcome, misfit, pick};

/// A node that is asked for a backup gets this long to apply what was decided by then.
const CATCH_UP_TIME: Duration = Duration::from_secs(5);
const LOOK_EVERY: Duration = Duration::from_millis(10);

impl Operations {
    /// How the cluster stands, as its leader sees it.
    pub(crate) async fn cluster(&self) -> Outcome<ClusterState> {
        let view = self.read(Query::Cluster, pick!(ReadAnswer::Cluster(view) => view)).await?.answer;
        let look = self.caller().inspect().await;
        Ok(ClusterState { view, restore_wait: look.and_then(|look| look.restore_wait) })
    }

    /// What this node knows without asking another.
    pub(crate) async fn local(&self) -> Outcome<LocalNode> {
        let look = self.look().await?;
        let membership = look.membership;
        Ok(LocalNode {
            me: membership.me,
            members: membership.members,
            advertised: self.asking().advertised().to_owned(),
            incarnation: membership.incarnation,
            epoch: membership.epoch,
            leader: look.leader,
            ready: look.ready,
            applied: look.applied,
            restore_wait: look.restore_wait,
        })
    }

    /// Adds a blank node as a learner. The node that listens there is asked who it is first.
    pub(crate) async fn add_member(&self, add: request::AddMember) -> Outcome<Revision> {
        let (name, address) = add.check()?;
        let asking = self.asking();
        let (me, ours, membership) = asking.known();
        let advertised = asking.advertised();
        // The new node would dial what is recorded, for ever and in vain.
        if let Some(recorded) = membership.member(me).filter(|member| member.address != advertised) {
            let (recorded, advertised) = (recorded.address.clone(), advertised.to_owned());
            return Err(ApiError::AddressDiffers { recorded, advertised });
        }
        let asked = asking.ask(&address).await;
        let unreachable = |why| ApiError::NodeUnreachable { address: address.clone(), why };
        let there = asked.map_err(unreachable)?.hello;
        if there.name != name {
            return Err(ApiError::WrongNode { address, asked: name, found: there.name });
        }
        // One of this very cluster is refused by the cluster itself, which knows why.
        if there.incarnation.is_known() && there.incarnation != ours {
            return Err(ApiError::NodeNotBlank { name, address });
        }
        let member = Member::new(there.from, &name, &address).map_err(|error| bad_field("address", error))?;
        self.change(ClusterCommand::Add(member)).await
    }

    /// Makes a learner a voter.
    pub(crate) async fn promote(&self, member: request::Member) -> Outcome<Revision> {
        self.change(ClusterCommand::Promote { name: member.check()? }).await
    }

    /// Removes a node.
    pub(crate) async fn remove(&self, member: request::Member) -> Outcome<Revision> {
        self.change(ClusterCommand::Remove { name: member.check()? }).await
    }

    /// Hands leadership over. Gives back who leads now.
    pub(crate) async fn transfer(&self, transfer: request::Transfer) -> Outcome<Transferred> {
        match self.cluster_reply(ClusterCommand::Transfer { to: transfer.check()? }).await? {
            ClusterReply::Transferred { to } => {
                let (_, _, membership) = self.asking().known();
                Ok(Transferred { leader: to, name: membership.member(to).map(|member| member.name.clone()) })
            }
            ClusterReply::Changed { .. } | ClusterReply::Refused(_) => Err(misfit()),
        }
    }

    /// Everything that this node has applied, as a file with its checksum. It is put together off the thread that answers others.
    pub(crate) async fn backup(&self, backup: request::Backup) -> Outcome<(Vec<u8>, u32)> {
        if self.asking().known().2.is_blank() {
            return Err(not_now("this node belongs to no cluster yet"));
        }
        if backup.age != Some(request::Age::Any) {
            self.until_current().await?;
        }
        let snapshot = self.caller().snapshot().await.ok_or_else(|| not_now("the service has stopped"))?;
        let made = tokio::task::spawn_blocking(move || {
            let file = backup_file(snapshot.save());
            let checksum = crc32c::crc32c(&file);
            (file, checksum)
        });
        made.await.map_err(|_| not_now("the backup could not be made"))
    }

    /// Waits until this node has applied everything that was decided when it was asked. One that is cut off, or has no leader, cannot know what
    /// that is: its backup would be old without a word.
    async fn until_current(&self) -> Outcome<()> {
        let current = async {
            while !self.look().await?.ready {
                tokio::time::sleep(LOOK_EVERY).await;
            }
            // A read is answered as of now, by the leader.
            let one = request::Leases { limit: Some(1), ..Default::default() };
            let decided = self.list(one).await?.revision;
            while self.look().await?.applied < decided {
                tokio::time::sleep(LOOK_EVERY).await;
            }
            Ok(())
        };
        let old = "a backup of this node might be old: it is not in touch with a leader, or does not catch up in time";
        tokio::time::timeout(CATCH_UP_TIME, current).await.unwrap_or_else(|_| Err(not_now(old)))
    }

    pub(super) async fn look(&self) -> Outcome<Inspection> {
        self.caller().inspect().await.ok_or_else(|| not_now("the service has stopped"))
    }

    /// Gives back the entry from which on a change is so.
    async fn change(&self, command: ClusterCommand) -> Outcome<Revision> {
        match self.cluster_reply(command).await? {
            ClusterReply::Changed { revision } => Ok(revision),
            ClusterReply::Transferred { .. } | ClusterReply::Refused(_) => Err(misfit()),
        }
    }

    async fn cluster_reply(&self, command: ClusterCommand) -> Outcome<ClusterReply> {
        match self.caller().call(Request::Cluster(command)).await {
            Response::Cluster(ClusterReply::Refused(refusal)) => Err(ApiError::Cluster(refusal)),
            Response::Cluster(reply) => Ok(reply),
            Response::Failed(failure) => Err(failure.into()),
            Response::Reply(_) | Response::Read { .. } => Err(misfit()),
        }
    }
}

/// The service takes in nothing now.
pub(crate) fn not_now(why: &str) -> ApiError {
    ApiError::Failed(Failure::Unavailable { why: why.to_owned() })
}
