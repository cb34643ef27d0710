//! Links of a client that can be cut off from the service, for longer than its ttl: its lease expires, and whoever waits gets it
//! while the old holder still looks at its clock.

use std::time::Duration;

use anyhow::Result;

use crate::proxy::{Direction, Mood, Proxy};

/// The links of one client.
#[derive(Debug)]
pub(super) struct Links {
    proxies: Vec<Proxy>,
}

impl Links {
    /// One to each node of a store.
    pub(super) async fn to(url: &str) -> Result<Self> {
        let nodes = url.trim_start_matches("leasehold://").split(',');
        let mut proxies = Vec::new();
        for node in nodes {
            proxies.push(Proxy::to(node.to_owned()).await?);
        }
        Ok(Self { proxies })
    }

    /// The address of the store through them.
    pub(super) fn url(&self) -> String {
        let all: Vec<String> = self.proxies.iter().map(|proxy| proxy.address().to_string()).collect();
        format!("leasehold://{}", all.join(","))
    }

    /// Nothing arrives any more; or only answers do not: then the service hears renewals whose answers are lost.
    pub(super) fn strand(&self, only_answers: bool) {
        self.set(Direction::ToClients, Mood::Swallow);
        if !only_answers {
            self.set(Direction::ToNode, Mood::Swallow);
        }
    }

    /// New connections are good. What was swallowed is missing in the middle of the old ones, so they end.
    pub(super) async fn mend(&self) {
        for mood in [Mood::Cut, Mood::Pass(Duration::ZERO)] {
            self.set(Direction::ToClients, mood);
            self.set(Direction::ToNode, mood);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    fn set(&self, direction: Direction, mood: Mood) {
        for proxy in &self.proxies {
            proxy.set(direction, mood);
        }
    }
}
