//! Peers: connections to and from the other members, on the thread of the node's loop, which all their messages come from and go to.
//!
//! A node dials every other member and sends on the connection it dialled; on those it accepted it only listens. Snapshots
//! have connections of their own. A connection that ends, in either direction, is reported to the node: what was under way on it has
//! an unknown fate. Raft's messages may be dropped (raft repeats them); no other message is ever dropped without such a report.

mod convert;
mod elsewhere;
mod founding;
mod inbound;
mod link;
mod lives;
mod opening;
mod snapshots;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use leasehold_core::protocol::{Incarnation, Member, MemberId};
use leasehold_node::members::CLUSTER_VERSION;
use leasehold_node::{Membership, PeerMessage};
use leasehold_wire::{PEER_VERSION, PeerHello, PeerPurpose, PeerWelcome};
use tokio::runtime::Handle;
use tokio::sync::{Notify, mpsc};

use crate::door::Present;
use crate::driver::ToLoop;
use crate::files::met_before;
use crate::inbox::Inbox;
use crate::repeats::Repeats;
pub(crate) use elsewhere::marked;
pub use founding::Founders;
use link::Link;

/// Who this node is, for its peers.
#[derive(Debug, Clone)]
pub(crate) struct Introduction {
    /// Its id.
    pub id: MemberId,
    /// Its name.
    pub name: String,
    /// Where clients and peers reach it.
    pub address: String,
    /// The founders, as every one of them must know them; empty if it was not started as one.
    pub initial_cluster: String,
    /// The longest ttl, in milliseconds.
    pub max_ttl_ms: u64,
    /// The bound of clocks' rate errors.
    pub drift_ppm: u32,
}

/// For the loop: where messages to peers go. Never waits.
#[derive(Debug, Clone)]
pub(crate) struct ToPeers(mpsc::UnboundedSender<Work>);

#[derive(Debug)]
pub(crate) enum Work {
    Send(MemberId, PeerMessage),
    Members(Arc<Membership>),
    /// A stream that a peer has begun; its first bytes are still to be read.
    Accepted(std::net::TcpStream),
    /// A peer that is not among the members (yet) has shown where it is.
    Met(MemberId, String),
    Stop,
}

impl ToPeers {
    pub(crate) fn send(&self, work: Work) {
        // If the task has ended, so has the service.
        let _ = self.0.send(work);
    }
}

/// What the tasks share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) introduction: Introduction,
    membership: Mutex<Arc<Membership>>,
    /// Ends the connections that a member has begun.
    accepted: Mutex<HashMap<MemberId, Arc<Notify>>>,
    suspicion: elsewhere::Suspicion,
    directory: PathBuf,
    /// Nodes that were not let in, and why: they come again several times a second.
    not_let_in: Repeats<(MemberId, String)>,
    /// Nodes of other lives of this cluster, which come as often.
    other_lives: Repeats<MemberId>,
    /// How often they came.
    other_life_contacts: AtomicU64,
    /// Founders that have not answered yet, while this node waits for them.
    missing_founders: Mutex<Vec<String>>,
    /// What clients are told of this node.
    present: Present,
    pub(crate) inbox: Inbox,
    pub(crate) work: ToPeers,
}

