//! Bytes that nobody meant to send: cut off, changed, drawn at random, or from a release that knows more.

use leasehold_core::protocol::{Query, Request, RequestId};
use leasehold_wire::{
    FieldError, FrameError, FrameReader, OpeningReader, PREFACE, decode_client_frame, decode_server_frame,
    encode_client, encode_server,
};
use proptest::prelude::*;

use crate::round_trip::only_frame;
use crate::strategies::{client, server};

/// A frame's body with these messages, each given as its bytes.
fn body(messages: &[&[u8]]) -> Vec<u8> {
    let mut body = Vec::new();
    for message in messages {
        body.push(0x0a);
        body.push(u8::try_from(message.len()).expect("the messages written here are short"));
        body.extend_from_slice(message);
    }
    body
}

const GOOD: &[u8] = &[0x08, 7, 0x3a, 2, 0x3a, 0]; // id 7, read { status {} }

fn good() -> (RequestId, Result<Request, String>) {
    (RequestId(7), Ok(Request::Read(Query::Status)))
}

proptest! {
    // Each case tries every place of a frame.
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_stream_cut_anywhere_needs_more_and_ends_in_an_error(requests in client::requests()) {
        let mut bytes = Vec::new();
        encode_client(&requests, &mut bytes).unwrap();
        for have in 0..bytes.len() {
            let mut reader = FrameReader::new();
            reader.push(&bytes[..have]);
            prop_assert_eq!(reader.next_frame(), Ok(None));
            prop_assert_eq!(reader.finish().is_err(), have > 0);
        }
    }

    #[test]
    fn a_body_cut_anywhere_never_gives_other_requests(requests in client::requests()) {
        let mut bytes = Vec::new();
        encode_client(&requests, &mut bytes).unwrap();
        let body = only_frame(&bytes);
        let whole = decode_client_frame(&body).unwrap();
        for have in 0..body.len() {
            match decode_client_frame(&body[..have]) {
                // A cut between two messages cannot be told from a shorter frame; the length before the frame is there for that.
                Ok(fewer) => prop_assert_eq!(&whole[..fewer.len()], fewer),
                Err(error) => prop_assert!(is_cut_off(&error), "{error}"),
            }
        }
    }

    #[test]
    fn a_body_of_the_service_cut_anywhere_never_gives_other_messages(messages in server::messages()) {
        let mut bytes = Vec::new();
        encode_server(&messages, &mut bytes).unwrap();
        let body = only_frame(&bytes);
        for have in 0..body.len() {
            match decode_server_frame(&body[..have]) {
                Ok(fewer) => prop_assert_eq!(&messages[..fewer.len()], fewer),
                Err(error) => prop_assert!(is_cut_off(&error), "{error}"),
            }
        }
    }

}

proptest! {
    #[test]
    fn random_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = decode_client_frame(&bytes);
        let _ = decode_server_frame(&bytes);
        let mut reader = FrameReader::new();
        reader.push(&bytes);
        while let Ok(Some(_)) = reader.next_frame() {}
        let mut opening = OpeningReader::new();
        opening.push(&PREFACE);
        opening.push(&bytes);
        let _ = opening.hello();
        let _ = opening.into_frames();
    }

    #[test]
    fn a_changed_byte_never_panics(messages in server::messages(), at: prop::sample::Index, new: u8) {
        let mut bytes = Vec::new();
        encode_server(&messages, &mut bytes).unwrap();
        let at = at.index(bytes.len());
        bytes[at] = new;
        let mut reader = FrameReader::new();
        reader.push(&bytes);
        if let Ok(Some(frame)) = reader.next_frame() {
            let _ = decode_server_frame(frame);
            let _ = decode_client_frame(frame);
        }
    }
}

fn is_cut_off(error: &FrameError) -> bool {
    matches!(error, FrameError::MessageCutOff { .. })
}

#[test]
fn a_request_of_an_unknown_kind_is_answered_alone() {
    let unknown: &[u8] = &[0x08, 8, 0x82, 0x01, 0]; // id 8, field 16 {}
    let heard = decode_client_frame(&body(&[GOOD, unknown, GOOD])).unwrap();
    let why = "request is absent, or of a kind that this release does not know";
    assert_eq!(heard, [good(), (RequestId(8), Err(why.to_owned())), good()]);
}

#[test]
fn text_that_is_not_utf_8_is_answered_alone() {
    let bad: &[u8] = &[0x08, 9, 0x3a, 3, 0x0a, 1, 0xff]; // id 9, read { lease: "\xff" }
    let heard = decode_client_frame(&body(&[bad, GOOD])).unwrap();
    assert_eq!(heard[0].0, RequestId(9));
    assert!(heard[0].1.is_err());
    assert_eq!(heard[1], good());
}

#[test]
fn a_name_with_a_nul_is_refused_with_field_value_and_reason() {
    let bad: &[u8] = &[0x08, 10, 0x3a, 5, 0x0a, 3, b'a', 0, b'b']; // id 10, read { lease: "a\0b" }
    let heard = decode_client_frame(&body(&[bad])).unwrap();
    let why = "read.lease \"a\\0b\" is not taken: resource name has the character '\\0' at byte 1; \
               control characters and '#' are not allowed";
    assert_eq!(heard, [(RequestId(10), Err(why.to_owned()))]);
}

#[test]
fn a_nonce_of_another_length_is_refused_and_not_shown() {
    let bad: &[u8] = &[0x08, 11, 0x12, 5, 0x0a, 1, 0x99, 0x28, 1]; // id 11, open { nonce: 1 byte, kind: streamed }
    let heard = decode_client_frame(&body(&[bad])).unwrap();
    assert_eq!(heard, [(RequestId(11), Err("open.nonce has 1 bytes and must have 16".to_owned()))]);
}

