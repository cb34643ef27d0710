//! Where the members of a service are, as it says itself: for when none of the listed addresses answers.
//!
//! A list is written once, and nodes are replaced. Whoever is connected asks now and then who the members are, on the connection that it
//! has, and older services answer it too. What it deliberately does not do: it takes nobody off the list, and puts nobody before it. A list
//! may name a load balancer, and members may have addresses that only other members reach.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use leasehold_core::cluster::MAX_MEMBERS;
use leasehold_core::protocol::{
    ClusterView, MemberRole, Query, ReadAnswer, Request, RequestId, Response, ToClient,
};

use super::address::HostPort;
use super::life::Lives;

/// The id of the question on every connection. The driver's own begin with 1.
const ASKED: RequestId = RequestId(0);
/// A connection that is over sooner asks nothing: most commands are.
const FIRST_AFTER: Duration = Duration::from_millis(100);
/// Between two questions at most: less than it takes to replace one node after the other.
const AGAIN_AFTER: Duration = Duration::from_secs(5);
/// A connection that has asked so often is an old one: whoever replaces nodes ends connections, and new ones ask soon.
const OFTEN: u32 = 6;
/// Between two questions on an old connection at most. Each is a read of the leader, and there may be very many clients.
const SELDOM_AFTER: Duration = Duration::from_secs(30);

/// The members that were told last.
#[derive(Debug, Default)]
struct Members {
    hosts: Vec<HostPort>,
    /// Whether this machine told: only then is an address that means "this machine" one of theirs.
    near: bool,
}

/// The members that are known. Clones share them: a store and its watches know the same.
#[derive(Debug, Clone, Default)]
pub(crate) struct Learned(Arc<Mutex<Members>>);

/// A member to try.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LearnedHost {
    pub(super) host: HostPort,
    /// Whether it may be on this machine.
    pub(super) near: bool,
}

impl Learned {
    /// Those that are not on the list.
    pub(super) fn beside(&self, list: &[HostPort]) -> Vec<LearnedHost> {
        let members = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let others = members.hosts.iter().filter(|host| !list.contains(host));
        others.map(|host| LearnedHost { host: host.clone(), near: members.near }).collect()
    }

    fn replace(&self, view: &ClusterView, near: bool) {
        let voters_first = [MemberRole::Voter, MemberRole::Learner];
        let in_order = voters_first.iter().flat_map(|role| {
            view.members.iter().filter(move |member| member.role == *role).map(|member| &member.member)
        });
        // One that cannot be an address is of no use; it says nothing of the others.
        let hosts = in_order.filter_map(|member| HostPort::parse(&member.address).ok());
        let hosts = hosts.take(MAX_MEMBERS).collect();
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Members { hosts, near };
    }
}

/// The questions on one connection, and their answers.
#[derive(Debug, Clone)]
pub(super) struct Learning {
    pub(super) learned: Learned,
    pub(super) lives: Lives,
    /// Whether the other side is on this machine.
    pub(super) near: bool,
}

impl Learning {
    /// The question.
    pub(super) fn question() -> (RequestId, Request) {
        (ASKED, Request::Read(Query::Cluster))
    }

    /// How long to wait before the question is asked that comes after so many others on this connection. `draw` is a random part of 2^32: clients that lost one node at
    /// the same moment do not ask the next one at the same moments.
    pub(super) fn pause(asked: u32, draw: u32) -> Duration {
        let longest = match asked {
            0 => FIRST_AFTER,
            1..OFTEN => AGAIN_AFTER,
            _ => SELDOM_AFTER,
        };
        longest / 2 + (longest / 2).mul_f64(f64::from(draw) / f64::from(u32::MAX))
    }

    /// Takes an answer to the question; says whether it was one. The driver never sees it.
    pub(super) fn takes(&self, message: &ToClient) -> bool {
        let ToClient::Response { id: ASKED, response } = message else { return false };
        if let Response::Read { answer: ReadAnswer::Cluster(view), .. } = response
            && view.incarnation.to_string() == self.lives.known()
        {
            self.learned.replace(view, self.near);
        }
        true
    }
}

