//! A cluster is found together, or grown from one node, and goes on after all of it was stopped.

use super::stage::{Stage, roles, take};

#[test]
fn three_nodes_found_a_cluster_and_each_of_them_answers() {
    let stage = Stage::new();
    let nodes = stage.three();
    let mut last = 0;
    for node in &nodes {
        let said = stage.good_at(node, &["run", "job", "--", "sh", "-c", "echo $LEASEHOLD_TOKEN"]);
        let token: u64 = said.trim().parse().unwrap();
        assert!(token > last, "{token} comes after {last}");
        last = token;
        let said = stage.good_at(node, &["history", "job", "--json"]);
        assert!(
            said.contains(&format!("\"token\":\"{token}\"")),
            "{} does not know {token}: {said}",
            node.name
        );
    }
    let status = stage.status(3);
    let voter = |name: &str| (name.to_owned(), "voter".to_owned());
    assert_eq!(roles(&status), [voter("n1"), voter("n2"), voter("n3")]);
    let leaders = status["members"].as_array().unwrap().iter().filter(|member| member["leader"] == true);
    assert_eq!(leaders.map(|member| member["name"].clone()).collect::<Vec<_>>(), [status["leader"].clone()]);
    let table = stage.good(3, &["cluster", "status"]);
    let lines: Vec<&str> = table.lines().collect();
    let head = format!("led by {}", status["leader"].as_str().unwrap());
    assert!(lines[0].starts_with("cluster ") && lines[0].ends_with(&head), "{table}");
    assert_eq!(lines[1], "NAME  ROLE  LEADS  ADDRESS  REACHABLE  BEHIND  SNAPSHOT");
    assert_eq!(lines.len(), 5, "{table}");
    for (line, node) in lines[2..].iter().zip(&nodes) {
        assert!(line.starts_with(&format!("{}  voter  ", node.name)), "{line}");
        assert!(line.contains(&format!("  {}  yes  ", node.address)), "{line}");
    }
}

#[test]
fn one_node_grows_to_three_in_place_and_tokens_go_on() {
    let stage = Stage::new();
    let _first = stage.start(1, &[]);
    let before = stage.token(1, "job");
    let mut holder = stage.begin(1, &["hold", "kept"]);
    let granted = holder.line();
    assert!(granted.starts_with("granted kept token "), "{granted}");
    let _others = [2, 3].map(|number| {
        let node = stage.start(number, &["--join"]);
        let new = format!("n{number}={}", stage.address(number));
        let said = {
            // It may not listen yet, and is then said not to be reached.
            super::stage::eventually("the node is added", || {
                let said = stage.say(1, &["cluster", "add", &new, "--promote"]);
                assert!(said.code == Some(0) || said.err.contains("serve --join"), "{said:?}");
                (said.code == Some(0)).then_some(said.out)
            })
        };
        assert!(said.starts_with(&format!("n{number} is a voter from revision ")), "{said}");
        node
    });
    let voter = |name: &str| (name.to_owned(), "voter".to_owned());
    assert_eq!(roles(&stage.status(3)), [voter("n1"), voter("n2"), voter("n3")]);
    assert!(stage.token(3, "job") > before);
    // Its own node is still there, but now two of three decide: the first one may go.
    let token = granted.rsplit(' ').next().unwrap();
    assert!(stage.good(3, &["get", "kept", "--json"]).contains(&format!("\"token\":\"{token}\"")));
    assert_eq!(holder.stop(), [format!("released kept token {token}")]);
}

#[test]
fn all_nodes_stopped_and_started_again_go_on_where_they_were() {
    let stage = Stage::new();
    let mut nodes = stage.three();
    let before = stage.token(3, "job");
    let revision = stage.status(3)["committed"].as_str().unwrap().parse::<u64>().unwrap();
    let incarnation = stage.status(3)["incarnation"].clone();
    // Two at once, of whom one may lead: neither waits for a successor for ever.
    take(&mut nodes, "n1").stop();
    nodes.drain(..).for_each(super::stage::Node::kill);
    // Directories know who they belong to: no list is needed, and one would not matter.
    let _again = [1, 2, 3].map(|number| stage.start(number, &["--join"]));
    let status = stage.status(3);
    assert_eq!(status["incarnation"], incarnation);
    assert!(status["committed"].as_str().unwrap().parse::<u64>().unwrap() > revision);
    assert!(stage.token(3, "job") > before);
}
