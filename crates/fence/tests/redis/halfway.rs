//! Commands that fail: what is written then, and what is said of it.

use leasehold_fence::Error;
use leasehold_fence::redis::{Halfway, Unfit};
use redis::Pipeline;

use crate::redis::common::{ask, fence, get, stamp, url};

async fn failed(commands: &Pipeline) -> String {
    let fence = fence().await;
    match fence.write(stamp("failing", 5), commands).await {
        Err(Error::Failed { source, .. }) => source.to_string(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_later_command_that_fails_leaves_those_before_it_and_says_so() {
    let fence = fence().await;
    let mut commands = redis::pipe();
    commands.set("{half}:a", 1).lpush("{half}:a", 2).set("{half}:b", 3);
    let error = match fence.write(stamp("half", 5), &commands).await {
        Err(Error::Unknown { source, .. }) => source,
        other => panic!("{other:?}"),
    };
    let halfway = error.downcast_ref::<Halfway>().unwrap();
    assert_eq!((halfway.failed, halfway.commands), (2, 3));
    assert!(halfway.why.starts_with("WRONGTYPE"), "{halfway}");
    let said = "command 2 of 3 failed and the 1 before it stand, for Redis rolls nothing back: WRONGTYPE";
    assert!(halfway.to_string().starts_with(said), "{halfway}");
    assert_eq!(get(url(), "{half}:a").await.as_deref(), Some("1"));
    assert_eq!(get(url(), "{half}:b").await, None);
}

#[tokio::test]
async fn a_first_command_that_fails_leaves_nothing() {
    let fence = fence().await;
    let _: () = ask(url(), redis::cmd("SET").arg("{first}:a").arg("text")).await;
    let alone = redis::pipe().incr("{first}:a", 1).to_owned();
    let before_another = redis::pipe().incr("{first}:a", 1).set("{first}:b", 1).to_owned();
    for commands in [alone, before_another] {
        let error = fence.write(stamp("first", 5), &commands).await.unwrap_err();
        assert!(matches!(error, Error::Failed { .. }), "{error}");
        assert!(error.to_string().contains("not an integer"), "{error}");
    }
    assert_eq!(get(url(), "{first}:b").await, None);
    assert_eq!(get(url(), "{first}:a").await.as_deref(), Some("text"));
}

#[tokio::test]
async fn what_can_be_told_before_is_refused_before_anything_is_written() {
    let mut missing_value = redis::pipe();
    missing_value.set("{failing}:a", 1).cmd("SET").arg("{failing}:b");
    let said = failed(&missing_value).await;
    assert!(said.starts_with("SET has 2 words and needs at least 3"), "{said}");

    let mut no_such = redis::pipe();
    no_such.set("{failing}:a", 1).cmd("FLUSHALL");
    let said = failed(&no_such).await;
    assert_eq!(
        said,
        "the keys of FLUSHALL are not known here; name them with write_keys, if scripts may run it"
    );

    let mut long = redis::pipe();
    long.set("{failing}:a", 1).rpush("{failing}:l", vec!["x"; 7_000]);
    let said = failed(&long).await;
    assert!(said.starts_with("RPUSH has 7002 words, above the limit of 7000 for a script"), "{said}");

    for key in ["{failing}:fence", "{of another}:fence"] {
        let mut fence_itself = redis::pipe();
        fence_itself.set("{failing}:a", 1).del(key);
        let said = failed(&fence_itself).await;
        assert_eq!(said, format!("{key} is the key of a fence; nothing but the fence may write it"));
    }

    assert_eq!(failed(&redis::pipe()).await, Unfit::Nothing.to_string());
    assert_eq!(get(url(), "{failing}:a").await, None);
}

#[tokio::test]
async fn as_many_words_as_are_allowed_pass_at_any_place() {
    let fence = fence().await;
    let mut long = redis::pipe();
    for _ in 0..3 {
        long.rpush("{long}:l", vec!["x"; 6_998]);
    }
    fence.write(stamp("long", 5), &long).await.unwrap();
    let length: usize = ask(url(), redis::cmd("LLEN").arg("{long}:l")).await;
    assert_eq!(length, 3 * 6_998);
}

#[tokio::test]
async fn commands_whose_keys_are_not_known_pass_with_their_keys_named() {
    let fence = fence().await;
    let mut commands = redis::pipe();
    commands
        .rpush("{named}:l", vec![3, 1, 2])
        .cmd("SORT")
        .arg("{named}:l")
        .arg("STORE")
        .arg("{named}:sorted");
    fence.write(stamp("named", 5), &commands).await.unwrap_err();
    fence.write_keys(stamp("named", 5), &commands, &["{named}:l", "{named}:sorted"]).await.unwrap();
    let sorted: Vec<u32> = ask(url(), redis::cmd("LRANGE").arg("{named}:sorted").arg(0).arg(-1)).await;
    assert_eq!(sorted, [1, 2, 3]);
}
