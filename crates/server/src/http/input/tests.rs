use super::*;

const KEY: &str = "7-000102030405060708090a0b0c0d0e0f";

fn acquire(rest: &str) -> Result<(Acquire, bool), ApiError> {
    let text = format!(r#"{{"session_key":"{KEY}",{rest}}}"#);
    serde_json::from_str::<AcquireFields>(&text).unwrap().acquire()
}

fn modes(rest: &str) -> Vec<Mode> {
    acquire(rest).unwrap().0.requests.iter().map(|request| request.mode).collect()
}

#[test]
fn a_resource_is_held_alone_unless_something_else_is_said() {
    assert_eq!(modes(r#""resource":"a""#), [Mode::Exclusive]);
    assert_eq!(modes(r#""resource":"a","mode":"shared""#), [Mode::Shared]);
    assert_eq!(modes(r#""resource":"a","mode":"slots","slots":3"#), [Mode::Slot { of: 3 }]);
    assert_eq!(modes(r#""resource":"a","slots":3"#), [Mode::Slot { of: 3 }]);
    assert_eq!(
        modes(r#""resources":[{"resource":"a"},{"resource":"b","mode":"shared"}]"#),
        [Mode::Exclusive, Mode::Shared]
    );
}

#[test]
fn what_the_table_would_refuse_in_any_state_is_refused_with_its_field() {
    for (rest, message) in [
        (
            r#""resource":"a","wait_ms":86400001"#,
            "wait_ms: wait of 86400001 ms is above the maximum of 86400000 ms",
        ),
        (r#""resource":"a","slots":0"#, "slots: 0 is outside 1 to 10000 slots"),
        (
            r#""resources":[{"resource":"a"},{"resource":"b","slots":10001}]"#,
            "resources[1].slots: 10001 is outside 1 to 10000 slots",
        ),
    ] {
        let fault = acquire(rest).unwrap_err();
        assert_eq!((fault.message().as_str(), fault.code()), (message, "bad-request"), "{rest}");
    }
    assert!(acquire(r#""resource":"a","wait_ms":86400000,"slots":10000"#).is_ok());
}

#[test]
fn what_contradicts_itself_is_refused_by_name() {
    for (rest, message) in [
        (r#""mode":"shared""#, "resource: it is missing; give resource or resources"),
        (r#""resource":"a","resources":[]"#, "resources: give resource or resources, not both"),
        (r#""resource":"a","mode":"slots""#, "slots: it is missing; mode slots needs their number"),
        (r#""resource":"a","mode":"shared","slots":2"#, "slots: only mode slots has a number of them"),
        (r#""resources":[],"mode":"shared""#, "mode: with resources, each has its own mode and slots"),
        (
            r#""resources":[{"resource":"a"},{"resource":"b","mode":"slots"}]"#,
            "resources[1].slots: it is missing; mode slots needs their number",
        ),
        (r#""resource":"a","value":"x","value_hex":"00""#, "value_hex: give value or value_hex, not both"),
    ] {
        assert_eq!(acquire(rest).unwrap_err().message(), message, "{rest}");
    }
}

#[test]
fn a_wait_is_waited_for_unless_the_caller_wants_the_answer_at_once() {
    let (plain, hold) = acquire(r#""resource":"a","wait_ms":5000"#).unwrap();
    assert_eq!((plain.wait, hold), (Some(Millis::new(5_000)), true));
    assert!(!acquire(r#""resource":"a","wait_ms":5000,"when_queued":"return""#).unwrap().1);
}

#[test]
fn values_are_text_or_digits_up_to_their_limit() {
    assert_eq!(acquire(r#""resource":"a","value":"ä""#).unwrap().0.value.as_bytes(), "ä".as_bytes());
    assert_eq!(acquire(r#""resource":"a","value_hex":"fF00""#).unwrap().0.value.as_bytes(), [255, 0]);
    for (length, taken) in [(65_536, true), (65_537, false)] {
        let text = format!(r#""resource":"a","value":"{}""#, "x".repeat(length));
        assert_eq!(acquire(&text).is_ok(), taken, "{length}");
        let text = format!(r#""resource":"a","value_hex":"{}""#, "00".repeat(length));
        assert_eq!(acquire(&text).is_ok(), taken, "{length}");
    }
}

#[test]
fn the_hard_limit_is_the_grace_unless_it_is_given() {
    let open = |text: &str| serde_json::from_str::<OpenFields>(text).unwrap().session();
    let session = open(r#"{"grace_ms":700}"#);
    assert_eq!((session.ttl, session.policies.hard), (DEFAULT_TTL, Millis::new(700)));
    assert_eq!(open(r#"{"grace_ms":700,"hard_ms":900}"#).policies.hard, Millis::new(900));
}

#[test]
fn a_register_is_written_or_removed_and_not_both() {
    let write = |rest: &str| {
        let start = format!(r#"{{"session_key":"{KEY}","resource":"a","token":"1","key":"k""#);
        serde_json::from_str::<WriteFields>(&format!("{start}{rest}}}")).unwrap().write()
    };
    assert_eq!(write(r#","remove":true"#).unwrap().value, None);
    assert!(write(r#","value":"""#).unwrap().value.is_some_and(|value| value.is_empty()));
    assert!(write("").is_err());
    assert!(write(r#","value":"x","remove":true"#).is_err());
}

#[test]
fn pages_have_a_size_between_one_and_the_limit() {
    for (limit, size) in [(None, Some(DEFAULT_PAGE)), (Some(1), Some(1)), (Some(1_000), Some(1_000))] {
        assert_eq!(page_size(limit).ok(), size);
    }
    for limit in [0, 1_001, u64::MAX] {
        assert!(page_size(Some(limit)).unwrap_err().message().contains("outside 1 to 1000"));
    }
}

#[test]
fn what_was_seen_last_goes_before_what_was_asked_first() {
    let fields = || serde_json::from_str::<WatchFields>(r#"{"after":"5"}"#).unwrap();
    assert_eq!(fields().watch(None).unwrap().after, Some(Revision::new(5)));
    assert_eq!(fields().watch(Some(Number(9))).unwrap().after, Some(Revision::new(9)));
    let long = format!(r#"{{"prefix":"{}"}}"#, "x".repeat(513));
    assert!(serde_json::from_str::<WatchFields>(&long).unwrap().watch(None).is_err());
}
