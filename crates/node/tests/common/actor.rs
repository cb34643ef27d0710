//! A client that remembers its numbers. It decides nothing: tests say what it sends, and worlds how.

use leasehold_core::protocol::{Plain, Request};
use leasehold_core::{
    Acquire, Answer, Attach, AttachNumber, CommandNumber, Item, ItemKind, ItemNumber, Label, Millis, Mode,
    Nonce, Op, Open, Policies, RenewalNumber, ResourceName, Sequence, SessionCommand, SessionId, SessionKind,
    Token, Value, command,
};
use leasehold_node::ConnectionId;

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

fn acquire(resource: &str, wait: Option<u64>, value: Value) -> Op {
    let requests = vec![command::Request { resource: name(resource), mode: Mode::Exclusive }];
    Op::Acquire(Acquire { requests, value, wait: wait.map(Millis::new) })
}

impl Actor {
    /// Not opened yet.
    pub(crate) fn unknown(connection: ConnectionId, nonce: [u8; 16], ttl: u64) -> Self {
        Self {
            connection,
            nonce: Nonce(nonce),
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
        self.op(acquire(resource, wait, value))
    }

    pub(crate) fn release(&mut self, resource: &str, token: Token) -> Request {
        self.op(Op::Release { resource: name(resource), token, drained: false })
    }

    fn plain_request(&self, plain: Plain) -> Request {
        Request::Plain { session: self.session, nonce: self.nonce, plain }
    }

    pub(crate) fn plain_renew(&self) -> Request {
        self.plain_request(Plain::Renew)
    }

    pub(crate) fn plain_op(&self, op: Op) -> Request {
        self.plain_request(Plain::Command { op, hold: false, numbered: None })
    }

    /// Waits for so long, and is answered when the wait is over.
    pub(crate) fn held_acquire_with(&self, resource: &str, wait: u64, value: Value) -> Request {
        self.plain_request(Plain::Command {
            op: acquire(resource, Some(wait), value),
            hold: true,
            numbered: None,
        })
    }

    pub(crate) fn plain_release(&self, resource: &str, token: Token) -> Request {
        self.plain_op(Op::Release { resource: name(resource), token, drained: false })
    }
}
