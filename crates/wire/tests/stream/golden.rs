//! The bytes themselves. If one of these changes, releases that are already out there cannot talk to the new one: raise the protocol
//! version instead.

mod cluster;

use leasehold_core::answer::{
    Answer, Ending, Grant, HeldLease, Holdings, Item, ItemKind, Refusal, Renewed, Reply, Unavailable,
    WaitEnding, Waited,
};
use leasehold_core::protocol::{
    Change, Changes, Failure, Plain, Request, RequestId, Response, ToClient, Watch,
};
use leasehold_core::{
    Acquire, AttachNumber, CommandNumber, ItemNumber, Label, Millis, Mode, Nonce, Op, Open, Policies,
    RegisterKey, RenewalNumber, Request as ResourceRequest, ResourceName, Revision, Sequence, SessionCommand,
    SessionId, SessionKind, Token, Value,
};
use leasehold_wire::{
    FrameReader, Hello, OpeningReader, decode_client_frame, decode_server_frame, encode_client,
    encode_opening, encode_server,
};

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Puts the pieces of a golden frame together. Each piece is one thought: a length, a key with its number, a text.
pub(crate) fn pieces(pieces: &[&str]) -> String {
    pieces.concat().replace(' ', "")
}

fn name(text: &str) -> ResourceName {
    ResourceName::new(text).expect("a good name")
}

#[test]
fn opening() {
    let hello = Hello { protocol: 1, ..Hello::new("0.1.0", 300, "ab") }.with_epoch(2).with_leader("a:1");
    let mut bytes = Vec::new();
    encode_opening(&hello, &mut bytes).unwrap();
    let expected = pieces(&[
        "00 4c485353 0d0a 01", // NUL LHSS CR LF, framing 1
        "00000017",            // 23 bytes
        "08 01",               // protocol 1
        "12 05 302e312e30",    // program 0.1.0
        "18 ac02",             // pid 300
        "22 02 6162",          // incarnation ab
        "28 02",               // epoch 2
        "32 03 613a31",        // leader a:1
    ]);
    assert_eq!(hex(&bytes), expected);
    let mut reader = OpeningReader::new();
    reader.push(&bytes);
    assert_eq!(reader.hello(), Ok(Some(hello)));
}

#[test]
fn a_renewal_and_a_release() {
    let session = SessionId::from_u64(5);
    let requests = [
        (RequestId(1), Request::Renew { session, number: RenewalNumber::new(300), seen: ItemNumber::new(2) }),
        (
            RequestId(2),
            Request::Command(SessionCommand {
                session,
                sequence: Sequence::Streamed {
                    attach: AttachNumber::new(1),
                    number: CommandNumber::new(4),
                    seen: ItemNumber::new(2),
                },
                op: Op::Release { resource: name("jobs"), token: Token::from_u64(6), drained: true },
            }),
        ),
    ];
    let expected = pieces(&[
        "00000029",             // 41 bytes
        "0a 0b",                // a message of 11
        "08 01",                // id 1
        "22 07",                // renew
        "08 05 10 ac02 18 02",  // session 5, number 300, seen 2
        "0a 1a",                // a message of 26
        "08 02",                // id 2
        "2a 16",                // command
        "08 05",                // session 5
        "12 06 0801 1004 1802", // streamed: attach 1, number 4, seen 2
        "52 0a",                // release
        "0a 04 6a6f6273",       // resource jobs
        "10 06 18 01",          // token 6, drained
    ]);
    assert_client(&requests, &expected);
}

