//! A client without the library: plain HTTP, every call to another node.
//!
//! It counts as the reference tells such clients to: a lease is believed in only after a renewal whose answer lists it, and from
//! when that renewal was sent. A call that is not answered is unknown; the session is then left to expire.

use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use leasehold::Token;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::{Life, Shape};
use crate::history::{self, At, ClientId, Event, Now};
use crate::random::Random;

/// How long an answer is waited for, beyond what the call itself waits.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long a call waits in the queue.
const WAIT: Duration = Duration::from_secs(2);

/// A caller.
pub(super) struct Caller {
    id: ClientId,
    life: Life,
    random: Random,
    nodes: Vec<String>,
    calls: u32,
    served: bool,
}

/// What a call came to.
enum Answer {
    /// Done, with this.
    Done(Value),
    /// Refused, or failed without an effect.
    Not(String),
    /// Nobody can say.
    Unknown(String),
}

impl Caller {
    pub(super) fn new(id: ClientId, life: Life, random: Random) -> Self {
        let nodes = life.url.trim_start_matches("leasehold://").split(',').map(str::to_owned).collect();
        Self { id, life, random, nodes, calls: 0, served: false }
    }

    /// Opens sessions and takes leases until it is over.
    pub(super) async fn run(mut self, shape: &Shape) {
        while !self.life.is_over() {
            let ttl = shape.ttl;
            let open = json!({"ttl_ms": millis(ttl), "label": format!("client-{}", self.id.0)});
            if let Answer::Done(opened) = self.call("/v1/sessions", &open, PATIENCE).await
                && let Some(key) = opened["session_key"].as_str()
            {
                let margin = Duration::from_millis(opened["margin_ms"].as_u64().unwrap_or(0));
                while !self.life.is_over() && self.turn(shape, key, margin).await.is_ok() {}
                self.call("/v1/sessions/SESSION/close", &json!({"session_key": key}), PATIENCE).await;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Takes a name, holds it within one confirmed ttl, and gives it back. An error ends the session.
    async fn turn(&mut self, shape: &Shape, key: &str, margin: Duration) -> Result<()> {
        self.calls += 1;
        let (client, recorder) = (self.id.name(), self.life.recorder.clone());
        let resource = super::name(self.random.below(shape.names));
        // While it waits nobody renews, so it must not wait for longer than it lives.
        let wait = WAIT.min(shape.ttl / 2);
        self.renew(key).await?;
        recorder.record(history::asked(self.id, self.calls, &resource));
        let ask = json!({"session_key": key, "resource": resource, "wait_ms": millis(wait)});
        let answer = match self.call("/v1/leases/acquire", &ask, wait + PATIENCE).await {
            Answer::Done(answer) => answer,
            Answer::Not(why) => {
                let call = self.calls.to_string().into();
                recorder.record(Event::Refused { client, call, why: why.into() });
                return Ok(());
            }
            Answer::Unknown(why) => {
                let call = self.calls.to_string().into();
                recorder.record(Event::Unknown { client, call, why: why.into() });
                bail!("it may hold something that it does not know of");
            }
        };
        let token = answer["leases"][0]["token"].as_str().context("a grant without a token")?;
        let token: Token = token.parse()?;
        let now = At::now();
        recorder.record(history::granted(self.id, self.calls, &resource, token, now, now));
        if !self.served {
            self.served = true;
            self.life.settled.fetch_add(1, Ordering::Relaxed);
        }
        let sent = At::now();
        let listed = self.renew(key).await;
        let oversleeps = shape.writes && self.random.below(4) == 0 && !self.life.is_healing();
        if listed.as_ref().is_ok_and(|listed| listed.contains(&token)) {
            let promised = Some(sent.plus(shape.ttl));
            let until = sent.plus(shape.ttl.saturating_sub(margin));
            recorder.record(Event::Confirmed { client: client.clone(), token, until, promised });
            tokio::time::sleep(self.random.between(&shape.hold).min(until.since(At::now()))).await;
            if oversleeps {
                // It does not look at its clock any more, as a process that was paused does not.
                tokio::time::sleep(shape.ttl * 3 / 2).await;
            }
            if shape.writes && oversleeps {
                self.write_late(&resource, token).await;
            } else if shape.writes {
                self.write(key, &resource, token).await;
            }
        }
        recorder.record(Event::GivingBack { client: client.clone(), token });
        let give = json!({"session_key": key, "resource": resource, "token": token.to_string()});
        let trouble = match self.call("/v1/leases/release", &give, PATIENCE).await {
            Answer::Done(_) => None,
            Answer::Not(why) | Answer::Unknown(why) => Some(why),
        };
        recorder.record(Event::GaveBack { client, token, trouble: trouble.clone().map(Into::into) });
        match trouble {
            None => listed.map(|_| ()),
            Some(why) => bail!("not given back: {why}"),
        }
    }

    /// Writes to the register of a resource, with this token.
    async fn write(&mut self, key: &str, resource: &str, token: Token) {
        let asked = At::now();
        let shown = token.to_string();
        let write = json!({"session_key": key, "resource": resource, "token": shown, "key": "fenced", "value": shown});
        let refused = match self.call("/v1/registers/write", &write, PATIENCE).await {
            Answer::Done(_) => None,
            Answer::Not(why) => Some(why.into()),
            Answer::Unknown(_) => return,
        };
        self.life.recorder.record(Event::Wrote {
            client: self.id.name(),
            resource: resource.to_owned().into(),
            token,
            asked,
            refused,
            receiver: "".into(),
            register: true,
        });
    }

    /// The same through a session that lives, as a process does that came back and still has the token: only the token can be refused.
    async fn write_late(&mut self, resource: &str, token: Token) {
        let open = json!({"ttl_ms": 2000, "label": format!("late-{}", self.id.0)});
        if let Answer::Done(opened) = self.call("/v1/sessions", &open, PATIENCE).await
            && let Some(key) = opened["session_key"].as_str()
        {
            self.write(key, resource, token).await;
            self.call("/v1/sessions/SESSION/close", &json!({"session_key": key}), PATIENCE).await;
        }
    }

    /// Renews, and gives the leases that the answer lists.
    async fn renew(&mut self, key: &str) -> Result<Vec<Token>> {
        match self.call("/v1/sessions/SESSION/renew", &json!({"session_key": key}), PATIENCE).await {
            Answer::Done(answer) => {
                let leases = answer["leases"].as_array().context("a renewal without leases")?;
                let tokens = leases.iter().filter_map(|lease| lease["token"].as_str()?.parse().ok());
                Ok(tokens.collect())
            }
            Answer::Not(why) | Answer::Unknown(why) => bail!("not renewed: {why}"),
        }
    }

    /// Asks any node.
    async fn call(&mut self, path: &str, body: &Value, patience: Duration) -> Answer {
        let node = self.nodes[self.random.below(self.nodes.len())].clone();
        match tokio::time::timeout(patience, post(&node, path, body)).await {
            Ok(Ok((200, answer))) => Answer::Done(answer),
            Ok(Ok((_, answer))) => {
                let message = answer["detail"].as_str().unwrap_or("an answer without words");
                let why = format!("{}: {message}", answer["code"].as_str().unwrap_or("no code"));
                match answer["kind"].as_str() {
                    Some("refused" | "failed") => Answer::Not(why),
                    _ => Answer::Unknown(why),
                }
            }
            Ok(Err(error)) => Answer::Unknown(format!("{error:#}")),
            Err(_) => Answer::Unknown("no answer in time".to_owned()),
        }
    }
}

/// One call on a connection of its own. A `session_key` in the body says for which session it is made: it goes into the header, and `SESSION` in the
/// path is its id.
pub(crate) async fn post(node: &str, path: &str, body: &Value) -> Result<(u16, Value)> {
    let mut stream = TcpStream::connect(node).await?;
    let mut body = body.clone();
    let key = body.as_object_mut().and_then(|fields| fields.remove("session_key"));
    let key = key.as_ref().and_then(Value::as_str).unwrap_or_default();
    let path = path.replace("SESSION", key.split('-').next().unwrap_or_default());
    let body = body.to_string();
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: {node}\r\ncontent-type: application/json\r\nleasehold-session: {key}\r\nconnection: close\r\n\
         content-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(format!("{head}{body}").as_bytes()).await?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await?;
    let text = String::from_utf8(answer)?;
    let (head, body) = text.split_once("\r\n\r\n").context("the connection ended before the answer")?;
    let status = head.split(' ').nth(1).context("an answer without a status")?.parse()?;
    Ok((status, serde_json::from_str(body)?))
}

fn millis(length: Duration) -> u64 {
    u64::try_from(length.as_millis()).unwrap_or(u64::MAX)
}
