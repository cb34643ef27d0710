//! Renewals that pile up in the sockets of a node that stands still, and what it answers to them when it goes on.
//!
//! Every renewal is a call over plain HTTP on a connection of its own: the kernel takes it in, whatever the node does, and nobody
//! sends it again elsewhere, as the library would.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use leasehold::Token;
use serde_json::json;
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

use crate::history::{At, Now};
use crate::workload::post;

/// How long an answer is waited for: longer than anything here stands still.
const PATIENCE: Duration = Duration::from_secs(60);

/// The status of a session that has ended.
pub const SESSION_ENDED: u16 = 410;

/// Sessions with one lease each.
#[derive(Debug)]
pub struct Pile {
    holders: Vec<Holder>,
    calls: Vec<JoinHandle<Answer>>,
}

#[derive(Debug, Clone)]
struct Holder {
    key: String,
    resource: String,
    token: Token,
    /// When the session was asked for.
    sent: At,
}

/// What became of a renewal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// What the session holds.
    pub resource: String,
    /// When it was sent.
    pub sent: At,
    /// When it was answered, or given up.
    pub answered: At,
    /// Whether it was confirmed, with the lease in its list.
    pub confirmed: bool,
}

impl Pile {
    /// Opens as many sessions through a node, each with a lease whose name begins with `prefix`.
    ///
    /// # Errors
    /// When one of them is not served.
    pub async fn open(node: &str, prefix: &str, count: usize, ttl: Duration) -> Result<Self> {
        // All at once: the first must not expire while the last is opened.
        let mut opening = tokio::task::JoinSet::new();
        for number in 0..count {
            let (node, resource) = (node.to_owned(), format!("{prefix}/{number}"));
            opening.spawn(async move { Holder::open(&node, resource, ttl).await });
        }
        let holders = opening.join_all().await.into_iter().collect::<Result<Vec<Holder>>>()?;
        Ok(Self { holders, calls: Vec::new() })
    }

    /// Sends a renewal of every session to a node, and does not wait for answers.
    pub fn send(&mut self, runtime: &Runtime, node: &str) {
        for holder in &self.holders {
            let (holder, node) = (holder.clone(), node.to_owned());
            self.calls.push(runtime.spawn(async move {
                let sent = At::now();
                let confirmed = renew(&node, &holder, PATIENCE).await == Renewal::Confirmed;
                Answer { resource: holder.resource, sent, answered: At::now(), confirmed }
            }));
        }
    }

    /// With what status a node answers to a renewal of each session; 0 is no answer.
    pub async fn statuses(&self, node: &str) -> Vec<u16> {
        let mut statuses = Vec::new();
        for holder in &self.holders {
            let ask = json!({"session_key": holder.key});
            let answer = tokio::time::timeout(PATIENCE, post(node, "/v1/sessions/SESSION/renew", &ask)).await;
            statuses.push(answer.map_or(0, |answer| answer.map_or(0, |(status, _)| status)));
        }
        statuses
    }

    /// How many sessions there are.
    pub fn count(&self) -> usize {
        self.holders.len()
    }

    /// What became of everything that was sent.
    ///
    /// # Errors
    /// When a call panicked.
    pub async fn answers(&mut self) -> Result<Vec<Answer>> {
        let mut answers = Vec::new();
        for call in self.calls.drain(..) {
            answers.push(call.await?);
        }
        Ok(answers)
    }

    /// Closes every session, so that nothing of it is left.
    pub async fn close(self, node: &str) {
        for holder in self.holders {
            // It may have ended already.
            let _ = done(node, "/v1/sessions/SESSION/close", &json!({"session_key": holder.key})).await;
        }
    }
}

impl Holder {
    async fn open(node: &str, resource: String, ttl: Duration) -> Result<Self> {
        let ttl = u64::try_from(ttl.as_millis())?;
        let sent = At::now();
        let opened = done(node, "/v1/sessions", &json!({"ttl_ms": ttl, "label": "pile"})).await?;
        let key = opened["session_key"].as_str().context("a session without a key")?.to_owned();
        let ask = json!({"session_key": key, "resource": resource});
        let granted = done(node, "/v1/leases/acquire", &ask).await?;
        let token = granted["leases"][0]["token"].as_str().context("a grant without a token")?.parse()?;
        Ok(Self { key, resource, token, sent })
    }

