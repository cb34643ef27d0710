//! What looks like a fence and is none, each with the corruption that it lets through, beside the right way.

use leasehold_fence::Receiver as _;
use leasehold_fence::redis::Fence;
use leasehold_kit::Receiver as _;
use leasehold_kit::redis::Server;
use std::time::Duration;
use tokio::time::sleep;

use crate::redis::common::{ask, fence, get, highest, stamp, url};

#[tokio::test]
async fn wrong_way_check_first_and_write_afterwards() {
    let fence = fence().await;
    fence.seal(&stamp("check-then-act", 33)).await.unwrap();
    // The old holder asks whether its token is stale. It is not.
    let seen: String = ask(url(), redis::cmd("HGET").arg("{check-then-act}:fence").arg("token")).await;
    assert_eq!(seen, "33");
    // It stands still, and the new holder seals and writes.
    fence.write(stamp("check-then-act", 34), redis::pipe().set("{check-then-act}:data", "34")).await.unwrap();
    // It goes on.
    let _: () = ask(url(), redis::cmd("SET").arg("{check-then-act}:data").arg("33")).await;
    assert_eq!(get(url(), "{check-then-act}:data").await.as_deref(), Some("33"), "the corruption");

    let right =
        fence.write(stamp("check-then-act", 33), redis::pipe().set("{check-then-act}:data", "33")).await;
    assert_eq!(highest(right), Some(34));
}

#[tokio::test]
async fn wrong_way_numbers_in_lua() {
    let script = "if tonumber(ARGV[1]) < tonumber(redis.call('GET', KEYS[1]) or 0) then return 'stale' end
        redis.call('SET', KEYS[1], ARGV[1]) redis.call('SET', KEYS[2], ARGV[1]) return 'written'";
    let (new, old) = ((1_u64 << 53) + 1, 1_u64 << 53);
    for (token, said) in [(new, "written"), (old, "written")] {
        let mut eval = redis::cmd("EVAL");
        eval.arg(script).arg(2).arg("numbers:fence").arg("numbers:data").arg(token);
        let answer: String = ask(url(), &eval).await;
        assert_eq!(answer, said, "{token}");
    }
    assert_eq!(get(url(), "numbers:data").await, Some(old.to_string()), "the corruption");

    let fence = fence().await;
    fence.write(stamp("numbers", new), redis::pipe().set("{numbers}:data", new)).await.unwrap();
    let right = fence.write(stamp("numbers", old), redis::pipe().set("{numbers}:data", old)).await;
    assert_eq!(highest(right), Some(new));
}

#[tokio::test]
async fn wrong_way_without_a_log_a_killed_server_forgets() {
    for (forgets, mut server) in [(true, Server::start_fast().unwrap()), (false, Server::start().unwrap())] {
        let fence = Fence::open(&server.url()).await.unwrap();
        fence.write(stamp("a", 34), redis::pipe().set("{a}:data", "34")).await.unwrap();
        server.restart().unwrap();
        let fence = Fence::open(&server.url()).await.unwrap();
        let stale = fence.write(stamp("a", 33), redis::pipe().set("{a}:data", "33")).await;
        assert_eq!(stale.is_ok(), forgets, "{stale:?}");
    }
}

#[tokio::test]
async fn wrong_way_a_replica_takes_over_and_does_not_know_the_last_raise() {
    let (mut primary, replica) = (Server::start().unwrap(), Server::start().unwrap());
    let mut follow = redis::cmd("REPLICAOF");
    let _: () = ask(&replica.url(), follow.arg("127.0.0.1").arg(primary.port())).await;
    let fence = Fence::open(&primary.url()).await.unwrap();
    fence.seal(&stamp("a", 33)).await.unwrap();
    let after = Fence::open(&replica.url()).await.unwrap();
    for _ in 0..1_000 {
        if after.look("a").await.is_ok_and(|seen| seen.highest.is_some()) {
            break;
        }
        sleep(Duration::from_millis(20)).await;
    }
    // A stale token is refused at a replica, too, though it can keep no refusal; a good one cannot be written there.
    assert_eq!(highest(after.seal(&stamp("a", 32)).await), Some(33));
    let good = after.write(stamp("a", 33), redis::pipe().set("{a}:data", "33")).await.unwrap_err();
    assert!(
        good.to_string().contains("nothing was written") && good.to_string().contains("replica"),
        "{good}"
    );

    // The way between them is cut; while the replica stands still it does not connect again.
    replica.pause().unwrap();
    let _: () = ask(&primary.url(), redis::cmd("CLIENT").arg("KILL").arg("TYPE").arg("replica")).await;
    fence.write(stamp("a", 34), redis::pipe().set("{a}:data", "34")).await.unwrap();
    primary.kill().unwrap();
    replica.resume().unwrap();
    let _: () = ask(&replica.url(), redis::cmd("REPLICAOF").arg("NO").arg("ONE")).await;
    let after = Fence::open(&replica.url()).await.unwrap();
    after.write(stamp("a", 33), redis::pipe().set("{a}:data", "33")).await.expect("the corruption");

    // From the next seal on it is right again.
    after.seal(&stamp("a", 34)).await.unwrap();
    assert_eq!(highest(after.write(stamp("a", 33), redis::pipe().set("{a}:data", "33")).await), Some(34));
}

#[tokio::test]
async fn wrong_way_a_server_that_evicts_any_key_evicts_the_fence() {
    for (policy, forgets) in [("allkeys-random", true), ("volatile-lru", false)] {
        let server = Server::start_fast().unwrap();
        let fence = Fence::open(&server.url()).await.unwrap();
        fence.seal(&stamp("a", 34)).await.unwrap();
        let used: String = ask(&server.url(), redis::cmd("INFO").arg("memory")).await;
        let used =
            used.lines().find_map(|line| line.strip_prefix("used_memory:")).unwrap().parse::<u64>().unwrap();
        for (key, value) in
            [("maxmemory-policy", policy.to_owned()), ("maxmemory", (used + 300_000).to_string())]
        {
            let _: () = ask(&server.url(), redis::cmd("CONFIG").arg("SET").arg(key).arg(value)).await;
        }
        let mut connection = crate::redis::common::connect(&server.url()).await;
        let value = "x".repeat(1_000);
        for key in 0..10_000 {
            let mut set = redis::cmd("SET");
            // Without room for it a write fails; that one is not of interest here.
            let _ = set.arg(key).arg(&value).arg("EX").arg(1_000).query_async::<()>(&mut connection).await;
            if fence.look("a").await.unwrap().highest.is_none() {
                break;
            }
        }
        let stale = fence.write(stamp("a", 33), redis::pipe().set("{a}:data", "33")).await;
        assert_eq!(stale.is_ok(), forgets, "{policy}: {stale:?}");
    }
}
