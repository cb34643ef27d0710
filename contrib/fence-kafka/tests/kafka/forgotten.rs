//! The broker forgets a `transactional.id` that nobody has used for long. The fence does not.

use std::time::Duration;

use rdkafka::error::{KafkaError, RDKafkaErrorCode as Code};
use rdkafka::producer::{BaseProducer, Producer as _};

use crate::world::{LONG, World, highest, stamp};

/// The broker of the tests forgets after 15 s and looks every second.
const UNTIL_FORGOTTEN: Duration = Duration::from_secs(18);

#[tokio::test(flavor = "multi_thread")]
async fn a_holder_from_before_the_broker_forgot_is_stale_and_the_present_one_goes_on() {
    let world = World::new().await;
    let (old, new) = (world.fence().await, world.fence().await);
    world.add(&old, &stamp("a", 33), "old").await.unwrap();
    world.add(&new, &stamp("a", 34), "new").await.unwrap();
    let witness = world.unfenced("witness");
    world.opened(&witness, &stamp("witness", 1), "x");
    witness.commit_transaction(LONG).unwrap();

    tokio::time::sleep(UNTIL_FORGOTTEN).await;
    assert_eq!(refused_with(&witness, &world), Code::InvalidProducerIdMapping, "it is forgotten");
    assert_eq!(highest(world.add(&old, &stamp("a", 33), "late").await), Some(34));
    world.add(&new, &stamp("a", 34), "still here").await.unwrap();
    assert_eq!(highest(world.add(&old, &stamp("a", 33), "late").await), Some(34));
    assert_eq!(world.tokens("a"), [33, 34, 34]);
}

fn refused_with(producer: &BaseProducer, world: &World) -> Code {
    producer.begin_transaction().unwrap();
    producer.send(rdkafka::producer::BaseRecord::to(&world.data).key("witness").payload("y")).unwrap();
    // What is sent is not delivered; why not is told to whoever begins another one.
    for _ in 0..100 {
        let _ = producer.flush(Duration::from_millis(100));
        match producer.begin_transaction() {
            Err(KafkaError::Transaction(error)) if error.code() != Code::State => return error.code(),
            _ => {}
        }
    }
    panic!("the transaction does not fail");
}
