//! Object stores: a head that is put on condition, and bodies that never change.
//!
//! ```no_run
//! # async fn example(guard: impl leasehold_fence::Authority, s3: std::sync::Arc<dyn object_store::ObjectStore>) -> Result<(), Box<dyn std::error::Error>> {
//! use leasehold_fence::object_store::Fence;
//!
//! let fence = Fence::new(s3, "reports/nightly.json");
//! fence.write(&guard, "{\"rows\": 42}").await?;
//! let object = fence.read().await?.expect("it was written");
//! # Ok(()) }
//! ```
//!
//! At the path lies the **head**, a small JSON object: the fence name, the token, a number, and the key of the body. Bodies lie under `PATH.d/`, each under a key that
//! nobody else uses, and never change. What counts is what the head names; [`Fence::read`] follows it.
//!
//! **The atomic step** is the conditional put of the head: the store takes it only if the head is still the one that was read (`If-Match`), or if there is
//! none (`If-None-Match: *`). A token below that of the head is refused. No two heads are equal, so a head that was read and is there again was there all the time.
//!
//! **What it needs.** Conditional puts, which S3, GCS, Azure, R2 and MinIO have, and reads that see the last write. Whether the store has them is tried before the
//! first write, on `PATH.d/probe`: one that has none (`LocalFileSystem`), or that ignores conditions, is refused with words. What is acknowledged is as durable as the store says.
//! One object has one fence name.
//!
//! **A put without an answer** is looked up: each head lists the last puts by their identities. So is a put that was refused, because clients send a put again after an error of
//! the server, and the second is refused if the first was taken, or turned away with a key that has expired. It stays unknown only when the store cannot be read.
//!
//! **What it does not cover.** *Writers that put at the path themselves*: a bucket policy can keep them away. *Readers that read a body by its key*, past the head. *Removing the head*, by hand or by a
//! rule for old objects: the fence is gone with it. *Replication to other regions*: a replica's head is old. It keeps no refusals.

mod enter;
mod head;

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use bytes::Bytes;
use futures_util::TryStreamExt as _;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt as _, UpdateVersion};

use crate::counts::Counts;
use crate::error::{Error, Trouble, causes};
use crate::receiver::{Answer, Mark, Receiver, Seen};
use crate::stamp::{Authority, Stamp};
use enter::What;
use head::{Body, Found, Head};

/// How often a head is put before others are left to it: each time one of those who race gets through, so this is for many.
const MAX_TRIES: usize = 32;
/// What a store of the kind of S3 calls a bucket that is not there. Its error is else that of an object that is not there.
const NO_BUCKET: &str = "NoSuchBucket";

/// An object behind a fence.
#[derive(Clone)]
pub struct Fence {
    store: Arc<dyn ObjectStore>,
    path: Path,
    bodies: Path,
    place: String,
    counts: Counts,
    /// Whether the store was seen to honour conditions.
    tried: Arc<AtomicBool>,
}

impl fmt::Debug for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not the store: it may know keys.
        f.debug_struct("Fence").field("place", &self.place).finish_non_exhaustive()
    }
}

/// An object as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Object {
    /// What is in it.
    pub contents: Bytes,
    /// The highest token, which may be above that of the write: a seal raises it.
    pub token: u64,
    /// The number of the head, which rises with every write and seal.
    pub sequence: u64,
}

impl Fence {
    /// A fence for the object at a path, which need not be there yet.
    pub fn new(store: Arc<dyn ObjectStore>, path: impl Into<Path>) -> Self {
        let path = path.into();
        let bodies = Path::parse(format!("{path}.d")).expect("a path stays one with letters behind it");
        let place = format!("{store}/{path}");
        Self { store, path, bodies, place, counts: Counts::default(), tried: Arc::default() }
    }

    /// Counts here.
    #[must_use]
    pub fn counted(mut self, counts: &Counts) -> Self {
        self.counts = counts.clone();
        self
    }

    /// Replaces the contents, if the token is not stale.
    ///
    /// # Errors
    /// [`Error::Failed`] also when others put heads all the time, or when the store has no conditional puts.
    /// [`Error::Unknown`] when a put had no answer and the head cannot be read.
    pub async fn write(&self, authority: impl Authority, contents: impl Into<Bytes>) -> Result<(), Error> {
        let write = async move {
            let stamp = authority.stamp()?;
            self.enter(&stamp, What::Whole(contents.into())).await
        };
        self.counts.writing(&self.place, write).await
    }

