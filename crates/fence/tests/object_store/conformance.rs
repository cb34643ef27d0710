//! The suite that every receiver passes, and two ways of leaving the check out that do not pass it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use leasehold_fence::conformance::{Load, Report, Subject, Trouble, Violation, Writer, Written, run};
use leasehold_fence::object_store::Fence;
use leasehold_fence::{Answer, Error, Receiver, Seen, Stamp};
use object_store::aws::S3ConditionalPut;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt as _};

use crate::object_store::http::Http;
use crate::object_store::s3::store;

/// How a value is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Right,
    Unchecked,
    CheckThenAct,
}

/// An object has one fence name, so there is an object for each name. All lines of a name are in its object.
#[derive(Debug, Clone)]
struct Objects {
    way: Way,
    prefix: &'static str,
    store: Arc<dyn ObjectStore>,
    fences: Arc<Mutex<BTreeMap<String, Fence>>>,
}

impl Objects {
    fn new(way: Way, prefix: &'static str, store: Arc<dyn ObjectStore>) -> Self {
        Self { way, prefix, store, fences: Arc::default() }
    }

    fn fence(&self, name: &str) -> Fence {
        let make = || Fence::new(Arc::clone(&self.store), format!("{}/{name}", self.prefix));
        self.fences.lock().unwrap().entry(name.to_owned()).or_insert_with(make).clone()
    }

    /// Where those write that do not go through the fence.
    fn plain(&self, name: &str) -> Path {
        Path::from(format!("{}-plain/{name}", self.prefix))
    }
}

impl Receiver for Objects {
    fn place(&self) -> &str {
        self.prefix
    }

    fn seal<'a>(&'a self, stamp: &'a Stamp) -> Answer<'a, ()> {
        Box::pin(async move { self.fence(stamp.name()).seal(stamp).await })
    }

    fn look<'a>(&'a self, name: &'a str) -> Answer<'a, Seen> {
        Box::pin(async move { self.fence(name).look(name).await })
    }
}

impl Subject for Objects {
    type Writer = Self;

    fn receiver(&self) -> Arc<dyn Receiver> {
        Arc::new(self.clone())
    }

    async fn writer(&self) -> Result<Self, Trouble> {
        Ok(self.clone())
    }

    async fn written(&self, name: &str) -> Result<Vec<Written>, Trouble> {
        let contents = match self.way {
            Way::Right => self.fence(name).read().await?.map(|object| object.contents),
            _ => Some(self.store.get(&self.plain(name)).await?.bytes().await?),
        };
        let text = String::from_utf8(contents.unwrap_or_default().to_vec())?;
        let written = text.lines().map(|line| {
            let (token, value) = line.split_once(' ').ok_or("a line has a token and a value")?;
            Ok(Written { token: token.parse()?, value: value.to_owned() })
        });
        written.collect()
    }
}

fn appended(old: Option<Bytes>, line: &str) -> Bytes {
    [&old.unwrap_or_default()[..], line.as_bytes()].concat().into()
}

impl Writer for Objects {
    async fn write(&mut self, stamp: &Stamp, value: &str) -> Result<(), Error> {
        let line = format!("{} {value}\n", stamp.token());
        let fence = self.fence(stamp.name());
        if self.way == Way::Right {
            return fence.update(stamp, |old| appended(old, &line)).await;
        }
        if self.way == Way::CheckThenAct {
            // The seal is a check that raises. The write is another request.
            fence.seal(stamp).await?;
            for _ in 0..value.bytes().map(u64::from).sum::<u64>() % 13 {
                tokio::task::yield_now().await;
            }
        }
        let path = self.plain(stamp.name());
        let old = match self.store.get(&path).await {
            Ok(found) => Some(found.bytes().await.unwrap()),
            Err(_) => None,
        };
        self.store.put(&path, appended(old, &line).into()).await.unwrap();
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_fence_passes_on_s3() {
    let s3 = Arc::new(store(&Http::default(), S3ConditionalPut::ETagMatch));
    let load = Load { rounds: 8, holders: 4, writes: 5 };
    let report: Report = run(&Objects::new(Way::Right, "conformance", s3), "t", load).await.unwrap();
    println!("object store, S3 of moto: {report}");
    assert_eq!((report.races, report.unknown), (8, 0));
    assert!(report.accepted > 30 && report.stale_tried > 30, "{report}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_fence_passes_in_memory() {
    let objects = Objects::new(Way::Right, "conformance", Arc::new(InMemory::new()));
    let report = run(&objects, "t", Load { rounds: 40, ..Load::default() }).await.unwrap();
    println!("object store, in memory: {report}");
    assert_eq!(report.races, 40);
    assert!(report.accepted > 200 && report.stale_tried > 200, "{report}");
    // In memory so many heads may pass while a thread stands still that none tells of its put any more.
    assert!(report.unknown < 10, "{report}");
}

#[tokio::test]
async fn every_way_without_the_check_is_found() {
    // Without a condition, writes of one token are lost too; either is a finding.
    for (way, rules) in [
        (Way::Unchecked, ["tokens never fall", "what is said is what was written"]),
        (Way::CheckThenAct, ["tokens never fall", "what is said is what was written"]),
    ] {
        let objects = Objects::new(way, "planted", Arc::new(InMemory::new()));
        match run(&objects, "t", Load { rounds: 40, ..Load::default() }).await {
            Err(Violation::Broken { rule: found, .. }) => assert!(rules.contains(&found), "{way:?}: {found}"),
            other => panic!("{way:?}: {other:?}"),
        }
    }
}
