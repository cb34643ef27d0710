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

/// A scenario. What it shows is said where the command line lists it.
#[derive(Debug, Clone, Copy)]
pub struct Scenario {
    /// Its name.
    pub name: &'static str,
    /// Whether its short form belongs to `quick`.
    pub quick: bool,
    run: fn(&Options) -> Result<Report>,
}

const fn scenario(name: &'static str, quick: bool, run: fn(&Options) -> Result<Report>) -> Scenario {
    Scenario { name, quick, run }
}

/// All of them, in the order in which they are run.
pub const ALL: [Scenario; 15] = [
    scenario("calm", true, leader::calm),
    scenario("kill-leader", true, leader::kill),
    scenario("ttl-failover", true, ttl::failover),
    scenario("stop-leader", true, slow::stop),
    scenario("freeze-disk", false, slow::freeze),
    scenario("one-way", true, partitions::one_way),
    scenario("bridge", false, partitions::bridge),
    scenario("flap", false, partitions::flap),
    scenario("rolling", true, rolling::restart),
    scenario("replace-all", false, replace::replace_all),
    scenario("grow", false, members::grow),
    scenario("clocks", false, clocks::within),
    scenario("fast-clocks", false, clocks::beyond),
    scenario("damage", false, damage::damage),
    scenario("restore", false, restore::restore),
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
