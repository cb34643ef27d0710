//! Requests, and what begins and keeps up a session.

use leasehold_core::protocol::{Plain, Request, Watch};
use leasehold_core::{Attach, Op, Open, Policies, SessionKind};

use super::field::name_prefix;
use super::{Checked, Field, Wire, named_values, needed, present, record, variants};
use crate::proto as pb;
use pb::plain_command::Op as PlainOp;
use pb::session_command::Op as SessionOp;

variants! {
    Request => client_message::Request;
    Open(open) => Open,
    Renew { session, number, seen } => Renew(Renew) at "renew",
    Command(command) => Command,
    Operator(operator) => Operator,
    Cluster(command) => Cluster,
    Read(query) => Read,
    Plain { session, nonce, plain at "plain" } => Plain(PlainRequest) at "plain",
    Watch(watch) => Watch,
    StopWatch { watch } => StopWatch;
    to {
        Self::Attach { attach: Attach { session, attach, seen }, nonce } => {
            pb::client_message::Request::Attach(pb::Attach {
                session: session.get(),
                attach: attach.get(),
                seen: seen.get(),
                nonce: nonce.to_field(),
            })
        }
    }
    from {
        pb::client_message::Request::Attach(pb::Attach { session, attach, seen, nonce }) => Self::Attach {
            attach: Attach {
                session: Field::from_field("attach.session", session)?,
                attach: Field::from_field("attach.attach", attach)?,
                seen: Field::from_field("attach.seen", seen)?,
            },
            nonce: Field::from_field("attach.nonce", nonce)?,
        },
    }
}

variants! {
    Plain => plain_request::Plain;
    Renew => Renew,
    Command { op, hold, numbered } => Command(PlainCommand) at "plain",
}

impl Field<Option<PlainOp>> for Op {
    fn to_field(&self) -> Option<PlainOp> {
        Some(self.to_wire().into())
    }

    fn from_field(at: &'static str, op: Option<PlainOp>) -> Checked<Self> {
        Self::from_wire(present(at, op)?.into())
    }
}

/// The two have the same variants; the generator does not know that.
macro_rules! same_variants {
    ($one:ident, $other:ident: $($variant:ident),+) => {
        impl From<$one> for $other {
            fn from(op: $one) -> Self {
                match op {
                    $($one::$variant(content) => Self::$variant(content),)+
                }
            }
        }

        impl From<$other> for $one {
            fn from(op: $other) -> Self {
                match op {
                    $($other::$variant(content) => Self::$variant(content),)+
                }
            }
        }
    };
}

same_variants!(
    PlainOp, SessionOp: Acquire, Cancel, SetValue, WriteRegister, Offer, Accept, Release, Close, SetDraining, SetReady,
    CancelCall
);

record! {
    Open => Open at "open";
    nonce, label, ttl_ms as ttl, policies, kind,
}

record!(Policies => Policies at "policies"; grace_ms as grace, hard_ms as hard, delay_ms as delay);

/// Who says nothing of them wants none.
impl Field<Option<pb::Policies>> for Policies {
    fn to_field(&self) -> Option<pb::Policies> {
        Some(self.to_wire())
    }

    fn from_field(_: &'static str, policies: Option<pb::Policies>) -> Checked<Self> {
        policies.map_or(Ok(Self::default()), Self::from_wire)
    }
}

named_values!(SessionKind => SessionKind, "open.kind", Streamed, Plain);

record!(Watch => Watch at "watch"; prefix checked name_prefix, after);

needed!(Plain);