#[test]
fn an_open_and_an_acquire() {
    let open = Open {
        nonce: Nonce([0xee; 16]),
        label: Label::new("a").unwrap(),
        ttl: Millis::new(10_000),
        policies: Policies { grace: Millis::new(1), hard: Millis::new(2), delay: Millis::ZERO },
        kind: SessionKind::Streamed,
    };
    let acquire = Acquire {
        requests: vec![
            ResourceRequest { resource: name("x"), mode: Mode::Exclusive },
            ResourceRequest { resource: name("y"), mode: Mode::Slot { of: 3 } },
        ],
        value: Value::new(b"v".to_vec()).unwrap(),
        wait: Some(Millis::ZERO),
    };
    let command = SessionCommand {
        session: SessionId::from_u64(5),
        sequence: Sequence::Plain,
        op: Op::Acquire(acquire),
    };
    let requests = [(RequestId(1), Request::Open(open)), (RequestId(2), Request::Command(command))];
    let expected = pieces(&[
        "00000049",                               // 73 bytes
        "0a 24 08 01 12 20",                      // message, id 1, open
        "0a 10 eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee", // nonce
        "12 01 61 18 904e",                       // label a, ttl 10000 ms
        "22 04 0801 1002",                        // grace 1 ms, hard 2 ms
        "28 01",                                  // streamed
        "0a 21 08 02 2a 1d",                      // message, id 2, command
        "08 05 1a 00",                            // session 5, plain
        "22 17",                                  // acquire
        "0a 07 0a0178 1202 0a00",                 // x, exclusive
        "0a 07 0a0179 1202 1803",                 // y, slot of 3
        "12 01 76 18 00",                         // value v, wait 0 ms
    ]);
    assert_client(&requests, &expected);
}

#[test]
fn a_grant_a_refusal_and_an_answer_to_a_renewal() {
    let grant =
        Grant { resource: name("x"), token: Token::from_u64(9), fence: Token::from_u64(8), slot: Some(0) };
    let held =
        Unavailable::Held { holder: Label::new("h").unwrap(), token: Token::from_u64(9), overdue: true };
    let messages = [
        ToClient::Items {
            session: SessionId::from_u64(5),
            items: vec![Item {
                number: ItemNumber::new(3),
                kind: ItemKind::Answer {
                    command: CommandNumber::new(1),
                    answer: Answer::Granted(vec![grant]),
                },
            }],
        },
        ToClient::Response {
            id: RequestId(1),
            response: Response::Reply(Reply::Refused(Refusal::NotFree { resource: name("x"), why: held })),
        },
        ToClient::Response {
            id: RequestId(2),
            response: Response::Reply(Reply::Renewed(Renewed {
                number: RenewalNumber::new(4),
                after: ItemNumber::new(3),
                holdings: None,
            })),
        },
    ];
    let expected = pieces(&[
        "00000045",              // 69 bytes
        "0a 1b 12 19 08 05",     // message, items, session 5
        "12 15 08 03",           // item 3
        "12 11 08 01",           // the answer to command 1
        "12 0d 0a 0b 0a 09",     // granted: one grant
        "0a0178 1009 1808 2000", // x, token 9, fence 8, slot 0
        "0a 18 0a 16 08 01",     // message, response, id 1
        "12 12 6a 10 62 0e",     // reply, refused, not free
        "0a0178 12 09 0a 07",    // x, because it is held
        "0a0168 1009 1801",      // by h, token 9, overdue
        "0a 0c 0a 0a 08 02",     // message, response, id 2
        "12 06 1a 04",           // reply, renewed
        "0804 1003",             // number 4, after item 3
    ]);
    assert_server(&messages, &expected);
}

#[test]
fn plain_requests_and_watches() {
    let plain = |plain| Request::Plain { session: SessionId::from_u64(5), nonce: Nonce([0xee; 16]), plain };
    let op = Op::Cancel { acquire: CommandNumber::new(3) };
    let watch = |after| Request::Watch(Watch { prefix: "p".into(), after });
    let requests = [
        (RequestId(1), plain(Plain::Renew)),
        (RequestId(2), plain(Plain::Command { op, hold: true, numbered: None })),
        (RequestId(3), watch(None)),
        (RequestId(4), watch(Some(Revision::new(0)))),
        (RequestId(5), Request::StopWatch { watch: RequestId(3) }),
    ];
    let expected = pieces(&[
        "00000056",                                     // 86 bytes
        "0a 1a 08 01 42 16",                            // message, id 1, plain
        "08 05 12 10 eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee", // session 5, nonce
        "1a 00",                                        // renew
        "0a 1e 08 02 42 1a",                            // message, id 2, plain
        "08 05 12 10 eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee", // session 5, nonce
        "22 04 2803 6001",                              // command: cancel 3, hold
        "0a 07 08 03 4a 03 0a0170",                     // message, id 3, watch p
        "0a 09 08 04 4a 05 0a0170 1000",                // message, id 4, watch p after 0
        "0a 04 08 05 50 03",                            // message, id 5, stop watch 3
    ]);
    assert_client(&requests, &expected);
}

