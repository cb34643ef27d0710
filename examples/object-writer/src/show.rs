//! Plays it twice: writer `a` is paused while the bytes of a version are on their way, writer `b` takes over and writes newer versions, and
//! then the bytes of `a` arrive.

use std::net::SocketAddr;
use std::process::{ExitCode, Stdio};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use clap::Args;
use futures_util::TryStreamExt as _;
use leasehold_fence::object_store::Fence;
use object_store::aws::AmazonS3;
use object_store::path::Path;
use object_store::{ObjectStore as _, ObjectStoreExt as _};
use rustix::process::{Pid, Signal, kill_process};
use tokio::process::{Child, Command};

use crate::gate::Gate;
use crate::report::{self, Report};
use crate::writer::{LAST, Object};

/// The version whose bytes are held.
const HELD: u64 = 2;
/// No step of this takes longer.
const LIMIT: Duration = Duration::from_secs(60);

#[derive(Debug, Args)]
pub(crate) struct Words {
    /// Where the object store listens: http://HOST:PORT
    #[arg(long, value_name = "URL", value_parser = endpoint)]
    endpoint: String,
    /// A bucket that is there; objects below object-writer/ are made anew in it
    #[arg(long, value_name = "NAME")]
    bucket: String,
    /// The outcome as JSON
    #[arg(long)]
    json: bool,
}

/// The gate reads along, so it must be HTTP in the clear.
fn endpoint(text: &str) -> Result<String, String> {
    let text = text.trim_end_matches('/');
    match text.strip_prefix("http://") {
        Some(place) if !place.is_empty() && !place.contains(['/', '@']) => Ok(text.to_owned()),
        _ => Err(
            "write it like http://127.0.0.1:9000; this example holds back requests, and cannot look into TLS"
                .to_owned(),
        ),
    }
}

/// What came out of one play.
struct Outcome {
    stored: Report,
    said: Vec<String>,
}

pub(crate) async fn show(words: &Words) -> Result<ExitCode> {
    let without = play(words, false).await.context("without the fence")?;
    let with = play(words, true).await.context("with the fence")?;
    if words.json {
        let json = |outcome: &Outcome| serde_json::json!({ "stored": outcome.stored, "said": outcome.said });
        println!(
            "{}",
            serde_json::json!({ "newest_acknowledged": LAST, "without": json(&without), "with": json(&with) })
        );
    } else {
        print(&without, &with);
    }
    let as_it_should = without.stored == Report { version: HELD, by: "a".to_owned() }
        && with.stored == Report { version: LAST, by: "b".to_owned() };
    Ok(if as_it_should { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn play(words: &Words, fenced: bool) -> Result<Outcome> {
    let bucket = report::bucket(&words.endpoint, &words.bucket)?;
    let path = Path::from(if fenced { "object-writer/fenced.json" } else { "object-writer/plain.json" });
    begin_anew(&bucket).await.with_context(|| format!("bucket {:?} at {}", words.bucket, words.endpoint))?;
    let leases = tempfile::tempdir()?;
    let leases = format!("dir:{}", leases.path().display());
    // Whoever comes first serves the directory, and that must not be the writer that is paused.
    let store = leasehold::Store::connect(&leases).await?;
    store.session().await?.close().await?;

    let start = |label: &str, endpoint: &str| start(label, endpoint, words, &path, &leases, fenced);
    // What decides is the put at the path: behind the fence that of a head, of which the seal has put one too.
    let mark = format!("PUT /{}/{path} HTTP/1.1\r\n", words.bucket);
    let passes = if fenced { 2 } else { 1 };
    let gate = Gate::before(address(&words.endpoint)?, &mark, passes).await?;
    let a = start("a", &format!("http://{}", gate.address()))?;
    within("the bytes of a's version", gate.has_bytes()).await?;
    signal(&a, Signal::STOP)?;
    let b = start("b", &words.endpoint)?;
    let by_b = within("b", said(b)).await??;
    gate.open();
    signal(&a, Signal::CONT)?;
    let mut by_a = within("a", said(a)).await??;
    ensure!(by_a.len() > 2, "a has said too little: {by_a:?}");
    let behind = by_a.split_off(2);
    store.close().await;

    let fence = fenced.then(|| Arc::new(Fence::new(bucket.clone(), path.clone())));
    let stored = Object { bucket, path, fence }.read().await?.context("nothing was written")?;
    let paused = vec![format!("-- version {HELD} has left a; a is paused, and its lease runs out")];
    let arrived = vec!["-- the bytes of a arrive at the store, and a goes on".to_owned()];
    Ok(Outcome { stored, said: [by_a, paused, by_b, arrived, behind].concat() })
}

/// Removes what an earlier show has left.
async fn begin_anew(bucket: &AmazonS3) -> Result<()> {
    let mut old = bucket.list(Some(&Path::from("object-writer")));
    while let Some(object) = old.try_next().await? {
        bucket.delete(&object.location).await?;
    }
    Ok(())
}

fn start(
    label: &str,
    endpoint: &str,
    words: &Words,
    path: &Path,
    store: &str,
    fenced: bool,
) -> Result<Child> {
    let itself = std::env::current_exe().context("where is this program?")?;
    let mut command = Command::new(itself);
    command.args(["writer", "--label", label, "--endpoint", endpoint, "--bucket", &words.bucket]);
    command.args(["--path", path.as_ref(), "--store", store]);
    if fenced {
        command.arg("--fence");
    }
    command.stdout(Stdio::piped()).kill_on_drop(true);
    command.spawn().with_context(|| format!("writer {label} does not start"))
}

fn signal(child: &Child, signal: Signal) -> Result<()> {
    let pid = child.id().and_then(|id| Pid::from_raw(id.cast_signed())).context("the writer has ended")?;
    Ok(kill_process(pid, signal)?)
}

/// What a writer has said, once it has ended well.
async fn said(child: Child) -> Result<Vec<String>> {
    let output = child.wait_with_output().await?;
    ensure!(output.status.success(), "a writer ended with {}", output.status);
    Ok(String::from_utf8(output.stdout)?.lines().map(str::to_owned).collect())
}

async fn within<T>(what: &str, future: impl Future<Output = T>) -> Result<T> {
    tokio::time::timeout(LIMIT, future).await.with_context(|| format!("{what}: nothing for {LIMIT:?}"))
}

/// Where the store listens.
fn address(endpoint: &str) -> Result<SocketAddr> {
    let place = endpoint.trim_start_matches("http://");
    let place = if place.contains(':') { place.to_owned() } else { format!("{place}:80") };
    let mut found = std::net::ToSocketAddrs::to_socket_addrs(&place).with_context(|| place.clone())?;
    found.next().with_context(|| format!("{place} has no address"))
}

fn print(without: &Outcome, with: &Outcome) {
    for (title, outcome) in [("without the fence", without), ("with the fence", with)] {
        println!("{title}");
        for line in &outcome.said {
            println!("  {line}");
        }
        println!();
    }
    let version = |outcome: &Outcome| format!("{} by {}", outcome.stored.version, outcome.stored.by);
    println!("{:28}{:>20}{:>20}", "", "without the fence", "with the fence");
    let newest = format!("{LAST} by b");
    println!("{:28}{newest:>20}{newest:>20}", "newest version acknowledged");
    println!("{:28}{:>20}{:>20}", "version in the store", version(without), version(with));
}
