//! What goes into and comes out of a [`ClientSession`](super::ClientSession).

use alloc::vec::Vec;
use core::time::Duration;

use super::lease::EndedWhy;
use crate::answer::{Answer, Grant, Item, Opened, Refusal, Renewed, Reply, WaitEnding};
use crate::command::{Attach, Open, SessionCommand, Successor};
use crate::holder::{Reading, Standing};
use crate::id::{AttachNumber, CommandNumber, ItemNumber, Nonce, RenewalNumber, SessionId, Token};
use crate::name::{Label, ResourceName};
use crate::time::{Drift, Millis};

/// Something for the service, in the order in which it is to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Frame {
    /// Begins the session, or finds it again.
    Open(Open),
    /// Takes over the session with this connection.
    Attach {
        /// What the log carries.
        attach: Attach,
        /// The proof that the session is ours.
        nonce: Nonce,
    },
    /// Shows that the session is alive.
    Renew {
        /// Which session.
        session: SessionId,
        /// The number of this sending.
        number: RenewalNumber,
        /// The last item processed.
        seen: ItemNumber,
    },
    /// A numbered command.
    Command(SessionCommand),
}

impl Frame {
    /// What the machine is to be told when this frame was answered with `reply`. Nothing for a command that was taken in: its
    /// answer is an item.
    pub fn answered_with(&self, reply: Reply) -> Option<Incoming> {
        let session = match self {
            Self::Open(Open { nonce, .. }) => {
                return match reply {
                    Reply::Opened(opened) => Some(Incoming::Opened { nonce: *nonce, opened }),
                    Reply::Refused(refusal) => Some(Incoming::OpenRefused { nonce: *nonce, refusal }),
                    _ => None,
                };
            }
            Self::Attach { attach, .. } => attach.session,
            Self::Renew { session, .. } => *session,
            Self::Command(command) => command.session,
        };
        match (self, reply) {
            (Self::Attach { attach, .. }, Reply::Attached { last_command, last_item }) => {
                Some(Incoming::Attached { session, attach: attach.attach, last_command, last_item })
            }
            (_, Reply::Renewed(renewed)) => Some(Incoming::Renewed { session, renewed }),
            (_, Reply::StaleRenewal { number, highest }) => {
                Some(Incoming::StaleRenewal { session, number, highest })
            }
            (_, Reply::Closed) => Some(Incoming::Closed { session }),
            (_, Reply::Refused(refusal)) => Some(Incoming::Refused { session, refusal }),
            _ => None,
        }
    }
}

/// Something from the service. What could be mistaken for the answer to another request names what it answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Incoming {
    /// The session exists.
    Opened {
        /// The nonce of the open that is answered.
        nonce: Nonce,
        /// The session.
        opened: Opened,
    },
    /// There will be no session.
    OpenRefused {
        /// The nonce of the open that is answered.
        nonce: Nonce,
        /// Why.
        refusal: Refusal,
    },
    /// This connection is attached.
    Attached {
        /// Which session.
        session: SessionId,
        /// The number of the attach that is answered.
        attach: AttachNumber,
        /// The last command applied.
        last_command: CommandNumber,
        /// The newest item; everything unseen follows.
        last_item: ItemNumber,
    },
    /// An answer or event of the stream.
    Item {
        /// Which session.
        session: SessionId,
        /// What.
        item: Item,
    },
    /// A renewal was applied.
    Renewed {
        /// Which session.
        session: SessionId,
        /// Which sending, and what must be processed first.
        renewed: Renewed,
    },
    /// A renewal came behind a later one.
    StaleRenewal {
        /// Which session.
        session: SessionId,
        /// Which sending.
        number: RenewalNumber,
        /// The highest number applied.
        highest: RenewalNumber,
    },
    /// The session was closed as asked.
    Closed {
        /// Which session.
        session: SessionId,
    },
    /// An attach, a renewal or the place of a command was refused.
    Refused {
        /// Which session.
        session: SessionId,
        /// Why.
        refusal: Refusal,
    },
}

/// An input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// There is a new connection. Nothing that was sent on an earlier one will be answered on it.
    Connected,
    /// The connection is lost or was given up.
    Disconnected,
    /// The service says something.
    Received(Incoming),
    /// A fresh nonce, as asked for by [`Output::NeedNonce`].
    Nonce(Nonce),
    /// The service would like the next renewal in this time.
    Hint(Duration),
    /// Others heard something on this connection, at this point: it is not silent.
    HeardOnConnection(Reading),
    /// The application would like a renewal now, to learn how long it takes.
    RenewNow,
}

