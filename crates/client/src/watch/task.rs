//! The task behind a watch: a connection of its own, made again for as long as the application listens.
//!
//! Promises to read no more than the application takes: what is not taken stays with the service. What it deliberately does
//! not do: it does not serve a directory, and it does not look at sessions; the store's own connection does both.

use std::sync::Arc;
use std::time::Duration;

use leasehold_core::Revision;
use leasehold_core::protocol::{Changes, Failure, Query, Request, RequestId, Response, ToClient, Watch};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::position::Position;
use super::sharing::{Abandons, Fan};
use crate::driver::Visitor;
use crate::driver::link::{Connection, Home, Outgoing, encode};
use crate::error::{Error, Unreachable};

/// A connection on which nothing came for so long is asked for a sign of life: the other machine may be gone without a word. A
/// service says more often than that how far its log has come.
const IDLE_TIME: Duration = Duration::from_secs(12);
/// The request that begins the watch. A connection carries only one.
const WATCH: RequestId = RequestId(1);
/// The request for a sign of life.
const SIGN_OF_LIFE: RequestId = RequestId(2);

/// Why a watch is over.
#[derive(Debug, Clone)]
pub(super) enum Over {
    TooOld { after: Revision, oldest: Revision },
    Ahead { after: Revision, newest: Revision },
    Unavailable(String),
    Unreachable(Unreachable),
}

impl From<Over> for Error {
    fn from(over: Over) -> Self {
        match over {
            Over::TooOld { after, oldest } => Self::RevisionTooOld { after, oldest },
            Over::Ahead { after, newest } => Self::RevisionAhead { after, newest },
            Over::Unavailable(why) => Self::Unavailable(why),
            Over::Unreachable(why) => Self::Unreachable(why),
        }
    }
}

/// How a connection of a watch ended.
enum Ended {
    /// Another one is made.
    Lost { why: Option<Over>, had_begun: bool },
    /// Another one would end the same way.
    Over(Over),
}

/// Who is told.
#[derive(Debug, Clone)]
pub(super) enum Listener {
    /// A watch of the application.
    One(mpsc::Sender<Result<Changes, Over>>),
    /// All that share this connection.
    Many(Arc<Fan>),
}

impl Listener {
    async fn tell(&self, changes: Changes) {
        match self {
            // Waits for the application. When it listens no more, the task is about to be ended.
            Self::One(application) => drop(application.send(Ok(changes)).await),
            Self::Many(fan) => fan.tell(changes).await,
        }
    }

    async fn end(&self, over: Over) {
        match self {
            Self::One(application) => drop(application.send(Err(over)).await),
            Self::Many(fan) => fan.end(&over),
        }
    }

    /// Ends when nobody listens any more.
    async fn closed(&self) {
        match self {
            Self::One(application) => application.closed().await,
            Self::Many(fan) => fan.closed().await,
        }
    }
}

pub(super) struct Task {
    home: Home,
    store: String,
    prefix: String,
    position: Position,
    patience: Duration,
    listener: Listener,
    /// Whoever is left when this ends, however that comes about, is told by that.
    _abandons: Option<Abandons>,
}

impl Task {
    /// One that begins after a revision, or now.
    pub(super) fn new(
        visitor: &Visitor,
        store: &str,
        prefix: &str,
        after: Option<Revision>,
        listener: Listener,
    ) -> Self {
        let abandons = match &listener {
            Listener::One(_) => None,
            Listener::Many(fan) => Some(Abandons(Arc::clone(fan))),
        };
        Self {
            _abandons: abandons,
            home: visitor.home(),
            store: store.to_owned(),
            prefix: prefix.to_owned(),
            position: Position::new(after),
            patience: visitor.patience(),
            listener,
        }
    }

    /// Runs until the watch is over or nobody listens any more.
    pub(super) async fn run(mut self) {
        let listener = self.listener.clone();
        let over = tokio::select! {
            over = self.follow() => over,
            () = listener.closed() => return,
        };
        listener.end(over).await;
    }

