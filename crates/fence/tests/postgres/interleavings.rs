//! Orders of events in which a stale write could slip through, each made to happen.

use leasehold_fence::{Authority, NoAuthority, Receiver as _, Stamp};
use tokio::sync::oneshot;

use crate::postgres::world::{NAME, World, beside, has, of, put, refused_for, soon, stamp, why_failed};

#[tokio::test]
async fn a_stale_write_is_refused_before_and_after_the_first_write_of_the_new_holder() {
    let world = World::new().await;
    world.write(&stamp(33), "old").await.unwrap();
    world.fence.seal(&stamp(34)).await.unwrap();
    assert_eq!(refused_for(world.write(&stamp(33), "late").await), 34);
    world.write(&stamp(34), "new").await.unwrap();
    assert_eq!(refused_for(world.write(&stamp(33), "later").await), 34);
    assert_eq!(world.entries().await, ["33 old", "34 new"]);
}

#[tokio::test]
async fn a_transaction_that_entered_commits_before_a_greater_token_is_let_in() {
    let world = World::new().await;
    world.fence.seal(&stamp(33)).await.unwrap();
    let mut old = world.begin().await;
    world.fence.enter(&mut old, &stamp(33)).await.unwrap();
    // The old one has checked. Now the new one comes, and must wait.
    let (fence, new) = (world.fence.clone(), stamp(34));
    let new =
        beside(
            async move { fence.transaction(&new, async |tx| Ok(put(tx, &stamp(34), "new").await?)).await },
        );
    world.until_waiting(1).await;
    assert_eq!(world.highest(NAME).await, Some(33));
    put(&mut old, &stamp(33), "old").await.unwrap();
    old.commit().await.unwrap();
    soon(new).await.unwrap();
    assert_eq!(world.entries().await, ["33 old", "34 new"]);
    assert_eq!(refused_for(world.write(&stamp(33), "late").await), 34);
}

#[tokio::test]
async fn an_entry_that_waited_while_the_fence_was_raised_is_refused() {
    let world = World::new().await;
    world.fence.seal(&stamp(33)).await.unwrap();
    let mut new = world.begin().await;
    world.fence.enter(&mut new, &stamp(34)).await.unwrap();
    // The row still has 33 for everybody else; the old one may not go by that.
    let fence = world.fence.clone();
    let old = beside(async move {
        fence.transaction(&stamp(33), async |tx| Ok(put(tx, &stamp(33), "old").await?)).await
    });
    world.until_waiting(1).await;
    put(&mut new, &stamp(34), "new").await.unwrap();
    new.commit().await.unwrap();
    assert_eq!(refused_for(soon(old).await), 34);
    assert_eq!(world.entries().await, ["34 new"]);
}

#[tokio::test]
async fn a_raise_that_is_rolled_back_is_none() {
    let world = World::new().await;
    world.fence.seal(&stamp(33)).await.unwrap();
    let mut new = world.begin().await;
    world.fence.enter(&mut new, &stamp(34)).await.unwrap();
    let fence = world.fence.clone();
    let old = beside(async move {
        fence.transaction(&stamp(33), async |tx| Ok(put(tx, &stamp(33), "old").await?)).await
    });
    world.until_waiting(1).await;
    new.rollback().await.unwrap();
    soon(old).await.unwrap();
    assert_eq!((world.highest(NAME).await, world.entries().await), (Some(33), vec!["33 old".to_owned()]));
}

#[tokio::test]
async fn writers_of_one_token_do_not_wait_for_each_other() {
    let world = World::new().await;
    world.fence.seal(&stamp(33)).await.unwrap();
    let (mut one, mut two) = (world.begin().await, world.begin().await);
    world.fence.enter(&mut one, &stamp(33)).await.unwrap();
    world.fence.enter(&mut two, &stamp(33)).await.unwrap();
    put(&mut two, &stamp(33), "two").await.unwrap();
    two.commit().await.unwrap();
    put(&mut one, &stamp(33), "one").await.unwrap();
    one.commit().await.unwrap();
    assert_eq!(world.entries().await, ["33 two", "33 one"]);
}

