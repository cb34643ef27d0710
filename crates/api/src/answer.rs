//! What calls take and give back.

use leasehold_core::answer::Opened;
use leasehold_core::limits::LONGEST_MAX_TTL;
use leasehold_core::numbers::{Ask, Numbers, NumbersError};
use leasehold_core::protocol::{ClusterView, Incarnation, Member, MemberId, MemberRole};
use leasehold_core::{
    CommandNumber, Drift, Grant, Holdings, Label, Millis, Nonce, Policies, RenewalNumber, Revision, Token,
};

use crate::SessionKey;

/// A session to open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenSession {
    /// What the holder calls itself.
    pub label: Label,
    /// How long it lives after a renewal.
    pub ttl: Millis,
    /// The numbers that the holder means to keep, if it has its own: they are judged before the session is opened.
    pub numbers: OwnNumbers,
    /// What happens when it is not renewed.
    pub policies: Policies,
    /// Drawn by a client that wants to be able to ask again; nothing has the service draw one.
    pub nonce: Option<Nonce>,
}

/// Numbers of a holder. Whatever is left open gets its default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OwnNumbers {
    /// The renewal interval.
    pub renew_every: Option<Millis>,
    /// The margin.
    pub margin: Option<Millis>,
    /// The longest ordinary round trip.
    pub round_trip: Option<Millis>,
}

impl OwnNumbers {
    /// Whether none was given: then there is nothing to judge.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// What these come to, judged as those of every other holder.
    ///
    /// # Errors
    /// When they do not fit together.
    pub fn judge(self, ttl: Millis, max_ttl: Millis, drift: Drift) -> Result<Option<Advice>, NumbersError> {
        let Self { renew_every, margin, round_trip } = self;
        match Numbers::check(Ask { renew_every, margin, round_trip, drift, max_ttl, ..Ask::for_ttl(ttl) }) {
            Ok(numbers) => Ok(Some(Advice::of(&numbers))),
            // The table says so itself, under a code of its own.
            Err(NumbersError::TtlTooShort { .. } | NumbersError::TtlTooLong { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// A session that exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionOpened {
    /// Names it from now on.
    pub key: SessionKey,
    /// Its ttl.
    pub ttl: Millis,
    /// The drift that the service allows every clock.
    pub drift: Drift,
    /// Whether it existed already: then nothing was renewed by this.
    pub repeated: bool,
    /// How often to renew and how long before the end of the ttl to stop: the holder's own numbers, else the default. Nothing if the ttl leaves no room for
    /// that much drift.
    pub advice: Option<Advice>,
}

/// How a holder keeps a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Advice {
    /// The renewal interval.
    pub renew_every: Millis,
    /// The margin.
    pub margin: Millis,
}

impl Advice {
    const fn of(numbers: &Numbers) -> Self {
        Self { renew_every: numbers.renew_every(), margin: numbers.margin() }
    }
}

impl SessionOpened {
    /// As the table answers.
    pub fn new(opened: &Opened, nonce: Nonce, own: Option<Advice>) -> Self {
        Self {
            key: SessionKey { id: opened.session, nonce },
            ttl: opened.ttl,
            drift: opened.drift,
            repeated: opened.repeated,
            advice: own.or_else(|| advice(opened.ttl, opened.drift)),
        }
    }
}

fn advice(ttl: Millis, drift: Drift) -> Option<Advice> {
    let ask = Ask { drift, max_ttl: LONGEST_MAX_TTL, ..Ask::for_ttl(ttl) };
    let numbers = match Numbers::check(ask) {
        Err(NumbersError::RenewsTooSeldom { fitting, .. }) => {
            Numbers::check(Ask { renew_every: Some(fitting), ..ask })
        }
        other => other,
    };
    numbers.ok().map(|numbers| Advice::of(&numbers))
}

/// A session that was renewed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionRenewed {
    /// The number of this renewal.
    pub renewal: RenewalNumber,
    /// What the session has.
    pub holdings: Holdings,
}

/// What became of an acquire.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Acquired {
    /// The number of the acquire, by which its wait can be cancelled.
    pub acquire: CommandNumber,
    /// The renewal from whose sending the leases count until a later one lists them.
    pub renewal: RenewalNumber,
    /// Whether this is the recorded answer to a call that had arrived before.
    pub repeated: bool,
    /// What came of it.
    pub outcome: AcquireOutcome,
}

/// What came of an acquire.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AcquireOutcome {
    /// Everything asked for, in the order of the requests, and of each whether it is still held.
    Granted(Vec<(Grant, bool)>),
    /// The session waits.
    Queued {
        /// How many stood before it.
        ahead: u32,
    },
}

