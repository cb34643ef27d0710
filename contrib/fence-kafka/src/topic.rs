//! The topic in which fences are kept: made so that it keeps them, and refused if it would not.

use std::time::Duration;

use rdkafka::ClientConfig;
use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, ResourceSpecifier, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::error::{KafkaError, RDKafkaErrorCode as Code};

/// Why fences cannot be kept in a topic.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unfit {
    #[error(transparent)]
    Kafka(#[from] KafkaError),
    #[error(
        "the fence topic {0} does not exist, or its settings may not be seen; make it with one partition and cleanup.policy=compact"
    )]
    Missing(String),
    #[error(
        "cleanup.policy of the fence topic {topic} is {policy:?}, by which fences are forgotten; set it to compact"
    )]
    Forgets { topic: String, policy: String },
    #[error(
        "unclean.leader.election.enable of the fence topic {0} is true, by which fences are forgotten; set it to false"
    )]
    Unclean(String),
    #[error("the fence topic {topic} has {partitions} partitions and must have 1; make another one")]
    Split { topic: String, partitions: usize },
}

/// A topic that was made is known to its broker a moment later.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// Makes the topic unless there is one, and looks whether it keeps fences.
pub(super) async fn make(
    config: &ClientConfig,
    topic: &str,
    copies: u16,
    patience: Duration,
) -> Result<(), Unfit> {
    let admin: AdminClient<DefaultClientContext> = config.create()?;
    // A record that is acknowledged by a majority is not lost with a minority.
    let in_sync = (copies / 2 + 1).to_string();
    let new = NewTopic::new(topic, 1, TopicReplication::Fixed(copies.into()))
        .set("cleanup.policy", "compact")
        .set("unclean.leader.election.enable", "false")
        .set("min.insync.replicas", &in_sync);
    let options = AdminOptions::new().operation_timeout(Some(patience)).request_timeout(Some(patience));
    match admin.create_topics([&new], &options).await?.into_iter().next() {
        None | Some(Ok(_) | Err((_, Code::TopicAlreadyExists))) => {}
        Some(Err((_, code))) => return Err(KafkaError::AdminOp(code).into()),
    }
    let mut waited = Duration::ZERO;
    loop {
        match check(config, topic, patience).await {
            Err(Unfit::Missing(_)) if waited < patience => {}
            checked => return checked,
        }
        tokio::time::sleep(LOOK_AGAIN).await;
        waited += LOOK_AGAIN;
    }
}

/// Looks whether the topic keeps fences.
pub(super) async fn check(config: &ClientConfig, topic: &str, patience: Duration) -> Result<(), Unfit> {
    let admin: AdminClient<DefaultClientContext> = config.create()?;
    let options = AdminOptions::new().request_timeout(Some(patience));
    // The settings are asked for first: asking for partitions may make a topic that is missing, with any settings.
    let found = admin.describe_configs([&ResourceSpecifier::Topic(topic)], &options).await?;
    // The client library tells no error here: a topic that is missing, or may not be described, has no settings.
    let settings = found.into_iter().find_map(Result::ok).filter(|settings| !settings.entries.is_empty());
    let Some(settings) = settings else { return Err(Unfit::Missing(topic.to_owned())) };
    let setting = |name: &str| settings.get(name).and_then(|entry| entry.value.clone()).unwrap_or_default();
    let policy = setting("cleanup.policy");
    if policy != "compact" {
        return Err(Unfit::Forgets { topic: topic.to_owned(), policy });
    }
    if setting("unclean.leader.election.enable") == "true" {
        return Err(Unfit::Unclean(topic.to_owned()));
    }
    let name = topic.to_owned();
    let partitions = tokio::task::spawn_blocking(move || {
        let found = admin.inner().fetch_metadata(Some(&name), patience)?;
        Ok::<_, KafkaError>(found.topics().first().map_or(0, |topic| topic.partitions().len()))
    });
    match partitions.await.map_err(|_| KafkaError::Canceled)?? {
        1 => Ok(()),
        0 => Err(Unfit::Missing(topic.to_owned())),
        partitions => Err(Unfit::Split { topic: topic.to_owned(), partitions }),
    }
}
