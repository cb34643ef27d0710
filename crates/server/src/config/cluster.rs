//! Several nodes: who founds the cluster, and where this one is reached.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};

use leasehold_core::cluster::MAX_MEMBERS;
use leasehold_core::protocol::{MemberError, check_address, check_member_name};

use super::{Config, ConfigError};

/// Several nodes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ClusterConfig {
    /// The nodes that found a cluster together, by name, with their addresses. Only for a directory that is new.
    pub initial: BTreeMap<String, String>,
    /// Whether a directory that is new waits to be added to a cluster instead of founding one.
    pub join: bool,
    /// Where clients and the other nodes reach this one, if it is not where it listens.
    pub advertise: Option<String>,
}

/// Founders as they are written: `n1=host:port,n2=host:port`.
pub(super) fn initial_text(initial: &BTreeMap<String, String>) -> String {
    let nodes: Vec<String> = initial.iter().map(|(name, address)| format!("{name}={address}")).collect();
    nodes.join(",")
}

pub(super) fn initial(text: &str) -> Result<BTreeMap<String, String>, String> {
    let mut nodes = BTreeMap::new();
    for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        let Some((name, address)) = part.split_once('=') else {
            return Err(format!(
                "{part:?} is not name=host:port; write the nodes like n1=10.0.0.1:7420,n2=10.0.0.2:7420"
            ));
        };
        check_member_name(name).map_err(|error| error.to_string())?;
        check_address(address).map_err(|error| like_this(&error))?;
        if let Some(other) = nodes.iter().find_map(|(other, known)| (known == address).then_some(other)) {
            return Err(format!("{other} and {name} have the same address {address}"));
        }
        if nodes.insert(name.to_owned(), address.to_owned()).is_some() {
            return Err(format!("{name} is named twice"));
        }
    }
    if nodes.len() > MAX_MEMBERS {
        return Err(format!("{} nodes are more than the limit of {MAX_MEMBERS}", nodes.len()));
    }
    Ok(nodes)
}

pub(super) fn advertise(text: &str) -> Result<Option<String>, String> {
    if text.is_empty() {
        return Ok(None);
    }
    check_address(text).map_err(|error| like_this(&error))?;
    Ok(Some(text.to_owned()))
}

fn like_this(error: &MemberError) -> String {
    format!("{error}; write it like 10.0.0.1:7420 or db.example.org:7420")
}

impl Config {
    /// Where clients and other nodes reach this one, if it listens on `bound`.
    pub fn reached_at(&self, bound: SocketAddr) -> String {
        let named = self.cluster.advertise.clone();
        named
            .or_else(|| self.cluster.initial.get(self.name.as_str()).cloned())
            .unwrap_or_else(|| bound.to_string())
    }

    /// The store that clients name, if it listens on `bound`: all founders, or this node.
    pub fn store_url(&self, bound: SocketAddr) -> String {
        let mut nodes: Vec<String> = self.cluster.initial.values().cloned().collect();
        if nodes.is_empty() {
            // Nowhere in particular is this machine, for clients on it.
            let here = SocketAddr::from((Ipv4Addr::LOCALHOST, bound.port()));
            nodes.push(self.reached_at(if bound.ip().is_unspecified() { here } else { bound }));
        }
        format!("leasehold://{}", nodes.join(","))
    }

    pub(super) fn check_cluster(&self) -> Result<(), ConfigError> {
        let refused = |why: String| Err(ConfigError::Refused(why));
        let ClusterConfig { initial, join, advertise } = &self.cluster;
        if *join && !initial.is_empty() {
            return refused(
                "cluster.join is true and cluster.initial names nodes: a node either waits to be added to a cluster or founds one; \
                 leave one of them out"
                    .into(),
            );
        }
        if !initial.is_empty() && !initial.contains_key(self.name.as_str()) {
            let names: Vec<&str> = initial.keys().map(String::as_str).collect();
            return refused(format!(
                "name is {:?}, and cluster.initial names only {}; give this node one of these names with --name",
                self.name.as_str(),
                names.join(", ")
            ));
        }
        self.check_own_entry()?;
        let takes_part = *join || initial.len() > 1;
        let everywhere = self.listen.ip().is_unspecified();
        if takes_part && everywhere && advertise.is_none() && !initial.contains_key(self.name.as_str()) {
            return refused(format!(
                "listen of {} is every address of this machine, and the other nodes need one; name it with --advertise host:port",
                self.listen
            ));
        }
        if takes_part && self.listen.port() == 0 && advertise.is_none() {
            return refused(
                "listen has port 0, and the other nodes must know the port; choose one, or name it with --advertise".into(),
            );
        }
        Ok(())
    }

