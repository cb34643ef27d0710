//! The client: a process of its own that holds leases through the public library, and looks at them when it is asked to.

use std::fmt;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use leasehold::{ConnectOptions, Lease, Session, SessionOptions, Store};
use serde::Serialize;
use tokio::task::JoinSet;

use super::Plan;

/// How the leases are spread over sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Shape {
    /// All in one.
    OneSession,
    /// Each in its own.
    SessionPerLease,
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OneSession => "one session",
            Self::SessionPerLease => "a session per lease",
        })
    }
}

/// The client as the measuring process sees it.
#[derive(Debug)]
pub struct Client {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

impl Client {
    /// Starts one.
    ///
    /// # Errors
    /// When it does not start.
    pub fn start(plan: &Plan, shape: Shape, address: &str) -> Result<Self> {
        let shape = clap::ValueEnum::to_possible_value(&shape).context("every shape has a name")?;
        let mut child = Command::new(&plan.client)
            .args(["--client-of", address, "--shape", shape.get_name()])
            .args(["--leases", &plan.leases.to_string(), "--ttl-s", &plan.ttl.as_secs().to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("{} does not start", plan.client.display()))?;
        let (Some(to), Some(from)) = (child.stdin.take(), child.stdout.take()) else {
            bail!("the client has no pipes")
        };
        Ok(Self { child, to, from: BufReader::new(from) })
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits for a word.
    ///
    /// # Errors
    /// When it ends, or says something else.
    pub fn expect(&mut self, word: &str) -> Result<()> {
        let mut line = String::new();
        self.from.read_line(&mut line).context("the client cannot be heard")?;
        ensure!(line.trim_end() == word, "the client says {line:?} in place of {word:?}");
        Ok(())
    }

    /// Says a word.
    ///
    /// # Errors
    /// When it is gone.
    pub fn ask(&mut self, word: &str) -> Result<()> {
        writeln!(self.to, "{word}").context("the client does not listen")
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// When it did not end well.
    pub fn end(mut self) -> Result<()> {
        let status = self.child.wait()?;
        ensure!(status.success(), "the client ended with {status}");
        Ok(())
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Opens so many sessions at the same time: enough to keep the service busy.
const OPENED_AT_ONCE: usize = 64;
/// Names in one acquire: as many as a unit may have.
const UNIT: usize = 64;

/// The whole life of a client process.
///
/// # Errors
/// When a lease is not granted, or does not stay.
pub async fn live(address: &str, shape: Shape, leases: usize, ttl: Duration) -> Result<()> {
    let options = SessionOptions::default().ttl(ttl);
    let patience = ConnectOptions::new().patience(Duration::from_secs(60)).only_listed();
    let store = Store::connect_with(&format!("leasehold://{address}"), patience).await?;
    let names: Vec<String> = (0..leases).map(|number| format!("coalescing/{number}")).collect();
    let held = match shape {
        Shape::OneSession => in_one_session(&store, &options, &names).await?,
        Shape::SessionPerLease => in_a_session_each(&store, &options, names).await?,
    };
    println!("held");
    let (_, mut held) = tokio::task::spawn_blocking(move || {
        let mut line = String::new();
        (std::io::stdin().read_line(&mut line).is_ok(), held)
    })
    .await?;
    all_are_held(&held.leases)?;
    one_alone(&store, &mut held).await?;
    all_or_none(&store, &options, &held).await?;
    println!("checked");
    store.close().await;
    Ok(())
}

/// Leases, and the sessions that carry them.
#[derive(Debug, Default)]
struct Held {
    leases: Vec<Lease>,
    sessions: Vec<Session>,
}

async fn in_one_session(store: &Store, options: &SessionOptions, names: &[String]) -> Result<Held> {
    let session = store.session_with(options).await?;
    let mut leases = Vec::with_capacity(names.len());
    for unit in names.chunks(UNIT) {
        leases.extend(session.acquire_all(unit.iter().map(String::as_str)).await?);
    }
    Ok(Held { leases, sessions: vec![session] })
}

async fn in_a_session_each(store: &Store, options: &SessionOptions, names: Vec<String>) -> Result<Held> {
    let mut held = Held::default();
    let mut names = names.into_iter();
    let mut opening = JoinSet::new();
    loop {
        while opening.len() < OPENED_AT_ONCE
            && let Some(name) = names.next()
        {
            let (store, options) = (store.clone(), options.clone());
            opening.spawn(async move {
                let session = store.session_with(&options).await?;
                let lease = session.acquire(&name).await?;
                Ok::<_, leasehold::Error>((lease, session))
            });
        }
        let Some(opened) = opening.join_next().await else { return Ok(held) };
        let (lease, session) = opened??;
        held.leases.push(lease);
        held.sessions.push(session);
    }
}

fn all_are_held(leases: &[Lease]) -> Result<()> {
    for lease in leases {
        let state = lease.state();
        ensure!(lease.guard(Duration::from_millis(1)).is_ok(), "{} is {state:?}", lease.resource());
    }
    Ok(())
}

/// One lease is given back, and all others stay.
async fn one_alone(store: &Store, held: &mut Held) -> Result<()> {
    let released = held.leases.swap_remove(held.leases.len() / 2);
    let name = released.resource().clone();
    released.release().await?;
    let view = store.lease(&name).await?;
    ensure!(view.is_none_or(|view| view.holders.is_empty()), "{name} was given back and is still held");
    all_are_held(&held.leases)
}

/// An acquire of several names gets all or none: one that is held keeps the others free.
async fn all_or_none(store: &Store, options: &SessionOptions, held: &Held) -> Result<()> {
    let taken = held.leases.first().context("there is a lease")?.resource().to_string();
    let other = store.session_with(options).await?;
    let free = ["coalescing/free/1", "coalescing/free/2"];
    let names = [free[0], &taken, free[1]];
    ensure!(other.acquire_all(names).await.is_err(), "{taken} was granted twice");
    for name in free {
        let view = store.lease(&name.parse()?).await?;
        ensure!(view.is_none_or(|view| view.holders.is_empty()), "{name} was granted without {taken}");
    }
    ensure!(other.acquire_all(free).await?.len() == 2, "the free ones are not granted together");
    Ok(())
}
