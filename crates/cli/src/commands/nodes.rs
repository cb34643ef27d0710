//! Questions over HTTP to the nodes of a service, each to the one that can answer it best.
//!
//! First all nodes of the list are asked at once what they know by themselves, which they say without delay: nobody waits for a node that has
//! no leader, or is of an earlier life of the state, while another could answer. A node that then does not answer, or says that it takes in nothing now, is left for
//! the next one until the time is over. What was sent whole to a node that then said nothing has an unknown outcome, and is not sent again.

mod http;
mod looks;

use std::fmt::Display;
use std::time::Duration;

use futures_util::future::join_all;
use leasehold::core::Millis;
use leasehold::core::holder::Reading;
use leasehold::{DEFAULT_PORT, Error, Unreachable};
use leasehold_api::code::Kind;
use leasehold_api::view::Cluster;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::time::sleep;

use self::http::{Attempt, Request, exchange};
use self::looks::has_leader;
pub(super) use self::looks::{Look, Looks};
use crate::codes;
use crate::place::{Place, Silence};
use crate::trouble::Trouble;

/// A node says what it knows by itself within this time, or is not waited for.
const LOOK_TIME: Duration = Duration::from_millis(700);
/// A person at a terminal is to know by then why nothing happens.
const SAY_AFTER: Duration = Duration::from_secs(1);
/// Between two rounds over all nodes.
const PAUSE: Duration = Duration::from_millis(50);
/// How much of an answer that makes no sense is shown.
const MAX_SHOWN_BYTES: usize = 400;

/// The nodes of a service.
#[derive(Debug)]
pub(super) struct Nodes {
    url: String,
    addresses: Vec<String>,
    timeout: Duration,
    silence: Silence,
}

impl Nodes {
    /// The nodes that an address names.
    pub(super) fn of(place: &Place) -> Result<Self, Trouble> {
        let url = place.url().to_owned();
        let Some(hosts) = url.strip_prefix("leasehold://") else {
            return Err(Trouble::Misuse(format!(
                "{url} is a directory of this machine, which no nodes keep: name a service with --store leasehold://HOST:PORT"
            )));
        };
        let addresses = hosts.trim_end_matches('/').split(',').map(with_port).collect();
        Ok(Self { url, addresses, timeout: place.timeout, silence: place.silence.clone() })
    }

    /// The answer to a call, of whichever node can ask its leader.
    pub(super) async fn ask<T: DeserializeOwned>(&self, path: &str, fields: &Value) -> Result<T, Trouble> {
        let body = self.ask_any(Request::Post(path, fields)).await?;
        serde_json::from_slice(&body).map_err(|error| unsettled(&not_understood(&error.to_string())))
    }

    /// How the nodes stand, as their leader sees it. A look can be repeated elsewhere, whatever became of it.
    pub(super) async fn cluster(&self) -> Result<Cluster, Trouble> {
        let body = self.get("/v1/cluster/status").await?;
        serde_json::from_slice(&body).map_err(|error| not_understood(&error.to_string()))
    }

    /// A document, of whichever node is in touch with its leader.
    pub(super) async fn get(&self, path: &str) -> Result<Vec<u8>, Trouble> {
        self.ask_any(Request::Get(path)).await
    }

    /// A document of one node, which is asked once.
    pub(super) async fn get_from(&self, address: &str, path: &str) -> Result<Vec<u8>, Trouble> {
        match exchange(address, Request::Get(path), self.timeout).await {
            Attempt::Answer(200, body) => Ok(body),
            Attempt::Answer(status, body) => Err(refused(status, &body)),
            Attempt::Broken(why) => Err(not_understood(&format!("{address}: {why}"))),
            Attempt::Lost(why) | Attempt::NotSent(why) => {
                Err(self.silent(leasehold_clock::read(), address, &why))
            }
        }
    }

    async fn ask_any(&self, request: Request<'_>) -> Result<Vec<u8>, Trouble> {
        let repeats = matches!(request, Request::Get(_));
        let began = leasehold_clock::read();
        loop {
            let looks = self.look().await;
            let mut last = None;
            for (address, _) in looks.best_first().into_iter().filter(|(_, local)| has_leader(local)) {
                last = Some(match exchange(address, request, self.timeout).await {
                    Attempt::Answer(200, body) => return Ok(body),
                    Attempt::Answer(status, body) => match refused(status, &body) {
                        // Not of a node: what stands before it may have passed the request on.
                        trouble @ Trouble::Store(_) if status >= 500 && !repeats => {
                            return Err(unsettled(&trouble));
                        }
                        trouble if status == 503 && trouble.code().1 == Kind::Failed => trouble,
                        trouble if status >= 500 && repeats => trouble,
                        trouble => return Err(trouble),
                    },
                    Attempt::NotSent(why) => self.silent(began, address, &why),
                    Attempt::Lost(why) if repeats => self.silent(began, address, &why),
                    Attempt::Broken(why) if repeats => not_understood(&format!("{address}: {why}")),
                    Attempt::Lost(_) | Attempt::Broken(_) => return Err(unsettled(&"no answer came")),
                });
            }
            if passed(began) >= self.timeout {
                return Err(self.gave_up(began, last).await);
            }
            if passed(began) >= SAY_AFTER && !self.silence.is_said() {
                self.silence.say(&self.gave_up(began, last).await);
            }
            sleep(PAUSE).await;
        }
    }

