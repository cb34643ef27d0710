//! The founding of a cluster: blank nodes find each other, agree, and each writes the same first snapshot.
//!
//! Nobody votes before that. A node that finds the cluster founded already waits to be sent a snapshot if it is listed there, and
//! stops if it is not.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use leasehold_core::Config;
use leasehold_core::protocol::{Member, MemberId};
use leasehold_node::{Input, PeerMessage, SavedSnapshot, founding_snapshot};
use leasehold_wire::PeerWelcome;
use raft::eraftpb::{Message, MessageType};

use super::{Shared, opening};
use crate::driver::ToLoop;

/// How often the others are asked.
const EVERY: Duration = Duration::from_millis(100);
/// How often it is said who is missing.
const SAY_EVERY: u32 = 50;

/// Who founds a cluster, by name, with addresses, and the choices that hold for its life.
#[derive(Debug, Clone)]
pub struct Founders {
    /// Names and addresses of all of them, this node among them.
    pub nodes: BTreeMap<String, String>,
    /// The choices.
    pub config: Config,
}

impl Founders {
    /// The text that all of them must agree on.
    pub fn canonical(&self) -> String {
        let nodes: Vec<String> =
            self.nodes.iter().map(|(name, address)| format!("{name}={address}")).collect();
        nodes.join(",")
    }
}

/// What a look at the others has shown.
#[derive(Debug, PartialEq, Eq)]
enum Seen {
    /// All are blank and agree.
    Agreed(Vec<Member>),
    /// The cluster was founded with this node: it will be sent a snapshot.
    Listed,
    /// These do not answer yet.
    Missing(Vec<String>),
    /// It can never be.
    Never(String),
}

/// Founds the cluster, or waits for it, or stops the node.
pub(super) async fn found(shared: Arc<Shared>, founders: Founders) {
    let mut looks: u32 = 0;
    loop {
        if !shared.membership().is_blank() {
            return;
        }
        match look(&shared, &founders).await {
            Seen::Agreed(members) => {
                let names: Vec<&str> = members.iter().map(|member| member.name.as_str()).collect();
                tracing::info!(members = names.join(", "), "all founders have met; the cluster is founded");
                shared.misses(Vec::new());
                let other = members.iter().map(|member| member.id).find(|id| *id != shared.introduction.id);
                let snapshot = founding_snapshot(&founders.config, members);
                let from = other.expect("a cluster that is founded by several has others");
                let message = as_message(shared.introduction.id, from, &snapshot);
                shared.tell(ToLoop::Node(Input::Peer { from, message }));
                return;
            }
            Seen::Listed => {
                shared.misses(Vec::new());
                tracing::info!(
                    "the cluster was founded with this node; it waits for the others to bring it up"
                );
                return;
            }
            Seen::Missing(names) => {
                if looks.is_multiple_of(SAY_EVERY) {
                    tracing::info!(
                        missing = names.join(", "),
                        "a cluster is founded when all its nodes have met once; waiting"
                    );
                }
                shared.misses(names);
            }
            Seen::Never(why) => {
                shared.tell(ToLoop::Failed(why));
                return;
            }
        }
        looks += 1;
        tokio::time::sleep(EVERY).await;
    }
}

async fn look(shared: &Shared, founders: &Founders) -> Seen {
    let mut welcomes = Vec::new();
    for (name, address) in &founders.nodes {
        if *name != shared.introduction.name {
            welcomes.push((name.clone(), address.clone(), opening::ask(shared, address).await));
        }
    }
    judge(shared.introduction.id, &shared.introduction.name, founders, welcomes)
}

type Answer = (String, String, Result<PeerWelcome, String>);

fn judge(me: MemberId, my_name: &str, founders: &Founders, answers: Vec<Answer>) -> Seen {
    let mut missing = Vec::new();
    let mut members = Vec::new();
    for (name, address, answer) in answers {
        let Ok(welcome) = answer else {
            missing.push(name);
            continue;
        };
        let theirs = &welcome.hello;
        if theirs.from == me {
            return Seen::Never(format!("the address of {name}, {address}, leads back to this node"));
        }
        if theirs.name != name {
            return Seen::Never(format!("the node at {address} is called {:?}, not {name:?}", theirs.name));
        }
        if theirs.incarnation.is_known() {
            if welcome.members.iter().any(|(member, _)| member.id == me) {
                return Seen::Listed;
            }
            return Seen::Never(format!(
                "the cluster of {name} exists already and does not know this data directory. Is its volume mounted? If the directory is \
                 lost, `leasehold cluster remove {my_name}` first; then start this node with --join and an empty directory, and use \
                 `leasehold cluster add {my_name}=ADDRESS`"
            ));
        }
        let differs = |what: &str, theirs: &str, ours: &str| {
            Seen::Never(format!(
                "{name} was started with {what} {theirs:?}, this node with {ours:?}: make them equal"
            ))
        };
        let ours = founders.canonical();
        if theirs.initial_cluster != ours {
            return differs("initial cluster", &theirs.initial_cluster, &ours);
        }
        let max_ttl = founders.config.max_ttl.get();
        if theirs.max_ttl_ms != max_ttl {
            return differs("max_ttl_ms", &theirs.max_ttl_ms.to_string(), &max_ttl.to_string());
        }
        let drift = founders.config.drift.ppm();
        if theirs.drift_ppm != drift {
            return differs("drift_ppm", &theirs.drift_ppm.to_string(), &drift.to_string());
        }
        members.push(Member { id: theirs.from, name, address });
    }
    if !missing.is_empty() {
        return Seen::Missing(missing);
    }
    let address = founders.nodes.get(my_name).cloned().unwrap_or_default();
    members.push(Member { id: me, name: my_name.to_owned(), address });
    Seen::Agreed(members)
}

