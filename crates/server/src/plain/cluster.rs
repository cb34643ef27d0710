//! The nodes that keep the log: how they stand, and changes of who they are.

use leasehold_core::Revision;
use leasehold_core::protocol::{
    ClusterCommand, ClusterReply, ClusterView, Member, MemberId, Query, ReadAnswer, Request, Response,
};
use leasehold_host::Asking;

use super::{ApiError, Plain, misfit};

impl Plain {
    /// How the cluster stands, as its leader sees it.
    ///
    /// # Errors
    /// When nobody leads.
    pub async fn cluster(&self) -> Result<ClusterView, ApiError> {
        let seen = self.read(Query::Cluster, |answer| match answer {
            ReadAnswer::Cluster(view) => Some(view),
            _ => None,
        });
        seen.await.map(|seen| seen.answer)
    }

    /// Adds a blank node as a learner. The node that listens there is asked who it is first.
    ///
    /// # Errors
    /// When nobody answers there, when it is another node or no blank one, or when the cluster refuses it.
    pub async fn add_member(&self, asking: &Asking, name: &str, address: &str) -> Result<Revision, ApiError> {
        let asked = asking.ask(address).await;
        let unreachable = |why| ApiError::NodeUnreachable { address: address.to_owned(), why };
        let there = asked.map_err(unreachable)?.hello;
        if there.name != name {
            return Err(ApiError::WrongNode {
                address: address.to_owned(),
                asked: name.to_owned(),
                found: there.name,
            });
        }
        let (_, ours, _) = asking.known();
        // One of this very cluster is refused by the cluster itself, which knows why.
        if there.incarnation.is_known() && there.incarnation != ours {
            return Err(ApiError::NodeNotBlank { name: name.to_owned(), address: address.to_owned() });
        }
        let bad = |error: leasehold_core::protocol::MemberError| ApiError::BadField {
            field: "address".to_owned(),
            why: error.to_string(),
        };
        let member = Member::new(there.from, name, address).map_err(bad)?;
        self.change(ClusterCommand::Add(member)).await
    }

    /// Promotes or removes a member. Gives back the entry from which on it is so.
    ///
    /// # Errors
    /// When the cluster refuses it.
    pub async fn change(&self, command: ClusterCommand) -> Result<Revision, ApiError> {
        match self.cluster_reply(command).await? {
            ClusterReply::Changed { revision } => Ok(revision),
            ClusterReply::Transferred { .. } | ClusterReply::Refused(_) => Err(misfit()),
        }
    }

    /// Hands leadership over. Gives back who leads now.
    ///
    /// # Errors
    /// When there is nobody to hand over to.
    pub async fn transfer(&self, to: Option<String>) -> Result<MemberId, ApiError> {
        match self.cluster_reply(ClusterCommand::Transfer { to }).await? {
            ClusterReply::Transferred { to } => Ok(to),
            ClusterReply::Changed { .. } | ClusterReply::Refused(_) => Err(misfit()),
        }
    }

    async fn cluster_reply(&self, command: ClusterCommand) -> Result<ClusterReply, ApiError> {
        match self.caller().call(Request::Cluster(command)).await {
            Response::Cluster(ClusterReply::Refused(refusal)) => Err(ApiError::Cluster(refusal)),
            Response::Cluster(reply) => Ok(reply),
            Response::Failed(failure) => Err(failure.into()),
            Response::Reply(_) | Response::Read { .. } => Err(misfit()),
        }
    }
}
