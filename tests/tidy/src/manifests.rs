//! Packages: which may know which, and that all keep the same lints.
//!
//! Crates are split by kind of impurity, and dependencies point inwards: the core knows nobody, what is pure knows the core, drivers
//! know what they drive.

use toml::{Table, Value};

use crate::{Complaint, Tree};

/// A package, and the packages of the workspace that it may depend on, always or behind one of its features.
struct Place {
    package: &'static str,
    always: &'static [&'static str],
    behind: &'static [(&'static str, &'static str)],
}

const fn place(package: &'static str, always: &'static [&'static str]) -> Place {
    Place { package, always, behind: &[] }
}

const CORE: &str = "leasehold-core";
const API: &str = "leasehold-api";
const ARGS: &str = "leasehold-args";
const CLOCK: &str = "leasehold-clock";
const WAL: &str = "leasehold-wal";
const WIRE: &str = "leasehold-wire";
const ORACLE: &str = "leasehold-oracle";
const NODE: &str = "leasehold-node";
const HOST: &str = "leasehold-host";
const SERVER: &str = "leasehold-server";
const CLIENT: &str = "leasehold";
const FENCE: &str = "leasehold-fence";
const SIM: &str = "leasehold-sim";
const HISTORY: &str = "leasehold-history";

/// From the inside out.
const PLACES: &[Place] = &[
    place(CORE, &[]),
    place(ORACLE, &[CORE]),
    place(API, &[CORE]),
    place(ARGS, &[]),
    place(CLOCK, &[CORE]),
    place(WAL, &[CORE]),
    place(WIRE, &[CORE]),
    place(FENCE, &[]),
    place("leasehold-fence-cassandra", &[FENCE]),
    place("leasehold-fence-dynamodb", &[FENCE]),
    place("leasehold-fence-kafka", &[FENCE]),
    place(NODE, &[CORE]),
    place(HOST, &[CORE, CLOCK, WAL, WIRE, NODE]),
    place(SERVER, &[CORE, API, CLOCK, NODE, HOST, WIRE]),
    Place {
        package: CLIENT,
        always: &[CORE, CLOCK, WIRE, FENCE],
        behind: &[(HOST, "embedded"), (NODE, "testing")],
    },
    place(SIM, &[ARGS, CORE, ORACLE, CLOCK, WAL, WIRE, NODE]),
    place(HISTORY, &[CORE]),
    place("leasehold-cli", &[CORE, API, CLOCK, WAL, WIRE, NODE, HOST, SERVER, CLIENT, FENCE, SIM, HISTORY]),
    place("leasehold-bench", &[CORE, CLOCK, WAL, WIRE, NODE, HOST, SERVER, CLIENT, FENCE]),
    place("leasehold-nemesis", &[ARGS, CLOCK, CLIENT, HISTORY]),
    place("leasehold-model", &[]),
    place("leasehold-examples", &[CLOCK, CLIENT]),
    place("leasehold-object-writer", &[CLIENT, FENCE]),
    place("leasehold-settlement", &[CLIENT, FENCE]),
    place("leasehold-fuzz", &[CORE, API, CLOCK, WAL, WIRE, NODE, HOST, SERVER, CLIENT, HISTORY]),
    place("leasehold-kit", &[CLOCK]),
    place("leasehold-tidy", &[]),
    place("xtask", &[ARGS]),
];

/// Dependencies that point outwards. Tests may depend on whatever they like.
pub fn check_dependencies(tree: &Tree) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    for (path, manifest) in packages(tree, &mut complaints) {
        let name = package_name(&manifest);
        let Some(place) = PLACES.iter().find(|place| place.package == name) else {
            complaints.push(format!("{path}: package {name} has no place in the order of the packages"));
            continue;
        };
        for (dependency, optional) in own_dependencies(&manifest) {
            let behind = place.behind.iter().find(|(package, _)| *package == dependency);
            match behind {
                _ if place.always.contains(&dependency.as_str()) => {}
                None => complaints.push(format!("{path}: {name} must not know {dependency}")),
                Some((_, feature)) => {
                    if !optional || features_with(&manifest, &dependency) != [*feature] {
                        let why = format!("{name} may know {dependency} behind its feature {feature} only");
                        complaints.push(format!("{path}: {why}"));
                    }
                }
            }
        }
    }
    complaints
}

/// Packages that do not take their lints from the workspace.
pub fn check_lints(tree: &Tree) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    for (path, manifest) in packages(tree, &mut complaints) {
        let lints = manifest.get("lints").and_then(|lints| lints.get("workspace"));
        if lints.and_then(Value::as_bool) != Some(true) {
            complaints.push(format!("{path}: [lints] workspace = true is missing"));
        }
    }
    complaints
}