    /// Replaces the contents by what `change` makes of them, if the token is not stale and nobody has replaced them meanwhile;
    /// if somebody has, it is asked again. It is given nothing if nothing was written yet.
    ///
    /// # Errors
    /// As [`Fence::write`].
    pub async fn update(
        &self,
        authority: impl Authority,
        mut change: impl FnMut(Option<Bytes>) -> Bytes + Send,
    ) -> Result<(), Error> {
        let write = async move {
            let stamp = authority.stamp()?;
            self.enter(&stamp, What::Change(&mut change)).await
        };
        self.counts.writing(&self.place, write).await
    }

    /// What the head names, or nothing if nothing was written.
    ///
    /// # Errors
    /// When the store cannot be read, or the head is none.
    pub async fn read(&self) -> Result<Option<Object>, Error> {
        self.try_read().await.map_err(|trouble| self.failed(trouble))
    }

    /// Removes bodies that no head names, nor ever will: those of tokens below the present one. Says how many. Anybody may do
    /// this at any time. Bodies of the present token may be about to be named, and stay.
    ///
    /// # Errors
    /// When the store cannot be read, or a body not be removed.
    pub async fn sweep(&self) -> Result<u64, Error> {
        self.try_sweep().await.map_err(|trouble| self.failed(trouble))
    }

    async fn try_sweep(&self) -> Result<u64, Trouble> {
        // The head first: a later one names this body or one of a token that is no smaller.
        let Some(Found { head, .. }) = self.head().await? else { return Ok(0) };
        let (token, named) = (token(&head)?, head.body.map(|body| body.key));
        let all: Vec<Path> =
            self.store.list(Some(&self.bodies)).map_ok(|meta| meta.location).try_collect().await?;
        let mut removed = 0;
        for key in all {
            let of_token = key.filename().and_then(|name| name.split('-').next()?.parse::<u64>().ok());
            if of_token.is_some_and(|of_token| of_token < token) && named.as_deref() != Some(key.as_ref()) {
                self.store.delete(&key).await?;
                removed += 1;
            }
        }
        Ok(removed)
    }

    async fn try_read(&self) -> Result<Option<Object>, Trouble> {
        let mut last = None;
        for _ in 0..MAX_TRIES {
            let Some(Found { head, .. }) = self.head().await? else { return Ok(None) };
            let Some(body) = &head.body else { return Ok(None) };
            match self.body(body).await {
                Ok(contents) => {
                    return Ok(Some(Object { contents, token: token(&head)?, sequence: head.sequence }));
                }
                // The head has moved on, and somebody has swept behind it.
                Err(object_store::Error::NotFound { .. }) if last != Some(head.sequence) => {
                    last = Some(head.sequence);
                }
                Err(error) => return Err(error.into()),
            }
        }
        Err(format!("the head has moved on {MAX_TRIES} times while its body was read").into())
    }

    async fn body(&self, body: &Body) -> Result<Bytes, object_store::Error> {
        self.store.get(&Path::parse(&body.key)?).await?.bytes().await
    }

    async fn head(&self) -> Result<Option<Found>, Trouble> {
        let found = match self.store.get(&self.path).await {
            Ok(found) => found,
            Err(object_store::Error::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let version = UpdateVersion { e_tag: found.meta.e_tag.clone(), version: found.meta.version.clone() };
        let bytes = found.bytes().await?;
        let head = serde_json::from_slice(&bytes).map_err(|error| {
            format!("what lies there is no head ({error}); a fence needs a path of its own")
        })?;
        Ok(Some(Found { head, version }))
    }

    fn failed(&self, why: impl Into<Trouble>) -> Error {
        let why = why.into();
        let is_lasting = why.is::<enter::OtherName>() || says(&*why, NO_BUCKET);
        if is_lasting { Error::lasting(&self.place, why) } else { Error::failed(&self.place, why) }
    }
}

impl Receiver for Fence {
    fn place(&self) -> &str {
        &self.place
    }

    fn seal<'a>(&'a self, stamp: &'a Stamp) -> Answer<'a, ()> {
        Box::pin(self.counts.sealing(&self.place, self.enter(stamp, What::Nothing)))
    }

    fn look<'a>(&'a self, name: &'a str) -> Answer<'a, Seen> {
        Box::pin(async move {
            let found = self.head().await.map_err(|trouble| self.failed(trouble))?;
            let Some(Found { head, .. }) = found.filter(|found| found.head.name == name) else {
                return Ok(Seen::default());
            };
            let token = token(&head).map_err(|trouble| self.failed(trouble))?;
            Ok(Seen { highest: Some(Mark { token, holder: head.holder }), refusals: None })
        })
    }
}

/// Whether an error, or what it comes from, has this word in it.
fn says(error: &(dyn StdError + 'static), word: &str) -> bool {
    causes(error).any(|error| error.to_string().contains(word))
}

fn token(head: &Head) -> Result<u64, Trouble> {
    let token = head.token.parse();
    token.map_err(|_| format!("the head has {:?} where a token should be", head.token).into())
}
