//! As much of the protocol of NATS as is needed: requests with headers, and an inbox where their answers arrive.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context, Result};
use bytes::{Buf as _, BytesMut};
use serde_json::Value;
use tokio::sync::oneshot;

use crate::peers::pipeline::{Receiver, Sender, connect};

/// A connection.
#[derive(Debug)]
pub struct Connection {
    sender: Sender,
    inbox: String,
    next: AtomicU64,
    waiting: Waiting,
    /// What the server calls its version.
    pub version: String,
}

/// Who waits for which answer.
type Waiting = Arc<Mutex<HashMap<u64, oneshot::Sender<Value>>>>;

impl Connection {
    /// Connects.
    ///
    /// # Errors
    /// When nobody listens, or it is something else.
    pub async fn open(address: &str) -> Result<Self> {
        let (sender, mut receiver) = connect(address).await?;
        let line = loop {
            match take_line(&mut receiver.read) {
                Some(line) => break line,
                None => receiver.more().await?,
            }
        };
        let said = line.strip_prefix("INFO ").context("it does not begin with INFO")?;
        let said: Value = serde_json::from_str(said)?;
        let version = said["version"].as_str().unwrap_or_default().to_owned();
        let server = said["server_id"].as_str().unwrap_or_default();
        let inbox = format!("_INBOX.{server}.{}", said["client_id"]);
        let options =
            "{\"verbose\":false,\"pedantic\":false,\"headers\":true,\"no_responders\":true,\"protocol\":1}";
        sender.send(format!("CONNECT {options}\r\nSUB {inbox}.* 1\r\n").into_bytes())?;
        let waiting = Waiting::default();
        tokio::spawn(read(receiver, sender.clone(), Arc::clone(&waiting)));
        Ok(Self { sender, inbox, next: AtomicU64::new(0), waiting, version })
    }

    /// Asks something, and waits for the answer, which is JSON. Headers are whole lines.
    ///
    /// # Errors
    /// When the connection ends first.
    pub async fn request(&self, subject: &str, headers: &str, body: &str) -> Result<Value> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let (tell, told) = oneshot::channel();
        lock(&self.waiting).insert(number, tell);
        let head = format!("NATS/1.0\r\n{headers}\r\n");
        let (before, all) = (head.len(), head.len() + body.len());
        let request = format!("HPUB {subject} {}.{number} {before} {all}\r\n{head}{body}\r\n", self.inbox);
        self.sender.send(request.into_bytes())?;
        told.await.context("the connection ended before an answer came")
    }
}

/// Gives answers to whoever waits, until the connection ends.
async fn read(mut receiver: Receiver, sender: Sender, waiting: Waiting) {
    loop {
        while let Some(message) = take_message(&mut receiver.read) {
            match message {
                Message::Ping => drop(sender.send(b"PONG\r\n".to_vec())),
                Message::Other => {}
                Message::Answer { number, body } => {
                    if let Some(tell) = lock(&waiting).remove(&number) {
                        let _ = tell.send(body);
                    }
                }
            }
        }
        if receiver.more().await.is_err() {
            // Whoever waits is told by the end of its channel.
            lock(&waiting).clear();
            return;
        }
    }
}

/// What the server sends.
#[derive(Debug, PartialEq)]
enum Message {
    Ping,
    Answer { number: u64, body: Value },
    Other,
}

/// The next whole message, if there is one.
fn take_message(read: &mut BytesMut) -> Option<Message> {
    let end = read.windows(2).position(|two| two == b"\r\n")?;
    let line = String::from_utf8_lossy(&read[..end]).into_owned();
    let words: Vec<&str> = line.split(' ').collect();
    // A message with headers says how long they are, and then how long all of it is.
    let headers: usize = match words.as_slice() {
        ["MSG", ..] => 0,
        ["HMSG", .., headers, _] => headers.parse().unwrap_or(0),
        _ => {
            read.advance(end + 2);
            return Some(if line == "PING" { Message::Ping } else { Message::Other });
        }
    };
    let length: usize = words.last()?.parse().ok()?;
    if read.len() < end + 2 + length + 2 {
        return None;
    }
    read.advance(end + 2);
    let all = read.split_to(length);
    read.advance(2);
    let number = words.get(1)?.rsplit('.').next()?.parse().unwrap_or(u64::MAX);
    // Headers without a body say that nobody answers.
    let body = serde_json::from_slice(&all[headers.min(length)..]);
    let nobody = || Value::String(String::from_utf8_lossy(&all).into_owned());
    Some(Message::Answer { number, body: body.unwrap_or_else(|_| nobody()) })
}

fn take_line(read: &mut BytesMut) -> Option<String> {
    let end = read.windows(2).position(|two| two == b"\r\n")?;
    let line = read.split_to(end);
    read.advance(2);
    Some(String::from_utf8_lossy(&line).into_owned())
}

fn lock(waiting: &Waiting) -> MutexGuard<'_, HashMap<u64, oneshot::Sender<Value>>> {
    waiting.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_taken_one_by_one_and_only_when_whole() {
        let mut read =
            BytesMut::from(&b"PING\r\nMSG _INBOX.S.4.17 1 9\r\n{\"seq\":3}\r\nMSG a 1 5\r\nab"[..]);
        assert_eq!(take_message(&mut read), Some(Message::Ping));
        let body = serde_json::json!({"seq": 3});
        assert_eq!(take_message(&mut read), Some(Message::Answer { number: 17, body }));
        assert_eq!(take_message(&mut read), None);
        read.extend_from_slice(b"cde\r\n");
        assert!(matches!(take_message(&mut read), Some(Message::Answer { .. })));
        assert!(read.is_empty());
    }

    #[test]
    fn that_nobody_answers_is_an_answer() {
        let mut read = BytesMut::from(&b"HMSG _INBOX.S.4.2 1 16 16\r\nNATS/1.0 503\r\n\r\n\r\n"[..]);
        let Some(Message::Answer { number: 2, body }) = take_message(&mut read) else { panic!("no answer") };
        assert!(body.as_str().unwrap().contains("503"), "{body}");
    }
}
