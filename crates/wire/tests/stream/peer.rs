//! The stream between nodes: what goes in comes out, what is damaged is refused, and nothing panics.

mod golden;

use leasehold_core::cluster::{MAX_ADDRESS_BYTES, MAX_MEMBER_NAME_BYTES, MAX_MEMBERS};
use leasehold_core::protocol::{Incarnation, Member, MemberId, MemberRole, RequestId};
use leasehold_wire::{
    FieldError, FrameError, MAX_HELLO_TEXT_BYTES, MAX_INITIAL_CLUSTER_BYTES, MAX_PEER_OPENING_BYTES,
    OpeningError, PEER_PREFACE, PEER_VERSION, PREFACE, PeerFrameReader, PeerHello, PeerMessage,
    PeerOpeningReader, PeerPurpose, PeerRefusal, PeerVerdict, PeerWelcome, decode_peer_frame,
    encode_peer_frame, encode_peer_hello, encode_peer_welcome,
};
use proptest::prelude::*;

use crate::strategies::peer;

fn frame(messages: &[PeerMessage]) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode_peer_frame(messages, &mut bytes).expect("a few small messages fit a frame");
    bytes
}

/// The body of the one frame in `bytes`, which must hold nothing else.
fn only_body(bytes: &[u8]) -> Vec<u8> {
    let mut reader = PeerFrameReader::new();
    reader.push(bytes);
    let body = reader.next_frame().expect("the frame is sound").expect("the frame is whole").to_vec();
    reader.finish().expect("nothing stands behind the frame");
    body
}

fn opening_of(bytes: &[u8]) -> PeerOpeningReader {
    let mut reader = PeerOpeningReader::new();
    reader.push(bytes);
    reader
}

fn hello() -> PeerHello {
    PeerHello {
        version: PEER_VERSION,
        cluster_version: 1,
        purpose: PeerPurpose::Messages,
        from: MemberId(7),
        name: "n1".into(),
        address: "a:1".into(),
        to: Some(MemberId(8)),
        incarnation: Incarnation(9),
        initial_cluster: "n1=a:1".into(),
        max_ttl_ms: 300,
        drift_ppm: 500,
        program: "0.1".into(),
        epoch: None,
    }
}

fn welcome(verdict: PeerVerdict) -> PeerWelcome {
    PeerWelcome { hello: hello(), verdict, members: Vec::new() }
}

fn hello_error(hello: &PeerHello) -> String {
    let mut out = b"before".to_vec();
    let error = encode_peer_hello(hello, &mut out).expect_err("this hello cannot be sent");
    assert_eq!(out, b"before");
    error.to_string()
}

proptest! {
    #[test]
    fn messages_come_out_as_they_went_in(messages in peer::messages()) {
        prop_assert_eq!(decode_peer_frame(&only_body(&frame(&messages))), Ok(messages));
    }

    #[test]
    fn openings_come_out_as_they_went_in_and_frames_behind_them_are_kept(
        hello in peer::hello(),
        welcome in peer::welcome(),
        messages in peer::messages(),
        step in 1_usize..40,
    ) {
        let mut bytes = Vec::new();
        encode_peer_hello(&hello, &mut bytes).unwrap();
        let whole = bytes.len();
        bytes.extend(frame(&messages));
        let mut reader = PeerOpeningReader::new();
        let mut pushed = 0;
        for chunk in bytes.chunks(step) {
            let expected = if pushed < whole { None } else { Some(hello.clone()) };
            prop_assert_eq!(reader.hello(), Ok(expected));
            reader.push(chunk);
            pushed += chunk.len();
        }
        let mut frames = reader.into_frames().unwrap();
        let body = frames.next_frame().unwrap().unwrap().to_vec();
        prop_assert_eq!(decode_peer_frame(&body), Ok(messages));
        frames.finish().unwrap();

        let mut bytes = Vec::new();
        encode_peer_welcome(&welcome, &mut bytes).unwrap();
        prop_assert_eq!(opening_of(&bytes).welcome(), Ok(Some(welcome)));
    }

    #[test]
    fn random_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = decode_peer_frame(&bytes);
        let mut reader = PeerFrameReader::new();
        reader.push(&bytes);
        while let Ok(Some(_)) = reader.next_frame() {}
        let _ = reader.finish();
        let mut opening = opening_of(&PEER_PREFACE);
        opening.push(&bytes);
        let _ = opening.hello();
        let _ = opening.welcome();
        let _ = opening.into_frames();
    }

    #[test]
    fn a_changed_byte_is_noticed_or_changes_only_the_length(
        messages in peer::messages(),
        at: prop::sample::Index,
        by in 1..=u8::MAX,
    ) {
        let mut bytes = frame(&messages);
        let at = at.index(bytes.len());
        bytes[at] ^= by;
        let mut reader = PeerFrameReader::new();
        reader.push(&bytes);
        // A frame that has become longer is waited for; everything else is refused.
        prop_assert!(!matches!(reader.next_frame(), Ok(Some(_))), "byte {at} was changed");
    }

    #[test]
    fn a_changed_byte_behind_a_checksum_that_fits_never_panics(
        messages in peer::messages(),
        at: prop::sample::Index,
        new: u8,
    ) {
        let mut body = only_body(&frame(&messages));
        if !body.is_empty() {
            let at = at.index(body.len());
            body[at] = new;
        }
        let _ = decode_peer_frame(&body);
    }
}

