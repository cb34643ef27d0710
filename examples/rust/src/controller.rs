//! A controller with a warm standby: every replica is warm, one of them acts.
//!
//! A replica campaigns once it is ready. Whoever leads makes pass after pass over what it controls, each with the token of its term, and
//! stops when it is told to. Leadership that was lost does not end the process: it campaigns again.

use anyhow::Result;
use leasehold::{Election, Error, Leader, Leadership, Observer, Store};
use tokio::sync::watch;

/// A candidate that shows its address, and campaigns while `ready` says true.
///
/// # Errors
/// When the name or the address cannot be.
pub fn candidate(
    store: &Store,
    name: &str,
    address: &str,
    ready: watch::Receiver<bool>,
) -> Result<Election, Error> {
    store.election(name).value(address).when_ready(ready).build()
}

/// Makes pass after pass whenever this candidate leads, until the election is stopped. Says who
/// leads next, if the election was told to wait for that.
///
/// A pass is dropped at its next `await` when the leader is told to stop. So a pass must be fit to be made again, by another: what
/// has to be finished once begun is a case for [`replica`](crate::replica).
///
/// # Errors
/// When the service refuses for good, or the store is closed.
pub async fn control(election: &Election, pass: impl AsyncFn(&Leadership)) -> Result<Option<Leader>, Error> {
    let pass = &pass;
    election
        .lead(move |leadership| async move {
            loop {
                tokio::select! {
                    biased;
                    _why = leadership.cancelled() => return,
                    () = pass(&leadership) => {}
                }
            }
        })
        .await
}

/// Says who leads, whenever that changes. Ends when the store cannot be reached.
pub async fn narrate(observer: &mut Observer, tell: impl Fn(&str)) -> Error {
    loop {
        match observer.next().await {
            Ok(Some(leader)) => {
                let address = String::from_utf8_lossy(&leader.value);
                tell(&format!("{address} leads with token {}", leader.token));
            }
            Ok(None) => tell("nobody leads"),
            Err(error) => return error,
        }
    }
}
