//! Readers that ask for a page and do not read it: what they cost the service in memory, and other clients in time.
//!
//! One process is the service, as people run it. This one has a thousand names held, thousands of connections that each ask for a page of
//! them and read nothing, two sessions that renew all the time (one over HTTP, one by the library), and one reader that lists and reads.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use leasehold::core::protocol::{Query, Request, RequestId};
use leasehold::{SessionOptions, Store};
use leasehold_wire::{Hello, encode_client, encode_opening};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::sleep;

use crate::clock::now_ns;
use crate::peers::process::{Process, tied};

/// Names in a page, in acquires of as many as one takes, each with a value.
const NAMES: usize = 960;
const TOGETHER: usize = 64;
const VALUE_BYTES: usize = 400;
/// Between two renewals of a session.
const PACE: Duration = Duration::from_millis(4);
/// A reader's own buffer, in the kernel: little, so that what it leaves is the service's to keep.
const RECEIVE_BYTES: u32 = 4_096;

/// By which door the readers come that do not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Way {
    /// HTTP/1.1.
    Http,
    /// The session stream.
    Stream,
}

/// Runs it and prints what was measured.
///
/// # Errors
/// When the service does not start or a renewal fails.
pub fn run(program: &Path, way: Way, connections: usize, length: Duration) -> Result<()> {
    let home = tempfile::tempdir().context("no temporary directory")?;
    let port_file = home.path().join("port");
    let mut serve = tied(std::path::absolute(program)?);
    serve.args(["serve", "--listen", "127.0.0.1:0", "--data"]).arg(home.path().join("data"));
    serve.arg("--port-file").arg(&port_file);
    let mut service = Process::start("the service", serve, home.path().join("log.json"))?;
    let address: String = service.until(|| Ok(std::fs::read_to_string(&port_file)?))?;
    let pid = service.pid().context("the service runs")?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(measure(address.trim().parse()?, pid, way, connections, length))
}

async fn measure(
    address: SocketAddr,
    pid: u32,
    way: Way,
    connections: usize,
    length: Duration,
) -> Result<()> {
    let key = fill(address).await?;
    println!("{way:?}: {connections} readers; memory in MiB, times in ms");
    let alone = renewals(address, &key, length).await?;
    print("before", memory(pid, "VmHWM:")?, &alone);
    let mut deaf = Vec::with_capacity(connections);
    let opening = async {
        for _ in 0..connections {
            deaf.push(ask(address, way).await?);
        }
        anyhow::Ok(())
    };
    let (opened, during) = tokio::join!(opening, renewals(address, &key, length));
    opened?;
    print("during", memory(pid, "VmHWM:")?, &during?);
    drop(deaf);
    sleep(Duration::from_secs(2)).await;
    println!("  after   {:>6} MiB", memory(pid, "VmRSS:")? / 1024);
    Ok(())
}

fn print(when: &str, most: u64, [http, stream, lists]: &[Vec<u64>; 3]) {
    let of = |times: &[u64]| {
        let at = |share: f64| {
            times.get(((times.len() as f64) * share) as usize).map_or(f64::NAN, |ns| *ns as f64 / 1e6)
        };
        format!(
            "{:>6} times, p50 {:>8.2} p99 {:>8.2} most {:>8.2}",
            times.len(),
            at(0.5),
            at(0.99),
            times.last().map_or(f64::NAN, |ns| *ns as f64 / 1e6)
        )
    };
    println!("  {when}  {:>6} MiB at most", most / 1024);
    println!("    renewals over HTTP     {}", of(http));
    println!("    renewals by a stream   {}", of(stream));
    println!("    pages that are read    {}", of(lists));
}