    /// What each of them knows by itself, in the order of the list.
    pub(super) async fn look(&self) -> Looks {
        self.look_at_all(&self.addresses).await
    }

    /// The same, and behind it what the members know that the list does not name and the answers do: one of those may be the furthest.
    pub(super) async fn look_further(&self) -> Looks {
        let looks = self.look().await;
        let further = self.look_at_all(&looks.unasked()).await;
        looks.and(further)
    }

    async fn look_at_all(&self, addresses: &[String]) -> Looks {
        let patience = LOOK_TIME.min(self.timeout);
        Looks(join_all(addresses.iter().map(|address| look_at(address, patience))).await)
    }

    /// The time is over: either nobody answers, or nobody knows a leader, or it is as was said last. A leader that has lost the others notices it after a
    /// while, so all are looked at once more.
    async fn gave_up(&self, began: Reading, last: Option<Trouble>) -> Trouble {
        let waited = Millis::from_duration(passed(began)).duration();
        let looks = self.look().await;
        let best = looks.best_first();
        if let (Some(last), true) = (last, best.iter().any(|(_, local)| has_leader(local))) {
            return last;
        }
        let no_leader = |place: &str| {
            let place = place.to_owned();
            Trouble::from(Error::Unreachable(Unreachable::NoLeader { place, waited, missing: None }))
        };
        match (best.first(), looks.anybody()) {
            (Some((place, _)), _) => no_leader(place),
            (None, Some(place)) => match self.not_ready(place).await {
                Some(why) => Trouble::answered("unavailable", format!("{place}: {why}")),
                None => no_leader(place),
            },
            (None, None) => self.no_connection(began, looks.troubles()),
        }
    }

    /// Why a node that answers is not ready: one that is part of no cluster yet names those that it waits for.
    pub(super) async fn not_ready(&self, address: &str) -> Option<String> {
        match self.get_from(address, "/readyz").await {
            Err(Trouble::Answered { message, .. }) => Some(message),
            _ => None,
        }
    }

    fn silent(&self, began: Reading, address: &str, why: &str) -> Trouble {
        self.no_connection(began, format!("{address}: {why}"))
    }

    fn no_connection(&self, began: Reading, why: String) -> Trouble {
        let (store, waited) = (self.url.clone(), Millis::from_duration(passed(began)).duration());
        Error::Unreachable(Unreachable::NoConnection { store, waited, last: Some(why) }).into()
    }
}

/// A change of the nodes was asked for. What follows is looked up with another command than for leases.
fn unsettled(why: &dyn Display) -> Trouble {
    let message =
        format!("{why}, and nobody can say whether it was done; look with `leasehold cluster status`");
    Trouble::answered("outcome-unknown", message)
}

/// What the service said is no sense to this release.
fn not_understood(why: &str) -> Trouble {
    Error::Unreachable(Unreachable::Protocol(format!("the answer is not understood: {why}"))).into()
}

/// How long it is since then.
pub(super) fn passed(since: Reading) -> Duration {
    leasehold_clock::read().since(since).greater()
}

async fn look_at(asked: &str, patience: Duration) -> Look {
    let found = match exchange(asked, Request::Get("/v1/cluster/local"), patience).await {
        Attempt::Answer(200, body) => {
            serde_json::from_slice(&body).map_err(|error| format!("its answer is not understood: {error}"))
        }
        Attempt::Answer(status, body) => Err(refused(status, &body).to_string()),
        Attempt::Lost(why) | Attempt::NotSent(why) | Attempt::Broken(why) => Err(why),
    };
    Look { asked: asked.to_owned(), found }
}

fn with_port(node: &str) -> String {
    let node = node.trim();
    let port = node.rsplit_once(':').map(|(_, port)| port);
    match port {
        Some(port) if !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()) => node.to_owned(),
        _ => format!("{node}:{DEFAULT_PORT}"),
    }
}

/// An error as a service says it.
fn refused(status: u16, body: &[u8]) -> Trouble {
    let answer: Value = serde_json::from_slice(body).unwrap_or_default();
    let text = |name: &str| answer[name].as_str().unwrap_or_default();
    match text("code") {
        "outcome-unknown" => unsettled(&"no answer came"),
        "" => {
            let shown = String::from_utf8_lossy(&body[..body.len().min(MAX_SHOWN_BYTES)]).trim().to_owned();
            not_understood(&format!("{status} {shown}"))
        }
        code => {
            let kind = Kind::ALL.into_iter().find(|kind| kind.as_str() == text("kind"));
            let (kind, message) = (kind.unwrap_or(codes::kind(code)), text("detail").to_owned());
            Trouble::Answered { code: code.to_owned(), kind, message }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_a_service_refuses_keeps_its_code() {
        let said = json!({ "code": "last-voter", "kind": "refused", "detail": "no" });
        assert_eq!(refused(409, said.to_string().as_bytes()).code().0, "last-voter");
        let said = json!({ "code": "outcome-unknown" });
        let unknown = refused(500, said.to_string().as_bytes());
        assert_eq!(unknown.code(), ("outcome-unknown", Kind::Unknown));
        let words = refused(502, b"<html>").to_string();
        assert_eq!(words, "the answer is not understood: 502 <html>");
    }

    #[test]
    fn a_node_without_a_port_has_the_usual_one() {
        for (given, whole) in
            [("a", "a:7420"), ("a:1", "a:1"), ("[::1]", "[::1]:7420"), ("[::1]:2", "[::1]:2")]
        {
            assert_eq!(with_port(given), whole);
        }
    }
}
