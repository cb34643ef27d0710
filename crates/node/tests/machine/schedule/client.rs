//! A client that believes in its leases as a holder does.

use std::collections::{BTreeMap, BTreeSet};

use leasehold_core::answer::Renewed;
use leasehold_core::holder::Reading;
use leasehold_core::protocol::RequestId;
use leasehold_core::{Answer, Grant, ItemKind, ItemNumber, RenewalNumber, SessionKind, Token};

use crate::actor::Actor;
use crate::world::millis;

pub(super) struct Client {
    pub(super) actor: Actor,
    pub(super) is_open: bool,
    /// Through its present connection; a plain session needs no such thing.
    pub(super) is_attached: bool,
    /// When each renewal was sent; zero is the first sending of the open.
    pub(super) sent: BTreeMap<u64, Reading>,
    /// Answers to renewals that wait for the item they name.
    pub(super) kept: Vec<(u64, ItemNumber)>,
    /// What it holds, and the last renewal that counts for it.
    pub(super) held: BTreeMap<String, (Token, u64)>,
    /// The last renewal that counts for all leases of a streamed session.
    confirmed: u64,
    /// Plain: when each renewal that has no number yet was sent.
    pub(super) unnumbered: BTreeMap<RequestId, Reading>,
    /// Plain: calls that are kept waiting, as far as it knows.
    pub(super) calls: BTreeSet<RequestId>,
    /// Plain: what it has given back; an answer on its way may list it once more.
    given_back: BTreeSet<Token>,
    closing: bool,
}

impl Client {
    pub(super) fn new(actor: Actor) -> Self {
        let is_attached = actor.kind == SessionKind::Plain;
        Self {
            actor,
            is_open: false,
            is_attached,
            sent: BTreeMap::new(),
            kept: Vec::new(),
            held: BTreeMap::new(),
            confirmed: 0,
            unnumbered: BTreeMap::new(),
            calls: BTreeSet::new(),
            given_back: BTreeSet::new(),
            closing: false,
        }
    }

    pub(super) fn is_plain(&self) -> bool {
        self.actor.kind == SessionKind::Plain
    }

    /// The token in which it believes.
    pub(super) fn believes_in(&self, resource: &str, now: Reading) -> Option<Token> {
        let (token, counts) = self.held.get(resource)?;
        let counts = if self.is_plain() { *counts } else { self.confirmed };
        // Of a renewal whose answer is not there yet it does not know when it was sent; an earlier one is safe.
        let (_, sent) = self.sent.range(..=counts).next_back()?;
        (now.since(*sent).greater() < millis(self.actor.ttl)).then_some(*token)
    }

    /// Belief ends when the release is sent, whatever comes back.
    pub(super) fn gives_back(&mut self, resource: &str) -> Option<Token> {
        let (token, _) = self.held.remove(resource)?;
        self.given_back.insert(token);
        Some(token)
    }

    pub(super) fn closes(&mut self) {
        self.held.clear();
        self.closing = true;
    }

    pub(super) fn process(&mut self, number: ItemNumber, kind: &ItemKind) {
        if number <= self.actor.seen {
            return;
        }
        assert_eq!(number, self.actor.seen.next(), "an item was skipped");
        self.actor.seen = number;
        match kind {
            ItemKind::Answer { answer: Answer::Granted(grants), .. }
            | ItemKind::WaitGranted { grants, .. } => self.holds(grants, 0),
            ItemKind::LeaseEnded { resource, token, .. }
                if self.held.get(resource.as_str()).is_some_and(|(held, _)| held == token) =>
            {
                self.held.remove(resource.as_str());
            }
            _ => {}
        }
    }

    fn holds(&mut self, grants: &[Grant], counts: u64) {
        for grant in grants {
            self.held.insert(grant.resource.as_str().to_owned(), (grant.token, counts));
        }
    }

    /// Answers to renewals count once everything up to the item they name was processed.
    pub(super) fn count_kept(&mut self) {
        let seen = self.actor.seen;
        let (ready, later): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.kept).into_iter().partition(|(_, after)| *after <= seen);
        self.kept = later;
        for (number, _) in ready {
            self.confirmed = self.confirmed.max(number);
        }
    }

    /// A plain acquire was granted: it counts from the renewal that the answer names.
    pub(super) fn plain_granted(&mut self, grants: &[Grant], renewal: RenewalNumber) {
        if self.closing {
            return;
        }
        // A renewal that was answered before may have listed it and counts for longer.
        let new: Vec<Grant> = grants.iter().filter(|grant| !self.knows(grant.token)).cloned().collect();
        self.holds(&new, renewal.get());
    }

    fn knows(&self, token: Token) -> bool {
        self.given_back.contains(&token) || self.held.values().any(|(held, _)| *held == token)
    }

    /// A plain renewal counts for what its answer lists. What it does not list though it came behind the grant is over.
    pub(super) fn plain_renewed(&mut self, id: RequestId, renewed: &Renewed) {
        let Some(sent) = self.unnumbered.remove(&id) else { return };
        let number = renewed.number.get();
        assert!(self.sent.insert(number, sent).is_none(), "one number for two renewals");
        let listed = &renewed.holdings.as_ref().expect("a plain session is told what it has").leases;
        self.held.retain(|_, (token, counts)| {
            *counts >= number || listed.iter().any(|lease| lease.grant.token == *token)
        });
        for lease in listed.iter().filter(|_| !self.closing) {
            let (token, resource) = (lease.grant.token, lease.grant.resource.as_str());
            if self.given_back.contains(&token) {
                continue;
            }
            match self.held.get_mut(resource) {
                Some((held, counts)) if *held == token => *counts = number.max(*counts),
                // An older answer that arrives late knows nothing of a later grant.
                Some((held, _)) if *held > token => {}
                _ => {
                    self.held.insert(resource.to_owned(), (token, number));
                }
            }
        }
    }
}
