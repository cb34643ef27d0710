//! A client that remembers its numbers. It decides nothing: tests say what it sends.

use leasehold_core::protocol::{Plain, Request, RequestId, Response};
use leasehold_core::{
    Acquire, Answer, Attach, AttachNumber, CommandNumber, Item, ItemKind, ItemNumber, Label, Millis, Mode,
    Nonce, Op, Open, Policies, RenewalNumber, Reply, ResourceName, Sequence, SessionCommand, SessionId,
    SessionKind, Token, Value, command,
};
use leasehold_node::ConnectionId;

use crate::world::World;

#[derive(Debug, Clone)]
pub(crate) struct Actor {
    pub(crate) connection: ConnectionId,
    pub(crate) nonce: Nonce,
    pub(crate) session: SessionId,
    pub(crate) attach: AttachNumber,
    pub(crate) command: CommandNumber,
    pub(crate) renewal: RenewalNumber,
    pub(crate) seen: ItemNumber,
    pub(crate) ttl: u64,
    pub(crate) policies: Policies,
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
        Self {
            connection: ConnectionId(u64::from(number)),
            nonce: Nonce([number; 16]),
            session: SessionId::from_u64(0),
            attach: AttachNumber::NONE,
            command: CommandNumber::NONE,
            renewal: RenewalNumber::NONE,
            seen: ItemNumber::NONE,
            ttl,
            policies: Policies::default(),
            kind: SessionKind::Streamed,
        }
    }

    /// Opened and attached.
    pub(crate) fn up(world: &mut World, number: u8, ttl: u64) -> Self {
        Self::new(number, ttl).opened(world)
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

    pub(crate) fn open(&self) -> Request {
        Request::Open(Open {
            nonce: self.nonce,
            label: Label::new(&format!("client-{}", self.nonce.0[0])).expect("a short label"),
            ttl: Millis::new(self.ttl),
            policies: self.policies,
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
        let sequence = match self.kind {
            SessionKind::Streamed => {
                Sequence::Streamed { attach: self.attach, number: self.command, seen: self.seen }
            }
            SessionKind::Plain => Sequence::Plain,
        };
        Request::Command(SessionCommand { session: self.session, sequence, op })
    }

    /// Waits in the queue for so many milliseconds, or not at all.
    pub(crate) fn acquire(&mut self, resource: &str, wait: Option<u64>) -> Request {
        self.acquire_with(resource, wait, Value::default())
    }

    pub(crate) fn acquire_with(&mut self, resource: &str, wait: Option<u64>, value: Value) -> Request {
        let requests = vec![command::Request { resource: name(resource), mode: Mode::Exclusive }];
        self.op(Op::Acquire(Acquire { requests, value, wait: wait.map(Millis::new) }))
    }

    pub(crate) fn release(&mut self, resource: &str, token: Token) -> Request {
        self.op(Op::Release { resource: name(resource), token, drained: false })
    }

    pub(crate) fn close(&mut self) -> Request {
        self.op(Op::Close)
    }

    /// A plain session that is open. It speaks through the connection of its number, but could through any.
    pub(crate) fn plain(world: &mut World, number: u8, ttl: u64) -> Self {
        let actor = Self { kind: SessionKind::Plain, ..Self::new(number, ttl) };
        actor.opened(world)
    }

    fn plain_request(&self, plain: Plain) -> Request {
        Request::Plain { session: self.session, nonce: self.nonce, plain }
    }

    pub(crate) fn plain_renew(&self) -> Request {
        self.plain_request(Plain::Renew)
    }

    pub(crate) fn plain_op(&self, op: Op) -> Request {
        self.plain_request(Plain::Command { op, hold: false })
    }

    /// Waits for so long, and is answered when the wait is over.
    pub(crate) fn held_acquire(&self, resource: &str, wait: u64) -> Request {
        let requests = vec![command::Request { resource: name(resource), mode: Mode::Exclusive }];
        let op = Op::Acquire(Acquire { requests, value: Value::default(), wait: Some(Millis::new(wait)) });
        self.plain_request(Plain::Command { op, hold: true })
    }

    pub(crate) fn plain_release(&self, resource: &str, token: Token) -> Request {
        self.plain_op(Op::Release { resource: name(resource), token, drained: false })
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