proptest! {
    // Each case tries every place of a frame.
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_stream_cut_anywhere_needs_more_and_ends_in_an_error(messages in peer::messages()) {
        let bytes = frame(&messages);
        for have in 0..bytes.len() {
            let mut reader = PeerFrameReader::new();
            reader.push(&bytes[..have]);
            prop_assert_eq!(reader.next_frame(), Ok(None));
            prop_assert_eq!(reader.finish().is_err(), have > 0);
        }
    }

    #[test]
    fn a_body_cut_anywhere_never_gives_other_messages(messages in peer::messages()) {
        let body = only_body(&frame(&messages));
        for have in 0..body.len() {
            match decode_peer_frame(&body[..have]) {
                Ok(fewer) => prop_assert_eq!(&messages[..fewer.len()], fewer),
                Err(error) => prop_assert!(matches!(error, FrameError::MessageCutOff { .. }), "{error}"),
            }
        }
    }
}

#[test]
fn a_request_that_is_not_understood_is_answered_alone() {
    // request { connection: 3, message { id: 8, field 16 {} } }, then close 4
    let body = [0x0a, 11, 0x22, 9, 0x08, 3, 0x12, 5, 0x08, 8, 0x82, 0x01, 0, 0x0a, 2, 0x48, 4];
    let why = "request is absent, or of a kind that this release does not know".to_owned();
    let request = PeerMessage::Request { connection: 3, id: RequestId(8), request: Err(why) };
    let expected = vec![request, PeerMessage::Close { connection: 4 }];
    assert_eq!(decode_peer_frame(&body), Ok(expected.clone()));
    assert_eq!(decode_peer_frame(&only_body(&frame(&expected))), Ok(expected));
}

#[test]
fn a_message_that_is_not_known_fails_its_frame() {
    let unknown = [0x0a, 3, 0x82, 0x01, 0]; // field 16 {}
    let why = FieldError::Absent { field: "peer_message" };
    assert_eq!(decode_peer_frame(&unknown), Err(FrameError::BadField { position: 0, why }));
    // reply { connection: 1, message { field 16 {} } }
    let unknown = [0x0a, 9, 0x42, 7, 0x08, 1, 0x12, 3, 0x82, 0x01, 0];
    let why = FieldError::Absent { field: "message" };
    assert_eq!(decode_peer_frame(&unknown), Err(FrameError::BadField { position: 0, why }));
    // raft { msg_type: 2^32 }
    let great = [0x0a, 8, 0x0a, 6, 0x08, 0x80, 0x80, 0x80, 0x80, 0x10];
    let why = FieldError::TooGreat { field: "raft.msg_type", value: 1 << 32, limit: u32::MAX.into() };
    assert_eq!(decode_peer_frame(&great), Err(FrameError::BadField { position: 0, why }));
}

#[test]
fn other_streams_are_told_apart_by_their_first_differing_byte() {
    for (first, found) in
        [(&b"GET / HTTP"[..], "GET / HT"), (b"\0LHS", "\\x00LHS"), (&PREFACE, "\\x00LHSS\\r\\n\\x01")]
    {
        let error = opening_of(first).hello().unwrap_err();
        assert_eq!(error.to_string(), format!("not a stream between nodes: it begins with {found}"));
    }
    for have in 0..=PEER_PREFACE.len() {
        assert_eq!(opening_of(&PEER_PREFACE[..have]).hello(), Ok(None));
    }
}