impl Shared {
    pub(crate) fn membership(&self) -> Arc<Membership> {
        Arc::clone(&self.membership.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// What a member is called, for people: its id if it is no member, or not any more.
    pub(crate) fn name_of(&self, id: MemberId) -> String {
        self.membership().member(id).map_or_else(|| id.to_string(), |member| member.name.clone())
    }

    pub(crate) fn hello(&self, purpose: PeerPurpose, to: Option<MemberId>) -> PeerHello {
        let (introduction, membership) = (self.introduction.clone(), self.membership());
        PeerHello {
            version: PEER_VERSION,
            cluster_version: CLUSTER_VERSION,
            purpose,
            from: introduction.id,
            name: introduction.name,
            address: introduction.address,
            to,
            incarnation: membership.incarnation,
            initial_cluster: introduction.initial_cluster,
            max_ttl_ms: introduction.max_ttl_ms,
            drift_ppm: introduction.drift_ppm,
            program: concat!("leasehold ", env!("CARGO_PKG_VERSION")).to_owned(),
            epoch: (!membership.is_blank()).then_some(membership.epoch),
        }
    }

    /// These founders have not answered.
    fn misses(&self, founders: Vec<String>) {
        self.present.set_missing(&founders);
        *self.missing_founders.lock().unwrap_or_else(PoisonError::into_inner) = founders;
    }

    /// What ends all connections that a member has begun.
    pub(crate) fn ends_of(&self, from: MemberId) -> Arc<Notify> {
        let mut accepted = self.accepted.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(accepted.entry(from).or_default())
    }

    /// Ends the connections that a member has begun: it waits for something that could not be sent to it, and would not know.
    pub(crate) fn end_accepted(&self, from: MemberId) {
        self.ends_of(from).notify_waiters();
    }

    pub(crate) fn tell(&self, message: ToLoop) {
        // A loop that is gone hears nothing, and needs nothing.
        let _ = self.inbox.send(message);
    }
}

/// The peers of a running node.
#[derive(Debug)]
pub struct Peers {
    shared: Arc<Shared>,
}

impl Peers {
    /// Starts the tasks. A blank founder looks for the others.
    pub(crate) fn start(
        directory: &Path,
        introduction: Introduction,
        membership: Membership,
        founders: Option<Founders>,
        inbox: Inbox,
        present: Present,
        runtime: &Handle,
    ) -> Self {
        let (sender, work) = mpsc::unbounded_channel();
        let shared = Arc::new(Shared {
            introduction,
            membership: Mutex::new(Arc::new(membership)),
            accepted: Mutex::default(),
            suspicion: elsewhere::Suspicion::new(directory),
            directory: directory.to_owned(),
            not_let_in: Repeats::default(),
            other_lives: Repeats::default(),
            other_life_contacts: AtomicU64::new(0),
            missing_founders: Mutex::default(),
            present,
            inbox,
            work: ToPeers(sender),
        });
        if shared.membership().is_blank() {
            for (id, address) in met_before(directory) {
                shared.work.send(Work::Met(id, address));
            }
        }
        let tasks = Arc::clone(&shared);
        runtime.spawn(async move {
            if let Some(founders) = founders {
                tokio::spawn(founding::found(Arc::clone(&tasks), founders));
            }
            run(tasks, work).await;
        });
        Self { shared }
    }

    pub(crate) fn work(&self) -> ToPeers {
        self.shared.work.clone()
    }

    /// A way in for streams of peers.
    pub fn accepting(&self) -> Accepting {
        Accepting(self.shared.work.clone())
    }

    /// A way to ask other nodes who they are.
    pub fn asking(&self) -> Asking {
        Asking(Arc::clone(&self.shared))
    }
}

impl Drop for Peers {
    fn drop(&mut self) {
        self.shared.work.send(Work::Stop);
    }
}

/// Takes in streams that peers have begun.
#[derive(Debug, Clone)]
pub struct Accepting(ToPeers);

impl Accepting {
    /// Takes in a stream whose first bytes, not taken yet, are those of a peer.
    pub fn accept(&self, stream: std::net::TcpStream) {
        self.0.send(Work::Accepted(stream));
    }
}

/// Asks other nodes who they are.
#[derive(Debug, Clone)]
pub struct Asking(Arc<Shared>);

impl Asking {
    /// Who listens at an address.
    ///
    /// # Errors
    /// In words, when nobody does, or something else.
    pub async fn ask(&self, address: &str) -> Result<PeerWelcome, String> {
        opening::ask(&self.0, address).await
    }

    /// Where this node says that it is reached, which may not be what its cluster has recorded.
    pub fn advertised(&self) -> &str {
        &self.0.introduction.address
    }

    /// The founders that this node waits for, as of the last look.
    pub fn missing_founders(&self) -> Vec<String> {
        self.0.missing_founders.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How often a node of another life of this cluster was met.
    pub fn other_life_contacts(&self) -> u64 {
        self.0.other_life_contacts.load(Ordering::Relaxed)
    }

    /// Who this node is, and this life of its cluster.
    pub fn known(&self) -> (MemberId, Incarnation, Arc<Membership>) {
        let membership = self.0.membership();
        (self.0.introduction.id, membership.incarnation, membership)
    }
}

/// Keeps one link for every other member.
async fn run(shared: Arc<Shared>, mut work: mpsc::UnboundedReceiver<Work>) {
    let mut links: HashMap<MemberId, Link> = HashMap::new();
    let membership = shared.membership();
    keep_links(&shared, &mut links, &membership);
    while let Some(next) = work.recv().await {
        match next {
            Work::Send(to, message) => match links.get(&to) {
                Some(link) => link.send(&message),
                None => link::undelivered(&shared, to, &message),
            },
            Work::Members(membership) => {
                *shared.membership.lock().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&membership);
                keep_links(&shared, &mut links, &membership);
            }
            Work::Accepted(stream) => {
                tokio::spawn(inbound::serve(Arc::clone(&shared), stream));
            }
            Work::Met(id, address) => {
                let unknown = id != shared.introduction.id && shared.membership().member(id).is_none();
                if unknown && links.get(&id).is_none_or(|link| link.address() != address) {
                    links.insert(id, Link::new(&shared, id, address));
                }
            }
            Work::Stop => return,
        }
    }
}

fn keep_links(shared: &Arc<Shared>, links: &mut HashMap<MemberId, Link>, membership: &Membership) {
    if membership.is_blank() {
        return;
    }
    let others = membership.members.iter().map(|(member, _)| member);
    let others: Vec<&Member> = others.filter(|member| member.id != shared.introduction.id).collect();
    // Those that were removed, or have moved. Others may be members that have not been heard of here yet.
    links.retain(|id, link| {
        let moved = others.iter().any(|member| member.id == *id && member.address != link.address());
        !membership.removed.contains(id) && !moved
    });
    for id in &membership.removed {
        // They come again, and hear that they were removed.
        shared.end_accepted(*id);
    }
    for member in others {
        links.entry(member.id).or_insert_with(|| Link::new(shared, member.id, member.address.clone()));
    }
}
