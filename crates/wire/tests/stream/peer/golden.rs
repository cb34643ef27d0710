//! The bytes themselves. If one of these changes, nodes of two releases cannot talk, and no cluster can be upgraded one by one.

use leasehold_core::answer::Reply;
use leasehold_core::protocol::{Incarnation, Member, MemberId, MemberRole, Query, Request, RequestId};
use leasehold_core::protocol::{Response, ToClient};
use leasehold_wire::{
    ConfState, PeerHello, PeerMessage, PeerRefusal, PeerVerdict, PeerWelcome, RaftEntry, RaftMessage,
    SnapshotMeta, decode_peer_frame, encode_peer_hello, encode_peer_welcome,
};

use super::{frame, hello, only_body, opening_of, welcome};
use crate::golden::{hex, pieces};

/// The hello of these tests, without what stands around it.
const HELLO: [&str; 10] = [
    "08 01 10 01 18 02",                      // versions 1 and 1, for messages
    "21 0700000000000000",                    // from 7
    "2a 02 6e31",                             // n1
    "32 03 613a31",                           // at a:1
    "39 0800000000000000",                    // to 8
    "42 10 00000000000000000000000000000009", // incarnation 9
    "4a 06 6e313d613a31",                     // founders n1=a:1
    "50 ac02",                                // ttl up to 300 ms
    "58 f403",                                // drift of 500 ppm
    "62 03 302e31",                           // program 0.1
];

#[test]
fn a_hello() {
    let mut bytes = Vec::new();
    encode_peer_hello(&hello(), &mut bytes).unwrap();
    let head = pieces(&["00 4c485052 0d0a 01", "00000046", "21a18786"]);
    assert_eq!(hex(&bytes), head + &pieces(&HELLO));
}

/// The first releases did not say it, and pass over it.
#[test]
fn a_hello_with_an_epoch() {
    let mut bytes = Vec::new();
    let hello = PeerHello { epoch: Some(3), ..hello() };
    encode_peer_hello(&hello, &mut bytes).unwrap();
    let head = pieces(&["00 4c485052 0d0a 01", "00000048", "3b89b761"]);
    assert_eq!(hex(&bytes), head + &pieces(&HELLO) + &pieces(&["68 03"]));
    assert_eq!(opening_of(&bytes).hello(), Ok(Some(hello)));
}

#[test]
fn a_welcome_and_a_refusal() {
    let member = Member::new(MemberId(7), "n1", "a:1").unwrap();
    let accepted =
        PeerWelcome { members: vec![(member, MemberRole::Learner)], ..welcome(PeerVerdict::Accepted) };
    let rest = [
        "12 00",                     // accepted
        "22 16",                     // a member
        "0a 12 09 0700000000000000", // 7
        "12 02 6e31 1a 03 613a31",   // n1 at a:1
        "10 02",                     // learner
    ];
    assert_welcome(&accepted, &rest);
    let refusals = [
        (
            PeerRefusal::WrongMember { wanted: MemberId(1), found: MemberId(2) },
            "1a 14 0a 12 09 0100000000000000 11 0200000000000000",
        ),
        (
            PeerRefusal::OtherIncarnation { theirs: Incarnation(1), ours: Incarnation(2) },
            "1a 26 12 24 0a 10 00000000000000000000000000000001 12 10 00000000000000000000000000000002",
        ),
        (PeerRefusal::Removed, "1a 02 1a 00"),
        (PeerRefusal::NotAMember, "1a 02 22 00"),
        (PeerRefusal::TooOld { speaks: 1, needs: 2 }, "1a 06 2a 04 08 01 10 02"),
    ];
    for (refusal, expected) in refusals {
        assert_welcome(&welcome(PeerVerdict::Refused(refusal)), &[expected]);
    }
}

/// The welcome has the hello of these tests and `rest` behind its opening.
fn assert_welcome(welcome: &PeerWelcome, rest: &[&str]) {
    let mut bytes = Vec::new();
    encode_peer_welcome(welcome, &mut bytes).expect("a short welcome");
    let body = pieces(&["0a 46", &pieces(&HELLO), &pieces(rest)]);
    assert_eq!(hex(&bytes[16..]), body);
    assert_eq!(opening_of(&bytes).welcome(), Ok(Some(welcome.clone())));
}

