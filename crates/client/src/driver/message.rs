//! What reaches a driver.

use leasehold_core::client::Profile;
use leasehold_core::holder::Strictness;
use leasehold_core::protocol::{Request, Response, ToClient};
use leasehold_core::{Acquire, Answer, Op, ResourceName, Token, Value};
use tokio::sync::oneshot;

use super::{Key, Leaderless, Reply, Wire};
use crate::error::Unreachable;
use crate::lease::Lease;
use crate::session::Session;

/// What reaches a driver.
#[derive(Debug)]
pub(crate) enum ToDriver {
    Open {
        profile: Box<Profile>,
        strictness: Strictness,
        reply: Reply<Session>,
    },
    Acquire {
        key: Key,
        ticket: u64,
        acquire: Acquire,
        reply: Reply<Vec<Lease>>,
    },
    Accept {
        key: Key,
        ticket: u64,
        accept: Accept,
        reply: Reply<Vec<Lease>>,
    },
    /// The application does not want what this acquire may bring.
    GiveUp {
        key: Key,
        ticket: u64,
    },
    Submit {
        key: Key,
        op: Op,
        reply: Option<Reply<Answer>>,
    },
    /// A renewal is wanted now and not when it is due.
    RenewNow {
        key: Key,
    },
    /// The same, and whoever asks is told when that renewal or a later one was confirmed.
    Renew {
        key: Key,
        reply: Reply<()>,
    },
    Request {
        request: Box<Request>,
        reply: Reply<Response>,
    },
    Connected {
        /// Which connection of this driver.
        number: u64,
        wire: Wire,
        /// Where, if it is a node that knows of no leader.
        leaderless: Option<Leaderless>,
    },
    Received {
        /// On which connection. An application's thread may bring what came on one that is over.
        number: u64,
        messages: Vec<ToClient>,
    },
    Disconnected {
        why: Option<Unreachable>,
    },
    Close {
        reply: oneshot::Sender<()>,
    },
    /// Answered once everything before it is done; says whether anything was sent since the last one.
    #[cfg(feature = "testing")]
    Barrier {
        reply: oneshot::Sender<bool>,
    },
}

/// Takes up an offer.
#[derive(Debug)]
pub(crate) struct Accept {
    pub(crate) resource: ResourceName,
    pub(crate) token: Token,
    pub(crate) value: Value,
}