#[tokio::test]
async fn two_first_writers_of_one_token_follow_each_other() {
    let world = World::new().await;
    for token in [33, 34] {
        let mut one = world.begin().await;
        world.fence.enter(&mut one, &stamp(token)).await.unwrap();
        let fence = world.fence.clone();
        let two = beside(async move {
            fence.transaction(&stamp(token), async |tx| Ok(put(tx, &stamp(token), "two").await?)).await
        });
        world.until_waiting(1).await;
        put(&mut one, &stamp(token), "one").await.unwrap();
        one.commit().await.unwrap();
        soon(two).await.unwrap();
    }
    assert_eq!(world.entries().await, ["33 one", "33 two", "34 one", "34 two"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn first_writers_do_not_deadlock() {
    let world = World::new().await;
    for round in 0..30_u64 {
        let writers: Vec<_> =
            (0..8_u64)
                .map(|nth| {
                    let fence = world.fence.clone();
                    // Each pair has a token, rising over rounds, under names that some rounds know already.
                    let stamp = of(&format!("first-{}", round % 10), round * 10 + nth / 2 + 1);
                    beside(async move {
                        fence.transaction(&stamp, async |tx| Ok(put(tx, &stamp, "x").await?)).await
                    })
                })
                .collect();
        for writer in writers {
            if let Err(error) = soon(writer).await {
                has(error, "is stale");
            }
        }
    }
}

#[tokio::test]
async fn tokens_above_two_to_the_53_differ() {
    let world = World::new().await;
    let edge = 1_u64 << 53;
    world.write(&stamp(edge + 1), "new").await.unwrap();
    assert_eq!(refused_for(world.write(&stamp(edge), "old").await), edge + 1);
    let last = leasehold_fence::LARGEST_TOKEN;
    world.write(&stamp(last), "last").await.unwrap();
    assert_eq!(refused_for(world.write(&stamp(last - 1), "old").await), last);
    assert_eq!(world.entries().await.len(), 2);
}

#[tokio::test]
async fn names_do_not_fence_each_other_and_may_have_any_characters() {
    let world = World::new().await;
    for name in ["a'; DROP TABLE entry; --", r"back\slash\", "\"quoted\"", "ünï/🔒#3", "%s $1 ?"] {
        let (old, new) = (of(name, 33), of(name, 34));
        let new = new.held_by(format!("holder of {name}")).unwrap();
        world.write(&new, "new").await.unwrap();
        assert_eq!(refused_for(world.write(&old, "old").await), 34, "{name}");
        assert_eq!(refused_for(world.fence.seal(&old).await), 34, "{name}");
        let seen = world.fence.look(name).await.unwrap().highest.unwrap();
        assert_eq!(seen.holder.as_deref(), new.holder(), "{name}");
    }
    world.write(&of("ünï/🔒#4", 1), "another slot").await.unwrap();
}

/// A guard of a lease: it vouches until it is told not to.
struct Guard {
    stamp: Stamp,
    asked: std::sync::atomic::AtomicU32,
    lapses_after: u32,
}

impl Guard {
    fn new(token: u64, lapses_after: u32) -> Self {
        Self { stamp: stamp(token), asked: 0.into(), lapses_after }
    }
}

impl Authority for Guard {
    fn stamp(&self) -> Result<Stamp, NoAuthority> {
        let asked = self.asked.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        if asked < self.lapses_after {
            return Ok(self.stamp.clone());
        }
        Err(NoAuthority { name: self.stamp.name().to_owned(), why: "the lease was lost".to_owned() })
    }
}

/// One thread of a process stands still between its guard and its write; another goes on under a new lease.
#[tokio::test]
async fn a_thread_that_was_paused_writes_with_its_own_old_token() {
    let world = World::new().await;
    let (resume, paused) = oneshot::channel::<()>();
    let fence = world.fence.clone();
    let old = beside(async move {
        let guard = stamp(33).stamp().unwrap();
        paused.await.unwrap();
        fence.transaction(&guard, async |tx| Ok(put(tx, &guard, "paused").await?)).await
    });
    world.fence.seal(&stamp(34)).await.unwrap();
    world.write(&stamp(34), "new").await.unwrap();
    resume.send(()).unwrap();
    assert_eq!(refused_for(soon(old).await), 34);
    assert_eq!(world.entries().await, ["34 new"]);
}

#[tokio::test]
async fn a_lapsed_authority_sends_nothing_and_one_that_lapses_during_the_work_is_rolled_back() {
    let world = World::new().await;
    let lapsed = Guard::new(33, 0);
    let said =
        world.fence.transaction(&lapsed, async |_| -> Result<(), _> { panic!("nothing is sent") }).await;
    assert!(matches!(said, Err(leasehold_fence::Error::NoAuthority(_))), "{said:?}");
    assert_eq!(world.highest(NAME).await, None);
    let mut tx = world.begin().await;
    let said = world.fence.enter(&mut tx, &lapsed).await;
    assert!(matches!(said, Err(leasehold_fence::Error::NoAuthority(_))), "{said:?}");

    let lapses = Guard::new(33, 1);
    let said = world.fence.transaction(&lapses, async |tx| Ok(put(tx, &lapses.stamp, "late").await?)).await;
    has(why_failed(said), "may not act on reports/nightly: the lease was lost");
    assert_eq!(world.entries().await, Vec::<String>::new());
}

#[tokio::test]
async fn several_fences_in_one_transaction_are_all_or_nothing() {
    let world = World::new().await;
    world.fence.seal(&of("b", 9)).await.unwrap();
    let both = async |a: u64, b: u64| {
        let fence = &world.fence;
        fence
            .transaction(&of("a", a), async |tx| {
                fence.enter(&mut *tx, &of("b", b)).await?;
                Ok(put(tx, &of("a", a), "both").await?)
            })
            .await
    };
    both(5, 9).await.unwrap();
    assert_eq!(refused_for(both(6, 8).await), 9);
    assert_eq!(world.highest("a").await, Some(5), "the raise of a was rolled back with the rest");
    assert_eq!(world.entries().await, ["5 both"]);
}