#[test]
fn a_message_of_raft_with_every_field() {
    let entry = RaftEntry { index: 7, term: 3, kind: 2, data: vec![0xdd].into(), context: vec![0xcc].into() };
    let conf_state = ConfState {
        voters: vec![1, 2],
        learners: vec![3],
        voters_outgoing: vec![4],
        learners_next: vec![5],
        auto_leave: true,
    };
    let message = RaftMessage {
        msg_type: 3,
        to: 1,
        from: 2,
        term: 300,
        log_term: 4,
        index: 6,
        entries: vec![entry],
        commit: 5,
        commit_term: 3,
        snapshot: Some(SnapshotMeta { index: 9, term: 2, conf_state }),
        request_snapshot: 8,
        reject: true,
        reject_hint: 4,
        context: vec![0xee].into(),
        priority: -1,
    };
    let expected = [
        "0a 72 0a 70",                               // message, raft
        "08 03",                                     // kind 3
        "11 0100000000000000",                       // to 1
        "19 0200000000000000",                       // from 2
        "20 ac02 28 04 30 06",                       // term 300, log term 4, index 6
        "3a 0c 08 07 10 03 18 02 22 01 dd 2a 01 cc", // entry 7 of term 3, kind 2
        "40 05 48 03",                               // commit 5 of term 3
        "52 36 08 09 10 02",                         // snapshot of 9 in term 2
        "1a 10 0100000000000000 0200000000000000",   // voters 1 and 2
        "22 08 0300000000000000",                    // learner 3
        "2a 08 0400000000000000",                    // outgoing voter 4
        "32 08 0500000000000000",                    // next learner 5
        "38 01",                                     // leaves by itself
        "58 08 60 01 68 04",                         // asks for a snapshot with 8, rejects, hint 4
        "72 01 ee 78 01",                            // context, priority -1
    ];
    assert_frame(&[PeerMessage::Raft(Box::new(message))], &expected);
}

#[test]
fn everything_else() {
    let id = RequestId(2);
    let message = ToClient::Response { id, response: Response::Reply(Reply::Done) };
    let messages = [
        PeerMessage::SnapshotPart { offset: 300, data: vec![0xdd].into() },
        PeerMessage::SnapshotEnd { length: 301, crc32c: 0x0403_0201 },
        PeerMessage::Request { connection: 1, id, request: Ok(Request::Read(Query::Status)) },
        PeerMessage::NotLeading { connection: 1, id },
        PeerMessage::Abandoned { connection: 1, id },
        PeerMessage::Disconnected { connection: 1 },
        PeerMessage::Reply { connection: 1, message },
        PeerMessage::Close { connection: 1 },
        PeerMessage::HungUp { connection: 1 },
    ];
    let expected = [
        "0a 08 12 06 08 ac02 12 01 dd",                   // part at 300
        "0a 0a 1a 08 08 ad02 15 01020304",                // end of 301 bytes, checksum
        "0a 0c 22 0a 08 01 12 06 08 02 3a 02 3a 00",      // connection 1, id 2: read status
        "0a 06 2a 04 08 01 10 02",                        // not leading
        "0a 06 32 04 08 01 10 02",                        // abandoned
        "0a 02 38 01",                                    // disconnected
        "0a 0e 42 0c 08 01 12 08 0a 06 08 02 12 02 6200", // reply: done
        "0a 02 48 01",                                    // close
        "0a 02 50 01",                                    // hung up
    ];
    assert_frame(&messages, &expected);
}

fn assert_frame(messages: &[PeerMessage], expected: &[&str]) {
    let bytes = frame(messages);
    let body = only_body(&bytes);
    assert_eq!(hex(&body), pieces(expected));
    assert_eq!(decode_peer_frame(&body).expect("what was encoded can be decoded"), messages);
}
