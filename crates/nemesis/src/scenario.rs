//! Scenarios: each breaks one kind of thing, again and again, under load.

mod clocks;
mod damage;
mod leader;
mod members;
mod partitions;
mod replace;
mod restore;
mod rolling;
mod slow;
mod ttl;

use anyhow::{Result, bail};

use crate::report::Report;
use crate::stage::Options;

/// A scenario.
#[derive(Debug, Clone, Copy)]
pub struct Scenario {
    /// Its name.
    pub name: &'static str,
    /// What it shows.
    pub about: &'static str,
    /// Whether its short form belongs to `quick`.
    pub quick: bool,
    run: fn(&Options) -> Result<Report>,
}

const fn scenario(
    name: &'static str,
    about: &'static str,
    quick: bool,
    run: fn(&Options) -> Result<Report>,
) -> Scenario {
    Scenario { name, about, quick, run }
}

/// All of them.
pub const ALL: [Scenario; 15] = [
    scenario("calm", "nothing is broken: the harness itself, on one node", true, leader::calm),
    scenario("kill-leader", "kill -9 of the leader, again and again", true, leader::kill),
    scenario(
        "ttl-failover",
        "a dead holder's lease ends although leaders die all the time",
        true,
        ttl::failover,
    ),
    scenario("stop-leader", "the leader stands still for three ttls, and goes on", true, slow::stop),
    scenario("freeze-disk", "the leader's disk stands still for four ttls", false, slow::freeze),
    scenario("one-way", "nothing that one node sends to another arrives", true, partitions::one_way),
    scenario(
        "bridge",
        "two nodes do not reach each other, and both reach the third",
        false,
        partitions::bridge,
    ),
    scenario("flap", "links break and heal faster than anybody can settle", false, partitions::flap),
    scenario(
        "rolling",
        "every node is restarted by SIGTERM under a thousand leases that come and go",
        true,
        rolling::restart,
    ),
    scenario(
        "replace-all",
        "every node is replaced, and the old ones come back from their old directories",
        false,
        replace::replace_all,
    ),
    scenario("grow", "one node becomes three, and is killed at every step", false, members::grow),
    scenario(
        "clocks",
        "times of day that jump, clocks that are ahead, rates within the bound",
        false,
        clocks::within,
    ),
    scenario("fast-clocks", "clocks of the service that run five percent too fast", false, clocks::beyond),
    scenario(
        "damage",
        "nodes are damaged in different ways, one by one and all at once",
        false,
        damage::damage,
    ),
    scenario(
        "restore",
        "a backup is restored after ten thousand grants, and then once more",
        false,
        restore::restore,
    ),
];

impl Scenario {
    /// Runs it.
    ///
    /// # Errors
    /// When it cannot be run to its end. What it found is in the report.
    pub fn run(&self, options: &Options) -> Result<Report> {
        (self.run)(options)
    }
}

/// The scenarios with this name: one of them, or `all`, or `quick`.
///
/// # Errors
/// When there is none.
pub fn named(name: &str) -> Result<Vec<Scenario>> {
    let found: Vec<Scenario> = ALL
        .into_iter()
        .filter(|scenario| match name {
            "all" => true,
            "quick" => scenario.quick,
            _ => scenario.name == name,
        })
        .collect();
    if found.is_empty() {
        let names: Vec<&str> = ALL.iter().map(|scenario| scenario.name).collect();
        bail!("there is no scenario {name:?}; there are {}, all and quick", names.join(", "));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scenarios_are_found_by_name() {
        assert_eq!(named("all").unwrap().len(), ALL.len());
        assert!(named("quick").unwrap().len() < ALL.len());
        for scenario in ALL {
            assert_eq!(named(scenario.name).unwrap().len(), 1, "{}", scenario.name);
        }
        assert!(named("other").unwrap_err().to_string().contains("kill-leader"));
    }
}
