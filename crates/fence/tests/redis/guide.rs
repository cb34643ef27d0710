//! What stands in the guide.

use leasehold_fence::Receiver as _;

use crate::common::{get, highest, stamp, url};

// From here to the end of the function.
use leasehold_fence::redis::Fence;
use leasehold_fence::{Authority, Error};

async fn report(fence: &Fence, guard: impl Authority) -> Result<(), Error> {
    let last = fence.key("reports/nightly", "last");
    let runs = fence.key("reports/nightly", "runs");
    fence.write(guard, redis::pipe().set(&last, "done").incr(&runs, 1)).await?;
    Ok(())
}

#[tokio::test]
async fn the_guide_does_what_it_says() {
    let fence = Fence::open(url()).await.unwrap();
    fence.seal(&stamp("reports/nightly", 34)).await.unwrap();
    report(&fence, stamp("reports/nightly", 34)).await.unwrap();
    assert_eq!(highest(report(&fence, stamp("reports/nightly", 33)).await), Some(34));
    assert_eq!(get(url(), "{reports/nightly}:runs").await.as_deref(), Some("1"));
}
