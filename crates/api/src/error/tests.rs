use std::collections::BTreeSet;

use leasehold_core::{Label, ResourceName, Token, Unavailable};

use super::*;

/// The text of every arm that gives a code.
fn given() -> BTreeSet<&'static str> {
    let source = include_str!("../error.rs");
    let code = |word: &&str| word.contains('-') || *word == "unavailable";
    let arms = source
        .lines()
        .filter_map(|line| line.split_once("=> \"").and_then(|(_, rest)| rest.split_once("\",")));
    arms.map(|(word, _)| word).filter(code).filter(|word| !word.contains(' ')).collect()
}

#[test]
fn the_list_of_codes_is_complete_and_has_no_other() {
    let listed: BTreeSet<&str> = CODES.iter().map(|code| code.name).collect();
    assert_eq!(given(), listed);
    assert_eq!(CODES.len(), listed.len());
}

#[test]
fn the_three_kinds_are_told_apart() {
    let unavailable = Failure::Unavailable { why: "it stops".into() };
    assert_eq!(ApiError::from(Refusal::SessionOverdue).kind(), Kind::Refused);
    assert_eq!(ApiError::from(unavailable).kind(), Kind::Failed);
    assert_eq!(ApiError::from(Failure::OutcomeUnknown).kind(), Kind::Unknown);
    assert_eq!(ApiError::NoSuchPath.kind(), Kind::Refused);
}

#[test]
fn a_resource_that_is_held_is_told_with_its_holder() {
    let why =
        Unavailable::Held { holder: Label::new("web-1").unwrap(), token: Token::from_u64(9), overdue: false };
    let fault = ApiError::from(Refusal::NotFree { resource: ResourceName::new("jobs").unwrap(), why });
    assert_eq!(fault.message(), "resource jobs is not free: held by web-1 with token 9");
    assert_eq!((fault.code(), fault.http_status(), fault.grpc_code()), ("not-free", 409, GrpcCode::Aborted));
    assert_eq!(fault.details()["why"], "held");
    assert_eq!(fault.details()["token"], "9");
}

#[test]
fn an_unknown_field_is_told_with_those_that_there_are() {
    let fault = ApiError::UnknownField { field: "ttl".into(), known: vec!["label".into(), "ttl_ms".into()] };
    assert_eq!(fault.message(), "field \"ttl\" is not known; there are: label, ttl_ms");
}

#[test]
fn the_status_says_the_kind() {
    for code in CODES {
        let fits = match code.kind {
            Kind::Refused => (400..500).contains(&code.http) || code.http == 507,
            Kind::Failed => [408, 429, 502, 503].contains(&code.http),
            Kind::Unknown => code.http == 500,
        };
        assert!(fits, "{} is {:?} with {}", code.name, code.kind, code.http);
    }
}

/// `LEASEHOLD_ERRORS=write` writes the table of the reference anew.
#[test]
fn the_table_of_the_reference_is_that_of_the_codes() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/errors.md");
    let head = "| code | kind | HTTP | gRPC | meaning | what to do |\n|---|---|---|---|---|---|\n";
    let row = |code: &Code| {
        let Code { name, kind, http, grpc, meaning, advice } = code;
        format!("| `{name}` | {} | {http} | `{grpc}` | {meaning} | {advice} |\n", kind.as_str())
    };
    let table: String = CODES.iter().map(row).collect();
    let kept = std::fs::read_to_string(file).unwrap();
    let (before, rest) = kept.split_once(head).expect("the reference has the table");
    let (found, behind) = rest.split_once("\n\n").expect("something follows the table");
    if std::env::var_os("LEASEHOLD_ERRORS").is_some_and(|word| word == "write") {
        std::fs::write(file, format!("{before}{head}{table}\n{behind}")).unwrap();
        return;
    }
    assert!(format!("{found}\n") == table, "the table is old; LEASEHOLD_ERRORS=write writes it anew");
}
