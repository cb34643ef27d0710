//! Somebody with a plain session who asks by single calls.

use std::path::Path;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use leasehold_core::answer::Renewed;
use leasehold_core::command::SessionKind;
use leasehold_core::protocol::{Plain, Query, ReadAnswer, Request, Response};
use leasehold_core::table::LeaseView;
use leasehold_core::{
    Acquire, Answer, Label, Millis, Mode, Nonce, Op, Open, Policies, Reply, ResourceName, Revision,
    SessionId, Token, Value,
};
use leasehold_host::{Caller, Served, ServedOptions, serve};

/// Longer than anything here may take on a machine that is busy with something else.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// Serves a directory that nobody serves.
pub(crate) fn served(path: &Path) -> Served {
    serve(path, ServedOptions::default()).unwrap()
}

/// The same, with a snapshot after so many entries.
pub(crate) fn served_with_snapshots(path: &Path, snapshot_entries: u64) -> Served {
    let node = leasehold_node::Options { snapshot_entries, ..leasehold_node::Options::default() };
    serve(path, ServedOptions { node, ..ServedOptions::default() }).unwrap()
}

pub(crate) fn name(text: &str) -> ResourceName {
    ResourceName::new(text).unwrap()
}

pub(crate) fn acquire(resources: &[String], wait: Option<u64>, value: Vec<u8>) -> Op {
    let requests = resources
        .iter()
        .map(|resource| leasehold_core::Request { resource: name(resource), mode: Mode::Exclusive });
    let value = Value::new(value).unwrap();
    Op::Acquire(Acquire { requests: requests.collect(), value, wait: wait.map(Millis::new) })
}

#[derive(Clone)]
pub(crate) struct Person {
    pub(crate) caller: Caller,
    pub(crate) session: SessionId,
    pub(crate) nonce: Nonce,
}

impl Person {
    pub(crate) async fn open(caller: &Caller) -> Self {
        static PERSONS: AtomicU8 = AtomicU8::new(0);
        let mut nonce = [0; 16];
        let session = caller.hub().watch(&watch_all()).map_or(0, |watcher| watcher.position().get());
        nonce[..8].copy_from_slice(&session.to_be_bytes());
        nonce[8] = PERSONS.fetch_add(1, Ordering::Relaxed);
        let nonce = Nonce(nonce);
        let open = Open {
            nonce,
            label: Label::new("person").unwrap(),
            ttl: Millis::new(60_000),
            policies: Policies::default(),
            kind: SessionKind::Plain,
        };
        match caller.call(Request::Open(open)).await {
            Response::Reply(Reply::Opened(opened)) => {
                assert!(!opened.repeated, "nobody else has this nonce");
                Self { caller: caller.clone(), session: opened.session, nonce }
            }
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn request(&self, plain: Plain) -> Request {
        Request::Plain { session: self.session, nonce: self.nonce, plain }
    }

    pub(crate) async fn op(&self, op: Op) -> Response {
        self.caller.call(self.request(Plain::Command { op, hold: false, numbered: None })).await
    }

    /// An acquire that is answered when its wait is over.
    pub(crate) fn held(&self, resource: &str) -> Request {
        let op = acquire(&[resource.to_owned()], Some(60_000), Vec::new());
        self.request(Plain::Command { op, hold: true, numbered: None })
    }

    /// Waits for as long as it takes.
    pub(crate) async fn hold(&self, resource: &str) -> Response {
        self.caller.call(self.held(resource)).await
    }

    pub(crate) async fn take(&self, resource: &str) -> Token {
        token(&self.hold(resource).await)
    }

    pub(crate) async fn release(&self, resource: &str, token: Token) -> Response {
        self.op(Op::Release { resource: name(resource), token, drained: false }).await
    }

    pub(crate) async fn renew(&self) -> Renewed {
        match self.caller.call(self.request(Plain::Renew)).await {
            Response::Reply(Reply::Renewed(renewed)) => renewed,
            other => panic!("{other:?}"),
        }
    }
}

pub(crate) fn token(response: &Response) -> Token {
    match response {
        Response::Reply(Reply::Plain { answer: Answer::Granted(grants), .. }) => grants[0].token,
        other => panic!("{other:?}"),
    }
}

pub(crate) fn watch_all() -> leasehold_core::protocol::Watch {
    leasehold_core::protocol::Watch { prefix: String::new(), after: None }
}

/// A resource, and the revision at which it looked so.
pub(crate) async fn look(caller: &Caller, resource: &str) -> (Revision, Option<LeaseView>) {
    match caller.call(Request::Read(Query::Lease(name(resource)))).await {
        Response::Read { revision, answer: ReadAnswer::Lease(lease) } => {
            (revision, lease.map(|lease| *lease))
        }
        other => panic!("{other:?}"),
    }
}

/// Looks until so many wait for a resource.
pub(crate) async fn until_waiting(caller: &Caller, resource: &str, count: usize) {
    let looking = async {
        while look(caller, resource).await.1.map_or(0, |lease| lease.queue.len()) != count {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(PATIENCE, looking).await.unwrap_or_else(|_| panic!("never {count} waiting"));
}
