//! A client and the process of a cluster that it speaks with.

#[path = "../common/actor.rs"]
mod common;

use std::ops::{Deref, DerefMut};

use leasehold_core::protocol::{ClusterCommand, Plain, Query, ReadAnswer, Request, RequestId, Response};
use leasehold_core::{Answer, Item, ItemKind, Op, Reply, SessionKind, Token, Value};
use leasehold_node::{CALLS, ConnectionId};

pub(crate) use common::{granted, name};

use crate::world::World;

#[derive(Debug, Clone)]
pub(crate) struct Actor {
    pub(crate) at: usize,
    client: common::Actor,
}

impl Deref for Actor {
    type Target = common::Actor;

    fn deref(&self) -> &common::Actor {
        &self.client
    }
}

impl DerefMut for Actor {
    fn deref_mut(&mut self) -> &mut common::Actor {
        &mut self.client
    }
}

/// The token that a plain acquire was granted.
#[track_caller]
pub(crate) fn plain_grant(response: &Response) -> Token {
    match response {
        Response::Reply(Reply::Plain { answer: Answer::Granted(grants), .. }) => grants[0].token,
        other => panic!("not a grant: {other:?}"),
    }
}

/// What a plain acquire carries to be found in the log.
pub(crate) fn tag_of(request: &Request) -> Option<u64> {
    match request {
        Request::Plain { plain: Plain::Command { op: Op::Acquire(acquire), .. }, .. } => {
            acquire.value.as_bytes().try_into().ok().map(u64::from_be_bytes)
        }
        _ => None,
    }
}

impl Actor {
    /// Not opened yet.
    pub(crate) fn new(at: usize, connection: ConnectionId, number: u64, ttl: u64) -> Self {
        let mut nonce = [7; 16];
        nonce[..8].copy_from_slice(&number.to_be_bytes());
        Self { at, client: common::Actor::unknown(connection, nonce, ttl) }
    }

    /// A streamed session, opened and attached through a process.
    #[track_caller]
    pub(crate) fn streamed(world: &mut World, at: usize, number: u64, ttl: u64) -> Self {
        let mut actor = Self::new(at, world.connection(), number, ttl);
        actor.opens(world);
        actor.attaches(world, at);
        actor
    }

    /// A plain session, which speaks in single calls.
    #[track_caller]
    pub(crate) fn plain(world: &mut World, at: usize, number: u64, ttl: u64) -> Self {
        let mut actor = Self::new(at, CALLS, number, ttl);
        actor.kind = SessionKind::Plain;
        actor.opens(world);
        actor
    }

    #[track_caller]
    fn opens(&mut self, world: &mut World) {
        match world.reply(self.at, self.connection, self.open()) {
            Reply::Opened(opened) => self.session = opened.session,
            other => panic!("{other:?}"),
        }
    }

    /// Connects anew, to this process.
    #[track_caller]
    pub(crate) fn attaches(&mut self, world: &mut World, at: usize) {
        self.at = at;
        self.connection = world.connection();
        let attach = self.attach();
        match world.reply(at, self.connection, attach) {
            Reply::Attached { last_command, .. } => self.command = last_command,
            other => panic!("{other:?}"),
        }
    }

    /// Waits for so long, and is answered when the wait is over. The tag finds it in the log.
    pub(crate) fn held_acquire(&self, resource: &str, wait: u64, tag: u64) -> Request {
        let value = Value::new(tag.to_be_bytes().to_vec()).expect("a short value");
        self.held_acquire_with(resource, wait, value)
    }

    pub(crate) fn send(&self, world: &mut World, request: Request) -> RequestId {
        world.ask(self.at, self.connection, request)
    }

    /// Acquires what is free, and gives back the token.
    #[track_caller]
    pub(crate) fn hold(&mut self, world: &mut World, resource: &str) -> Token {
        let acquire = self.acquire(resource, None);
        self.send(world, acquire);
        let mut token = None;
        world.run_until(3_000, |world| {
            // What was unseen when it attached comes again.
            let answers = |item: &Item| matches!(&item.kind, ItemKind::Answer { command, .. } if *command == self.command);
            let mut items = world.items(self.connection);
            items.retain(answers);
            token = token.or(granted(&items).pop());
            token.is_some()
        });
        token.expect("it was waited for")
    }

    #[track_caller]
    pub(crate) fn renewed(&mut self, world: &mut World) {
        let renew = self.renew();
        let reply = world.reply(self.at, self.connection, renew);
        assert!(matches!(reply, Reply::Renewed(_)), "{reply:?}");
    }

    /// A plain session acquires what is free.
    #[track_caller]
    pub(crate) fn take(&self, world: &mut World, resource: &str) -> Token {
        let tag = (1 << 32) + world.connection().0;
        let acquire = self.held_acquire(resource, 1, tag);
        plain_grant(&world.call(self.at, acquire))
    }
}

pub(crate) fn look(resource: &str) -> Request {
    Request::Read(Query::Lease(name(resource)))
}

/// Who holds a resource, by a read through a process.
#[track_caller]
pub(crate) fn holder(world: &mut World, at: usize, resource: &str) -> Option<Token> {
    match world.call(at, look(resource)) {
        Response::Read { answer: ReadAnswer::Lease(lease), .. } => {
            lease.and_then(|lease| lease.holders.first().map(|holder| holder.token))
        }
        other => panic!("{other:?}"),
    }
}

/// Asks the cluster for something, through a process.
#[track_caller]
pub(crate) fn order(
    world: &mut World,
    at: usize,
    command: ClusterCommand,
) -> leasehold_core::protocol::ClusterReply {
    match world.call(at, Request::Cluster(command)) {
        Response::Cluster(reply) => reply,
        other => panic!("{other:?}"),
    }
}
