//! What a fence topic must be, what it keeps, and what is counted.

use leasehold_fence::{Authority, Counts, NoAuthority, Outcome, Receiver as _, Stamp};
use leasehold_fence_kafka::{Fence, Record};
use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::producer::{BaseProducer, BaseRecord, Producer as _};

use crate::world::{LONG, World, highest, stamp};

async fn make_topic(world: &World, name: &str, partitions: i32, policy: &str) {
    let admin: AdminClient<DefaultClientContext> = world.config().create().unwrap();
    let topic = NewTopic::new(name, partitions, TopicReplication::Fixed(1)).set("cleanup.policy", policy);
    admin.create_topics([&topic], &AdminOptions::new()).await.unwrap().pop().unwrap().unwrap();
    // Its broker knows of it a moment later.
    let knows = || admin.inner().fetch_metadata(Some(name), LONG).unwrap().topics()[0].partitions().len();
    while knows() == 0 {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn a_topic_that_would_forget_fences_is_refused() {
    let world = World::new().await;
    for (name, partitions, policy, said) in [
        (
            "by-time",
            1,
            "delete",
            "cleanup.policy of the fence topic by-time is \"delete\", by which fences are forgotten; set it to compact",
        ),
        (
            "by-both",
            1,
            "compact,delete",
            "is \"compact,delete\", by which fences are forgotten; set it to compact",
        ),
        ("split", 2, "compact", "the fence topic split has 2 partitions and must have 1; make another one"),
    ] {
        make_topic(&world, name, partitions, policy).await;
        for opened in [Fence::open(world.config(), name).await, Fence::make(world.config(), name, 1).await] {
            let error = opened.unwrap_err();
            assert_eq!(error.outcome(), Outcome::Failed);
            assert!(error.to_string().ends_with(said), "{error}");
        }
    }
    let error = Fence::open(world.config(), "missing").await.unwrap_err();
    let said = "the fence topic missing does not exist, or its settings may not be seen; make it with one partition and cleanup.policy=compact";
    assert!(error.to_string().ends_with(said), "{error}");
    assert!(Fence::open(world.config(), "missing").await.is_err(), "looking for it has not made it");
    make_topic(&world, "right", 1, "compact").await;
    Fence::open(world.config(), "right").await.unwrap();
}

fn put(world: &World, name: &str, value: Option<&str>) {
    let producer: BaseProducer = world.config().create().unwrap();
    let record = BaseRecord::<str, str>::to(&world.fences).key(name);
    let record = value.into_iter().fold(record, BaseRecord::payload);
    producer.send(record).map_err(|(error, _)| error).unwrap();
    producer.flush(LONG).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_that_is_no_token_is_refused_until_a_tombstone_empties_the_fence() {
    let world = World::new().await;
    let fence = world.fence().await;
    put(&world, "a", Some("thirty-four"));
    let error = fence.seal(&stamp("a", 35)).await.unwrap_err();
    let said =
        "record 0 of the fence topic has the key a and is no token; write a tombstone for it, and seal again";
    assert!(error.to_string().ends_with(said), "{error}");
    assert_eq!(error.outcome(), Outcome::Failed);
    fence.seal(&stamp("b", 35)).await.unwrap();
    put(&world, "a", None);
    fence.seal(&stamp("a", 35)).await.unwrap();
    assert_eq!(highest(world.fence().await.seal(&stamp("a", 34)).await), Some(35));
    put(&world, "a", None);
    assert_eq!(fence.look("a").await.unwrap().highest, None, "an operator has emptied it");
}

struct Lapsed;

impl Authority for Lapsed {
    fn stamp(&self) -> Result<Stamp, NoAuthority> {
        Err(NoAuthority { name: "a".to_owned(), why: "the lease has expired".to_owned() })
    }
}

#[tokio::test]
async fn every_end_is_counted_once() {
    let world = World::new().await;
    let counts = Counts::default();
    let fence = world.fence().await.counted(&counts);
    let place = fence.place().to_owned();
    assert_eq!(place, format!("kafka:127.0.0.1:{}/{}", world.port, world.fences));
    assert_eq!(format!("{fence:?}"), format!("Fence at {place}"), "settings may have passwords");
    let (old, new) = (stamp("a", 33), stamp("a", 34));
    fence.seal(&new).await.unwrap();
    fence.seal(&old).await.unwrap_err();
    world.add(&fence, &new, "x").await.unwrap();
    world.add(&fence, &old, "x").await.unwrap_err();
    fence.write(&Lapsed, vec![world.record("a", "x")]).await.unwrap_err();
    let error = fence.write(&new, vec![Record::to(&world.fences).key("a")]).await.unwrap_err();
    let said = format!("a record is for the fence topic {}; nobody may write there", world.fences);
    assert!(error.to_string().ends_with(&said), "{error}");
    let writes = [Outcome::Accepted, Outcome::Stale, Outcome::Lapsed, Outcome::Failed];
    assert_eq!(writes.map(|outcome| counts.writes(&place, outcome)), [1, 1, 1, 1]);
    assert_eq!([Outcome::Accepted, Outcome::Stale].map(|outcome| counts.seals(&place, outcome)), [1, 1]);
}

/// A write of nothing must not be accepted without asking anybody.
#[tokio::test]
async fn a_write_without_records_is_a_seal() {
    let world = World::new().await;
    let (old, new) = (world.fence().await, world.fence().await);
    old.write(&stamp("a", 33), Vec::new()).await.unwrap();
    new.write(&stamp("a", 34), Vec::new()).await.unwrap();
    assert_eq!(highest(old.write(&stamp("a", 33), Vec::new()).await), Some(34));
}
