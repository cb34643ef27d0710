//! A lease as the application holds it.

mod shared;
mod state;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use leasehold_core::holder::{NoGuard, Reading};
use leasehold_core::limits::MAX_WAIT;
use leasehold_core::{
    Grant, Label, Millis, Offer, Op, Refusal, ResourceName, SessionId, Successor, Token, Value,
};
use tokio::sync::broadcast;

use crate::driver::{SessionRef, ToDriver};
use crate::error::Error;
use crate::guard::Guard;
use crate::session::SessionEvent;
use crate::successor::{Resigned, successor_of};

pub use shared::ReleaseRequest;
pub(crate) use shared::{Shared, Terms};
pub use state::{EndedWhy, LeaseState};

/// Who has taken up an offer.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Taker {
    /// Its session.
    pub session: SessionId,
    /// What it calls itself.
    pub label: Label,
}

/// A lease. Dropping it gives it back without waiting for an answer.
#[derive(Debug)]
pub struct Lease {
    pub(crate) shared: Arc<Shared>,
    pub(crate) session: SessionRef,
    released: AtomicBool,
    /// Whether the release was answered well, once it was answered.
    answered: tokio::sync::Mutex<Option<bool>>,
}

impl Lease {
    pub(crate) fn new(shared: Arc<Shared>, session: SessionRef) -> Self {
        Self { shared, session, released: AtomicBool::new(false), answered: tokio::sync::Mutex::new(None) }
    }

    /// The resource.
    pub fn resource(&self) -> &ResourceName {
        &self.shared.grant.resource
    }

    /// The fencing token, if the lease is held now: send it with every write. To act for longer than a moment, take a
    /// [`guard`](Self::guard).
    ///
    /// # Errors
    /// When the lease may not be believed now.
    pub fn token(&self) -> Result<Token, NoGuard> {
        self.shared.guard(Duration::ZERO)?;
        Ok(self.shared.grant.fence)
    }

    /// What was granted, for records and messages. It says nothing about whether the lease is still held: nothing may be written with
    /// the tokens in it.
    pub fn granted(&self) -> &Grant {
        &self.shared.grant
    }

    /// Whether an offer of the holder before was taken up for it: then it may have come past the queue.
    pub fn was_handed_over(&self) -> bool {
        self.shared.handed_over
    }

    /// The slot, if the name has slots.
    pub fn slot(&self) -> Option<u32> {
        self.shared.grant.slot
    }

    /// The name under which receivers keep the highest token: `NAME`, or `NAME#SLOT`.
    pub fn fence_name(&self) -> String {
        self.shared.fence_name()
    }

    /// Where the lease stands now. This looks at the clocks: a holder that was paused learns it here.
    pub fn state(&self) -> LeaseState {
        self.shared.state()
    }