    /// Renews through these nodes in turn until it is enough, or the lease is gone.
    async fn keep(self, nodes: Vec<String>, ttl: Duration, enough: Arc<AtomicBool>) -> Fate {
        let (mut confirmed, every) = (self.sent, ttl / 4);
        for node in nodes.iter().cycle() {
            if enough.load(Ordering::Relaxed) {
                break;
            }
            let sent = At::now();
            match renew(node, &self, every).await {
                Renewal::Confirmed => confirmed = sent,
                Renewal::Gone => return fate(&self.resource, At::now().since(confirmed), ttl),
                Renewal::Unknown => {}
            }
            tokio::time::sleep(every.saturating_sub(At::now().since(sent))).await;
        }
        Fate::Kept
    }
}

/// Sessions with one lease each that renew all the time.
#[derive(Debug)]
pub struct Keepers {
    enough: Arc<AtomicBool>,
    tasks: Vec<JoinHandle<Fate>>,
}

/// What became of a lease that is renewed all the time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fate {
    /// It is held.
    Kept,
    /// The service ended it less than a ttl after a confirmed renewal was sent.
    Lost(String),
    /// No renewal got through for a ttl, so it expired, rightly.
    Starved,
}

impl Keepers {
    /// Opens as many sessions through the first of these nodes, and renews them through all others.
    ///
    /// # Errors
    /// When one of them is not served.
    pub async fn open(nodes: &[String], prefix: &str, count: usize, ttl: Duration) -> Result<Self> {
        let [first, others @ ..] = nodes else { bail!("there are no nodes") };
        let enough = Arc::new(AtomicBool::new(false));
        let mut opening = tokio::task::JoinSet::new();
        for number in 0..count {
            let (first, resource) = (first.clone(), format!("{prefix}/{number}"));
            let (others, enough) = (others.to_vec(), Arc::clone(&enough));
            opening.spawn(async move {
                let holder = Holder::open(&first, resource, ttl).await?;
                anyhow::Ok(tokio::spawn(holder.keep(others, ttl, enough)))
            });
        }
        let tasks = opening.join_all().await.into_iter().collect::<Result<Vec<_>>>()?;
        Ok(Self { enough, tasks })
    }

    /// What became of them.
    ///
    /// # Errors
    /// When one of them panicked.
    pub async fn fates(self) -> Result<Vec<Fate>> {
        self.enough.store(true, Ordering::Relaxed);
        let mut fates = Vec::new();
        for task in self.tasks {
            fates.push(task.await?);
        }
        Ok(fates)
    }
}

/// A lease is gone, so long after the last confirmed renewal of it was sent.
fn fate(resource: &str, since: Duration, ttl: Duration) -> Fate {
    if since < ttl {
        Fate::Lost(format!(
            "{resource} is gone {since:?} after a confirmed renewal was sent, with a ttl of {ttl:?}"
        ))
    } else {
        Fate::Starved
    }
}

/// What a renewal came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Renewal {
    /// It is confirmed and lists the lease.
    Confirmed,
    /// The session has ended, or does not have the lease.
    Gone,
    /// Nobody can say.
    Unknown,
}

async fn renew(node: &str, holder: &Holder, patience: Duration) -> Renewal {
    let ask = json!({"session_key": holder.key});
    let token = holder.token.to_string();
    match tokio::time::timeout(patience, post(node, "/v1/sessions/SESSION/renew", &ask)).await {
        Ok(Ok((200, answer))) => {
            let leases = answer["leases"].as_array();
            let listed = leases.is_some_and(|leases| leases.iter().any(|lease| lease["token"] == token));
            if listed { Renewal::Confirmed } else { Renewal::Gone }
        }
        Ok(Ok((SESSION_ENDED, _))) => Renewal::Gone,
        _ => Renewal::Unknown,
    }
}

/// A call that must be done.
async fn done(node: &str, path: &str, body: &serde_json::Value) -> Result<serde_json::Value> {
    let call = tokio::time::timeout(Duration::from_secs(10), post(node, path, body)).await;
    let (status, answer) = call.with_context(|| format!("{node} does not answer to {path}"))??;
    if status != 200 {
        bail!("{node} answers {status} to {path}: {answer}");
    }
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_that_is_gone_within_its_ttl_is_lost_and_one_that_nobody_renewed_is_not() {
        let ttl = Duration::from_secs(1);
        assert!(matches!(fate("r", Duration::from_millis(999), ttl), Fate::Lost(_)));
        assert_eq!(fate("r", ttl, ttl), Fate::Starved);
    }
}
