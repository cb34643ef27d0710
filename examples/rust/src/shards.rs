//! Owners of shards: `n` shards are spread evenly over however many processes there are.
//!
//! The scheme, in full. Every process holds a shared lease on `POOL/members`: that is how it is counted. In each turn it looks at who
//! the members are, in the order in which they came; of `n` shards the member at place `i` of `m` keeps `n / m`, and one more if `i` is
//! below `n % m`. Who has more lets no new work into the ones that are too many, and gives each back once its work in flight is
//! finished. Who has fewer takes free ones. Each shard is an exclusive lease `POOL/0`, `POOL/1`, ..., so however different what two
//! processes see, no shard is owned twice.
//!
//! Its limits. A shard that changes hands has no owner for up to one turn of the one that takes it. A process that dies keeps its shards
//! for its ttl. Shards are counted, not weighed, and a process that restarts does not get the same ones back. Up to 1000 members, which is
//! how many one look shows. All leases of a process are in one session, so a process is there with all of them or not at all.

use std::collections::{BTreeMap, BTreeSet};

use leasehold::{Drain, Error, Lease, ResourceName, Session, SessionOptions, Store, Token, Work};

/// How many names are read at a time.
const PAGE: usize = 500;

/// A process that owns some of the shards of a pool.
#[derive(Debug)]
pub struct Owner {
    store: Store,
    pool: String,
    shards: u32,
    // In this order: what is dropped gives back the shards first, then the membership, and closes the session last.
    owned: BTreeMap<u32, Shard>,
    member: Lease,
    session: Session,
}

#[derive(Debug)]
struct Shard {
    lease: Lease,
    drain: Drain,
    /// No new work is let in, and it is given back once what is in flight is finished.
    leaving: bool,
}

/// What a turn has changed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Turn {
    /// Shards that are owned from now on.
    pub taken: Vec<u32>,
    /// Shards that were given back, all work on them finished.
    pub given_back: Vec<u32>,
    /// Shards that are not owned any more, without having been given back.
    pub lost: Vec<u32>,
}

impl Owner {
    /// Joins a pool of so many shards. Everybody says the same number.
    ///
    /// # Errors
    /// When the store cannot be reached.
    pub async fn join(
        store: &Store,
        pool: &str,
        shards: u32,
        options: &SessionOptions,
    ) -> Result<Self, Error> {
        let session = store.session_with(options).await?;
        let member = session.acquire(&format!("{pool}/members")).shared().await?;
        let (store, pool) = (store.clone(), pool.to_owned());
        Ok(Self { store, pool, shards, owned: BTreeMap::new(), member, session })
    }

    /// Takes what is missing, and gives back what is too much. To be called again and again, every second for example.
    ///
    /// # Errors
    /// When the store cannot be reached, or the membership is over: drop this owner and join again.
    pub async fn turn(&mut self) -> Result<Turn, Error> {
        let mut turn = Turn { lost: self.forget_lost(), ..Turn::default() };
        let share = self.share().await?;
        self.stop_beyond(share);
        turn.given_back = self.give_back_finished().await?;
        if self.owned.len() < share {
            turn.taken = self.take_free(share).await?;
        }
        Ok(turn)
    }

    /// The shards that work may be done for now.
    pub fn owned(&self) -> impl Iterator<Item = u32> {
        let held = self.owned.iter().filter(|(_, shard)| !shard.leaving && shard.lease.token().is_ok());
        held.map(|(shard, _)| *shard)
    }

    /// Begins a piece of work on a shard: hold on to the work until it is finished, and write with the token. Nothing if the shard is not
    /// this process's, or not for long any more.
    pub fn begin(&self, shard: u32) -> Option<(Work, Token)> {
        let shard = self.owned.get(&shard)?;
        let work = shard.drain.begin().ok()?;
        Some((work, shard.lease.token().ok()?))
    }

