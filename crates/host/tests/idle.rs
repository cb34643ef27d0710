//! Ten thousand connections that say nothing: what they cost. Alone in its process, because it looks at the memory of all of it.
#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use leasehold_host::{ServedOptions, serve};
use leasehold_wire::{Hello, OpeningReader, encode_opening};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

const CONNECTIONS: usize = 10_000;
/// Memory of a connection with both of its ends, which live in this process. Measured: about 14 KiB.
const MOST_BYTES: usize = 48 * 1024;

/// Bytes of this process that are in memory.
fn resident() -> usize {
    let text = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("Linux says it");
    let kilobytes: usize = line.trim().trim_end_matches(" kB").parse().unwrap();
    kilobytes * 1024
}

async fn hello(stream: &mut DuplexStream) {
    let mut bytes = Vec::new();
    encode_opening(&Hello::new("test", 1, ""), &mut bytes).unwrap();
    stream.write_all(&bytes).await.unwrap();
    let mut opening = OpeningReader::new();
    let mut buffer = [0; 512];
    while opening.hello().unwrap().is_none() {
        let count = stream.read(&mut buffer).await.unwrap();
        assert!(count > 0, "the service hung up before its hello");
        opening.push(&buffer[..count]);
    }
}

#[tokio::test]
async fn ten_thousand_idle_connections_cost_little_memory() {
    let directory = tempfile::tempdir().unwrap();
    let served = serve(directory.path(), ServedOptions::default()).unwrap();
    while !served.caller().inspect().await.unwrap().serving {
        tokio::task::yield_now().await;
    }
    let before = resident();
    let mut streams = Vec::new();
    for _ in 0..CONNECTIONS {
        let (mut ours, theirs) = tokio::io::duplex(4 * 1024);
        let (read, write) = tokio::io::split(theirs);
        let door = served.door().clone();
        tokio::spawn(async move { door.serve(read, write).await });
        hello(&mut ours).await;
        streams.push(ours);
    }
    // Each is open when the service has read its hello.
    while served.caller().inspect().await.unwrap().connections < CONNECTIONS {
        tokio::task::yield_now().await;
    }
    let each = resident().saturating_sub(before) / CONNECTIONS;
    println!("{each} bytes for each of {CONNECTIONS} connections");
    assert!(each < MOST_BYTES, "{each} bytes for an idle connection");
    drop(streams);
    while served.caller().inspect().await.unwrap().connections > 0 {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
}
