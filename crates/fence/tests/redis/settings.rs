//! Settings with which a server forgets a fence are named, and nothing is refused for them.

use leasehold_fence::redis::Fence;
use leasehold_fence::{Hazard, Receiver as _};
use leasehold_kit::{Receiver as _, redis as server};

use crate::redis::common::{ask, fence, stamp};

async fn hazards(url: &str) -> Vec<String> {
    let fence = Fence::open(url).await.unwrap();
    fence.hazards().await.unwrap().iter().map(ToString::to_string).collect()
}

async fn set(url: &str, setting: &str, value: &str) {
    ask::<()>(url, redis::cmd("CONFIG").arg("SET").arg(setting).arg(value)).await;
}

#[tokio::test]
async fn a_server_that_keeps_its_log_and_its_keys_has_no_hazard() {
    assert_eq!(fence().await.hazards().await.unwrap(), []);
}

#[tokio::test]
async fn each_setting_that_loses_a_fence_is_named_with_what_to_do() {
    let server = server::Server::start_fast().unwrap();
    let url = server.url();
    let no_log = "appendonly is no: a server that is killed or restarted forgets the fence, and takes stale writes until the next seal; \
                  set it to yes, with appendfsync always";
    assert_eq!(hazards(&url).await, [no_log]);
    // It is sealed all the same.
    Fence::open(&url).await.unwrap().seal(&stamp("a", 34)).await.unwrap();

    set(&url, "appendonly", "yes").await;
    for lazy in ["everysec", "no"] {
        set(&url, "appendfsync", lazy).await;
        let found = hazards(&url).await;
        assert!(found.len() == 1 && found[0].starts_with(&format!("appendfsync is {lazy}: ")), "{found:?}");
    }
    set(&url, "appendfsync", "always").await;
    for (policy, memory, may_evict) in [
        ("allkeys-lru", "0", false),
        ("allkeys-lru", "64mb", true),
        ("allkeys-random", "64mb", true),
        ("volatile-lru", "64mb", false),
        ("noeviction", "64mb", false),
    ] {
        set(&url, "maxmemory", memory).await;
        set(&url, "maxmemory-policy", policy).await;
        let found = hazards(&url).await;
        let evicts =
            format!("maxmemory-policy is {policy}: a server whose memory is full throws the fence away");
        assert_eq!(found.iter().any(|words| words.starts_with(&evicts)), may_evict, "{memory}: {found:?}");
        assert_eq!(found.len(), usize::from(may_evict), "{found:?}");
    }
}

#[tokio::test]
async fn settings_that_may_not_be_asked_for_are_not_known() {
    let server = server::Server::start().unwrap();
    let user = ["SETUSER", "app", "on", ">secret", "~*", "&*", "+@all", "-config"];
    ask::<()>(&server.url(), redis::cmd("ACL").arg(&user)).await;
    let fence = Fence::open(&format!("redis://app:secret@127.0.0.1:{}/", server.port())).await.unwrap();
    let found = fence.hazards().await.unwrap();
    let settings: Vec<&str> = found
        .iter()
        .map(|hazard| match hazard {
            Hazard::NotKnown { setting, why, .. } if why.contains("permissions") => *setting,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(settings, ["appendonly", "maxmemory-policy"]);
    fence.seal(&stamp("a", 34)).await.unwrap();
}