    /// Finishes all work, gives all shards back, and leaves.
    ///
    /// # Errors
    /// When an answer is not known. The ttl ends what is left.
    pub async fn leave(self) -> Result<(), Error> {
        for shard in self.owned.values() {
            shard.drain.stop();
        }
        for shard in self.owned.into_values() {
            shard.drain.finished().await;
            shard.lease.release_drained().await?;
        }
        self.member.release().await?;
        self.session.close().await
    }

    /// Lets go of everything at once, as soon as no work is in flight any more: for an owner that cannot go on.
    pub async fn abandon(self) {
        for shard in self.owned.values() {
            shard.drain.stop();
        }
        for shard in self.owned.values() {
            shard.drain.finished().await;
        }
    }

    /// How many shards this process is to have.
    async fn share(&self) -> Result<usize, Error> {
        let view = self.store.lease(self.member.resource()).await?;
        let members: Vec<_> = view.into_iter().flat_map(|view| view.holders).collect();
        // Its own place is not there if its session is over: then nothing is its share.
        let Some(place) = members.iter().position(|member| member.session == self.session.id()) else {
            return Ok(0);
        };
        let (shards, members) = (self.shards as usize, members.len());
        Ok(shards / members + usize::from(place < shards % members))
    }

    /// Lets go of what was lost, once nothing acts under it any more: to drop a lease says so, and an owner after this one may wait for
    /// that word.
    fn forget_lost(&mut self) -> Vec<u32> {
        for shard in self.owned.values_mut().filter(|shard| is_over(&shard.lease)) {
            shard.leaving = true;
            shard.drain.stop();
        }
        let over = |shard: &Shard| is_over(&shard.lease) && shard.drain.in_flight() == 0;
        let over = self.owned.iter().filter(|(_, shard)| over(shard));
        let lost: Vec<u32> = over.map(|(shard, _)| *shard).collect();
        self.owned.retain(|shard, _| !lost.contains(shard));
        lost
    }

    /// Lets no new work into the shards that are too many: those with the greatest numbers.
    fn stop_beyond(&mut self, share: usize) {
        for shard in self.owned.values_mut().skip(share) {
            shard.leaving = true;
            shard.drain.stop();
        }
    }

    async fn give_back_finished(&mut self) -> Result<Vec<u32>, Error> {
        let finished = self.owned.iter().filter(|(_, shard)| shard.leaving && shard.drain.in_flight() == 0);
        let finished: Vec<u32> = finished.map(|(shard, _)| *shard).collect();
        for shard in &finished {
            if let Some(shard) = self.owned.remove(shard) {
                shard.lease.release_drained().await?;
            }
        }
        Ok(finished)
    }

    async fn take_free(&mut self, share: usize) -> Result<Vec<u32>, Error> {
        let held = self.held_by_anybody().await?;
        let mut taken = Vec::new();
        for shard in 0..self.shards {
            if self.owned.len() >= share {
                break;
            }
            let name = format!("{}/{shard}", self.pool);
            if held.contains(&name) {
                continue;
            }
            match self.session.acquire(&name).await {
                Ok(lease) => {
                    self.owned.insert(shard, Shard { lease, drain: Drain::new(), leaving: false });
                    taken.push(shard);
                }
                // Another was faster: there are others.
                Err(Error::NotFree { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(taken)
    }

    /// The names that somebody holds: asking for those would be refused.
    async fn held_by_anybody(&self) -> Result<BTreeSet<String>, Error> {
        let mut held = BTreeSet::new();
        let mut after: Option<ResourceName> = None;
        loop {
            let (page, more) = self.store.leases(&format!("{}/", self.pool), after, PAGE).await?;
            after = page.last().map(|view| view.resource.clone());
            held.extend(page.iter().filter(|view| view.holding > 0).map(|view| view.resource.to_string()));
            if !more || after.is_none() {
                return Ok(held);
            }
        }
    }
}

fn is_over(lease: &Lease) -> bool {
    matches!(lease.state(), leasehold::LeaseState::Ended { .. })
}