/// Renews in both ways and lists, for a time: how long each took, sorted.
async fn renewals(address: SocketAddr, key: &str, length: Duration) -> Result<[Vec<u64>; 3]> {
    let until = now_ns() + u64::try_from(length.as_nanos())?;
    let http = async {
        let mut stream = BufReader::new(TcpStream::connect(address).await?);
        let path = format!("/v1/sessions/{}/renew", key.split('-').next().unwrap_or_default());
        let mut took = Vec::new();
        while now_ns() < until {
            let began = now_ns();
            let (status, _) = call(&mut stream, "POST", &path, Some(key), "{}").await?;
            ensure!(status == 200, "a renewal was answered with {status}");
            took.push(now_ns() - began);
            sleep(PACE).await;
        }
        anyhow::Ok(took)
    };
    let stream = async {
        let store = Store::connect(&format!("leasehold://{address}")).await?;
        let session = store.session_with(&SessionOptions::new().ttl(Duration::from_secs(60))).await?;
        let mut took = Vec::new();
        while now_ns() < until {
            let began = now_ns();
            session.renew().await?;
            took.push(now_ns() - began);
            sleep(PACE).await;
        }
        session.close().await?;
        anyhow::Ok(took)
    };
    let lists = async {
        let mut stream = BufReader::new(TcpStream::connect(address).await?);
        let (mut took, mut refused) = (Vec::new(), 0);
        while now_ns() < until {
            let began = now_ns();
            match call(&mut stream, "GET", "/v1/leases?limit=1000", None, "").await? {
                (200, _) => took.push(now_ns() - began),
                (503, _) => refused += 1,
                (status, body) => anyhow::bail!("a page was answered with {status}: {body}"),
            }
            sleep(25 * PACE).await;
        }
        if refused > 0 {
            println!("    {refused} pages were refused with 503");
        }
        anyhow::Ok(took)
    };
    let (http, stream, lists) = tokio::try_join!(http, stream, lists)?;
    Ok([http, stream, lists].map(|mut took: Vec<u64>| {
        took.sort_unstable();
        took
    }))
}

/// Has the names held, and gives the key of their session.
async fn fill(address: SocketAddr) -> Result<String> {
    let mut stream = BufReader::new(TcpStream::connect(address).await?);
    let open = r#"{"label":"unread","ttl_ms":300000}"#;
    let (_, opened) = call(&mut stream, "POST", "/v1/sessions", None, open).await?;
    let opened: serde_json::Value = serde_json::from_str(&opened)?;
    let key = opened["session_key"].as_str().with_context(|| format!("no session: {opened}"))?.to_owned();
    let names: Vec<String> = (0..NAMES).map(|name| format!("services/unread/name-{name:06}")).collect();
    for names in names.chunks(TOGETHER) {
        let names: Vec<_> = names.iter().map(|name| serde_json::json!({ "resource": name })).collect();
        let acquire = serde_json::json!({ "resources": names, "value": "v".repeat(VALUE_BYTES) });
        let acquire = acquire.to_string();
        let (status, said) = call(&mut stream, "POST", "/v1/leases/acquire", Some(&key), &acquire).await?;
        ensure!(status == 200, "not granted: {said}");
    }
    let (_, page) = call(&mut stream, "GET", "/v1/leases?limit=1000", None, "").await?;
    println!("a page of {NAMES} names has {} bytes", page.len());
    Ok(key)
}

/// One request on a connection that stays, and its answer.
async fn call(
    stream: &mut BufReader<TcpStream>,
    method: &str,
    path: &str,
    key: Option<&str>,
    body: &str,
) -> Result<(u16, String)> {
    let key = key.map(|key| format!("leasehold-session: {key}\r\n")).unwrap_or_default();
    let kind = if method == "POST" { "content-type: application/json\r\n" } else { "" };
    let length = body.len();
    let head =
        format!("{method} {path} HTTP/1.1\r\nhost: x\r\n{kind}{key}content-length: {length}\r\n\r\n{body}");
    stream.write_all(head.as_bytes()).await?;
    let (mut status, mut length) = (0, 0);
    loop {
        let mut line = String::new();
        ensure!(stream.read_line(&mut line).await? > 0, "the service has hung up");
        let line = line.trim_end().to_ascii_lowercase();
        if let Some(rest) = line.strip_prefix("http/1.1 ") {
            status = rest[..3].parse()?;
        } else if let Some(rest) = line.strip_prefix("content-length: ") {
            length = rest.parse()?;
        } else if line.is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await?;
    Ok((status, String::from_utf8(body)?))
}

/// A connection that has asked for a page and reads nothing.
async fn ask(address: SocketAddr, way: Way) -> Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    socket.set_recv_buffer_size(RECEIVE_BYTES)?;
    let mut stream = socket.connect(address).await?;
    let mut bytes = Vec::new();
    match way {
        Way::Http => bytes.extend_from_slice(b"GET /v1/leases?limit=1000 HTTP/1.1\r\nhost: x\r\n\r\n"),
        Way::Stream => {
            encode_opening(&Hello::new("unread", std::process::id(), ""), &mut bytes)?;
            let page = Query::Leases { prefix: String::new(), after: None, limit: 1_000 };
            encode_client(&[(RequestId(1), Request::Read(page))], &mut bytes)?;
        }
    }
    stream.write_all(&bytes).await?;
    Ok(stream)
}

/// Memory of a process, in KiB: now, or the most ever.
fn memory(pid: u32, which: &str) -> Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix(which)).context("it has no memory")?;
    Ok(line.trim().trim_end_matches(" kB").parse()?)
}
