//! What the fence costs in an object store: one put with and without it, in turns, on the S3 interface of moto.
//!
//! `cargo run --release -p leasehold-fence --example cost_object_store`

use std::sync::Arc;
use std::time::Duration;

use leasehold_fence::Stamp;
use leasehold_fence::object_store::Fence;
use leasehold_kit::Receiver as _;
use leasehold_kit::s3::Server;
use object_store::aws::{AmazonS3Builder, S3ConditionalPut};
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt as _};

#[expect(dead_code, reason = "the tests tell it to lose answers")]
#[path = "../tests/object_store/http.rs"]
mod http_client;

/// Each way is measured so many times, in turns; the median counts.
const REPEATS: usize = 7;
const WRITES: usize = 50;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server = Server::start()?;
    server.make_bucket("fenced")?;
    let s3: Arc<dyn ObjectStore> = Arc::new(
        AmazonS3Builder::new()
            .with_endpoint(server.url())
            .with_allow_http(true)
            .with_bucket_name("fenced")
            .with_region("us-east-1")
            .with_access_key_id("test")
            .with_secret_access_key("test")
            .with_conditional_put(S3ConditionalPut::ETagMatch)
            .with_http_connector(http_client::Http::default())
            .build()?,
    );
    let fence = Fence::new(Arc::clone(&s3), "fenced");
    let (stamp, plain) = (Stamp::new("cost", 34)?.held_by("worker-3")?, Path::from("plain"));
    let contents = vec![b'x'; 1_000];
    fence.write(&stamp, contents.clone()).await?;
    let [mut without, mut with] = [Vec::new(), Vec::new()];
    for _ in 0..REPEATS {
        let began = now();
        for _ in 0..WRITES {
            s3.put(&plain, contents.clone().into()).await?;
        }
        without.push(now() - began);
        let began = now();
        for _ in 0..WRITES {
            fence.write(&stamp, contents.clone()).await?;
        }
        with.push(now() - began);
    }
    let [without, with] = [without, with].map(median_us);
    println!(
        "object store, S3 of moto {}: {WRITES} writes of 1,000 bytes: {with:.1} us with the fence, {without:.1} us without, ratio {:.2}",
        server.version(),
        with / without,
    );
    Ok(())
}

fn median_us(mut times: Vec<Duration>) -> f64 {
    times.sort_unstable();
    times[times.len() / 2].as_secs_f64() * 1e6 / WRITES as f64
}

fn now() -> Duration {
    Duration::from_nanos(leasehold_clock::read().boot)
}
