//! The OpenAPI document against the types that it is written from, and its paths against the service.

use std::collections::BTreeSet;

use leasehold_api::call::{CALLS, Method};

use super::stage::Stage;

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/openapi.json");

/// `LEASEHOLD_OPENAPI=write` writes it anew.
#[test]
fn the_document_is_that_of_the_types() {
    let text = serde_json::to_string_pretty(&leasehold_api::openapi::document()).unwrap() + "\n";
    if std::env::var_os("LEASEHOLD_OPENAPI").is_some_and(|word| word == "write") {
        std::fs::write(FILE, &text).unwrap();
    }
    let kept = std::fs::read_to_string(FILE).unwrap();
    assert!(text == kept, "{FILE} is old; LEASEHOLD_OPENAPI=write writes it anew");
}

#[test]
fn every_call_of_the_table_is_answered() {
    let stage = Stage::new();
    for call in CALLS.iter().filter(|call| !["watch", "backup"].contains(&call.name)) {
        let (path, method) = (call.path.replace("{session}", "1"), call.method == Method::Get);
        let reply = stage.connect().ask(if method { "GET" } else { "POST" }, &path, &[], b"");
        assert!(![404, 405].contains(&reply.status), "{}: {reply:?}", call.name);
    }
}

/// A page of another origin may send a POST without a body and without a type.
#[test]
fn no_post_acts_without_a_content_type() {
    let stage = Stage::new();
    let key = stage.open("x");
    let (session, header) = (key.split('-').next().unwrap(), format!("Leasehold-Session: {key}"));
    for call in CALLS.iter().filter(|call| call.method == Method::Post) {
        let path = call.path.replace("{session}", session);
        let headers = if call.session { &[header.as_str()][..] } else { &[] };
        stage.connect().ask("POST", &path, headers, b"").fault(415, "wrong-content-type", "refused");
    }
}

/// gRPC and HTTP have the same operations, but for those about the nodes.
#[test]
fn grpc_has_every_operation() {
    let proto = include_str!("../../../wire/proto/leasehold/v1/service.proto");
    let rpcs = proto.lines().filter(|line| line.trim().starts_with("rpc ")).count();
    // Every unary call of gRPC is counted under the name of its operation, the last word of its row.
    let grpc = include_str!("../../src/grpc.rs").split("Response, \"").skip(1);
    let grpc = grpc.filter_map(|rest| rest.split('"').next()).chain(["watch"]).collect::<BTreeSet<_>>();
    let http = CALLS.iter().filter(|call| call.path.starts_with("/v1/")).map(|call| call.name);
    let http = http.filter(|name| !name.starts_with("cluster-") && *name != "backup").collect();
    assert_eq!(grpc, http);
    // The session stream is a call of gRPC alone.
    assert_eq!(rpcs, grpc.len() + 1);
}

#[test]
fn the_reference_names_every_path_and_every_code_of_a_call() {
    let reference = include_str!("../../../../docs/reference/http.md");
    for call in CALLS {
        let path = call.path.replace("{session}", "ID");
        assert!(reference.contains(&path), "{path} is not in the reference");
        for code in call.codes {
            assert!(reference.contains(&format!("`{code}`")), "{code} of {path} is not in it");
        }
    }
}
