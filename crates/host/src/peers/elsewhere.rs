//! Whether another cluster expects one of its members where this node is.
//!
//! A node whose directory is gone (a volume that is not mounted) and that is told of no others founds a store of its own at the address of a
//! member: a second cluster, which grants the tokens of the first one again. The nodes of the first one dial that address, and
//! each hello says whom it is for. So a node that was founded alone and hears a hello for somebody else asks the nodes of that cluster. If a
//! majority of its voters answers, and each of them lists that member at this address, the cluster lives and this node must not: it stops,
//! leaves a mark, and does not start again in this directory while the mark is there.
//!
//! One old or removed node alone can stop nobody: it is no majority, and the others do not list what it lists. Nodes that have or had other
//! members, or whose state was restored or recovered, are never stopped: somebody decided that they are. The decision record has
//! the interleavings.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use leasehold_core::protocol::{Incarnation, MemberId, MemberRole};
use leasehold_node::Membership;
use leasehold_wire::{PeerHello, PeerPurpose, PeerWelcome};
use tokio::task::JoinSet;

use super::{Shared, opening};
use crate::driver::ToLoop;

/// Says that this directory must not be served, and why.
const MARK: &str = "expected-elsewhere";
/// Between two rounds of questions: nodes that are refused dial again several times a second.
const PAUSE: Duration = Duration::from_millis(250);

/// What a node must remember for this.
#[derive(Debug)]
pub(crate) struct Suspicion {
    /// Where the mark is left.
    directory: PathBuf,
    /// Others are being asked.
    asks: AtomicBool,
    /// It was said that a node of another cluster looks for its member here.
    said: AtomicBool,
    /// It was said that no majority expects anybody here.
    warned: AtomicBool,
}

impl Suspicion {
    pub(crate) fn new(directory: &Path) -> Self {
        let [asks, said, warned] = [(); 3].map(|()| AtomicBool::new(false));
        Self { directory: directory.to_owned(), asks, said, warned }
    }
}

/// What the mark in a directory says, if there is one.
pub(crate) fn marked(directory: &Path) -> Option<(PathBuf, String)> {
    let mark = directory.join(MARK);
    // One that cannot be read is one all the same.
    mark.symlink_metadata().ok()?;
    let why = std::fs::read_to_string(&mark).unwrap_or_default();
    Some((mark, why.trim_end().to_owned()))
}

/// Asks the cluster of a node that has dialled here for somebody else, unless that is under way already.
pub(super) fn suspect(shared: &Arc<Shared>, hello: &PeerHello) {
    let Some(expected) = expected(&shared.membership(), hello) else { return };
    if shared.suspicion.asks.swap(true, Ordering::Relaxed) {
        return;
    }
    if !shared.suspicion.said.swap(true, Ordering::Relaxed) {
        tracing::warn!(
            from = hello.name, address = hello.address, member = %expected,
            "a node of another cluster looks for one of its members here, and {} held no store before this start: is its volume mounted? The \
             other nodes of that cluster are asked",
            shared.suspicion.directory.display()
        );
    }
    let (shared, hello) = (Arc::clone(shared), hello.clone());
    tokio::spawn(async move {
        if let Some(why) = ask_around(&shared, expected, &hello).await {
            // First of all nothing more is granted.
            shared.tell(ToLoop::Failed(why.clone()));
            let mark = shared.suspicion.directory.join(MARK);
            if let Err(error) = std::fs::write(&mark, format!("{why}\n")) {
                tracing::error!(mark = %mark.display(), %error, "the mark cannot be left");
            }
            return;
        }
        tokio::time::sleep(PAUSE).await;
        shared.suspicion.asks.store(false, Ordering::Relaxed);
    });
}

/// The member that a hello is for, if this node may stand in its place: it was founded alone and has always been, and somebody of another
/// cluster looks for somebody else.
fn expected(ours: &Membership, hello: &PeerHello) -> Option<MemberId> {
    let expected = hello.to.filter(|to| *to != ours.me)?;
    let is_alone = matches!(&ours.members[..], [(only, _)] if only.id == ours.me) && ours.removed.is_empty();
    let is_founded = ours.epoch == 0;
    let is_other = hello.incarnation.is_known() && hello.incarnation != ours.incarnation;
    (hello.purpose != PeerPurpose::Ask && is_alone && is_founded && is_other).then_some(expected)
}

