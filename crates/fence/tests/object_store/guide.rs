//! What stands in the guide.

use leasehold_fence::Receiver as _;
use object_store::aws::S3ConditionalPut;

use crate::object_store::common::{contents, highest, stamp};
use crate::object_store::http::Http;
use crate::object_store::s3::store;

// From here to the end of the function.
use std::sync::Arc;

use leasehold_fence::object_store::Fence;
use leasehold_fence::{Authority, Error};
use object_store::aws::AmazonS3;

async fn report(s3: Arc<AmazonS3>, guard: impl Authority) -> Result<(), Error> {
    let fence = Fence::new(s3, "reports/nightly.json");
    fence.write(guard, r#"{"rows": 42}"#).await?;
    let object = fence.read().await?.expect("it was written");
    println!("{} bytes, token {}", object.contents.len(), object.token);
    Ok(())
}

#[tokio::test]
async fn the_guide_does_what_it_says() {
    let s3 = Arc::new(store(&Http::default(), S3ConditionalPut::ETagMatch));
    let fence = Fence::new(Arc::clone(&s3) as Arc<dyn object_store::ObjectStore>, "reports/nightly.json");
    fence.seal(&stamp("reports/nightly", 34)).await.unwrap();
    report(Arc::clone(&s3), stamp("reports/nightly", 34)).await.unwrap();
    assert_eq!(highest(report(s3, stamp("reports/nightly", 33)).await), Some(34));
    assert_eq!(contents(&fence).await.as_deref(), Some(r#"{"rows": 42}"#));
}
