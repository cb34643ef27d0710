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
    assert_eq!(ApiError::NoSuchPath.kind(), Kind::Failed);
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
    let fault = ApiError::UnknownField { field: "ttl".into(), known: &["label", "ttl_ms"] };
    assert_eq!(fault.message(), "field \"ttl\" is not known; there are: label, ttl_ms");
}

#[test]
fn the_reference_has_every_code_with_its_statuses() {
    let reference = include_str!("../../../../docs/reference/errors.md");
    for code in CODES {
        let name = format!("{:?}", code.grpc);
        let letters = name.chars().enumerate().flat_map(|(place, letter)| {
            let gap = (place > 0 && letter.is_ascii_uppercase()).then_some('_');
            gap.into_iter().chain([letter.to_ascii_uppercase()])
        });
        let row = format!("| `{}` | {} | `{}` |", code.name, code.http, letters.collect::<String>());
        assert!(reference.contains(&row), "docs/reference/errors.md has no row that begins with {row}");
    }
}

#[test]
fn the_reference_has_every_code_with_its_status() {
    let reference = include_str!("../../../../docs/reference/errors.md");
    for code in CODES {
        let row = format!("| `{}` | {} |", code.name, code.http);
        assert!(reference.contains(&row), "{row} is not in the reference");
    }
}
