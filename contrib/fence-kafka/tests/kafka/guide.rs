//! What stands in the guide.

use leasehold_fence::Receiver as _;

use crate::world::{World, highest, stamp};

// From here to the end of the function.
use leasehold_fence::{Authority, Error};
use leasehold_fence_kafka::{Fence, Record};

async fn report(fence: &Fence, guard: impl Authority, topic: &str) -> Result<(), Error> {
    let done = Record::to(topic).key("reports/nightly").value("done");
    let sent = Record::to(topic).key("reports/nightly").value("sent to 3");
    fence.write(&guard, vec![done, sent]).await?;
    Ok(())
}

#[tokio::test]
async fn the_guide_does_what_it_says() {
    let world = World::new().await;
    let fence = world.fence().await;
    fence.seal(&stamp("reports/nightly", 34)).await.unwrap();
    report(&fence, stamp("reports/nightly", 34), &world.data).await.unwrap();
    assert_eq!(highest(report(&fence, stamp("reports/nightly", 33), &world.data).await), Some(34));
    assert_eq!(world.tokens("reports/nightly"), [34, 34]);
}
