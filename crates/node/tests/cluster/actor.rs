//! A client that remembers its numbers, and the process that it speaks with. It decides nothing: tests say what it sends.

use leasehold_core::protocol::{ClusterCommand, Plain, Query, ReadAnswer, Request, RequestId, Response};
use leasehold_core::{
    Acquire, Answer, Attach, AttachNumber, CommandNumber, Item, ItemKind, ItemNumber, Label, Millis, Mode,
    Nonce, Op, Open, Policies, RenewalNumber, Reply, ResourceName, Sequence, SessionCommand, SessionId,
    SessionKind, Token, Value, command,
};
use leasehold_node::{CALLS, ConnectionId};

use crate::world::World;

#[derive(Debug, Clone)]
pub(crate) struct Actor {
    pub(crate) at: usize,
    pub(crate) connection: ConnectionId,
    pub(crate) nonce: Nonce,
    pub(crate) session: SessionId,
    pub(crate) attach: AttachNumber,
    pub(crate) command: CommandNumber,
    pub(crate) renewal: RenewalNumber,
    pub(crate) seen: ItemNumber,
    pub(crate) ttl: u64,
    pub(crate) kind: SessionKind,
}

pub(crate) fn name(text: &str) -> ResourceName {
    ResourceName::new(text).expect("tests use good names")
}

/// Tokens granted by items, in order.
pub(crate) fn granted(items: &[Item]) -> Vec<Token> {
    let grants = items.iter().filter_map(|item| match &item.kind {
        ItemKind::Answer { answer: Answer::Granted(grants), .. } | ItemKind::WaitGranted { grants, .. } => {
            Some(grants)
        }
        _ => None,
    });
    grants.flatten().map(|grant| grant.token).collect()
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

fn acquire(resource: &str, wait: Option<u64>, value: Value) -> Op {
    let requests = vec![command::Request { resource: name(resource), mode: Mode::Exclusive }];
    Op::Acquire(Acquire { requests, value, wait: wait.map(Millis::new) })
}

impl Actor {
    /// Not opened yet.
    pub(crate) fn new(at: usize, connection: ConnectionId, number: u64, ttl: u64) -> Self {
        let mut nonce = [7; 16];
        nonce[..8].copy_from_slice(&number.to_be_bytes());
        Self {
            at,
            connection,
            nonce: Nonce(nonce),
            session: SessionId::from_u64(0),
            attach: AttachNumber::NONE,
            command: CommandNumber::NONE,
            renewal: RenewalNumber::NONE,
            seen: ItemNumber::NONE,
            ttl,
            kind: SessionKind::Streamed,
        }
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
        let mut actor = Self { kind: SessionKind::Plain, ..Self::new(at, CALLS, number, ttl) };
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

    pub(crate) fn open(&self) -> Request {
        Request::Open(Open {
            nonce: self.nonce,
            label: Label::new("client").expect("a short label"),
            ttl: Millis::new(self.ttl),
            policies: Policies::default(),
            kind: self.kind,
        })
    }

    pub(crate) fn attach(&mut self) -> Request {
        self.attach = self.attach.next();
        let attach = Attach { session: self.session, attach: self.attach, seen: self.seen };
        Request::Attach { attach, nonce: self.nonce }
    }

    pub(crate) fn renew(&mut self) -> Request {
        self.renewal = self.renewal.next();
        Request::Renew { session: self.session, number: self.renewal, seen: self.seen }
    }

    pub(crate) fn op(&mut self, op: Op) -> Request {
        self.command = self.command.next();
        let sequence = Sequence::Streamed { attach: self.attach, number: self.command, seen: self.seen };
        Request::Command(SessionCommand { session: self.session, sequence, op })
    }

    /// Waits in the queue for so many milliseconds, or not at all.
    pub(crate) fn acquire(&mut self, resource: &str, wait: Option<u64>) -> Request {
        self.op(acquire(resource, wait, Value::default()))
    }

    pub(crate) fn release(&mut self, resource: &str, token: Token) -> Request {
        self.op(Op::Release { resource: name(resource), token, drained: false })
    }

    pub(crate) fn plain_renew(&self) -> Request {
        Request::Plain { session: self.session, nonce: self.nonce, plain: Plain::Renew }
    }

    pub(crate) fn plain_op(&self, op: Op, hold: bool) -> Request {
        Request::Plain { session: self.session, nonce: self.nonce, plain: Plain::Command { op, hold } }
    }

    /// Waits for so long, and is answered when the wait is over. The tag finds it in the log.
    pub(crate) fn held_acquire(&self, resource: &str, wait: u64, tag: u64) -> Request {
        let value = Value::new(tag.to_be_bytes().to_vec()).expect("a short value");
        self.plain_op(acquire(resource, Some(wait), value), true)
    }

    pub(crate) fn plain_release(&self, resource: &str, token: Token) -> Request {
        self.plain_op(Op::Release { resource: name(resource), token, drained: false }, false)
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
