//! Runs each cell as two fresh processes of this same program: a server and a client.
//!
//! Contenders of a group run one after the other, in turned order every second time, so that a slow
//! minute of the machine falls on all of them alike.

use std::env;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::Context;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use tokio::runtime::{Builder, Runtime};

use super::endpoint::Listener;
use super::plan::{Cell, Contender, Placement, Plan, Threads, Work};
use super::report::{Figures, Report};
use super::{framed, grpc, load, raw};

/// Measures everything in `plan`; `progress` is told of each cell before it runs.
pub fn run(plan: &Plan, mut progress: impl FnMut(&Cell)) -> anyhow::Result<Report> {
    let mut report = Report::new(plan.clone());
    for group in plan.groups() {
        let mut rounds = vec![Vec::new(); group.len()];
        for repeat in 0..plan.repeats {
            let mut order: Vec<usize> = (0..group.len()).collect();
            if repeat % 2 == 1 {
                order.reverse();
            }
            for i in order {
                progress(&group[i]);
                rounds[i].push(measure(&group[i])?);
            }
        }
        report.add_group(group.into_iter().zip(rounds).collect());
    }
    Ok(report)
}

fn measure(cell: &Cell) -> anyhow::Result<Figures> {
    let json = serde_json::to_string(cell)?;
    let program = env::current_exe()?;
    // In the system's temporary directory: the path of a unix socket has little room. Made here, because the server
    // is killed and cannot tidy up.
    let dir = tempfile::tempdir()?;
    let server =
        Command::new(&program).args(["server", &json]).arg(dir.path()).stdout(Stdio::piped()).spawn()?;
    let mut server = Ended(server);
    let out = server.0.stdout.take().context("the server's output was piped")?;
    let mut address = String::new();
    BufReader::new(out).read_line(&mut address)?;
    let client = Command::new(&program)
        .args(["client", &json, address.trim_end()])
        .stderr(Stdio::inherit())
        .output()?;
    anyhow::ensure!(client.status.success(), "the client of {cell:?} failed: {}", client.status);
    Ok(serde_json::from_slice(&client.stdout)?)
}

/// A child that does not outlive the measurement.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        // Both fail only if the child is gone already, which is what is wanted.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The server's process: makes its unix socket in `dir`, prints its address, then serves until it is killed.
pub fn server_process(cell: &Cell, dir: &Path) -> anyhow::Result<()> {
    place(cell.placement, 0)?;
    let (listener, address) = Listener::bind(cell.transport, dir)?;
    println!("{address}");
    std::io::stdout().flush()?;
    match cell.contender {
        Contender::Raw => raw::serve(&listener),
        Contender::Framed => runtime(cell.threads)?.block_on(framed::serve(listener)),
        Contender::Grpc => runtime(cell.threads)?.block_on(grpc::serve(listener)),
    }
}

/// The client's process: measures and prints its figures as JSON.
pub fn client_process(cell: &Cell, address: &str) -> anyhow::Result<()> {
    let Cell { contender, transport, threads, placement, sharing, work } = *cell;
    place(placement, 1)?;
    let sessions = match work {
        Work::PingPong { .. } => 1,
        Work::Paced { sessions, .. } => sessions,
    };
    let to = address.to_owned();
    let figures = match contender {
        Contender::Raw => raw::measure(transport, address, sharing, work)?,
        Contender::Framed => on(threads, async move {
            load::measure(framed::open(transport, &to, sharing, sessions)?, work).await
        })?,
        Contender::Grpc => on(threads, async move {
            load::measure(grpc::open(transport, &to, sharing, sessions).await?, work).await
        })?,
    };
    println!("{}", serde_json::to_string(&figures)?);
    Ok(())
}

/// Keeps this process on its core; called before any thread is started, so that all inherit it.
///
/// Cores are counted among those that this process may use: a container seldom starts at core 0.
fn place(placement: Placement, apart: usize) -> anyhow::Result<()> {
    let nth = match placement {
        Placement::Free => return Ok(()),
        Placement::Together => 0,
        Placement::Apart => apart,
    };
    let allowed = sched_getaffinity(None)?;
    let core = (0..CpuSet::MAX_CPU).filter(|&core| allowed.is_set(core)).nth(nth);
    let core = core.context("client and server need a core each, and this machine gives one to both")?;
    let mut cores = CpuSet::new();
    cores.set(core);
    sched_setaffinity(None, &cores).with_context(|| format!("cannot run on core {core} alone"))
}

/// Runs `work` on a runtime of the kind asked for.
///
/// On several threads it is a task like any other: the thread that blocks on a runtime is not one of its workers,
/// and a hand-over to it would be counted against both contenders.
fn on(
    threads: Threads,
    work: impl Future<Output = anyhow::Result<Figures>> + Send + 'static,
) -> anyhow::Result<Figures> {
    let runtime = runtime(threads)?;
    runtime.block_on(async { tokio::spawn(work).await? })
}

fn runtime(threads: Threads) -> anyhow::Result<Runtime> {
    let mut builder = match threads {
        Threads::Current => Builder::new_current_thread(),
        Threads::Multi => Builder::new_multi_thread(),
    };
    Ok(builder.worker_threads(2).enable_all().build()?)
}
