//! A session with very many leases, each of which comes and goes.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use leasehold::{LeaseState, Session, SessionOptions};
use tokio::task::JoinSet;

use super::Life;
use super::client::{Client, Open, is_over};
use crate::history::ClientId;
use crate::random::Random;

/// How long a lease is held.
const HOLD: Range<Duration> = Duration::from_millis(500)..Duration::from_millis(1500);
/// How long it is away.
const AWAY: Range<Duration> = Duration::from_millis(1)..Duration::from_millis(200);
/// How long an acquire may wait; nobody else wants the name.
const WAIT: Duration = Duration::from_secs(10);

/// Takes and gives back a lease for each id on one session, until it is over. A session that ended is replaced.
pub(super) async fn churn(
    ids: impl Iterator<Item = ClientId>,
    life: Life,
    options: SessionOptions,
    mut random: Random,
) {
    let mut members: Vec<Member> = ids
        .map(|id| {
            let client = Client::new(id, life.clone(), options.clone(), random.split());
            Member { id, client, life: life.clone(), random: random.split() }
        })
        .collect();
    while !life.is_over() {
        let Some(first) = members.first() else { return };
        let Some(Open { store, session }) = first.client.open().await else { return };
        let session = Arc::new(session);
        let mut tasks = JoinSet::new();
        for member in members.drain(..) {
            tasks.spawn(member.churn(Arc::clone(&session)));
        }
        members = tasks.join_all().await;
        let closing = async {
            if let Ok(session) = Arc::try_unwrap(session).map_err(drop) {
                let _ = session.close().await;
            }
            store.close().await;
        };
        let _ = tokio::time::timeout(Duration::from_secs(2), closing).await;
    }
}

/// One lease of a crowd.
struct Member {
    id: ClientId,
    client: Client,
    life: Life,
    random: Random,
}

impl Member {
    /// Until it is over, or nothing can be done with the session any more.
    async fn churn(mut self, session: Arc<Session>) -> Self {
        let resource = format!("crowd/{}", self.id.0);
        while !self.life.is_over() {
            let lease = match self.client.acquire(&session, &resource, WAIT, false).await {
                Ok(lease) => lease,
                Err(error) if is_over(&error) => break,
                Err(_) => {
                    tokio::time::sleep(AWAY.start).await;
                    continue;
                }
            };
            let hold = self.random.between(&HOLD);
            if let Ok(LeaseState::Ended { why, .. }) = tokio::time::timeout(hold, lease.ended()).await {
                self.client.lost(&lease, &why);
                continue;
            }
            if self.client.release(lease).await.is_err_and(|error| is_over(&error)) {
                break;
            }
            tokio::time::sleep(self.random.between(&AWAY)).await;
        }
        self
    }
}