    /// Leave to act for `how_long`, if that ends before the deadline. It is what [fenced](crate::fence) writes are made with; a lease by itself
    /// vouches for none, because it states no length of time.
    ///
    /// # Errors
    /// When too little time is left, or the lease may not be believed now.
    pub fn guard(&self, how_long: Duration) -> Result<Guard<'_>, NoGuard> {
        let until = self.shared.guard(how_long)?;
        Ok(Guard::new(self, until))
    }

    /// The deadline as readings of this machine's clocks, for a process that is to be stopped by then. It moves with every
    /// confirmed renewal.
    pub fn deadline(&self) -> Option<Reading> {
        self.shared.until()
    }

    /// Waits until the lease stands differently: renewed, retrying, lapsed, ended.
    pub async fn changed(&self) -> LeaseState {
        let mut changes = self.shared.changes();
        if !matches!(self.state(), LeaseState::Ended { .. }) {
            let _ = changes.changed().await;
        }
        self.state()
    }

    /// Waits until the lease is over for good.
    pub async fn ended(&self) -> LeaseState {
        let mut changes = self.shared.changes();
        loop {
            let state = self.state();
            if matches!(state, LeaseState::Ended { .. }) || changes.changed().await.is_err() {
                return state;
            }
        }
    }

    /// Waits until somebody asks for the lease to be drained and released.
    pub async fn release_requested(&self) -> ReleaseRequest {
        let mut requests = self.shared.requests();
        let request = requests.wait_for(Option::is_some).await.ok().and_then(|request| request.clone());
        match request {
            Some(request) => request,
            // The sender lives as long as this lease.
            None => std::future::pending().await,
        }
    }

    /// Shows another value with the lease.
    ///
    /// # Errors
    /// When the lease is not held any more, or the store is unreachable.
    pub async fn set_value(&self, value: &[u8]) -> Result<(), Error> {
        let value = Value::new(value.to_vec())?;
        let (resource, token) = (self.resource().clone(), self.shared.grant.token);
        self.session.submit(Op::SetValue { resource, token, value }).await.map(|_| ())
    }

    /// Offers the lease to a successor, and waits up to `length` until that one has taken the offer up. The lease is held as before:
    /// only its release passes it on, to the successor if it still is there and ready, else to whoever waits first.
    ///
    /// # Errors
    /// When there is no such successor, when it did not take up the offer in time, or when the lease is not held any more.
    pub async fn offer(&self, to: Successor, length: Duration) -> Result<Taker, Error> {
        let mut events = self.session.events.subscribe();
        let Grant { resource, token, .. } = self.granted();
        let offer =
            Offer { resource: resource.clone(), token: *token, to, length: Millis::from_duration(length) };
        self.session.submit(Op::Offer(offer)).await?;
        let begun = self.shared.time.now();
        loop {
            let left = length.saturating_sub(self.shared.time.now().since(begun).greater());
            if left.is_zero() {
                // A service that was not upgraded yet does not tell.
                let taker = self.taker().await?;
                return taker.ok_or_else(|| Error::NotTakenUp { resource: resource.clone(), waited: length });
            }
            tokio::select! {
                event = events.recv() => match event {
                    Ok(SessionEvent::OfferAccepted { token: of, by, label, .. }) if of == *token => {
                        return Ok(Taker { session: by, label });
                    }
                    Ok(SessionEvent::LeaseEnded { token: of, .. }) if of == *token => {
                        let refusal = Refusal::NotHolder { resource: resource.clone(), token: *token, ended: None };
                        return Err(Error::Refused(refusal));
                    }
                    Err(broadcast::error::RecvError::Closed) => return Err(self.session.over()),
                    // What was missed is looked up.
                    Err(broadcast::error::RecvError::Lagged(_)) => {
                        if let Some(taker) = self.taker().await? {
                            return Ok(taker);
                        }
                    }
                    Ok(_) => {}
                },
                () = self.shared.time.nap(left) => {}
            }
        }
    }

    /// Who has taken up the present offer.
    async fn taker(&self) -> Result<Option<Taker>, Error> {
        let Grant { resource, token, .. } = self.granted();
        let view = self.session.look_at(resource).await?;
        let holder = view.into_iter().flat_map(|view| view.holders).find(|holder| holder.token == *token);
        let offer = holder.and_then(|holder| holder.offer).filter(|offer| offer.ready);
        Ok(offer.map(|offer| Taker { session: offer.to, label: offer.label }))
    }

    /// Shows to whoever looks or waits that the work under the lease is being drained: how many pieces of it are in flight, and how long
    /// that takes at most. [`Drain`](crate::Drain) does this by itself. It does not wait for an answer: showing it is a courtesy, and changes
    /// nothing about who holds what.
    pub fn show_draining(&self, in_flight: u32, within: Duration) {
        let (resource, token) = (self.resource().clone(), self.shared.grant.token);
        let within = Millis::from_duration(within).min(MAX_WAIT);
        let op = Op::SetDraining { resource, token, in_flight, within };
        self.session.send(|key| ToDriver::Submit { key, op, reply: None });
    }

    /// Says to whoever looks that the holder is not ready to act yet: the gap before this lease goes on until it [is](Self::ready). Say it
    /// right after the grant; later it changes nothing. It does not wait for an answer: it changes nothing about who holds what.
    ///
    /// Where receivers were [sealed](crate::SessionOptions::seal_at) the library has said both already, at the grant and when they were; whoever
    /// has more to do after that asks for the lease [so](crate::AcquireRequest::warms_up).
    pub fn warming_up(&self) {
        self.say_ready(false);
    }

    /// Says that the holder is ready to act: the gap before this lease ends here. A holder that says nothing was ready at its grant, one
    /// that says only this was warming up since then.
    pub fn ready(&self) {
        self.say_ready(true);
    }

    fn say_ready(&self, ready: bool) {
        let (resource, token) = (self.resource().clone(), self.shared.grant.token);
        let op = Op::SetReady { resource, token, ready };
        self.session.send(|key| ToDriver::Submit { key, op, reply: None });
    }

    /// Gives the lease back. Belief ends with this call, whatever comes back.
    ///
    /// # Errors
    /// When the answer is not known; the lease then ends with its session at the latest.
    pub async fn release(self) -> Result<(), Error> {
        self.give_back(false).await
    }

    /// Gives the lease back after the work under it was finished: the history says so.
    ///
    /// # Errors
    /// As [`release`](Self::release).
    pub async fn release_drained(self) -> Result<(), Error> {
        self.give_back(true).await
    }

    /// Gives the lease back after the work under it was finished, and waits up to `within` until somebody else holds the resource.
    ///
    /// # Errors
    /// When the answer is not known, or the store cannot be reached. Belief has ended all the same.
    pub async fn resign(self, within: Duration) -> Result<Resigned, Error> {
        self.resign_now(within).await
    }

    pub(crate) async fn resign_now(&self, within: Duration) -> Result<Resigned, Error> {
        self.give_back(true).await?;
        let Grant { resource, token, .. } = &*self.shared.grant;
        let successor = successor_of(&self.session, &self.shared.time, resource, *token, within).await?;
        Ok(Resigned { successor })
    }

    /// Gives the lease back; once. Whoever does it again waits for the answer to the first, and is told what is known of it.
    pub(crate) async fn give_back(&self, drained: bool) -> Result<(), Error> {
        let mut answered = self.answered.lock().await;
        match *answered {
            Some(true) => Ok(()),
            Some(false) => Err(Error::OutcomeUnknown),
            None => {
                self.released.store(true, Ordering::SeqCst);
                let op = self.release_op(drained);
                let outcome = self.session.submit(op).await.map(|_| ());
                *answered = Some(outcome.is_ok());
                outcome
            }
        }
    }

    fn release_op(&self, drained: bool) -> Op {
        // Before anything is sent: whoever still has a guard may not get its token.
        self.shared.end(EndedWhy::Released, self.shared.until());
        Op::Release { resource: self.resource().clone(), token: self.shared.grant.token, drained }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if !*self.released.get_mut() && !self.shared.is_forked() {
            let op = self.release_op(false);
            self.session.send(|key| ToDriver::Submit { key, op, reply: None });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::shared::Published;
    use super::*;
    use crate::testing::World;
    use leasehold_fence::Authority;
    use std::future::IntoFuture;

    /// What a fork leaves in the child: the same values, and another pid. A fork itself cannot be made here: it needs unsafe code.
    fn seen_by_a_child(lease: &Lease) -> Lease {
        let Published::Active(handle) = &*lease.shared.lock() else { panic!("the lease is held") };
        let shared = Shared::new(
            handle.clone(),
            lease.shared.pid + 1,
            lease.shared.time.clone(),
            Arc::clone(&lease.shared.terms),
            false,
        );
        Lease::new(Arc::new(shared), lease.session.seen_by_a_child())
    }

    #[test]
    fn a_child_of_a_fork_holds_nothing_and_gives_nothing_back() {
        let world = World::new();
        let store = world.store();
        let session = world.run(store.session()).unwrap();
        let lease = world.run(session.acquire("job").into_future()).unwrap();

        let copy = seen_by_a_child(&lease);
        assert_eq!(copy.state(), LeaseState::Ended { why: EndedWhy::Forked, confirmed_until: None });
        assert_eq!(copy.guard(Duration::from_millis(1)).unwrap_err(), NoGuard::Ended);
        let copy_token = copy.token().unwrap_err();
        assert_eq!(copy.deadline(), None);
        // Nobody would ever answer: its driver is a thread of the parent.
        let refused = world.run(copy.set_value(b"child")).unwrap_err();
        assert!(matches!(refused, Error::SessionEnded(_)), "{refused}");
        assert!(matches!(world.run(copy.release()).unwrap_err(), Error::SessionEnded(_)));
        drop(seen_by_a_child(&lease));

        world.advance(Duration::from_secs(20));
        assert!(lease.guard(Duration::from_secs(1)).is_ok(), "the parent's lease is as it was");
        let view = world.run(store.lease(lease.resource())).unwrap().unwrap();
        assert_eq!(view.holders[0].token, lease.granted().token);
        assert_eq!(copy_token, NoGuard::Ended);
    }

    #[test]
    fn a_child_of_a_fork_vouches_for_nothing() {
        let world = World::new();
        let store = world.store();
        let session = world.run(store.session()).unwrap();
        let lease = world.run(session.acquire("job").into_future()).unwrap();
        let guard = lease.guard(Duration::from_secs(5)).unwrap();
        assert!(guard.stamp().is_ok());
        // The guard that was there when the process was copied.
        let copy = seen_by_a_child(&lease);
        let refused = Guard::new(&copy, lease.shared.guard(Duration::from_secs(5)).unwrap()).stamp();
        assert_eq!(refused.unwrap_err().why, "the lease has ended");
        let written = Guard::new(&copy, lease.shared.guard(Duration::from_secs(5)).unwrap());
        let refused = world.run(written.register("cursor").write(b"child")).unwrap_err();
        assert!(matches!(refused, leasehold_fence::Error::NoAuthority(_)), "{refused}");
        assert!(guard.stamp().is_ok(), "the parent's is as it was");
    }
}