/// Why this node must stop, if a majority of the other cluster says so.
async fn ask_around(shared: &Arc<Shared>, expected: MemberId, hello: &PeerHello) -> Option<String> {
    let first = opening::ask(shared, &hello.address).await.ok()?;
    let place = listed(&first, hello.incarnation, expected)?;
    let voters = first.members.iter().filter(|(_, role)| *role == MemberRole::Voter);
    let voters: Vec<_> = voters.map(|(member, _)| member.clone()).collect();
    let mut asked = JoinSet::new();
    for voter in voters.iter().filter(|voter| voter.id != expected) {
        let (shared, voter) = (Arc::clone(shared), voter.clone());
        asked.spawn(async move { (voter.id, opening::ask(&shared, &voter.address).await) });
    }
    let mut agree = 0;
    while let Some(answer) = asked.join_next().await {
        if let Ok((id, Ok(welcome))) = answer
            && welcome.hello.from == id
            && listed(&welcome, hello.incarnation, expected).as_deref() == Some(place.as_str())
        {
            agree += 1;
        }
    }
    if agree * 2 <= voters.len() {
        if !shared.suspicion.warned.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                member = %expected, agree, voters = voters.len(),
                "a node of another cluster expects one of its members here; no majority of it says so, and this node goes on"
            );
        }
        return None;
    }
    Some(format!(
        "nodes of another cluster expect their member {expected} at {place}, and {agree} of its {} voters answer: this directory is not that \
         member's, and its store would grant the same tokens again. Is its volume mounted? If the member's directory is lost, \
         `leasehold cluster remove` it there, and start this node with --join and an empty directory",
        voters.len()
    ))
}

/// Where a node lists a member, if it belongs to that life of a cluster.
fn listed(welcome: &PeerWelcome, incarnation: Incarnation, id: MemberId) -> Option<String> {
    let member = welcome.members.iter().map(|(member, _)| member).find(|member| member.id == id);
    member.filter(|_| welcome.hello.incarnation == incarnation).map(|member| member.address.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use leasehold_core::protocol::Member;
    use leasehold_node::members::CLUSTER_VERSION;
    use leasehold_wire::PEER_VERSION;

    const ME: MemberId = MemberId(1);
    const EXPECTED: MemberId = MemberId(4);

    fn member(id: MemberId) -> (Member, MemberRole) {
        (Member::new(id, &format!("n{}", id.0), "127.0.0.1:7070").unwrap(), MemberRole::Voter)
    }

    fn founded_alone() -> Membership {
        Membership {
            me: ME,
            incarnation: Incarnation(7),
            epoch: 0,
            version: CLUSTER_VERSION,
            members: vec![member(ME)],
            removed: Vec::new(),
        }
    }

    fn hello() -> PeerHello {
        PeerHello {
            version: PEER_VERSION,
            cluster_version: CLUSTER_VERSION,
            purpose: PeerPurpose::Messages,
            from: MemberId(2),
            name: "b".into(),
            address: "127.0.0.1:7071".into(),
            to: Some(EXPECTED),
            incarnation: Incarnation(8),
            initial_cluster: String::new(),
            max_ttl_ms: 1,
            drift_ppm: 1,
            program: String::new(),
            epoch: Some(0),
        }
    }

    #[test]
    fn one_that_was_founded_alone_and_is_dialled_for_somebody_else_is_suspicious() {
        assert_eq!(expected(&founded_alone(), &hello()), Some(EXPECTED));
    }

    #[test]
    fn nobody_else_is() {
        let alone = founded_alone;
        let two = vec![member(ME), member(MemberId(3))];
        for (what, ours, theirs) in [
            ("it has others", Membership { members: two, ..alone() }, hello()),
            ("it had others", Membership { removed: vec![MemberId(3)], ..alone() }, hello()),
            ("it was restored", Membership { epoch: 1, ..alone() }, hello()),
            ("it is blank", Membership { members: Vec::new(), ..alone() }, hello()),
            ("it is meant", alone(), PeerHello { to: Some(ME), ..hello() }),
            ("anybody is meant", alone(), PeerHello { to: None, ..hello() }),
            ("it is asked who it is", alone(), PeerHello { purpose: PeerPurpose::Ask, ..hello() }),
            ("a blank node dials", alone(), PeerHello { incarnation: Incarnation(0), ..hello() }),
            ("its own cluster dials", alone(), PeerHello { incarnation: Incarnation(7), ..hello() }),
        ] {
            assert_eq!(expected(&ours, &theirs), None, "{what}");
        }
    }
}