/// The founding snapshot as if another founder had sent it: it is written and answered for as any other.
fn as_message(me: MemberId, from: MemberId, snapshot: &SavedSnapshot) -> PeerMessage {
    let mut message = Message { to: me.0, from: from.0, term: snapshot.term, ..Message::default() };
    message.set_msg_type(MessageType::MsgSnapshot);
    let voters = leasehold_node::payload::NodeSnapshot::decode(&snapshot.bytes);
    let voters = voters.expect("it was just made").voters.voters;
    let raft = message.mut_snapshot();
    raft.data = snapshot.bytes.clone().into();
    let meta = raft.mut_metadata();
    (meta.index, meta.term) = (snapshot.index, snapshot.term);
    meta.mut_conf_state().voters = voters;
    PeerMessage::Raft(Box::new(message))
}

#[cfg(test)]
mod tests {
    use super::*;
    use leasehold_core::protocol::{Incarnation, MemberRole};
    use leasehold_wire::{PEER_VERSION, PeerHello, PeerPurpose, PeerVerdict};

    fn founders() -> Founders {
        let nodes = [("a", "h:1"), ("b", "h:2")].map(|(name, address)| (name.to_owned(), address.to_owned()));
        Founders { nodes: nodes.into(), config: Config::default() }
    }

    fn welcome(change: impl FnOnce(&mut PeerWelcome)) -> Vec<Answer> {
        let founders = founders();
        let hello = PeerHello {
            version: PEER_VERSION,
            cluster_version: 1,
            purpose: PeerPurpose::Ask,
            from: MemberId(2),
            name: "b".into(),
            address: "h:2".into(),
            to: None,
            incarnation: Incarnation(0),
            initial_cluster: founders.canonical(),
            max_ttl_ms: founders.config.max_ttl.get(),
            drift_ppm: founders.config.drift.ppm(),
            program: String::new(),
            epoch: None,
        };
        let mut welcome = PeerWelcome { hello, verdict: PeerVerdict::Accepted, members: Vec::new() };
        change(&mut welcome);
        vec![("b".into(), "h:2".into(), Ok(welcome))]
    }

    fn judged(answers: Vec<Answer>) -> Seen {
        judge(MemberId(1), "a", &founders(), answers)
    }

    #[test]
    fn blank_nodes_that_agree_found_it() {
        let Seen::Agreed(members) = judged(welcome(|_| {})) else { panic!("they agree") };
        let found: Vec<(u64, &str)> = members.iter().map(|m| (m.id.0, m.name.as_str())).collect();
        assert_eq!(found, [(2, "b"), (1, "a")]);
    }

    #[test]
    fn whoever_does_not_answer_is_waited_for() {
        let nobody = vec![("b".into(), "h:2".into(), Err("nobody".into()))];
        assert_eq!(judged(nobody), Seen::Missing(vec!["b".into()]));
    }

    #[test]
    fn a_cluster_that_exists_takes_in_those_it_lists_and_no_others() {
        let founded = |id: u64| {
            welcome(move |welcome| {
                welcome.hello.incarnation = Incarnation(7);
                let member = Member::new(MemberId(id), "a", "h:1").unwrap();
                welcome.members = vec![(member, MemberRole::Voter)];
            })
        };
        assert_eq!(judged(founded(1)), Seen::Listed);
        assert!(matches!(judged(founded(5)), Seen::Never(why)
            if why.contains("volume mounted?") && why.contains("cluster remove a`") && why.contains("cluster add a=")));
    }

    #[test]
    fn what_differs_is_named_with_both_values() {
        type Change = fn(&mut PeerWelcome);
        let cases: [(&str, Change); 5] = [
            ("b=h:3", |welcome| welcome.hello.initial_cluster = "a=h:1,b=h:3".into()),
            ("12345", |welcome| welcome.hello.max_ttl_ms = 12_345),
            ("77", |welcome| welcome.hello.drift_ppm = 77),
            ("\"c\"", |welcome| welcome.hello.name = "c".into()),
            ("back to this node", |welcome| welcome.hello.from = MemberId(1)),
        ];
        for (word, change) in cases {
            let seen = judged(welcome(change));
            assert!(matches!(&seen, Seen::Never(why) if why.contains(word)), "{seen:?}");
        }
    }
}
