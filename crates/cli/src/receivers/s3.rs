//! Objects in S3, or in a store that speaks its language.
//!
//! Keys come from where every program of this kind takes them: the variables `AWS_...`, or what the machine hands out. A URL has none,
//! because it is shown in lists of processes.

mod http;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use leasehold::fence::{Answer, Error as FenceError, Receiver, Seen, Stamp};
use leasehold_fence::object_store::Fence;
use object_store::aws::{AmazonS3, AmazonS3Builder, AmazonS3ConfigKey};
use object_store::path::Path;
use object_store::{BackoffConfig, ObjectStoreExt as _, RetryConfig};
use serde::Deserialize;
use url::form_urlencoded;

use self::http::Http;

const HOW: &str =
    "write s3://BUCKET/PATH, and ?endpoint=http://HOST:PORT behind it for a store that is not Amazon's";
const NO_KEYS_HERE: &str = "keys do not belong into a URL, which is shown in lists of processes; set AWS_ACCESS_KEY_ID and \
                            AWS_SECRET_ACCESS_KEY";

/// What the store calls it.
const NO_BUCKET: &str = "NoSuchBucket";

/// A request is sent again once: an idle connection that the store has closed is found out by using it. More is for whoever asked,
/// who knows how long to wait.
const MAX_RETRIES: usize = 1;
const RETRY_PAUSE: Duration = Duration::from_millis(50);
/// A pause is drawn between the one before and this; without a difference there is nothing to draw from.
const LONGEST_RETRY_PAUSE: Duration = Duration::from_millis(200);

/// A fence for an object, under the name by which it was given.
struct InBucket {
    place: String,
    bucket: String,
    path: Path,
    store: Arc<AmazonS3>,
    fence: Fence,
    /// Whether the machine has to be asked for keys, because the environment has none.
    has_no_keys: bool,
}

impl fmt::Debug for InBucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not the store: it knows keys.
        f.debug_struct("InBucket").field("place", &self.place).finish_non_exhaustive()
    }
}

/// What is read of the head that lies at the path.
#[derive(Deserialize)]
struct Head {
    name: String,
}

/// What a URL says.
struct Address<'a> {
    bucket: &'a str,
    path: &'a str,
    endpoint: Option<String>,
    region: Option<String>,
}

pub(super) fn open(url: &str) -> Result<Arc<dyn Receiver>, String> {
    let Address { bucket, path, endpoint, region } = Address::read(url)?;
    let mut place = format!("s3://{bucket}/{path}");
    let mut builder = AmazonS3Builder::from_env().with_bucket_name(bucket);
    if let Some(endpoint) = endpoint {
        place.push_str(&format!("?endpoint={endpoint}"));
        // The variable of S3 alone would else come before it.
        builder = builder.with_endpoint(&endpoint).with_config(AmazonS3ConfigKey::S3Endpoint, endpoint);
    }
    if let Some(region) = region {
        builder = builder.with_region(region);
    }
    let endpoint = [AmazonS3ConfigKey::S3Endpoint, AmazonS3ConfigKey::Endpoint];
    let endpoint = endpoint.iter().find_map(|key| builder.get_config_value(key));
    let is_plain = endpoint.is_some_and(|endpoint| endpoint.starts_with("http://"));
    let has_no_keys = [
        AmazonS3ConfigKey::AccessKeyId,
        AmazonS3ConfigKey::WebIdentityTokenFile,
        AmazonS3ConfigKey::ContainerCredentialsRelativeUri,
        AmazonS3ConfigKey::ContainerCredentialsFullUri,
        AmazonS3ConfigKey::SkipSignature,
    ]
    .iter()
    // Keys that sign nothing are none.
    .all(|key| builder.get_config_value(key).is_none_or(|value| value.is_empty() || value == "false"));
    let backoff = BackoffConfig { init_backoff: RETRY_PAUSE, max_backoff: LONGEST_RETRY_PAUSE, base: 2. };
    let retry = RetryConfig { backoff, max_retries: MAX_RETRIES, ..RetryConfig::default() };
    let store =
        builder.with_allow_http(is_plain).with_retry(retry).with_http_connector(Http { is_plain }).build();
    let store = store
        .map_err(|error| format!("{error}; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, and {HOW}"))?;
    let store = Arc::new(store);
    let path = Path::from(path);
    let fence = Fence::new(store.clone(), path.clone());
    Ok(Arc::new(InBucket { place, bucket: bucket.to_owned(), path, store, fence, has_no_keys }))
}