#[test]
fn members_that_cannot_be_are_refused_with_the_field() {
    let cases: [(&[u8], &str); 4] = [
        // promote "a b"
        (
            &[0x12, 3, b'a', b' ', b'b'],
            "promote is not taken: node name \"a b\" is not 1 to 64 letters, digits, dots, dashes or underscores",
        ),
        // add { name: "a", address: "a:1" }
        (
            &[0x0a, 8, 0x12, 1, b'a', 0x1a, 3, b'a', b':', b'1'],
            "member.id is not taken: member id 0 is nobody's",
        ),
        // add { id: 1, name: "a", address: "a" }
        (
            &[0x0a, 15, 0x09, 1, 0, 0, 0, 0, 0, 0, 0, 0x12, 1, b'a', 0x1a, 1, b'a'],
            "member.address is not taken: node address \"a\" is not host:port of at most 260 bytes",
        ),
        // transfer { to: "" }
        (
            &[0x22, 2, 0x0a, 0],
            "transfer.to is not taken: node name \"\" is not 1 to 64 letters, digits, dots, dashes or underscores",
        ),
    ];
    for (command, why) in cases {
        let length = u8::try_from(command.len()).unwrap();
        let bad: &[u8] = &[&[0x08, 16, 0x5a, length], command].concat();
        let heard = decode_client_frame(&body(&[bad, GOOD])).unwrap();
        assert_eq!(heard, [(RequestId(16), Err(why.to_owned())), good()]);
    }
}

#[test]
fn a_plain_request_without_its_proof_is_refused() {
    // id 13, plain { session: 5, renew {} }
    let bad: &[u8] = &[0x08, 13, 0x42, 4, 0x08, 5, 0x1a, 0];
    let heard = decode_client_frame(&body(&[bad, GOOD])).unwrap();
    let why = "plain.nonce has 0 bytes and must have 16";
    assert_eq!(heard, [(RequestId(13), Err(why.to_owned())), good()]);
}

#[test]
fn a_plain_request_of_an_unknown_kind_is_answered_alone() {
    let key: &[u8] = &[&[0x08, 5, 0x12, 16][..], &[7; 16]].concat();
    // id 14, plain { session: 5, nonce, field 15 {} }; then with command { field 15 {}, hold }
    let unknown: &[u8] = &[&[0x08, 14, 0x42, 22], key, &[0x7a, 0]].concat();
    let unknown_command: &[u8] = &[&[0x08, 15, 0x42, 26], key, &[0x22, 4, 0x7a, 0, 0x60, 1]].concat();
    let heard = decode_client_frame(&body(&[unknown, unknown_command, GOOD])).unwrap();
    let why = |field: &str| Err(format!("{field} is absent, or of a kind that this release does not know"));
    assert_eq!(heard, [(RequestId(14), why("plain")), (RequestId(15), why("plain.op")), good()]);
}

#[test]
fn a_change_that_is_not_known_fails_its_frame() {
    // watched { watch: 1, changes { revision: 2, change { field 15 {} } } }
    let newer: &[u8] = &[0x1a, 10, 0x08, 1, 0x12, 6, 0x08, 2, 0x12, 2, 0x7a, 0];
    let why = FieldError::Absent { field: "change" };
    assert_eq!(decode_server_frame(&body(&[newer])), Err(FrameError::BadField { position: 0, why }));
}

#[test]
fn a_number_too_great_for_its_type_is_refused_and_not_cut_off() {
    // id 12, operator { change_kind { resource: "a", mode { slot_of: 2^32 } } }
    let mode: &[u8] = &[0x18, 0x80, 0x80, 0x80, 0x80, 0x10];
    let change: &[u8] = &[&[0x0a, 1, b'a', 0x12, 6], mode].concat();
    let message: &[u8] = &[&[0x08, 12, 0x32, 13, 0x1a, 11], change].concat();
    let heard = decode_client_frame(&body(&[message])).unwrap();
    let why = "mode.slot_of of 4294967296 is above the maximum of 4294967295";
    assert_eq!(heard, [(RequestId(12), Err(why.to_owned()))]);
}

#[test]
fn a_request_whose_id_cannot_be_read_ends_the_connection() {
    let no_id: &[u8] = &[0x0f]; // a field of a wire type that does not exist
    let error = decode_client_frame(&body(&[GOOD, no_id])).unwrap_err();
    assert!(matches!(error, FrameError::Unreadable { position: 1, .. }), "{error}");
}

#[test]
fn a_frame_of_something_else_is_refused() {
    assert_eq!(decode_client_frame(&[0x12, 0]), Err(FrameError::NotAMessage { position: 0 }));
    assert_eq!(decode_client_frame(&[0x0a, 5, 1]), Err(FrameError::MessageCutOff { position: 0 }));
}

#[test]
fn a_message_of_the_service_that_is_not_known_fails_its_frame() {
    let unknown: &[u8] = &[0x82, 0x01, 0]; // field 16 {}
    let why = FieldError::Absent { field: "message" };
    assert_eq!(decode_server_frame(&body(&[unknown])), Err(FrameError::BadField { position: 0, why }));
    let newer_reply: &[u8] = &[0x0a, 7, 0x08, 1, 0x12, 3, 0xf2, 0x07, 0]; // response { id: 1, reply { field 126 {} } }
    let why = FieldError::Absent { field: "reply" };
    assert_eq!(decode_server_frame(&body(&[newer_reply])), Err(FrameError::BadField { position: 0, why }));
}