/// An output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Output {
    /// Send this now on the present connection.
    Send(Frame),
    /// Tell the application.
    Event(Event),
    /// The nonce is too old to be repeated: draw a new one.
    NeedNonce,
    /// Nothing was heard on this connection for long: give it up and make another, if possible to another node.
    Reconnect,
}

/// Something for the application.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// The session is open.
    Opened {
        /// Its id.
        session: SessionId,
    },
    /// A command is resolved.
    Resolved {
        /// Which.
        command: CommandNumber,
        /// How.
        outcome: Outcome,
    },
    /// A wait that began with [`Answer::Queued`] or [`Answer::Accepted`] is over.
    WaitOver {
        /// The acquire or accept.
        command: CommandNumber,
        /// How.
        how: WaitOver,
    },
    /// Belief in a lease has ended for good.
    LeaseEnded {
        /// Which resource.
        resource: ResourceName,
        /// Which lease.
        token: Token,
        /// Why.
        why: EndedWhy,
        /// Up to when it was confirmed; nothing if it never was. Work after that may have to be undone.
        confirmed_until: Option<Reading>,
    },
    /// Somebody asks to drain and release.
    ReleaseRequested {
        /// Which resource.
        resource: ResourceName,
        /// Which lease.
        token: Token,
        /// To whom, if a handover is wanted.
        successor: Option<Successor>,
        /// Who asks.
        by: Label,
    },
    /// A holder offers its resource.
    Offered {
        /// Which resource.
        resource: ResourceName,
        /// The holder's token.
        token: Token,
        /// What the holder calls itself.
        from: Label,
        /// How long the offer stands.
        length: Millis,
    },
    /// An offer is over without a grant.
    OfferEnded {
        /// Which resource.
        resource: ResourceName,
        /// The holder's token.
        token: Token,
    },
    /// The successor has accepted what was offered: a release passes the lease to it while it stays ready. Told once for each offer.
    OfferAccepted {
        /// Which resource.
        resource: ResourceName,
        /// The token of the lease offered.
        token: Token,
        /// The successor.
        by: SessionId,
        /// What it calls itself.
        label: Label,
    },
    /// The session stands differently than before.
    Standing(Standing),
    /// The session is over. This is the last event.
    SessionEnded {
        /// Why.
        why: SessionEnd,
    },
}

/// How a command was resolved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The service has answered.
    Answered(Answer),
    /// The lease was granted after the application had cancelled or closed: it is given back.
    Cancelled,
    /// The session was closed by this command.
    Closed,
    /// The session ended before the command was sent: it has no effect.
    NotSent,
    /// The session ended before an answer came: the command may have been applied or not.
    Unknown,
}

/// How a wait ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WaitOver {
    /// With everything asked for.
    Granted(Vec<Grant>),
    /// Without a lease.
    Ended(WaitEnding),
    /// The application cancelled it; what was granted meanwhile is given back.
    Cancelled,
    /// With the session.
    SessionEnded,
}

/// Why a session is over.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SessionEnd {
    /// It was closed as asked.
    #[error("the session was closed")]
    Closed,
    /// The service has ended it.
    #[error("session {0} has ended")]
    ByService(SessionId),
    /// It was never opened.
    #[error("the session was not opened: {0}")]
    OpenRefused(Refusal),
    /// The service trusts clocks further than this machine can promise.
    #[error(
        "clocks here may be off by {own} ppm, but the service allows only {service} ppm; set a drift of at least {own} ppm there",
        own = .own.ppm(),
        service = .service.ppm()
    )]
    DriftTooSmall {
        /// What the service allows.
        service: Drift,
        /// What this machine's clocks may have.
        own: Drift,
    },
    /// The session has another ttl than was asked for.
    #[error("the session was opened with a ttl of {given} instead of {asked}")]
    OtherTtl {
        /// What was asked for.
        asked: Millis,
        /// What there is.
        given: Millis,
    },
    /// The service does not know what it has said before: it was set back to an earlier state.
    #[error("the service does not know what it answered before; it was set back")]
    SetBack,
}

/// Why a command was not taken in. It has no effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SubmitError {
    /// The session is over.
    #[error("the session has ended; open a new one")]
    SessionEnded,
    /// A close was submitted before.
    #[error("the session is being closed")]
    Closing,
    /// Too many commands wait to be sent.
    #[error("{waiting} commands are unanswered, the maximum is {limit}; wait for answers")]
    Backlog {
        /// How many are unanswered.
        waiting: usize,
        /// The limit.
        limit: usize,
    },
}
