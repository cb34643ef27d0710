//! The format of a line, for whoever writes one.

use std::borrow::Cow;

use leasehold_core::Token;
use serde::Serialize;

use crate::At;

/// One line of a history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Line<'a> {
    /// When.
    #[serde(rename = "at_ns")]
    pub at: At,
    /// Which clock said so, if there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clock: Option<Cow<'a, str>>,
    /// In which process, if clients of several have the same names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub process: Option<Cow<'a, str>>,
    /// What happened.
    #[serde(flatten)]
    pub event: Event<'a>,
}

impl<'a> Line<'a> {
    /// A line of the only clock and of clients whose names say who they are.
    pub const fn new(at: At, event: Event<'a>) -> Self {
        Self { at, clock: None, process: None, event }
    }

    /// The line as text, without its end.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("a line has only text for keys")
    }
}

/// Every kind of event, as `what` names it.
pub const KINDS: [&str; 15] = [
    "asked",
    "queued",
    "granted",
    "confirmed",
    "refused",
    "unknown",
    "giving-back",
    "gave-back",
    "lost",
    "looked",
    "wrote",
    "fault",
    "healed",
    "all-healed",
    "finishing",
];

/// What happened, in the order of a lease's life.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "what", rename_all = "kebab-case")]
pub enum Event<'a> {
    /// A client is about to ask for a lease.
    Asked {
        /// Who.
        client: Cow<'a, str>,
        /// Which of its calls, if it has several under way.
        #[serde(skip_serializing_if = "str::is_empty")]
        call: Cow<'a, str>,
        /// For what.
        resource: Cow<'a, str>,
        /// The ttl of its session.
        #[serde(skip_serializing_if = "Option::is_none")]
        ttl_ms: Option<u32>,
    },
    /// The service said that the client stands in the queue, or the client that stands there has renewed its session.
    Queued {
        /// Who.
        client: Cow<'a, str>,
        /// Which of its calls.
        #[serde(skip_serializing_if = "str::is_empty")]
        call: Cow<'a, str>,
        /// Until when its session cannot be overdue: when the last confirmed renewal was sent, and the ttl.
        #[serde(rename = "promised_ns", skip_serializing_if = "Option::is_none")]
        promised: Option<At>,
    },
    /// The client was told that it holds the lease.
    Granted {
        /// Who.
        client: Cow<'a, str>,
        /// Which of its calls.
        #[serde(skip_serializing_if = "str::is_empty")]
        call: Cow<'a, str>,
        /// What it holds: `NAME`, or `NAME#SLOT`.
        resource: Cow<'a, str>,
        /// The token.
        #[serde(serialize_with = "text")]
        token: Token,
        /// The token that receivers compare, if it is another: a shared lease's is that of its group.
        #[serde(skip_serializing_if = "Option::is_none", serialize_with = "text_or_none")]
        fence: Option<Token>,
        /// Whether others may hold it too, if they also share.
        #[serde(skip_serializing_if = "is_false")]
        shared: bool,
        /// Whether it took up an offer: a named successor is served past the queue.
        #[serde(skip_serializing_if = "is_false")]
        handed_over: bool,
        /// Until when the client believes.
        #[serde(rename = "until_ns")]
        until: At,
        /// Until when the service must honour it: when the confirmed renewal was sent, and the ttl.
        #[serde(rename = "promised_ns", skip_serializing_if = "Option::is_none")]
        promised: Option<At>,
    },
    /// A renewal of the lease was confirmed.
    Confirmed {
        /// Who.
        client: Cow<'a, str>,
        /// Which lease.
        #[serde(serialize_with = "text")]
        token: Token,
        /// Until when the client believes.
        #[serde(rename = "until_ns")]
        until: At,
        /// Until when the service must honour it.
        #[serde(rename = "promised_ns", skip_serializing_if = "Option::is_none")]
        promised: Option<At>,
    },
    /// The call brought no lease, and never will.
    Refused {
        /// Who.
        client: Cow<'a, str>,
        /// Which of its calls.
        #[serde(skip_serializing_if = "str::is_empty")]
        call: Cow<'a, str>,
        /// Why.
        why: Cow<'a, str>,
    },
    /// Nobody can say whether the call brought a lease. It ends with the session.
    Unknown {
        /// Who.
        client: Cow<'a, str>,
        /// Which of its calls.
        #[serde(skip_serializing_if = "str::is_empty")]
        call: Cow<'a, str>,
        /// What is known.
        why: Cow<'a, str>,
    },
    /// The client does not believe any more and is about to say so.
    GivingBack {
        /// Who.
        client: Cow<'a, str>,
        /// Which lease.
        #[serde(serialize_with = "text")]
        token: Token,
    },
    /// The call that gives the lease back has ended.
    GaveBack {
        /// Who.
        client: Cow<'a, str>,
        /// Which lease.
        #[serde(serialize_with = "text")]
        token: Token,
        /// What went wrong, if the service did not say that it took it back.
        #[serde(skip_serializing_if = "Option::is_none")]
        trouble: Option<Cow<'a, str>>,
    },
    /// The service ended a lease that the client had not given back.
    Lost {
        /// Who.
        client: Cow<'a, str>,
        /// Which lease.
        #[serde(serialize_with = "text")]
        token: Token,
        /// Why.
        why: Cow<'a, str>,
        /// Whether an operator ended it.
        #[serde(skip_serializing_if = "is_false")]
        revoked: bool,
        /// Whether the state that it stood in was replaced by a backup.
        #[serde(skip_serializing_if = "is_false")]
        restored: bool,
    },
    /// Somebody looked who holds a resource.
    Looked {
        /// When it was about to ask.
        #[serde(rename = "asked_ns")]
        asked: At,
        /// What was looked at.
        resource: Cow<'a, str>,
        /// The token of the holder, if there is one.
        #[serde(serialize_with = "text_or_none")]
        token: Option<Token>,
    },
    /// A receiver answered a write under a lease that the client has or had.
    Wrote {
        /// Who.
        client: Cow<'a, str>,
        /// Under which resource.
        resource: Cow<'a, str>,
        /// The token that it showed.
        #[serde(serialize_with = "text")]
        token: Token,
        /// When it was about to ask.
        #[serde(rename = "asked_ns")]
        asked: At,
        /// Why the write was not taken, if it was not. A write whose outcome nobody knows is not recorded.
        #[serde(skip_serializing_if = "Option::is_none")]
        refused: Option<Cow<'a, str>>,
        /// Which receiver, if there are several.
        #[serde(skip_serializing_if = "str::is_empty")]
        receiver: Cow<'a, str>,
        /// Whether it was a register of the service itself, which knows of every grant.
        #[serde(skip_serializing_if = "is_false")]
        register: bool,
    },
    /// Something was broken.
    Fault {
        /// What.
        text: Cow<'a, str>,
    },
    /// Something was mended.
    Healed {
        /// What.
        text: Cow<'a, str>,
    },
    /// Nothing is broken any more.
    AllHealed,
    /// Clients were told to finish: from here on they ask for nothing new.
    Finishing,
}

/// Tokens as text: a JSON number loses the last digits.
fn text<S: serde::Serializer>(token: &Token, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(token)
}

#[expect(clippy::ref_option, reason = "serde gives a reference to the field")]
fn text_or_none<S: serde::Serializer>(token: &Option<Token>, to: S) -> Result<S::Ok, S::Error> {
    token.map(|token| token.to_string()).serialize(to)
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference to the field")]
const fn is_false(flag: &bool) -> bool {
    !*flag
}
