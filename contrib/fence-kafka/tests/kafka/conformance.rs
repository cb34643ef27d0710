//! The suite that all adapters pass, and what it finds when tokens are not compared.

use leasehold_fence::conformance::{self, Load, Violation};

use crate::world::{Tried, Way};

/// Every change of the writer begins an epoch, so there are fewer of them than the suite has by itself.
const LOAD: Load = Load { rounds: 4, holders: 3, writes: 4 };

#[tokio::test(flavor = "multi_thread")]
async fn the_adapter_passes_the_suite() {
    let report = conformance::run(&Tried::new(Way::Fenced).await, "suite", LOAD).await.unwrap();
    println!("Kafka: {report}");
    assert!(report.races == 4 && report.accepted > 20 && report.stale_tried > 20, "{report}");
    assert_eq!(report.unknown, 0);
}

/// The broker's epoch knows who came last, not whose token is greater.
#[tokio::test(flavor = "multi_thread")]
async fn the_suite_finds_an_epoch_without_the_comparison() {
    let found = conformance::run(&Tried::new(Way::EpochAlone).await, "suite", LOAD).await;
    assert!(matches!(found, Err(Violation::Broken { rule: "tokens never fall", .. })), "{found:?}");
}
