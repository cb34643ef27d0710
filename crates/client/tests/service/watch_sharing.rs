//! Watches of one store with the same prefix share a connection, and none of them notices.

use std::time::Duration;

use leasehold::core::Revision;
use leasehold::core::protocol::Failure;
use leasehold::{Error, Store, Watch};

use super::stage::{Conversation, REVISION, Stage, batch, change, long_change, soon};

/// A watch that has begun at revision 7, and its other side.
async fn first(stage: &mut Stage, store: &Store) -> (Watch, Conversation) {
    let starting = tokio::spawn(store.watch("jobs/").start());
    let conversation = stage.watch().await;
    conversation.begin(7);
    (soon(starting).await.unwrap().unwrap(), conversation)
}

/// Another watch of the same.
async fn another(store: &Store) -> Watch {
    soon(store.watch("jobs/").start()).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_is_told_what_comes_after_it_began() {
    let mut stage = Stage::new().await;
    let store = stage.store().await;
    let (mut one, conversation) = first(&mut stage, &store).await;
    let mut two = another(&store).await;
    assert_eq!(two.revision(), Revision::new(REVISION), "as far as the log had come");
    // The connection is behind what the second one knows of: that is old for it.
    conversation.say(REVISION, vec![change(1)], false);
    conversation.say(REVISION + 1, vec![change(2)], false);
    assert_eq!(soon(one.next()).await.unwrap(), batch(REVISION, &[1]));
    for watch in [&mut one, &mut two] {
        assert_eq!(soon(watch.next()).await.unwrap(), batch(REVISION + 1, &[2]));
    }
    assert_eq!(stage.taken(), 2, "the store's, and one for both");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_differs_has_a_connection_of_its_own() {
    let mut stage = Stage::new().await;
    let store = stage.store().await;
    let (_one, _conversation) = first(&mut stage, &store).await;
    let starting = tokio::spawn(store.watch("job").start());
    let conversation = stage.watch().await;
    assert_eq!((conversation.asked.prefix.as_str(), conversation.asked.after), ("job", None));
    conversation.begin(9);
    assert_eq!(soon(starting).await.unwrap().unwrap().revision(), Revision::new(9));
    let starting = tokio::spawn(store.watch("jobs/").after(Revision::new(3)).start());
    let conversation = stage.watch().await;
    assert_eq!(conversation.asked.after, Some(Revision::new(3)));
    conversation.begin(9);
    assert_eq!(soon(starting).await.unwrap().unwrap().revision(), Revision::new(3));
}

/// It knows how far the log has come, and the connection may begin before that or behind it.
#[tokio::test(flavor = "multi_thread")]
async fn one_that_comes_before_the_connection_has_begun_begins_with_it_or_later() {
    for begins in [REVISION - 1, REVISION + 9] {
        let mut stage = Stage::new().await;
        let store = stage.store().await;
        let one = tokio::spawn(store.watch("jobs/").start());
        let conversation = stage.watch().await;
        let two = tokio::spawn(store.watch("jobs/").start());
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert!(!two.is_finished(), "a change now would be missed");
        conversation.begin(begins);
        let mut one = soon(one).await.unwrap().unwrap();
        let mut two = soon(two).await.unwrap().unwrap();
        assert_eq!(one.revision(), Revision::new(begins));
        assert_eq!(two.revision(), Revision::new(begins.max(REVISION)));
        conversation.say(REVISION + 10, vec![change(1)], false);
        for watch in [&mut one, &mut two] {
            assert_eq!(soon(watch.next()).await.unwrap(), batch(REVISION + 10, &[1]));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_does_not_read_gets_a_connection_of_its_own_and_misses_nothing() {
    const REVISIONS: u64 = 300;
    let mut stage = Stage::new().await;
    let store = stage.store().await;
    let (mut slow, conversation) = first(&mut stage, &store).await;
    let mut quick = another(&store).await;
    let revisions = REVISION + 1..=REVISION + REVISIONS;
    for revision in revisions.clone() {
        conversation.say(revision, vec![change(revision)], false);
        assert_eq!(soon(quick.next()).await.unwrap(), batch(revision, &[revision]));
    }
    let own = stage.watch().await;
    let after = own.asked.after.expect("it goes on where it was").get();
    assert!(revisions.contains(&after) && own.asked.prefix == "jobs/");
    own.begin(REVISION + REVISIONS);
    for revision in after + 1..=REVISION + REVISIONS {
        own.say(revision, vec![change(revision)], false);
    }
    for revision in revisions {
        assert_eq!(soon(slow.next()).await.unwrap(), batch(revision, &[revision]));
    }
    // It has nothing to do with the others any more.
    conversation.say(REVISION + REVISIONS + 1, vec![change(1)], false);
    soon(quick.next()).await.unwrap();
    drop(quick);
    conversation.say(REVISION + REVISIONS + 2, vec![change(2)], false);
    conversation.hung_up().await;
    own.say(REVISION + REVISIONS + 1, vec![change(1)], false);
    assert_eq!(soon(slow.next()).await.unwrap(), batch(REVISION + REVISIONS + 1, &[1]));
}

/// What becomes of a connection that waits for somebody is that one's business alone.
#[tokio::test(flavor = "multi_thread")]
async fn nobody_joins_a_connection_that_waits_for_somebody() {
    let mut stage = Stage::new().await;
    let store = stage.store().await;
    let (mut slow, conversation) = first(&mut stage, &store).await;
    let last = REVISION - 400;
    for revision in 8..=last {
        conversation.say(revision, vec![long_change(revision); 16], false);
    }
    tokio::time::sleep(Duration::from_millis(300)).await;
    let (mut quick, own) = first(&mut stage, &store).await;
    assert_eq!(own.asked.after, None, "it begins now");
    own.say(8, vec![change(1)], false);
    assert_eq!(soon(quick.next()).await.unwrap(), batch(8, &[1]));
    for revision in 8..=last {
        assert_eq!(soon(slow.next()).await.unwrap().revision, Revision::new(revision));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_joins_a_connection_that_broke() {
    let mut stage = Stage::new().await;
    let store = stage.store().await;
    let (_one, conversation) = first(&mut stage, &store).await;
    drop(conversation);
    let again = stage.watch().await;
    assert_eq!(again.asked.after, Some(Revision::new(7)));
    let starting = tokio::spawn(store.watch("jobs/").start());
    let own = stage.watch().await;
    assert_eq!(own.asked.after, None, "it begins now, whatever becomes of the other");
    own.begin(90);
    assert_eq!(soon(starting).await.unwrap().unwrap().revision(), Revision::new(90));
}

/// Many at once, and everybody takes them as soon as they can.
#[tokio::test(flavor = "multi_thread")]
async fn a_burst_parts_nobody_who_reads() {
    const REVISIONS: u64 = 1_000;
    let mut stage = Stage::new().await;
    let store = stage.store().await;
    let (one, conversation) = first(&mut stage, &store).await;
    let mut watches = vec![one];
    for _ in 0..20 {
        watches.push(another(&store).await);
    }
    let reading: Vec<_> = watches
        .into_iter()
        .map(|mut watch| {
            tokio::spawn(async move {
                for revision in REVISION + 1..=REVISION + REVISIONS {
                    assert_eq!(watch.next().await.unwrap(), batch(revision, &[revision]));
                }
            })
        })
        .collect();
    for revision in REVISION + 1..=REVISION + REVISIONS {
        conversation.say(revision, vec![change(revision)], false);
    }
    for reads in reading {
        soon(reads).await.unwrap();
    }
    assert_eq!(stage.taken(), 2, "the store's, and one for all");
}

/// The application as a whole stands still: nobody holds up anybody.
#[tokio::test(flavor = "multi_thread")]
async fn nobody_parts_while_nobody_reads() {
    const REVISIONS: u64 = 150;
    let mut stage = Stage::new().await;
    let store = stage.store().await;
    let (one, conversation) = first(&mut stage, &store).await;
    let mut watches = vec![one, another(&store).await, another(&store).await];
    for revision in REVISION + 1..=REVISION + REVISIONS {
        conversation.say(revision, vec![change(revision)], false);
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    let reading: Vec<_> = watches
        .drain(..)
        .map(|mut watch| {
            tokio::spawn(async move {
                for revision in REVISION + 1..=REVISION + REVISIONS {
                    assert_eq!(watch.next().await.unwrap(), batch(revision, &[revision]));
                }
                watch
            })
        })
        .collect();
    for reads in reading {
        watches.push(soon(reads).await.unwrap());
    }
    assert_eq!(stage.taken(), 2, "the store's, and one for all");
}

/// What was missed on the connection was before the other one came.
#[tokio::test(flavor = "multi_thread")]
async fn one_that_came_later_than_what_was_missed_goes_on_by_itself() {
    let mut stage = Stage::new().await;
    let store = stage.store().await;
    let (mut one, conversation) = first(&mut stage, &store).await;
    let mut two = another(&store).await;
    let (after, oldest) = (Revision::new(7), Revision::new(90));
    conversation.fail(Failure::RevisionTooOld { after, oldest });
    assert!(matches!(soon(one.next()).await, Err(Error::RevisionTooOld { .. })));
    let next = tokio::spawn(async move { two.next().await });
    let own = stage.watch().await;
    assert_eq!((own.asked.prefix.as_str(), own.asked.after), ("jobs/", Some(Revision::new(REVISION))));
    own.begin(REVISION);
    own.say(REVISION + 1, vec![change(1)], false);
    assert_eq!(soon(next).await.unwrap().unwrap(), batch(REVISION + 1, &[1]));
}

/// One that is always a little late, and never for long.
#[tokio::test(flavor = "multi_thread")]
async fn one_that_reads_slowly_does_not_slow_down_the_others() {
    const REVISIONS: u64 = 300;
    let mut stage = Stage::new().await;
    let store = stage.store().await;
    let (mut slow, conversation) = first(&mut stage, &store).await;
    let mut quick = another(&store).await;
    let reading = tokio::spawn(async move {
        loop {
            tokio::time::sleep(Duration::from_millis(50)).await;
            slow.next().await.unwrap();
        }
    });
    for revision in REVISION + 1..=REVISION + REVISIONS {
        conversation.say(revision, vec![change(revision)], false);
    }
    let all = async {
        for revision in REVISION + 1..=REVISION + REVISIONS {
            assert_eq!(quick.next().await.unwrap(), batch(revision, &[revision]));
        }
    };
    // Waiting for the other each time would take twelve seconds.
    tokio::time::timeout(Duration::from_secs(11), all).await.expect("it is not kept waiting");
    reading.abort();
}

/// Nothing has changed, again and again, and nobody looks: that is no reason to part.
#[tokio::test(flavor = "multi_thread")]
async fn one_that_is_only_told_how_far_the_log_has_come_does_not_part() {
    let mut stage = Stage::new().await;
    let store = stage.store().await;
    let (mut idle, conversation) = first(&mut stage, &store).await;
    let mut other = another(&store).await;
    for revision in REVISION + 1..=REVISION + 200 {
        conversation.say(revision, Vec::new(), false);
    }
    conversation.say(REVISION + 201, vec![change(1)], false);
    let last = batch(REVISION + 201, &[1]);
    // Whoever looks in time has it; whoever does not parts for a change, and not before.
    assert_eq!(soon(other.next()).await.unwrap(), last);
    assert_eq!(soon(idle.next()).await.unwrap(), last);
    assert_eq!(stage.taken(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_connection_ends_with_the_last_of_them() {
    let mut stage = Stage::new().await;
    let store = stage.store().await;
    let (one, conversation) = first(&mut stage, &store).await;
    let mut two = another(&store).await;
    drop(one);
    conversation.say(REVISION + 1, vec![change(1)], false);
    assert_eq!(soon(two.next()).await.unwrap(), batch(REVISION + 1, &[1]));
    drop(two);
    conversation.hung_up().await;
    // And the next one begins anew.
    first(&mut stage, &store).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn all_are_told_that_it_is_over_and_why() {
    let mut stage = Stage::new().await;
    let store = stage.store().await;
    let (one, conversation) = first(&mut stage, &store).await;
    let two = another(&store).await;
    conversation.say(REVISION + 1, vec![change(1)], false);
    let (after, oldest) = (Revision::new(REVISION + 1), Revision::new(90));
    conversation.fail(Failure::RevisionTooOld { after, oldest });
    for mut watch in [one, two] {
        assert_eq!(soon(watch.next()).await.unwrap(), batch(REVISION + 1, &[1]));
        for _ in 0..2 {
            let error = soon(watch.next()).await.unwrap_err();
            assert!(matches!(error, Error::RevisionTooOld { .. }), "{error:?}");
        }
    }
    // Nobody joins what is over.
    first(&mut stage, &store).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn all_are_over_when_their_store_is_closed() {
    let mut stage = Stage::new().await;
    let store = stage.store().await;
    let (one, _conversation) = first(&mut stage, &store).await;
    let two = another(&store).await;
    soon(store.close()).await;
    for mut watch in [one, two] {
        let error = soon(watch.next()).await.unwrap_err();
        assert!(matches!(&error, Error::Unreachable(_)), "{error:?}");
    }
}