    async fn follow(&mut self) -> Over {
        let mut away_since = leasehold_clock::read();
        let mut trouble = None;
        loop {
            let left = self.patience.saturating_sub(leasehold_clock::read().since(away_since).greater());
            if left.is_zero() {
                return self.out_of_patience(trouble);
            }
            match timeout(left, self.home.visit()).await {
                Err(_) => {}
                Ok(Err(why)) => trouble = Some(Over::Unreachable(why)),
                Ok(Ok(connection)) => match self.converse(connection).await {
                    Ended::Over(over) => return over,
                    Ended::Lost { why, had_begun } => {
                        if let Listener::Many(fan) = &self.listener {
                            fan.breaks();
                        }
                        self.home.move_on();
                        if had_begun {
                            away_since = leasehold_clock::read();
                        }
                        trouble = why.or(trouble);
                    }
                },
            }
            self.home.pause().await;
        }
    }

    fn out_of_patience(&self, trouble: Option<Over>) -> Over {
        match trouble {
            Some(Over::Unreachable(Unreachable::NoConnection { last, .. })) => {
                Over::Unreachable(self.no_connection(self.patience, last))
            }
            Some(trouble) => trouble,
            None => Over::Unreachable(self.no_connection(self.patience, None)),
        }
    }

    fn no_connection(&self, waited: Duration, last: Option<String>) -> Unreachable {
        Unreachable::NoConnection { store: self.store.clone(), waited, last }
    }

    /// Watches on one connection until it ends.
    async fn converse(&mut self, connection: Connection) -> Ended {
        let Connection { mut incoming, outgoing, .. } = connection;
        let (answer_time, idle_time) = (self.patience / 3, IDLE_TIME.min(self.patience * 3 / 2));
        let watch = Watch { prefix: self.prefix.clone(), after: self.position.connect() };
        let mut asked = ask(&outgoing, WATCH, Request::Watch(watch)).await;
        loop {
            let limit = if asked { answer_time } else { idle_time };
            match timeout(limit, incoming.next()).await {
                Ok(Ok(messages)) => {
                    for message in messages {
                        if let Some(ended) = self.receive(message).await {
                            return ended;
                        }
                    }
                    asked = !self.position.has_begun();
                }
                Ok(Err(why)) => return self.lost(why.map(Over::Unreachable)),
                Err(_) if asked => {
                    let last = Some(format!("connected, but there was no answer within {limit:?}"));
                    return self.lost(Some(Over::Unreachable(self.no_connection(limit, last))));
                }
                Err(_) => asked = ask(&outgoing, SIGN_OF_LIFE, Request::Read(Query::Status)).await,
            }
        }
    }

    fn lost(&self, why: Option<Over>) -> Ended {
        Ended::Lost { why, had_begun: self.position.has_begun() }
    }

    async fn receive(&mut self, message: ToClient) -> Option<Ended> {
        match message {
            ToClient::Watched { watch: WATCH, changes, more } => {
                let told = match self.position.take(changes, more) {
                    Ok(told) => told?,
                    Err(why) => {
                        return Some(
                            self.lost(Some(Over::Unreachable(Unreachable::Protocol(why.to_string())))),
                        );
                    }
                };
                self.listener.tell(told).await;
                None
            }
            ToClient::Response { id: WATCH, response } => Some(self.ended(response)),
            ToClient::Watched { .. }
            | ToClient::Response { .. }
            | ToClient::Items { .. }
            | ToClient::Hint { .. } => None,
        }
    }

    fn ended(&mut self, response: Response) -> Ended {
        match response {
            Response::Failed(Failure::RevisionTooOld { after, oldest }) => {
                Ended::Over(Over::TooOld { after, oldest })
            }
            Response::Failed(Failure::RevisionAhead { after, newest }) => {
                Ended::Over(Over::Ahead { after, newest })
            }
            // What is only so now may be better at the next attempt, or at another address.
            Response::Failed(
                failure @ (Failure::Unavailable { .. }
                | Failure::TooManyWatches { .. }
                | Failure::TooMuchUnread { .. }
                | Failure::OutcomeUnknown),
            ) => self.lost(Some(Over::Unavailable(failure.to_string()))),
            Response::Failed(failure) => Ended::Over(Over::Unavailable(failure.to_string())),
            other => {
                let why = format!("the service answered another question: {other:?}");
                Ended::Over(Over::Unreachable(Unreachable::Protocol(why)))
            }
        }
    }
}

/// Asks, and says that an answer is due. A connection that takes nothing in any more says so when it is read.
async fn ask(outgoing: &Outgoing, id: RequestId, request: Request) -> bool {
    let mut bytes = Vec::new();
    encode(&[(id, request)], &mut bytes);
    let _ = timeout(IDLE_TIME, outgoing.send(&bytes)).await;
    true
}
