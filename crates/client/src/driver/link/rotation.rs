//! Which of several addresses is tried next.

use super::address::HostPort;

/// The addresses, in a circle. They are not empty.
#[derive(Debug, Clone)]
pub(super) struct Rotation {
    hosts: Vec<HostPort>,
    at: usize,
}

impl Rotation {
    /// `draw` is random, so that not all clients begin with the same address.
    pub(super) fn new(hosts: Vec<HostPort>, draw: u32) -> Self {
        let count = u32::try_from(hosts.len()).unwrap_or(u32::MAX).max(1);
        Self { hosts, at: (draw % count) as usize }
    }

    pub(super) fn current(&self) -> &HostPort {
        &self.hosts[self.at]
    }

    pub(super) fn next(&mut self) {
        self.at = (self.at + 1) % self.hosts.len();
    }

    /// Begins the next time with this address, if it is one of them.
    pub(super) fn stay_with(&mut self, host: &HostPort) {
        if let Some(at) = self.hosts.iter().position(|known| known == host) {
            self.at = at;
        }
    }

    pub(super) fn count(&self) -> usize {
        self.hosts.len()
    }

    pub(super) fn hosts(&self) -> &[HostPort] {
        &self.hosts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(host: &str) -> HostPort {
        HostPort { host: host.into(), port: 1 }
    }

    fn hosts() -> Vec<HostPort> {
        ["a", "b", "c"].map(host).to_vec()
    }

    #[test]
    fn every_host_is_the_first_for_somebody() {
        let first = |draw| Rotation::new(hosts(), draw).current().host.clone();
        assert_eq!([0, 1, 2, 3, u32::MAX].map(first), ["a", "b", "c", "a", "a"]);
    }

    #[test]
    fn a_host_that_failed_is_tried_again_after_all_others() {
        let mut rotation = Rotation::new(hosts(), 1);
        let mut tried = Vec::new();
        for _ in 0..4 {
            tried.push(rotation.current().host.clone());
            rotation.next();
        }
        assert_eq!(tried, ["b", "c", "a", "b"]);
    }

    #[test]
    fn one_that_is_not_in_the_list_does_not_change_the_order() {
        let mut rotation = Rotation::new(hosts(), 1);
        rotation.stay_with(&host("z"));
        assert_eq!(rotation.current().host, "b");
        rotation.stay_with(&host("a"));
        assert_eq!(rotation.current().host, "a");
    }
}
