//! Calls about the nodes.

use serde_json::json;

use super::{Answer, Call, Methods, ask, call, post};
use crate::http::openapi::fields;

pub(super) fn all() -> Vec<Call> {
    let (name, address) = (fields::member_name, fields::member_address);
    vec![
        Call {
            tag: "cluster",
            summary: "Looks at the nodes",
            description: "As the leader sees them; any node answers.",
            ..ask("/v1/cluster/status", "cluster-status", "Cluster")
        },
        Call {
            tag: "cluster",
            summary: "Looks at the nodes as this one knows them",
            description: "Answered also when nobody leads. What it says may be old, and others may know more.",
            ..ask("/v1/cluster/local", "cluster-local", "LocalCluster")
        },
        Call {
            tag: "cluster",
            summary: "Adds a blank node as a learner",
            description: "The node that listens at the address is asked who it is first: it must have been started with `serve --join` and that name.",
            fields: vec![name("What it is called."), address()],
            example: json!({ "name": "n4", "address": "10.0.0.4:7420" }),
            codes: &[
                "node-unreachable",
                "wrong-node",
                "node-not-blank",
                "address-differs",
                "member-taken",
                "was-removed",
                "too-many-members",
                "change-under-way",
            ],
            ..post("/v1/cluster/add", "cluster-add", "Changed")
        },
        Call {
            tag: "cluster",
            summary: "Makes a learner that has caught up a voter",
            fields: vec![name("Which one.")],
            example: json!({ "name": "n4" }),
            codes: &["no-such-member", "not-caught-up", "is-voter", "change-under-way"],
            ..post("/v1/cluster/promote", "cluster-promote", "Changed")
        },
        Call {
            tag: "cluster",
            summary: "Removes a node for ever",
            description: "A leader hands over first and answers `handing-over`: ask again. Its directory is of no use to this cluster afterwards.",
            fields: vec![name("Which one.")],
            example: json!({ "name": "n1" }),
            codes: &[
                "no-such-member",
                "last-voter",
                "no-majority-left",
                "handing-over",
                "nobody-to-take-over",
                "change-under-way",
            ],
            ..post("/v1/cluster/remove", "cluster-remove", "Changed")
        },
        Call {
            tag: "cluster",
            summary: "Hands leadership over",
            description: "To the voter that is furthest, if nobody is named.",
            fields: vec![fields::successor()],
            example: json!({ "to": "n2" }),
            codes: &["no-such-member", "is-learner", "nobody-to-take-over"],
            ..post("/v1/cluster/transfer", "cluster-transfer", "Transferred")
        },
        Call {
            tag: "cluster",
            summary: "The state of this node as a backup",
            description: "Refused while the node cannot know that it has everything, unless `age` is `any`. The header `x-checksum-crc32c` has the CRC-32C of the body in hexadecimal digits. The file holds the keys of sessions.",
            fields: vec![fields::age()],
            ..call("/v1/backup", "backup", Methods::Get, Answer::Text("application/octet-stream"))
        },
    ]
}