    /// The others look for a founder where the list says. One that listens elsewhere is found by nobody, or in its place another.
    fn check_own_entry(&self) -> Result<(), ConfigError> {
        let (name, listen) = (self.name.as_str(), self.listen);
        let Some(own) = self.cluster.initial.get(name) else { return Ok(()) };
        if let Some(advertise) = &self.cluster.advertise {
            if advertise == own {
                return Ok(());
            }
            return Err(ConfigError::Refused(format!(
                "cluster.advertise is {advertise}, and cluster.initial names {name} at {own}, where the others look for it; make them equal"
            )));
        }
        let differs = match own.parse::<SocketAddr>() {
            Ok(own) => own.ip().to_canonical() != listen.ip().to_canonical() || own.port() != listen.port(),
            // What a name leads to is not known here.
            Err(_) => own.rsplit_once(':').is_none_or(|(_, port)| port != listen.port().to_string()),
        };
        // Who listens on every address may be reached through a port of another number: containers do so.
        if differs && !listen.ip().is_unspecified() && listen.port() != 0 {
            return Err(ConfigError::Refused(format!(
                "listen is {listen}, but cluster.initial names {name} at {own}, where the others look for it; listen there, correct the list or the \
                 name, or, if {own} leads to {listen} all the same, say --advertise {own}"
            )));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(name: &str, nodes: &str, join: bool) -> Config {
        let mut config = Config::new("/data");
        config.name = super::super::ServiceName::new(name).unwrap();
        config.cluster = ClusterConfig { initial: initial(nodes).unwrap(), join, advertise: None };
        config
    }

    #[test]
    fn a_founder_listens_where_its_list_says() {
        let why = |listen: &str, own: &str, advertise: Option<&str>| {
            let mut config = config("n1", &format!("n1={own},n2=b:2"), false);
            (config.listen, config.insecure) = (listen.parse().unwrap(), true);
            config.cluster.advertise = advertise.map(str::to_owned);
            config.check().err().map(|error| error.to_string())
        };
        for (listen, own) in [
            ("10.0.0.1:7420", "10.0.0.1:7420"),
            ("[::ffff:10.0.0.1]:7420", "10.0.0.1:7420"),
            ("0.0.0.0:7420", "10.0.0.1:7420"),
            ("[::]:7420", "10.0.0.1:17420"),
            ("10.0.0.1:7420", "n1.example.org:7420"),
        ] {
            assert_eq!(why(listen, own, None), None, "{listen} {own}");
        }
        for (listen, own) in [
            ("127.4.20.2:7420", "127.4.20.1:7420"),
            ("10.0.0.1:7421", "10.0.0.1:7420"),
            ("127.0.0.1:7420", "10.0.0.1:7420"),
            ("10.0.0.1:7421", "n1.example.org:7420"),
        ] {
            let words = why(listen, own, None).unwrap();
            assert!(
                words.contains(listen) && words.contains(own) && words.contains("--advertise"),
                "{words}"
            );
            assert_eq!(why(listen, own, Some(own)), None, "{listen} {own}");
        }
        let words = why("10.0.0.1:7420", "10.0.0.1:7420", Some("10.0.0.9:7420")).unwrap();
        assert!(words.contains("10.0.0.9:7420") && words.contains("make them equal"), "{words}");
    }

    #[test]
    fn nodes_are_read_and_written() {
        let nodes = initial("n2=b:2, n1=a:1").unwrap();
        assert_eq!(initial_text(&nodes), "n1=a:1,n2=b:2");
        assert_eq!(initial("").unwrap().len(), 0);
    }

    #[test]
    fn nodes_that_cannot_be_are_refused_by_name() {
        for (text, word) in [
            ("n1", "n1"),
            ("n1=a", "\"a\""),
            ("n 1=a:1", "\"n 1\""),
            ("n1=a:1,n1=b:1", "twice"),
            ("n1=a:1,n2=a:1", "same address"),
        ] {
            let why = initial(text).unwrap_err();
            assert!(why.contains(word), "{why}");
        }
    }

    #[test]
    fn what_does_not_fit_together_is_refused_with_both() {
        let why = |config: &Config| config.check_cluster().unwrap_err().to_string();
        assert!(why(&config("n9", "n1=a:1,n2=b:2", false)).contains("n9"));
        assert!(why(&config("n1", "n1=a:1,n2=b:2", true)).contains("cluster.join"));
        let mut everywhere = config("n1", "", true);
        everywhere.listen = "0.0.0.0:7420".parse().unwrap();
        assert!(why(&everywhere).contains("--advertise"));
        assert_eq!(config("n1", "n1=a:7420,n2=b:2", false).check_cluster(), Ok(()));
    }

    #[test]
    fn a_node_is_reached_where_it_says_or_where_the_others_say_or_where_it_listens() {
        let bound = "127.0.0.1:5".parse().unwrap();
        let mut config = config("n1", "n1=a:1,n2=b:2", false);
        assert_eq!(config.reached_at(bound), "a:1");
        config.cluster.advertise = Some("c:3".into());
        assert_eq!(config.reached_at(bound), "c:3");
        config.cluster = ClusterConfig::default();
        assert_eq!(config.reached_at(bound), "127.0.0.1:5");
    }
}
