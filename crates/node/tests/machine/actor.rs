//! A client and the one process that it speaks with.

#[path = "../common/actor.rs"]
mod common;

use leasehold_core::protocol::{Request, RequestId, Response};
use leasehold_core::{Answer, CommandNumber, Op, RenewalNumber, Reply, SessionKind, Token, Value};
use leasehold_node::ConnectionId;

pub(crate) use common::{Actor, granted, name};

use crate::world::World;

/// The number of an acquire, the token it was granted and the renewal that its answer names.
pub(crate) fn plain_grant(response: Option<Response>) -> (CommandNumber, Token, RenewalNumber) {
    match response {
        Some(Response::Reply(Reply::Plain { number, answer: Answer::Granted(grants), renewal })) => {
            assert_eq!(grants.len(), 1);
            (number, grants[0].token, renewal)
        }
        other => panic!("not a grant: {other:?}"),
    }
}

impl Actor {
    /// A client with its own connection and nonce, not opened yet.
    pub(crate) fn new(number: u8, ttl: u64) -> Self {
        Self::unknown(ConnectionId(u64::from(number)), [number; 16], ttl)
    }

    /// Opened and attached.
    pub(crate) fn up(world: &mut World, number: u8, ttl: u64) -> Self {
        Self::new(number, ttl).opened(world)
    }

    /// A plain session that is open. It speaks through the connection of its number, but could through any.
    pub(crate) fn plain(world: &mut World, number: u8, ttl: u64) -> Self {
        let actor = Self { kind: SessionKind::Plain, ..Self::new(number, ttl) };
        actor.opened(world)
    }

    pub(crate) fn opened(mut self, world: &mut World) -> Self {
        let open = self.open();
        match world.reply_to(self.connection, open) {
            Reply::Opened(opened) => self.session = opened.session,
            other => panic!("{other:?}"),
        }
        if self.kind == SessionKind::Streamed {
            let attach = self.attach();
            assert!(matches!(world.reply_to(self.connection, attach), Reply::Attached { .. }));
        }
        self
    }

    pub(crate) fn close(&mut self) -> Request {
        self.op(Op::Close)
    }

    /// Waits for so long, and is answered when the wait is over.
    pub(crate) fn held_acquire(&self, resource: &str, wait: u64) -> Request {
        self.held_acquire_with(resource, wait, Value::default())
    }

    /// A plain session acquires what is free.
    pub(crate) fn take(&self, world: &mut World, resource: &str) -> Token {
        let response = world.response_to(self.connection, self.held_acquire(resource, 1));
        plain_grant(Some(response)).1
    }

    /// Sends through its own connection.
    pub(crate) fn send(&self, world: &mut World, request: Request) -> RequestId {
        world.ask(self.connection, request)
    }

    /// Acquires what is free, and gives back the token.
    pub(crate) fn hold(&mut self, world: &mut World, resource: &str) -> Token {
        let acquire = self.acquire(resource, None);
        self.send(world, acquire);
        world.rest();
        let items = world.items(self.connection);
        granted(&items).pop().unwrap_or_else(|| panic!("{resource} is not free: {items:?}"))
    }

    /// Renews and expects it to be accepted.
    pub(crate) fn renewed(&mut self, world: &mut World) {
        let renew = self.renew();
        let reply = world.reply_to(self.connection, renew);
        assert!(matches!(reply, Reply::Renewed(_)), "{reply:?}");
    }
}
