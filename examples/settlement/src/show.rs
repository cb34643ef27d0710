//! Plays it twice: worker `a` is paused while the bytes of a payment are on their way, worker `b` takes over and pays everything, and then the
//! bytes of `a` arrive.

use std::net::SocketAddr;
use std::process::{ExitCode, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use clap::Args;
use leasehold_fence::postgres::Fence;
use rustix::process::{Pid, Signal, kill_process};
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{Connection as _, PgPool};
use tokio::process::{Child, Command};

use crate::gate::Gate;
use crate::ledger::{self, Twice};

const INVOICES: i32 = 10;
/// The payment whose bytes are held.
const HELD: i32 = 3;
/// A server that runs answers sooner.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);
/// No step of this takes longer.
const LIMIT: Duration = Duration::from_secs(60);

#[derive(Debug, Args)]
pub(crate) struct Words {
    /// A database in which two tables may be made anew: invoice and payment
    #[arg(long, value_name = "URL")]
    postgres: String,
    /// The outcome as JSON
    #[arg(long)]
    json: bool,
}

/// What came out of one play.
struct Outcome {
    payments: i64,
    twice: Vec<Twice>,
    said: Vec<String>,
}

pub(crate) async fn show(words: &Words) -> Result<ExitCode> {
    must_be_there(&words.postgres).await?;
    let without = play(&words.postgres, false).await.context("without the fence")?;
    let with = play(&words.postgres, true).await.context("with the fence")?;
    if words.json {
        println!(
            "{}",
            serde_json::json!({ "invoices": INVOICES, "without": json(&without), "with": json(&with) })
        );
    } else {
        print(&without, &with);
    }
    let as_it_should =
        without.twice.len() == 1 && with.twice.is_empty() && with.payments == i64::from(INVOICES);
    Ok(if as_it_should { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// A server that is down is no matter of the fence, and a pool would wait for it for half a minute.
async fn must_be_there(url: &str) -> Result<()> {
    let options: PgConnectOptions = url.parse().context("this is no URL of PostgreSQL")?;
    // Without the user, who may have a password.
    let place = format!("postgres://{}:{}", options.get_host(), options.get_port());
    let next = "see that the server runs, and that --postgres names it";
    let connected = tokio::time::timeout(CONNECT_LIMIT, PgConnection::connect_with(&options)).await;
    let connected =
        connected.with_context(|| format!("{place} has not answered for {CONNECT_LIMIT:?}; {next}"))?;
    match connected {
        Ok(connection) => Ok(connection.close().await?),
        Err(why) => bail!("{place} cannot be used: {why}; {next}"),
    }
}

async fn play(url: &str, fence: bool) -> Result<Outcome> {
    let pool = PgPool::connect(url).await.context("the database cannot be reached any more")?;
    ledger::open_anew(&pool, INVOICES).await?;
    Fence::new(pool.clone()).migrate().await?;
    let leases = tempfile::tempdir()?;
    let leases = format!("dir:{}", leases.path().display());
    // Whoever comes first serves the directory, and that must not be the worker that is paused.
    let store = leasehold::Store::connect(&leases).await?;
    store.session().await?.close().await?;
    let gate = Gate::before(address(url)?, &format!("VALUES ({HELD},")).await?;

    let slow = behind(url, gate.address())?;
    let a = start("a", &slow, &leases, fence)?;
    within("the bytes of a's payment", gate.has_bytes()).await?;
    signal(&a, Signal::STOP)?;
    let b = start("b", url, &leases, fence)?;
    let by_b = within("b", said(b)).await??;
    gate.open();
    signal(&a, Signal::CONT)?;
    let mut by_a = within("a", said(a)).await??;
    ensure!(!by_a.is_empty(), "a has said nothing");
    let behind = by_a.split_off(1);
    store.close().await;

    let (payments, twice) = ledger::audit(&pool).await?;
    let paused =
        vec![format!("-- the payment of invoice {HELD} has left a; a is paused, and its lease runs out")];
    let arrived = vec![format!("-- the bytes of a arrive at the database, and a goes on")];
    let said = [by_a, paused, by_b, arrived, behind].concat();
    Ok(Outcome { payments, twice, said })
}

fn start(label: &str, postgres: &str, store: &str, fence: bool) -> Result<Child> {
    let itself = std::env::current_exe().context("where is this program?")?;
    let mut command = Command::new(itself);
    command.args(["worker", "--label", label, "--postgres", postgres, "--store", store]);
    if fence {
        command.arg("--fence");
    }
    command.stdout(Stdio::piped()).kill_on_drop(true);
    command.spawn().with_context(|| format!("worker {label} does not start"))
}

fn signal(child: &Child, signal: Signal) -> Result<()> {
    let pid = child.id().and_then(|id| Pid::from_raw(id.cast_signed())).context("the worker has ended")?;
    Ok(kill_process(pid, signal)?)
}

/// What a worker has said, once it has ended well.
async fn said(child: Child) -> Result<Vec<String>> {
    let output = child.wait_with_output().await?;
    ensure!(output.status.success(), "a worker ended with {}", output.status);
    Ok(String::from_utf8(output.stdout)?.lines().map(str::to_owned).collect())
}

async fn within<T>(what: &str, future: impl Future<Output = T>) -> Result<T> {
    tokio::time::timeout(LIMIT, future).await.with_context(|| format!("{what}: nothing for {LIMIT:?}"))
}

/// Where the database listens.
fn address(url: &str) -> Result<SocketAddr> {
    let options: PgConnectOptions = url.parse().context("this is no URL of PostgreSQL")?;
    let place = format!("{}:{}", options.get_host(), options.get_port());
    let mut found = std::net::ToSocketAddrs::to_socket_addrs(&place)?;
    found.next().with_context(|| format!("{place} has no address"))
}

/// The same database by way of the gate.
fn behind(url: &str, gate: SocketAddr) -> Result<String> {
    let options: PgConnectOptions = url.parse().context("this is no URL of PostgreSQL")?;
    let (host, port) = (options.get_host().to_owned(), options.get_port());
    let place = [format!("{host}:{port}"), host];
    let place =
        place.iter().find(|place| url.contains(&format!("@{place}")) || url.contains(&format!("//{place}")));
    let place = place.with_context(|| format!("{url:?}: host and port are not found in it"))?;
    Ok(url.replacen(place, &gate.to_string(), 1))
}

fn print(without: &Outcome, with: &Outcome) {
    for (title, outcome) in [("without the fence", without), ("with the fence", with)] {
        println!("{title}");
        for line in &outcome.said {
            println!("  {line}");
        }
        println!();
    }
    println!("{:26}{:>20}{:>20}", "", "without the fence", "with the fence");
    println!("{:26}{INVOICES:>20}{INVOICES:>20}", "invoices");
    println!("{:26}{:>20}{:>20}", "payments", without.payments, with.payments);
    println!("{:26}{:>20}{:>20}", "invoices paid twice", without.twice.len(), with.twice.len());
    for Twice { invoice, payments } in &without.twice {
        let by: Vec<String> =
            payments.iter().map(|(payer, token)| format!("{payer} with token {token}")).collect();
        println!("without the fence, invoice {invoice} was paid by {}", by.join(" and by "));
    }
}

fn json(outcome: &Outcome) -> serde_json::Value {
    let twice: Vec<serde_json::Value> = outcome
        .twice
        .iter()
        .map(|twice| {
            let payments: Vec<serde_json::Value> = twice
                .payments
                .iter()
                .map(|(payer, token)| serde_json::json!({ "payer": payer, "token": token.to_string() }))
                .collect();
            serde_json::json!({ "invoice": twice.invoice, "payments": payments })
        })
        .collect();
    serde_json::json!({ "payments": outcome.payments, "paid_twice": twice, "said": outcome.said })
}
