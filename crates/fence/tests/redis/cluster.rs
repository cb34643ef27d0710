//! A cluster of one node: it has all slots, and is as strict about keys as one of many.

use std::net::TcpListener;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use leasehold_fence::redis::{Fence, Unfit};
use leasehold_fence::{Error, Receiver as _};
use leasehold_kit::Receiver as _;
use leasehold_kit::redis::Server;
use tokio::time::sleep;

use crate::redis::common::{ask, connect, get, highest, stamp};

struct Cluster {
    url: String,
    process: Child,
    _directory: tempfile::TempDir,
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Cluster {
    /// The harness has no clusters. The program is the one that it runs.
    async fn start() -> Self {
        let other = Server::start_fast().unwrap();
        let program = std::fs::read_link(format!("/proc/{}/exe", other.process().id().unwrap())).unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let directory = tempfile::tempdir().unwrap();
        let mut command = Command::new(program);
        // One program is several, by the name under which it is called.
        command.arg0("redis-server");
        // The port for talks between nodes is usually this one and 10,000, which may be above the last port.
        let bus = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        command.args([
            "--cluster-enabled",
            "yes",
            "--save",
            "",
            "--bind",
            "127.0.0.1",
            "--port",
            &port.to_string(),
        ]);
        command.args(["--cluster-port", &bus.to_string()]);
        command.arg("--dir").arg(directory.path()).stdout(Stdio::null());
        let process = command.spawn().unwrap();
        let cluster = Self { url: format!("redis://127.0.0.1:{port}/"), process, _directory: directory };
        let client = redis::Client::open(cluster.url.as_str()).unwrap();
        for _ in 0..200 {
            if client.get_multiplexed_async_connection().await.is_ok() {
                break;
            }
            sleep(Duration::from_millis(50)).await;
        }
        let _: () = ask(&cluster.url, redis::cmd("CLUSTER").arg("ADDSLOTSRANGE").arg(0).arg(16_383)).await;
        for _ in 0..200 {
            let info: String = ask(&cluster.url, redis::cmd("CLUSTER").arg("INFO")).await;
            if info.contains("cluster_state:ok") {
                return cluster;
            }
            sleep(Duration::from_millis(50)).await;
        }
        panic!("the cluster does not become ready");
    }
}

#[tokio::test]
async fn keys_with_the_tag_of_the_fence_pass_and_others_are_refused_whole() {
    let cluster = Cluster::start().await;
    let fence = Fence::open(&cluster.url).await.unwrap();
    let key = fence.key("reports/nightly", "last");
    fence
        .write(stamp("reports/nightly", 34), redis::pipe().set(&key, 1).incr("{reports/nightly}:n", 1))
        .await
        .unwrap();
    assert_eq!(highest(fence.seal(&stamp("reports/nightly", 33)).await), Some(34));

    let elsewhere = redis::pipe().set(&key, 2).set("last-report", 2).to_owned();
    let error = match fence.write(stamp("reports/nightly", 34), &elsewhere).await {
        Err(Error::Failed { source, .. }) => source,
        other => panic!("{other:?}"),
    };
    assert_eq!(get(&cluster.url, &key).await.as_deref(), Some("1"), "half of it was written");
    let said = error.to_string();
    assert!(said.contains("give the key the hash tag of the fence"), "{said}");
    let Some(Unfit::Elsewhere { key, slot_of_key, fence, slot }) = error.downcast_ref::<Unfit>() else {
        panic!("{said}");
    };
    // The slots are those of the server.
    for (key, slot) in [(key, slot_of_key), (fence, slot)] {
        let told: u16 = ask(&cluster.url, redis::cmd("CLUSTER").arg("KEYSLOT").arg(key)).await;
        assert_eq!(told, *slot, "{key}");
    }
}

#[tokio::test]
async fn a_prefix_with_a_tag_puts_all_fences_into_one_slot() {
    let cluster = Cluster::start().await;
    let fence = Fence::new("cluster", connect(&cluster.url).await).prefixed("{reports}:");
    for name in ["a", "b"] {
        fence.write(stamp(name, 34), redis::pipe().incr("{reports}:data", 1)).await.unwrap();
    }
    assert_eq!(get(&cluster.url, "{reports}:data").await.as_deref(), Some("2"));
    assert_eq!(highest(fence.seal(&stamp("a", 33)).await), Some(34));
    fence.seal(&stamp("c", 33)).await.unwrap();
}
