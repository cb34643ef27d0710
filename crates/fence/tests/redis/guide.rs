//! What stands in the guide.

use std::process::Command;

use leasehold_fence::Receiver as _;
use redis::{RedisError, Value};

use crate::redis::common::{connect, get, highest, stamp, url};

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

const GUIDE: &str = include_str!("../../../../docs/guides/fence-redis.md");
const SCRIPT: &str = include_str!("../../src/redis/enter.lua");

/// Words for the server instead of a program that sends them: a line for each call, its words parted by a character that is in none.
const SAY: &str =
    r#"redis-cli() { shift; local IFS=$'\x1f'; printf '%s\x1e' "$*"; }; cat() { printf SCRIPT; }; "#;

/// Sends what a command of the guide would send, and says what such a program prints.
async fn said(name: &str, command: &str) -> String {
    let words = Command::new("bash").args(["-c", &format!("{SAY}{command}")]).output().unwrap();
    assert!(words.status.success(), "{words:?}");
    let words = String::from_utf8(words.stdout).unwrap().replace("reports/nightly", name);
    let mut words = words.trim_end_matches('\x1e').split('\x1f');
    let mut call = redis::cmd(words.next().unwrap());
    for word in words {
        call.arg(if word == "SCRIPT" { SCRIPT } else { word });
    }
    let reply: Result<Value, RedisError> = call.query_async(&mut connect(url()).await).await;
    match reply {
        Ok(Value::Array(replies)) => replies.iter().map(shown).collect::<Vec<_>>().join("\n"),
        Ok(reply) => shown(&reply),
        Err(error) => format!("{} {}", error.code().unwrap(), error.detail().unwrap()),
    }
}

fn shown(reply: &Value) -> String {
    match reply {
        Value::Okay => "OK".to_owned(),
        Value::Int(number) => number.to_string(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn the_guide_does_without_the_library_what_it_says() {
    let (_, part) = GUIDE.split_once("## Without the library").unwrap();
    let block = part.split("```").nth(1).unwrap().strip_prefix("console\n$ ").unwrap();
    let mut exchanges = block.split("\n$ ");
    let define = exchanges.next().unwrap();
    let mut tried = 0;
    for exchange in exchanges {
        let (command, printed) = exchange.split_once('\n').unwrap();
        let reply = said("by-hand", &format!("{define}\n{command}")).await;
        assert_eq!(reply, printed.trim(), "{command}");
        tried += 1;
    }
    assert_eq!(tried, 4);
    assert_eq!(get(url(), "{by-hand}:last").await.as_deref(), Some("done"));
    // It is the fence of the library.
    let seen = Fence::open(url()).await.unwrap().look("by-hand").await.unwrap();
    assert_eq!((seen.highest.unwrap().token, seen.refusals.unwrap()[0].token), (34, 33));
}

/// Tokens are compared as text, so one that is none would stand above or below all others for ever.
#[tokio::test]
async fn a_token_that_is_none_is_refused_by_the_script_itself() {
    let fence = Fence::open(url()).await.unwrap();
    let enter = |token: &str| format!("redis-cli -e EVAL SCRIPT 1 '{{reports/nightly}}:fence' '{token}' x 0");
    for token in ["", "0", "034", "-1", "34x", "x", "1e9", "9223372036854775808", "99999999999999999999"] {
        let reply = said("no-token", &enter(token)).await;
        assert!(reply.starts_with("BADTOKEN "), "{token:?}: {reply}");
        assert_eq!(fence.look("no-token").await.unwrap().highest, None, "{token:?}");
    }
    for token in ["1", "9223372036854775807"] {
        assert_eq!(said("no-token", &enter(token)).await, "", "{token}");
    }
}
