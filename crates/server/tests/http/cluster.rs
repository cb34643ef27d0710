//! The nodes, as one that stands alone tells of them, and its backup.

use serde_json::json;

use super::stage::Stage;

#[test]
fn a_node_that_stands_alone_is_a_cluster_of_one() {
    let stage = Stage::new();
    let status = stage.get("/v1/cluster/status").good();
    assert_eq!((&status["epoch"], &status["leader"]), (&json!(0), &json!("leasehold")));
    let member = &status["members"][0];
    assert_eq!((&member["role"], &member["leader"]), (&json!("voter"), &json!(true)));
    assert_eq!(member["address"], stage.address.to_string());
    assert_eq!(stage.post("/v1/cluster/status", &json!({})).good()["members"], status["members"]);
}

#[test]
fn changes_that_cannot_be_are_refused_with_their_codes() {
    let stage = Stage::new();
    let post = |what: &str, body| stage.post(&format!("/v1/cluster/{what}"), &body);
    let name = json!({ "name": "leasehold" });
    let details = post("remove", name.clone()).fault(409, "last-voter", "refused");
    assert_eq!(details, name);
    post("promote", name).fault(409, "is-voter", "refused");
    post("remove", json!({ "name": "n9" })).fault(409, "no-such-member", "refused");
    post("transfer", json!({})).fault(409, "nobody-to-take-over", "refused");
    let nobody = json!({ "name": "n2", "address": "127.0.0.1:1" });
    let details = post("add", nobody).fault(409, "node-unreachable", "failed");
    assert_eq!(details, json!({ "address": "127.0.0.1:1" }));
    let other = json!({ "name": "n2", "address": stage.address.to_string() });
    let details = post("add", other).fault(409, "wrong-node", "refused");
    assert_eq!(details["found"], "leasehold");
    for (body, field) in [
        (json!({ "name": "n 2", "address": "a:1" }), "name"),
        (json!({ "name": "n2", "address": "a" }), "address"),
    ] {
        assert_eq!(post("add", body).fault(400, "bad-field", "failed"), json!({ "field": field }));
    }
}

#[test]
fn a_node_of_another_cluster_is_not_added() {
    let (stage, other) = (Stage::new(), Stage::new());
    let body = json!({ "name": "leasehold", "address": other.address.to_string() });
    let details = stage.post("/v1/cluster/add", &body).fault(409, "node-not-blank", "refused");
    assert_eq!(details, body);
}

#[test]
fn a_backup_is_whole_and_says_so() {
    let stage = Stage::new();
    let key = stage.open("x");
    stage.take(&key, "job");
    let reply = stage.get("/v1/backup");
    assert_eq!(reply.status, 200);
    assert_eq!(reply.header("content-length").unwrap(), reply.body.len().to_string());
    let checksum = format!("{:08x}", crc32c::crc32c(&reply.body));
    assert_eq!(reply.header("x-checksum-crc32c").unwrap(), checksum);
    let directory = tempfile::tempdir().unwrap();
    let saved = leasehold_host::save_backup(&directory.path().join("backup"), &reply.body).unwrap();
    let status = stage.get("/v1/cluster/status").good();
    assert_eq!(status["incarnation"], saved.incarnation.to_string());
    let committed: u64 = status["committed"].as_str().unwrap().parse().unwrap();
    assert!(saved.snapshot.index > 1 && saved.snapshot.index <= committed);
}
