//! Watches: every change once, in order, across connections.

use std::time::Duration;

use leasehold::core::Revision;
use leasehold::core::protocol::Failure;
use leasehold::{Store, Watch};
use tokio::task::JoinHandle;

use super::stage::{Conversation, REVISION, SOON, Stage, batch, change, long_change, soon};

/// A watch that has begun at revision 7, and its other side.
async fn watching(stage: &mut Stage, store: &Store) -> (Watch, Conversation) {
    let starting = tokio::spawn(store.watch("jobs/").start());
    let conversation = stage.watch().await;
    conversation.begin(7);
    (soon(starting).await.unwrap().unwrap(), conversation)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_asks_for_what_it_was_told_to_and_begins_where_the_service_says() {
    let mut stage = Stage::new().await;
    let store = stage.store().await;
    let (watch, conversation) = watching(&mut stage, &store).await;
    assert_eq!(conversation.asked.prefix, "jobs/");
    assert_eq!(conversation.asked.after, None);
    assert_eq!(watch.revision(), Revision::new(7));
    let revision = store.revision().await.unwrap();
    assert_eq!(revision, Revision::new(REVISION));
    let starting = tokio::spawn(store.watch("").after(revision).start());
    let conversation = stage.watch().await;
    assert_eq!(conversation.asked.prefix, "");
    assert_eq!(conversation.asked.after, Some(revision));
    conversation.begin(REVISION);
    assert_eq!(soon(starting).await.unwrap().unwrap().revision(), revision);
    assert_eq!(stage.taken(), 3, "a connection of its own for each");
}

#[tokio::test(flavor = "multi_thread")]
async fn revisions_come_whole_and_in_order() {
    let mut stage = Stage::new().await;
    let store = stage.store().await;
    let (mut watch, conversation) = watching(&mut stage, &store).await;
    conversation.say(8, vec![change(1)], false);
    conversation.say(9, vec![change(2), change(3)], true);
    conversation.say(9, vec![change(4)], false);
    assert_eq!(soon(watch.next()).await.unwrap(), batch(8, &[1]));
    assert_eq!(soon(watch.next()).await.unwrap(), batch(9, &[2, 3, 4]));
    assert_eq!(watch.revision(), Revision::new(9));
    // Progress is no change, but a place to begin after.
    conversation.say(20, Vec::new(), false);
    conversation.say(21, vec![change(5)], false);
    assert_eq!(soon(watch.next()).await.unwrap(), batch(21, &[5]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_goes_on_after_the_last_revision_when_its_connection_breaks() {
    let mut stage = Stage::new().await;
    let store = stage.store().await;
    let (mut watch, conversation) = watching(&mut stage, &store).await;
    conversation.say(8, vec![change(1)], false);
    // Half a revision: the rest is lost with the connection.
    conversation.say(9, vec![change(2)], true);
    assert_eq!(soon(watch.next()).await.unwrap(), batch(8, &[1]));
    drop(conversation);
    let conversation = stage.watch().await;
    assert_eq!(conversation.asked.after, Some(Revision::new(8)));
    conversation.begin(8);
    conversation.say(8, vec![change(1)], false);
    conversation.say(9, vec![change(2), change(3)], false);
    assert_eq!(soon(watch.next()).await.unwrap(), batch(9, &[2, 3]));
    drop(conversation);
    let conversation = stage.watch().await;
    assert_eq!(conversation.asked.after, Some(Revision::new(9)));
    conversation.begin(9);
    conversation.say(10, vec![change(4)], false);
    assert_eq!(soon(watch.next()).await.unwrap(), batch(10, &[4]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_without_a_sign_of_life_is_given_up() {
    let mut stage = Stage::new().await;
    let store = stage.patient(Duration::from_secs(2)).await;
    let (mut watch, silent) = watching(&mut stage, &store).await;
    stage.silence(true);
    // The connection stands, and nothing comes on it.
    let conversation = stage.watch().await;
    silent.hung_up().await;
    assert_eq!(conversation.asked.after, Some(Revision::new(7)));
    stage.silence(false);
    conversation.begin(7);
    conversation.say(8, vec![change(1)], false);
    assert_eq!(soon(watch.next()).await.unwrap(), batch(8, &[1]));
    // One that shows life is kept, however long it has nothing to say: one that does not was given up after little more than 3 s.
    let taken = stage.taken();
    assert!(tokio::time::timeout(Duration::from_secs(7), watch.next()).await.is_err());
    assert_eq!(stage.taken(), taken);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_cannot_now_is_asked_again() {
    let mut stage = Stage::new().await;
    let store = stage.store().await;
    let starting = tokio::spawn(store.watch("").start());
    stage.watch().await.fail(Failure::TooManyWatches { limit: 1 });
    stage.watch().await.fail(Failure::Unavailable { why: "it begins".into() });
    let conversation = stage.watch().await;
    conversation.begin(7);
    assert_eq!(soon(starting).await.unwrap().unwrap().revision(), Revision::new(7));
}

#[tokio::test(flavor = "multi_thread")]
async fn no_more_is_read_than_the_application_takes() {
    const REVISIONS: u64 = 600;
    let mut stage = Stage::new().await;
    let store = stage.store().await;
    let (mut watch, conversation) = watching(&mut stage, &store).await;
    for revision in 8..8 + REVISIONS {
        conversation.say(revision, vec![long_change(revision); 16], false);
    }
    let stalled = stalled(&conversation).await;
    assert!(stalled < usize::try_from(REVISIONS).unwrap(), "{stalled} of {REVISIONS} went out");
    // The store's own connection does not wait for the watch.
    soon(store.revision()).await.unwrap();
    for revision in 8..8 + REVISIONS {
        assert_eq!(soon(watch.next()).await.unwrap().revision, Revision::new(revision));
    }
}

/// How many messages went out when no more did for a while.
async fn stalled(conversation: &Conversation) -> usize {
    let began = leasehold_clock::read();
    let mut before = 0;
    loop {
        tokio::time::sleep(Duration::from_millis(300)).await;
        let written = conversation.written();
        if written > 1 && written == before {
            return written;
        }
        before = written;
        assert!(leasehold_clock::read().since(began).greater() < SOON, "it never stalls");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_for_programs_without_a_runtime_is_an_iterator() {
    let mut stage = Stage::new().await;
    let url = stage.url();
    let reading: JoinHandle<_> = tokio::task::spawn_blocking(move || {
        let store = leasehold::blocking::Store::connect(&url)?;
        let watch = store.watch("jobs/", Some(Revision::new(3)))?;
        Ok::<_, leasehold::Error>(
            watch.map(|next| next.map_err(|error| error.to_string())).collect::<Vec<_>>(),
        )
    });
    let conversation = stage.watch().await;
    assert_eq!(conversation.asked.after, Some(Revision::new(3)));
    conversation.begin(3);
    conversation.say(4, vec![change(1)], false);
    conversation.say(5, vec![change(2)], false);
    let (after, oldest) = (Revision::new(5), Revision::new(9));
    conversation.fail(Failure::RevisionTooOld { after, oldest });
    let told = soon(reading).await.unwrap().unwrap();
    let over = "changes after revision 5 are not kept any more; the oldest to watch after is 9".to_owned();
    assert_eq!(told, [Ok(batch(4, &[1])), Ok(batch(5, &[2])), Err(over)]);
}
