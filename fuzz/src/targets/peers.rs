//! The stream between nodes: openings, bodies of frames, and whole streams.

use leasehold_core::protocol::{Incarnation, MemberId, MemberRole, RequestId};
use leasehold_wire::{
    ConfState, PEER_PREFACE, PEER_VERSION, PeerFrameReader, PeerHello, PeerMessage, PeerOpeningReader,
    PeerPurpose, PeerRefusal, PeerVerdict, PeerWelcome, RaftEntry, RaftMessage, SnapshotMeta,
    decode_peer_frame, encode_peer_frame, encode_peer_hello, encode_peer_welcome,
};

use super::values::{member, requests, story};
use crate::Shape;

/// Bytes of length and checksum before a body.
const HEADER: usize = 8;

fn hello() -> PeerHello {
    PeerHello {
        version: PEER_VERSION,
        cluster_version: 1,
        purpose: PeerPurpose::Messages,
        from: MemberId(7),
        name: "n1".to_owned(),
        address: "127.0.0.1:7420".to_owned(),
        to: Some(MemberId(8)),
        incarnation: Incarnation(9),
        initial_cluster: "n1=127.0.0.1:7420".to_owned(),
        max_ttl_ms: 300_000,
        drift_ppm: 500,
        program: "0.1.0".to_owned(),
        epoch: Some(0),
    }
}

fn messages() -> Vec<PeerMessage> {
    let conf_state = ConfState { voters: vec![7, 8], learners: vec![9], ..ConfState::default() };
    let entry =
        RaftEntry { index: 7, term: 3, kind: 2, data: vec![0xdd; 9].into(), context: vec![0xcc].into() };
    let raft = RaftMessage {
        msg_type: 3,
        to: 8,
        from: 7,
        term: 3,
        log_term: 2,
        index: 6,
        entries: vec![entry; 2],
        commit: 5,
        commit_term: 2,
        snapshot: Some(SnapshotMeta { index: 4, term: 2, conf_state }),
        request_snapshot: 1,
        reject: true,
        reject_hint: 3,
        context: vec![1, 2].into(),
        priority: -1,
    };
    let (connection, id) = (5, RequestId(300));
    let mut messages = vec![
        PeerMessage::Raft(Box::new(raft)),
        PeerMessage::SnapshotPart { offset: 4_096, data: vec![7; 20].into() },
        PeerMessage::SnapshotEnd { length: 5_000, crc32c: 0xdead_beef },
        PeerMessage::NotLeading { connection, id },
        PeerMessage::Abandoned { connection, id },
        PeerMessage::Disconnected { connection },
        PeerMessage::HungUp { connection },
        PeerMessage::Close { connection },
        PeerMessage::Request { connection, id, request: Err("not known".to_owned()) },
    ];
    messages.extend(requests().into_iter().map(|request| PeerMessage::Request {
        connection,
        id,
        request: Ok(request),
    }));
    let replies = story().messages.into_iter().step_by(7);
    messages.extend(replies.map(|message| PeerMessage::Reply { connection, message }));
    messages
}

pub(super) fn seeds() -> Vec<Vec<u8>> {
    let mut stream = Vec::new();
    encode_peer_hello(&hello(), &mut stream).expect("a short hello");
    let opening = PEER_PREFACE.len() + HEADER;
    let mut seeds = vec![stream[opening..].to_vec()];
    for verdict in [
        PeerVerdict::Accepted,
        PeerVerdict::Refused(PeerRefusal::WrongMember { wanted: MemberId(1), found: MemberId(2) }),
        PeerVerdict::Refused(PeerRefusal::OtherIncarnation { theirs: Incarnation(1), ours: Incarnation(2) }),
        PeerVerdict::Refused(PeerRefusal::TooOld { speaks: 1, needs: 2 }),
    ] {
        let members = vec![(member(7), MemberRole::Voter)];
        let mut bytes = Vec::new();
        encode_peer_welcome(&PeerWelcome { hello: hello(), verdict, members }, &mut bytes)
            .expect("a short one");
        seeds.push(bytes[opening..].to_vec());
    }
    for message in messages() {
        let mut frame = Vec::new();
        encode_peer_frame(&[message], &mut frame).expect("a short frame");
        seeds.push(frame[HEADER..].to_vec());
        if seeds.len().is_multiple_of(20) {
            stream.extend_from_slice(&frame);
        }
    }
    seeds.push(stream);
    seeds
}

pub(super) fn check(input: &[u8]) -> Shape {
    check_body(input).and(check_stream(input)).and(check_opening(input))
}

/// The input as the body of a frame.
fn check_body(body: &[u8]) -> Shape {
    let decoded = decode_peer_frame(body);
    if let Ok(messages) = &decoded {
        let mut bytes = Vec::new();
        encode_peer_frame(messages, &mut bytes).expect("what came in one frame goes into one");
        let again = decode_peer_frame(&bytes[HEADER..]).expect("what was encoded is decoded");
        let (before, after): (Vec<_>, Vec<_>) =
            (messages.iter().map(plain).collect(), again.iter().map(plain).collect());
        assert_eq!(before, after, "messages come out as others");
    }
    Shape::of(&decoded)
}

/// Why a request is not understood is not sent on: only that it is not.
fn plain(message: &PeerMessage) -> PeerMessage {
    match message {
        PeerMessage::Request { connection, id, request: Err(_) } => {
            PeerMessage::Request { connection: *connection, id: *id, request: Err(String::new()) }
        }
        other => other.clone(),
    }
}

/// The input as what a connection brings.
fn check_stream(input: &[u8]) -> Shape {
    let mut opening = PeerOpeningReader::new();
    opening.push(input);
    let said = (opening.hello(), opening.welcome());
    let mut shape = Shape::of(&said);
    let mut reader = if let Ok(reader) = opening.into_frames() {
        reader
    } else {
        let mut reader = PeerFrameReader::new();
        reader.push(input);
        reader
    };
    let ended = loop {
        match reader.next_frame() {
            Ok(Some(frame)) => shape = shape.and(check_body(frame)),
            Ok(None) => break reader.finish(),
            Err(error) => break Err(error),
        }
    };
    shape.and(Shape::of(&ended))
}

/// The input as the body of an opening, behind a good checksum.
fn check_opening(body: &[u8]) -> Shape {
    let length = u32::try_from(body.len()).expect("an input is short").to_be_bytes();
    let checksum = crc32c::crc32c(body).to_be_bytes();
    let bytes = [&PEER_PREFACE[..], &length, &checksum, body].concat();
    let read = |bytes: &[u8]| {
        let mut reader = PeerOpeningReader::new();
        reader.push(bytes);
        (reader.hello(), reader.welcome())
    };
    let (hello, welcome) = read(&bytes);
    if let Ok(Some(hello)) = &hello {
        let mut bytes = Vec::new();
        encode_peer_hello(hello, &mut bytes).expect("a hello that was taken can be sent");
        assert_eq!(read(&bytes).0.as_ref(), Ok(&Some(hello.clone())), "a hello comes out as another");
    }
    if let Ok(Some(welcome)) = &welcome {
        let mut bytes = Vec::new();
        encode_peer_welcome(welcome, &mut bytes).expect("a welcome that was taken can be sent");
        assert_eq!(read(&bytes).1.as_ref(), Ok(&Some(welcome.clone())), "a welcome comes out as another");
    }
    Shape::of(&hello).and(Shape::of(&welcome))
}
