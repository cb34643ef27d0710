//! Asks who holds what, again and again.

use std::time::Duration;

use leasehold::{ConnectOptions, ResourceName, Store};

use super::Life;
use crate::history::{At, Event, Now};
use crate::random::Random;

/// Between two looks.
const PAUSE: Duration = Duration::from_millis(20);

/// Looks until it is over.
pub(super) async fn look(life: Life, names: usize, mut random: Random) {
    while !life.is_over() {
        let options = ConnectOptions::new().patience(Duration::from_secs(5));
        let Ok(store) = Store::connect_with(&life.url, options).await else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        while !life.is_over() {
            let name = super::name(random.below(names));
            let resource = ResourceName::new(&name).expect("a name of the workload is a good one");
            let asked = At::now();
            // A look that fails says nothing.
            let Ok(view) = store.lease(&resource).await else { break };
            let token = view.and_then(|view| view.holders.first().map(|holder| holder.token));
            life.recorder.record(Event::Looked { asked, resource: name.into(), token });
            tokio::time::sleep(PAUSE).await;
        }
        store.close().await;
    }
}
