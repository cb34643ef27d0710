//! Hours of mixed load on a served node: its memory and its descriptors must not grow.
//!
//! One process is the service, as people run it. This one is everybody else: sessions that renew and contend, clients that come and
//! go, clients that vanish without a word, callers over HTTP that give up half way, watchers that stay and watchers that
//! reconnect, and requests that make no sense. Every second the service's memory, descriptors and counters are noted. At the end they are
//! drawn, and judged: after a time to warm up, the trend of the memory must stay below a bound, and the descriptors must return
//! to where they were.

pub mod library;
pub mod plot;
pub mod samples;
pub mod web;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::peers::process::{Process, tied};
use samples::Samples;

/// What is to be done.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The program to serve with.
    pub program: PathBuf,
    /// For how long.
    pub length: Duration,
    /// How long each lease is held at least: the shorter, the more load.
    pub pace: Duration,
    /// Where the samples and the plot go; their names end in `.json` and `.svg`.
    pub out: PathBuf,
}

/// What everybody shares.
#[derive(Debug, Default)]
pub struct Shared {
    /// How long each lease is held at least.
    pub pace: Duration,
    /// Time to end.
    pub over: AtomicBool,
    /// Leases granted, as clients saw it.
    pub grants: AtomicU64,
    /// Acquires that were not granted.
    pub refused: AtomicU64,
    /// Calls whose outcome nobody knows, or that could not be made.
    pub troubles: AtomicU64,
    /// Changes that watchers saw.
    pub seen: AtomicU64,
    /// Requests that make no sense, all refused.
    pub nonsense: AtomicU64,
}

impl Shared {
    /// Whether it is time to end.
    pub fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }
}

/// Names that everybody contends for: few enough to meet, many enough to work.
pub const NAMES: u64 = 200;
/// Sessions of the library that stay.
const STAYING: usize = 40;
/// Clients of the library that come and go.
const COMING_AND_GOING: usize = 6;
/// Threads that speak HTTP.
const CALLERS: usize = 6;
/// Watches of the library, and over HTTP.
const WATCHERS: usize = 20;

/// Runs it. Says whether the service stayed as it was.
///
/// # Errors
/// When the service does not start or ends by itself, or the outcome cannot be written.
pub fn run(plan: &Plan) -> Result<bool> {
    let home = tempfile::tempdir().context("no temporary directory")?;
    let (mut service, address) = serve(&plan.program, home.path())?;
    let shared = Arc::new(Shared { pace: plan.pace, ..Shared::default() });
    let url = format!("leasehold://{address}");
    let pid = service.pid().context("the service runs")?;
    println!("serving on {address} as process {pid}, for {:?}", plan.length);
    let mut threads = web::start(&address, CALLERS, WATCHERS, &shared);
    threads.push(library::start(&url, STAYING, COMING_AND_GOING, WATCHERS, &shared)?);
    let mut samples = Samples::default();
    let seconds = plan.length.as_secs().max(1);
    for second in 0..seconds {
        std::thread::sleep(Duration::from_secs(1));
        if !service.lives() {
            bail!("the service ended by itself after {second} s; its log is in {}", home.keep().display());
        }
        samples.take(second + 1, pid, &shared)?;
        if (second + 1) % 60 == 0 || second + 1 == seconds {
            println!("{}", samples.line());
        }
    }
    shared.over.store(true, Ordering::Relaxed);
    for thread in threads {
        thread.join().map_err(|_| anyhow::anyhow!("a client panicked"))?;
    }
    // Everybody is gone: so must be what they used.
    std::thread::sleep(Duration::from_secs(2));
    samples.take(seconds + 2, pid, &shared)?;
    let exit = service.terminate()?.code().unwrap_or(-1);
    let verdict = samples.judge();
    let json = plan.out.with_extension("json");
    std::fs::write(&json, samples.json()?).with_context(|| format!("cannot write {}", json.display()))?;
    let svg = plan.out.with_extension("svg");
    std::fs::write(&svg, plot::draw(&samples)).with_context(|| format!("cannot write {}", svg.display()))?;
    println!("{verdict}");
    println!("exit code of the service: {exit}; written: {}, {}", json.display(), svg.display());
    Ok(verdict.is_good() && exit == 0)
}

/// Starts the service below a directory, on a port of its own, and says where it listens.
fn serve(program: &Path, home: &Path) -> Result<(Process, String)> {
    let port_file = home.join("port");
    let mut serve = tied(std::path::absolute(program)?);
    serve.args(["serve", "--listen", "127.0.0.1:0", "--data"]).arg(home.join("data"));
    serve.arg("--port-file").arg(&port_file);
    let mut process = Process::start("the service", serve, home.join("log.json"))?;
    let address = process.until(|| Ok(std::fs::read_to_string(&port_file)?))?;
    Ok((process, address.trim().to_owned()))
}
