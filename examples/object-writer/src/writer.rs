//! The writer: waits for the lease, writes the versions that are missing, gives it back. This is the part to copy.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, bail};
use clap::Args;
use leasehold::{Guard, SessionOptions, Store};
use leasehold_fence::Error as FenceError;
use leasehold_fence::object_store::Fence;
use object_store::aws::AmazonS3;
use object_store::path::Path;
use object_store::{ObjectStoreExt as _, PutPayload};

use crate::report::{self, Report};

/// What is leased, and the name of the fence.
const NAME: &str = "report";
/// The report is complete with this version.
pub(crate) const LAST: u64 = 3;
/// How long it may take to write one version.
const ONE_VERSION: Duration = Duration::from_millis(500);
/// How long a writer waits for its turn.
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Debug, Args)]
pub(crate) struct Words {
    /// Where the object store listens
    #[arg(long, value_name = "URL")]
    endpoint: String,
    /// A bucket that is there
    #[arg(long, value_name = "NAME")]
    bucket: String,
    /// The object
    #[arg(long)]
    path: String,
    /// Where leases live
    #[arg(long, value_name = "URL")]
    store: String,
    /// What this writer calls itself
    #[arg(long, value_name = "WORD")]
    label: String,
    /// After so long without a sign of life the lease goes to the next writer
    #[arg(long, value_name = "MILLISECONDS", default_value_t = 2000)]
    ttl_ms: u64,
    /// Let the store refuse a writer that was paused and came back
    #[arg(long)]
    fence: bool,
}

pub(crate) async fn work(words: &Words) -> Result<()> {
    let me = &words.label;
    let bucket = report::bucket(&words.endpoint, &words.bucket)?;
    let path = Path::from(words.path.as_str());
    let fence = words.fence.then(|| Arc::new(Fence::new(bucket.clone(), path.clone())));
    let store = Store::connect(&words.store).await?;
    let mut options = SessionOptions::new().ttl(Duration::from_millis(words.ttl_ms)).label(me);
    if let Some(fence) = &fence {
        // At every grant, before anybody can act: from then on the object refuses smaller tokens.
        options = options.seal_at(fence.clone());
    }
    let session = store.session_with(&options).await?;
    let lease = session.acquire(NAME).wait(PATIENCE).await?;
    println!("{me}: holds {NAME} with token {}", lease.granted().token);

    let object = Object { bucket, path, fence };
    let present = object.read().await?.map_or(0, |report| report.version);
    for version in present + 1..=LAST {
        // Leave to act for one version. A writer that was paused before this line learns it here, by its own clock.
        let guard = match lease.guard(ONE_VERSION) {
            Ok(guard) => guard,
            Err(why) => {
                println!("{me}: stops before version {version}: {why}");
                break;
            }
        };
        // A writer that is paused from here on does not: its bytes are on their way.
        match object.write(&guard, &Report { version, by: me.clone() }).await {
            Ok(()) => println!("{me}: wrote version {version}"),
            Err(FenceError::Stale(stale)) => {
                println!("{me}: version {version}: refused by the store: {stale}");
                break;
            }
            Err(error) => bail!(error),
        }
    }
    // A writer that has lost its lease gives nothing back.
    let _ = lease.release().await;
    Ok(())
}

/// The report in the store, behind a fence or not.
pub(crate) struct Object {
    pub(crate) bucket: Arc<AmazonS3>,
    pub(crate) path: Path,
    pub(crate) fence: Option<Arc<Fence>>,
}

impl Object {
    async fn write(&self, guard: &Guard<'_>, report: &Report) -> Result<(), FenceError> {
        match &self.fence {
            Some(fence) => fence.write(guard, report.bytes()).await,
            None => {
                let put = self.bucket.put(&self.path, PutPayload::from(report.bytes())).await;
                put.map(drop).map_err(|error| FenceError::unknown(self.path.as_ref(), error))
            }
        }
    }

    pub(crate) async fn read(&self) -> Result<Option<Report>> {
        let bytes = match &self.fence {
            Some(fence) => fence.read().await?.map(|object| object.contents),
            None => match self.bucket.get(&self.path).await {
                Ok(found) => Some(found.bytes().await?),
                Err(object_store::Error::NotFound { .. }) => None,
                Err(error) => bail!(error),
            },
        };
        bytes.map(|bytes| Report::read(&bytes)).transpose()
    }
}