/// Whether an address means this machine, whoever says it.
pub(super) fn is_this_machine(address: IpAddr) -> bool {
    let address = address.to_canonical();
    address.is_loopback() || address.is_unspecified()
}

#[cfg(test)]
mod tests {
    use leasehold_core::Revision;
    use leasehold_core::protocol::{Failure, Incarnation, Member, MemberId, MemberView};
    use leasehold_wire::Hello;

    use super::*;

    const LIFE: Incarnation = Incarnation(7);

    fn learning() -> Learning {
        let lives = Lives::default();
        lives.meet("a:1", &Hello::new("x", 1, &LIFE.to_string())).unwrap();
        Learning { learned: Learned::default(), lives, near: false }
    }

    fn answer(incarnation: Incarnation, members: &[(&str, MemberRole)]) -> ToClient {
        let member = |(id, (address, role)): (u64, &(&str, MemberRole))| MemberView {
            member: Member { id: MemberId(id), name: format!("n{id}"), address: (*address).to_owned() },
            role: *role,
            matched: 1,
            reachable: true,
            receiving_snapshot: false,
        };
        let view = ClusterView {
            incarnation,
            epoch: 0,
            version: 1,
            leader: MemberId(1),
            term: 1,
            committed: 1,
            members: (1..).zip(members).map(member).collect(),
        };
        let response = Response::Read { revision: Revision::new(1), answer: ReadAnswer::Cluster(view) };
        ToClient::Response { id: ASKED, response }
    }

    fn known(learning: &Learning, list: &[&str]) -> Vec<String> {
        let list: Vec<HostPort> = list.iter().map(|host| HostPort::parse(host).unwrap()).collect();
        learning.learned.beside(&list).iter().map(|member| member.host.to_string()).collect()
    }

    #[test]
    fn the_members_that_were_told_last_are_known_voters_first_and_without_those_of_the_list() {
        let learning = learning();
        let members = [("a:1", MemberRole::Voter), ("d:1", MemberRole::Learner), ("b:1", MemberRole::Voter)];
        assert!(learning.takes(&answer(LIFE, &members)));
        assert_eq!(known(&learning, &["a:1"]), ["b:1", "d:1"]);
        assert!(learning.takes(&answer(LIFE, &[("c:1", MemberRole::Voter)])));
        assert_eq!(known(&learning, &["a:1"]), ["c:1"]);
    }

    #[test]
    fn members_of_another_life_are_not_learned() {
        let learning = learning();
        assert!(learning.takes(&answer(Incarnation(8), &[("b:1", MemberRole::Voter)])));
        assert_eq!(known(&learning, &[]), [""; 0]);
    }

    #[test]
    fn what_the_driver_asked_for_is_left_to_it_and_a_failure_changes_nothing() {
        let learning = learning();
        assert!(learning.takes(&answer(LIFE, &[("b:1", MemberRole::Voter)])));
        let failed = Response::Failed(Failure::OutcomeUnknown);
        assert!(!learning.takes(&ToClient::Response { id: RequestId(1), response: failed.clone() }));
        assert!(learning.takes(&ToClient::Response { id: ASKED, response: failed }));
        assert_eq!(known(&learning, &[]), ["b:1"]);
    }

    #[test]
    fn addresses_of_this_machine_are_told_apart() {
        for (address, is) in [
            ("127.0.0.1", true),
            ("127.4.20.2", true),
            ("::1", true),
            ("::ffff:127.0.0.1", true),
            ("0.0.0.0", true),
            ("::", true),
            ("10.0.0.1", false),
            ("fd00::7", false),
        ] {
            assert_eq!(is_this_machine(address.parse().unwrap()), is, "{address}");
        }
    }
}