#[test]
fn the_answer_to_a_plain_renewal_and_a_wait_that_ended() {
    let grant =
        Grant { resource: name("x"), token: Token::from_u64(9), fence: Token::from_u64(8), slot: None };
    let holdings = Holdings {
        leases: vec![HeldLease { grant, release_requested: true }],
        waits: vec![Waited { acquire: CommandNumber::new(2), resources: vec![name("y"), name("z")] }],
    };
    let renewed =
        Renewed { number: RenewalNumber::new(4), after: ItemNumber::new(0), holdings: Some(holdings) };
    let ended = Reply::PlainWaitEnded { number: CommandNumber::new(2), why: WaitEnding::Cancelled };
    let response = |id, response| ToClient::Response { id: RequestId(id), response };
    let too_old = Failure::RevisionTooOld { after: Revision::new(1), oldest: Revision::new(2) };
    let messages = [
        response(1, Response::Reply(Reply::Renewed(renewed))),
        response(2, Response::Reply(ended)),
        response(3, Response::Failed(too_old)),
    ];
    let expected = pieces(&[
        "00000041",          // 65 bytes
        "0a 23 0a 21 08 01", // message, response, id 1
        "12 1d 1a 1b 0804",  // reply, renewed, number 4
        "1a 17",             // holdings
        "0a 0b 0a 07",       // a lease
        "0a0178 1009 1808",  // x, token 9, fence 8
        "10 01",             // its release is asked for
        "12 08 0802",        // the wait of acquire 2
        "120179 12017a",     // for y and z
        "0a 0c 0a 0a 08 02", // message, response, id 2
        "12 06 72 04 0802",  // reply, the wait of acquire 2 ended
        "10 04",             // cancelled
        "0a 0c 0a 0a 08 03", // message, response, id 3
        "22 06 2a 04",       // failed, the revision is too old
        "0801 1002",         // after 1, the oldest is 2
    ]);
    assert_server(&messages, &expected);
}

#[test]
fn changes() {
    let (resource, token, session) = (name("x"), Token::from_u64(9), SessionId::from_u64(5));
    let label = Label::new("h").unwrap();
    let grant = Grant { resource: resource.clone(), token, fence: Token::from_u64(8), slot: Some(0) };
    let value = Some(Value::new(b"v".to_vec()).unwrap());
    let key = RegisterKey::new("k").unwrap();
    let how = Ending::Taken { by: Token::from_u64(10) };
    let changes = vec![
        Change::Granted { grant, shared: true, session, label: label.clone(), value },
        Change::ValueSet { resource: resource.clone(), token, session, value: None },
        Change::RegisterWritten { resource: resource.clone(), key, token, removed: true },
        Change::Ended { resource, token, session, label, how },
    ];
    let watched = ToClient::Watched {
        watch: RequestId(3),
        changes: Changes { revision: Revision::new(300), changes },
        more: true,
    };
    let expected = pieces(&[
        "00000051",              // 81 bytes
        "0a 4f 1a 4d 08 03",     // message, watched, watch 3
        "12 47 08 ac02",         // changes of revision 300
        "12 17 0a 15 0a 09",     // granted: a grant
        "0a0178 1009 1808 2000", // x, token 9, fence 8, slot 0
        "1001 1805",             // shared, session 5
        "220168 2a0176",         // label h, value v
        "12 09 12 07",           // value set
        "0a0178 1009 1805",      // x, token 9, session 5, too long a value
        "12 0c 1a 0a",           // register written
        "0a0178 12016b",         // x, key k
        "1809 2001",             // token 9, removed
        "12 10 22 0e",           // ended
        "0a0178 1009 1805",      // x, token 9, session 5
        "220168 2a 02 280a",     // label h, taken by token 10
        "18 01",                 // more
    ]);
    assert_server(&[watched], &expected);
}

#[test]
fn a_wish_is_a_message_without_items_to_whoever_does_not_know_it() {
    let hint = ToClient::Hint { session: SessionId::from_u64(5), length: Millis::new(3_000) };
    let expected = pieces(&[
        "00000009",     // 9 bytes
        "0a 07 12 05",  // message, items
        "0805 18 b817", // session 5, the next renewal in 3000 ms
    ]);
    assert_server(&[hint], &expected);
    // The last five bytes, as a client reads them that was built before the field.
    let before = <ItemsBefore as prost::Message>::decode(&[0x08, 0x05, 0x18, 0xb8, 0x17][..]);
    assert_eq!(before.expect("an unknown field is skipped"), ItemsBefore { session: 5, items: Vec::new() });
}