fn packages(tree: &Tree, complaints: &mut Vec<Complaint>) -> Vec<(String, Table)> {
    let mut packages = Vec::new();
    for file in tree.ending("/Cargo.toml") {
        match file.text.parse::<Table>() {
            Ok(manifest) => packages.push((file.path.clone(), manifest)),
            Err(error) => complaints.push(format!("{}: {error}", file.path)),
        }
    }
    packages
}

fn package_name(manifest: &Table) -> String {
    let name = manifest.get("package").and_then(|package| package.get("name"));
    name.and_then(Value::as_str).unwrap_or("without a name").to_owned()
}

/// Dependencies on packages of the workspace, and whether each is optional.
fn own_dependencies(manifest: &Table) -> Vec<(String, bool)> {
    let targets = manifest.get("target").and_then(Value::as_table);
    let targets = targets.into_iter().flat_map(Table::values).filter_map(Value::as_table);
    let sections = std::iter::once(manifest).chain(targets).flat_map(|table| {
        ["dependencies", "build-dependencies"].into_iter().filter_map(|kind| table.get(kind)?.as_table())
    });
    let dependencies = sections.flatten().map(|(name, how)| {
        let package = how.get("package").and_then(Value::as_str).unwrap_or(name);
        (package.to_owned(), how.get("optional").and_then(Value::as_bool).unwrap_or(false))
    });
    dependencies.filter(|(name, _)| name == CLIENT || name.starts_with("leasehold-")).collect()
}

/// Features that switch on an optional dependency.
fn features_with(manifest: &Table, dependency: &str) -> Vec<String> {
    let switch = format!("dep:{dependency}");
    let features = manifest.get("features").and_then(Value::as_table);
    let features = features.into_iter().flatten().filter(|(_, with)| {
        with.as_array().is_some_and(|with| with.iter().any(|with| with.as_str() == Some(&switch)))
    });
    features.map(|(name, _)| name.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(package: &str, rest: &str) -> Vec<Complaint> {
        let text = format!("[package]\nname = \"{package}\"\n{rest}");
        check_dependencies(&Tree::of(&[("crates/x/Cargo.toml", text.as_str())]))
    }

    #[test]
    fn a_dependency_that_points_outwards_is_found() {
        assert_eq!(found(CORE, "[dependencies]\nleasehold-node.workspace = true\n").len(), 1);
        assert_eq!(found(NODE, "[build-dependencies]\nleasehold-wal = { path = \"..\" }\n").len(), 1);
        assert_eq!(found(SIM, "[target.'cfg(unix)'.dependencies]\nleasehold-host = \"1\"\n").len(), 1);
        assert_eq!(found(HOST, "[dependencies]\nx = { package = \"leasehold-sim\" }\n").len(), 1);
    }

    #[test]
    fn a_dependency_that_points_inwards_is_good() {
        assert!(found(HOST, "[dependencies]\nleasehold-node.workspace = true\nserde = \"1\"\n").is_empty());
        assert!(found(CORE, "[dev-dependencies]\nleasehold-node.workspace = true\n").is_empty());
    }

    #[test]
    fn a_dependency_behind_a_feature_must_be_behind_that_feature() {
        let optional = "[dependencies]\nleasehold-host = { workspace = true, optional = true }\n";
        let always = "[dependencies]\nleasehold-host.workspace = true\n";
        let feature = |name: &str| format!("[features]\n{name} = [\"dep:leasehold-host\"]\n");
        assert!(found(CLIENT, &format!("{optional}{}", feature("embedded"))).is_empty());
        assert_eq!(found(CLIENT, &format!("{optional}{}", feature("testing"))).len(), 1);
        assert_eq!(found(CLIENT, &format!("{always}{}", feature("embedded"))).len(), 1);
    }

    #[test]
    fn a_package_without_a_place_is_found() {
        assert_eq!(found("leasehold-util", "").len(), 1);
    }

    #[test]
    fn a_package_without_the_lints_of_the_workspace_is_found() {
        let found = |lints: &str| {
            let text = format!("[package]\nname = \"x\"\n{lints}");
            check_lints(&Tree::of(&[("crates/x/Cargo.toml", text.as_str())])).len()
        };
        assert_eq!(found(""), 1);
        assert_eq!(found("[lints]\nworkspace = false\n"), 1);
        assert_eq!(found("[lints]\nworkspace = true\n"), 0);
    }
}