impl<'a> Address<'a> {
    fn read(url: &'a str) -> Result<Self, String> {
        let rest = url.strip_prefix("s3://").ok_or_else(|| format!("it does not begin with s3://; {HOW}"))?;
        let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (bucket, path) = place.split_once('/').unwrap_or((place, ""));
        if bucket.contains('@') || bucket.contains(':') {
            return Err(NO_KEYS_HERE.to_owned());
        }
        if bucket.is_empty() {
            return Err(format!("it names no bucket; {HOW}"));
        }
        if Path::from(path).as_ref().is_empty() {
            return Err(format!("it names no object; {HOW}"));
        }
        let mut address = Self { bucket, path, endpoint: None, region: None };
        for (key, value) in form_urlencoded::parse(query.as_bytes()) {
            match &*key {
                "endpoint" => address.endpoint = Some(endpoint(&value)?),
                "region" => address.region = Some(value.into_owned()),
                // Its value may be a secret.
                _ => {
                    let why = "only endpoint and region may stand behind the question mark";
                    return Err(format!("{why}, not {key:?}; {NO_KEYS_HERE}"));
                }
            }
        }
        Ok(address)
    }
}

fn endpoint(value: &str) -> Result<String, String> {
    if value.contains('@') {
        return Err(NO_KEYS_HERE.to_owned());
    }
    if !value.starts_with("http://") && !value.starts_with("https://") {
        return Err(format!("the endpoint {value:?} does not begin with http:// or https://; {HOW}"));
    }
    Ok(value.trim_end_matches('/').to_owned())
}

impl InBucket {
    /// Why the head tells nothing of a name. An object that is not there is as good as a fence that nobody has sealed; a bucket that is
    /// not there is a mistake, and the store says both in the same way. So is a head of another name, to which nothing can be
    /// written under this one.
    async fn must_be_unused(&self, name: &str) -> Result<(), FenceError> {
        let failed = |why: String| Err(FenceError::lasting(&self.place, why));
        let found = match self.store.get(&self.path).await {
            Ok(found) => found.bytes().await,
            Err(error) if in_words(&error).contains(NO_BUCKET) => return failed(self.no_bucket()),
            Err(_) => return Ok(()),
        };
        let head: Option<Head> = found.ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
        match head {
            Some(head) if head.name != name => failed(format!(
                "it is fenced under {:?}, not under {name:?}; one object has one fence name, so ask for that one",
                head.name
            )),
            _ => Ok(()),
        }
    }

    fn no_bucket(&self) -> String {
        format!("there is no bucket {:?}; make it, or name the one that is written to", self.bucket)
    }

    /// The same error under the name by which the object was given, with what to do about it where that is known.
    fn told(&self, error: FenceError) -> FenceError {
        let advice = match self.has_no_keys {
            true => {
                "; AWS_ACCESS_KEY_ID is not set, so this machine was asked for keys: set it and AWS_SECRET_ACCESS_KEY"
            }
            false => "",
        };
        match error {
            FenceError::Failed { source, .. } if in_words(&*source).contains(NO_BUCKET) => {
                FenceError::lasting(&self.place, self.no_bucket())
            }
            FenceError::Failed { source, cause, .. } => {
                let source = format!("{}{advice}", in_words(&*source)).into();
                FenceError::Failed { receiver: self.place.clone(), cause, source }
            }
            FenceError::Unknown { source, .. } => {
                FenceError::unknown(&self.place, format!("{}{advice}", in_words(&*source)))
            }
            other => other,
        }
    }
}

/// All that an error knows, such as which certificate was not trusted; most repeat what the one below says, some do not.
fn in_words(error: &(dyn std::error::Error + 'static)) -> String {
    let mut words = error.to_string();
    let mut next = error.source();
    while let Some(source) = next {
        let more = source.to_string();
        if !words.contains(&more) {
            words.push_str(&format!(": {more}"));
        }
        next = source.source();
    }
    words
}

impl Receiver for InBucket {
    fn place(&self) -> &str {
        &self.place
    }

    fn seal<'a>(&'a self, stamp: &'a Stamp) -> Answer<'a, ()> {
        Box::pin(async move { self.fence.seal(stamp).await.map_err(|error| self.told(error)) })
    }

    fn look<'a>(&'a self, name: &'a str) -> Answer<'a, Seen> {
        Box::pin(async move {
            let seen = self.fence.look(name).await.map_err(|error| self.told(error))?;
            if seen.highest.is_none() {
                self.must_be_unused(name).await?;
            }
            Ok(seen)
        })
    }
}