/// `Items` before it had wishes.
#[derive(Clone, PartialEq, prost::Message)]
struct ItemsBefore {
    #[prost(uint64, tag = "1")]
    session: u64,
    #[prost(bytes = "vec", repeated, tag = "2")]
    items: Vec<Vec<u8>>,
}

#[test]
fn a_drain_and_an_offer_that_was_accepted() {
    let (resource, token) = (name("x"), Token::from_u64(9));
    let op = Op::SetDraining { resource: resource.clone(), token, in_flight: 3, within: Millis::new(300) };
    let session = SessionId::from_u64(5);
    let command = SessionCommand { session, sequence: Sequence::Plain, op: op.clone() };
    let plain = Request::Plain {
        session,
        nonce: Nonce([0xee; 16]),
        plain: Plain::Command { op, hold: false, numbered: None },
    };
    let expected = pieces(&[
        "0000003e",                                     // 62 bytes
        "0a 14 08 01 2a 10",                            // message, id 1, command
        "08 05 1a 00",                                  // session 5, plain
        "6a 0a 0a0178 1009 1803 20ac02", // set draining: x, token 9, 3 in flight, within 300 ms
        "0a 26 08 02 42 22",             // message, id 2, plain
        "08 05 12 10 eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee", // session 5, nonce
        "22 0c 6a 0a 0a0178 1009 1803 20ac02", // command: the same
    ]);
    assert_client(&[(RequestId(1), Request::Command(command)), (RequestId(2), plain)], &expected);

    let item = |number, kind| Item { number: ItemNumber::new(number), kind };
    let answer = ItemKind::Answer { command: CommandNumber::new(1), answer: Answer::DrainingShown };
    let label = Label::new("h").unwrap();
    let accepted =
        ItemKind::OfferAccepted { resource: resource.clone(), token, by: SessionId::from_u64(6), label };
    let shown = Change::DrainingShown { resource, token, session, in_flight: 3, within: Millis::new(300) };
    let refused = Response::Reply(Reply::Refused(Refusal::NotYetInUse));
    let messages = [
        ToClient::Items { session, items: vec![item(3, answer), item(4, accepted)] },
        ToClient::Response { id: RequestId(1), response: refused },
        ToClient::Watched {
            watch: RequestId(3),
            changes: Changes { revision: Revision::new(1), changes: vec![shown] },
            more: false,
        },
    ];
    let expected = pieces(&[
        "00000049",                     // 73 bytes
        "0a 20 12 1e 08 05",            // message, items, session 5
        "12 0a 08 03 12 06 08 01",      // item 3, the answer to command 1
        "12 02 5a 00",                  // draining shown
        "12 0e 08 04 4a 0a",            // item 4, the offer was accepted
        "0a0178 1009 1806 220168",      // x, token 9, by session 6, label h
        "0a 0b 0a 09 08 01 12 05",      // message, response, id 1, reply
        "6a 03 c201 00",                // refused: not yet in use
        "0a 18 1a 16 08 03",            // message, watched, watch 3
        "12 12 08 01 12 0e 3a 0c",      // changes of revision 1: draining shown
        "0a0178 1009 1805 2003 28ac02", // x, token 9, session 5, 3 in flight, within 300 ms
    ]);
    assert_server(&messages, &expected);
}

fn assert_server(messages: &[ToClient], expected: &str) {
    let mut bytes = Vec::new();
    encode_server(messages, &mut bytes).expect("a short frame");
    assert_eq!(hex(&bytes), expected);
    let mut reader = FrameReader::new();
    reader.push(&bytes);
    let frame = reader.next_frame().expect("within the limit").expect("a whole frame");
    assert_eq!(decode_server_frame(frame).expect("what was encoded can be decoded"), messages);
}

fn assert_client(requests: &[(RequestId, Request)], expected: &str) {
    let mut bytes = Vec::new();
    encode_client(requests, &mut bytes).expect("a short frame");
    assert_eq!(hex(&bytes), expected);
    let mut reader = FrameReader::new();
    reader.push(&bytes);
    let frame = reader.next_frame().expect("within the limit").expect("a whole frame");
    let heard: Vec<_> = requests.iter().cloned().map(|(id, request)| (id, Ok(request))).collect();
    assert_eq!(decode_client_frame(frame), Ok(heard));
}
