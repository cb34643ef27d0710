//! Holders whose list does not name all nodes, or none of those that are left: they go on with what they have learned.

use super::stage::{Running, Stage, eventually, take};

/// As short as a ttl may be beside an election.
const TTL: &str = "3s";

/// Begins to hold a name; gives its token too.
fn hold(stage: &Stage, count: usize, name: &str) -> (Running, String) {
    let mut holder = stage.begin(count, &["hold", name, "--ttl", TTL]);
    let granted = holder.line();
    let token = granted.strip_prefix(&format!("granted {name} token ")).expect(&granted).to_owned();
    (holder, token)
}

/// Waits until a lease whose holder dies now has expired: one of the same length that was not renewed since has expired too.
fn outlive_a_ttl(stage: &Stage, count: usize) {
    let (dies, token) = hold(stage, count, "control");
    let is_held = || stage.say(count, &["get", "control", "--json"]).out.contains(&format!("\"{token}\""));
    assert!(is_held());
    drop(dies);
    eventually("the lease of a dead holder expires", || (!is_held()).then_some(()));
}

/// Its lease was never in doubt, and still is the same.
fn is_still_held(stage: &Stage, count: usize, name: &str, holder: Running, token: &str) {
    let said = stage.good(count, &["get", name, "--json"]);
    assert!(said.contains(&format!("\"token\":\"{token}\"")), "{said}");
    let told = holder.stop();
    let only = |line: &String| line.starts_with("retrying") || line.starts_with("held");
    assert_eq!(told.last().unwrap(), &format!("released {name} token {token}"));
    assert!(told[..told.len() - 1].iter().all(only), "{told:?}");
}

#[test]
fn a_holder_that_names_one_node_outlives_it() {
    for leads in ["n1", "n2"] {
        let stage = Stage::new();
        let mut nodes = stage.three();
        stage.transfer(3, leads);
        let (holder, token) = hold(&stage, 1, "kept");
        // Renewed at least once, which says that the members were asked for before.
        outlive_a_ttl(&stage, 3);
        take(&mut nodes, "n1").kill();
        outlive_a_ttl(&stage, 3);
        is_still_held(&stage, 3, "kept", holder, &token);
    }
}

#[test]
fn a_holder_stays_when_all_nodes_of_its_list_were_replaced() {
    let stage = Stage::new();
    let mut nodes = stage.three();
    let (holder, token) = hold(&stage, 3, "kept");
    for (old, new) in [("n1", 4), ("n2", 5), ("n3", 6)] {
        let node = stage.start(new, &["--join"]);
        node.says("listening on");
        let named = format!("n{new}={}", stage.address(new));
        stage.good(new, &["cluster", "add", &named, "--promote"]);
        stage.good(new, &["cluster", "remove", old]);
        let (_, log) = take(&mut nodes, old).end();
        assert!(log.contains("was removed from its cluster"), "{log}");
        nodes.push(node);
        // Twice this is longer than clients take to learn of it.
        outlive_a_ttl(&stage, new);
    }
    // Whoever led last was named by a node of the list; of those that are left none was.
    let leader = stage.leader(6);
    take(&mut nodes, &leader).kill();
    outlive_a_ttl(&stage, 6);
    is_still_held(&stage, 6, "kept", holder, &token);
}