#[test]
fn an_opening_is_refused_by_its_announced_length_and_its_checksum() {
    for (length, taken) in [(MAX_PEER_OPENING_BYTES, true), (MAX_PEER_OPENING_BYTES + 1, false)] {
        let announced = u32::try_from(length).unwrap().to_be_bytes();
        let reader = opening_of(&[&PEER_PREFACE[..], &announced].concat());
        assert_eq!(reader.hello().is_ok(), taken, "{length} bytes");
    }
    let mut bytes = Vec::new();
    encode_peer_hello(&hello(), &mut bytes).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    let error = opening_of(&bytes).hello().unwrap_err();
    assert!(matches!(error, OpeningError::Frame(FrameError::WrongChecksum { .. })), "{error}");
    let error = opening_of(&bytes[..10]).into_frames().unwrap_err();
    assert_eq!(error, OpeningError::CutOff { have: 10 });
}

#[test]
fn a_hello_that_cannot_be_is_refused_with_its_field() {
    let member = "hello: peer_hello";
    let cases = [
        (
            PeerHello { from: MemberId(0), ..hello() },
            format!("{member}.from is not taken: member id 0 is nobody's"),
        ),
        (
            PeerHello { to: Some(MemberId(0)), ..hello() },
            format!("{member}.to is not taken: member id 0 is nobody's"),
        ),
        (
            PeerHello { name: "a b".into(), ..hello() },
            format!(
                "{member}.name is not taken: node name \"a b\" is not 1 to 64 letters, digits, dots, dashes or underscores"
            ),
        ),
        (
            PeerHello { address: "a".into(), ..hello() },
            format!(
                "{member}.address is not taken: node address \"a\" is not host:port of at most 260 bytes"
            ),
        ),
        (
            PeerHello { version: 0, ..hello() },
            format!("{member}.version is absent, or of a kind that this release does not know"),
        ),
    ];
    for (hello, expected) in cases {
        assert_eq!(hello_error(&hello), expected);
    }
    let long = PeerHello { initial_cluster: "n".repeat(MAX_INITIAL_CLUSTER_BYTES + 1), ..hello() };
    assert!(
        hello_error(&long).ends_with("list of founders of 3073 bytes is above the maximum of 3072 bytes")
    );
}

#[test]
fn the_longest_welcome_fits() {
    let name = "n".repeat(MAX_MEMBER_NAME_BYTES);
    let address = format!("{}:65535", "a".repeat(MAX_ADDRESS_BYTES - 6));
    let founders = vec![format!("{name}={address}"); MAX_MEMBERS].join(",");
    assert!(founders.len() <= MAX_INITIAL_CLUSTER_BYTES, "{} bytes", founders.len());
    let hello = PeerHello {
        version: u32::MAX,
        cluster_version: u32::MAX,
        name: name.clone(),
        address: address.clone(),
        initial_cluster: "n".repeat(MAX_INITIAL_CLUSTER_BYTES),
        max_ttl_ms: u64::MAX,
        drift_ppm: u32::MAX,
        program: "p".repeat(MAX_HELLO_TEXT_BYTES),
        epoch: Some(u16::MAX),
        ..hello()
    };
    let member = Member::new(MemberId(u64::MAX), &name, &address).unwrap();
    let (theirs, ours) = (Incarnation(u128::MAX), Incarnation(1));
    let longest = PeerWelcome {
        hello,
        verdict: PeerVerdict::Refused(PeerRefusal::OtherIncarnation { theirs, ours }),
        members: vec![(member, MemberRole::Voter); MAX_MEMBERS],
    };
    let mut bytes = Vec::new();
    encode_peer_welcome(&longest, &mut bytes).unwrap();
    assert_eq!(opening_of(&bytes).welcome(), Ok(Some(longest)));
}

#[test]
fn refusals_say_who_is_meant_and_what_to_do() {
    let said = |refusal: PeerRefusal| refusal.to_string();
    assert_eq!(
        said(PeerRefusal::WrongMember { wanted: MemberId(1), found: MemberId(0xab) }),
        "member 0000000000000001 was expected at this address, and 00000000000000ab is there"
    );
    assert_eq!(
        said(PeerRefusal::TooOld { speaks: 1, needs: 2 }),
        "the node that dialled knows cluster version 1 at most, and the cluster needs 2: upgrade it"
    );
}