/// What became of a cancel, and whether this is the recorded answer to one that had arrived before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CancelAnswer {
    /// What became of it.
    pub outcome: Cancelled,
    /// Whether it had arrived before.
    pub repeated: bool,
}

/// What became of a cancel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cancelled {
    /// Nothing will be granted by the wait.
    Cancelled,
    /// It came too late: these are held, and have to be released by whoever does not want them.
    AlreadyGranted(Vec<Grant>),
}

/// Whom a request to release reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// The token of the lease.
    pub token: Token,
    /// What the holder calls itself.
    pub holder: Label,
}

/// Something read, and the last entry of the log that it takes into account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AtRevision<T> {
    /// The entry.
    pub revision: Revision,
    /// What was read.
    pub answer: T,
}

/// Part of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T> {
    /// In order.
    pub items: Vec<T>,
    /// Whether there are more after the last.
    pub more: bool,
}

impl<T> Page<T> {
    /// The last item, if there are more behind it.
    pub fn next(&self) -> Option<&T> {
        self.items.last().filter(|_| self.more)
    }
}

/// The nodes as their leader sees them.
#[derive(Debug, Clone)]
pub struct ClusterState {
    /// What the leader says.
    pub view: ClusterView,
    /// How long nothing is granted after a restore. That of the node which was asked: all of them have applied the same.
    pub restore_wait: Option<Millis>,
}

/// What one node knows by itself.
#[derive(Debug, Clone)]
pub struct LocalNode {
    /// The node.
    pub me: MemberId,
    /// All that it has recorded.
    pub members: Vec<(Member, MemberRole)>,
    /// Where it says that it is reached.
    pub advertised: String,
    /// Which life of the state it keeps.
    pub incarnation: Incarnation,
    /// Its epoch.
    pub epoch: u16,
    /// Which node leads, as far as it knows.
    pub leader: Option<MemberId>,
    /// Whether it takes in requests.
    pub ready: bool,
    /// The last entry that it has applied.
    pub applied: Revision,
    /// How long nothing is granted after a restore.
    pub restore_wait: Option<Millis>,
}

impl LocalNode {
    /// What a member is called.
    pub fn name(&self, id: MemberId) -> Option<String> {
        let named = self.members.iter().find(|(member, _)| member.id == id);
        named.map(|(member, _)| member.name.clone())
    }
}

/// Who leads after leadership was handed over.
#[derive(Debug, Clone)]
pub struct Transferred {
    /// The node.
    pub leader: MemberId,
    /// What it is called, if that is known.
    pub name: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_advice_is_that_of_every_other_holder() {
        let advice = advice(Millis::new(10_000), Drift::DEFAULT).unwrap();
        assert_eq!((advice.renew_every.get(), advice.margin.get()), (3_333, 1_000));
    }

    #[test]
    fn more_drift_means_more_renewals_or_no_advice() {
        let ask = |ppm| advice(Millis::new(1_000), Drift::from_ppm(ppm).unwrap());
        assert!(ask(300_000).unwrap().renew_every < Millis::new(333));
        assert!(advice(Millis::new(500), Drift::MAX).is_some_and(|advice| advice.margin >= Millis::new(250)));
    }
}
