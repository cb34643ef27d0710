//! Each limit just below, at and just above it, as seen through the stream.

use leasehold_core::limits::{MAX_LABEL_BYTES, MAX_NAME_BYTES, MAX_UNIT, MAX_VALUE_BYTES};
use leasehold_core::protocol::{Failure, Query, Request, RequestId, Response, ToClient, Watch};
use leasehold_core::{
    Acquire, CommandNumber, Mode, Op, Request as ResourceRequest, ResourceName, Sequence, SessionCommand,
    SessionId, Value,
};
use leasehold_wire::{
    FrameError, MAX_FRAME_BYTES, decode_client_frame, decode_server_frame, encode_client, encode_server,
};

use crate::round_trip::only_frame;

/// A message of the service whose length is decided by `why`.
fn message(why: usize) -> ToClient {
    let failure = Failure::Unavailable { why: "w".repeat(why) };
    ToClient::Response { id: RequestId(1), response: Response::Failed(failure) }
}

#[test]
fn a_frame_of_the_service_is_taken_up_to_the_limit() {
    let mut bytes = Vec::new();
    encode_server(&[message(MAX_FRAME_BYTES / 2)], &mut bytes).unwrap();
    let around = bytes.len() - 4 - MAX_FRAME_BYTES / 2;
    for (length, taken) in
        [(MAX_FRAME_BYTES - 1, true), (MAX_FRAME_BYTES, true), (MAX_FRAME_BYTES + 1, false)]
    {
        let message = message(length - around);
        let mut bytes = b"before".to_vec();
        match encode_server(std::slice::from_ref(&message), &mut bytes) {
            Ok(()) => {
                assert!(taken, "{length} bytes");
                assert_eq!(bytes.len(), "before".len() + 4 + length, "the length aimed at is the length met");
                assert_eq!(decode_server_frame(&only_frame(&bytes["before".len()..])), Ok(vec![message]));
            }
            Err(error) => {
                assert!(!taken, "{length} bytes");
                assert_eq!(error, FrameError::TooLong { bytes: length, limit: MAX_FRAME_BYTES });
                assert_eq!(bytes, b"before");
            }
        }
    }
}

#[test]
fn the_largest_request_that_the_table_takes_fits_a_frame_many_times() {
    let request = |i: usize| ResourceRequest {
        resource: ResourceName::new(&format!("{i:0MAX_NAME_BYTES$}")).unwrap(),
        mode: Mode::Slot { of: u32::MAX },
    };
    let acquire = Acquire {
        requests: (0..MAX_UNIT).map(request).collect(),
        value: Value::new(vec![0; MAX_VALUE_BYTES]).unwrap(),
        wait: None,
    };
    let command = SessionCommand {
        session: SessionId::from_u64(u64::MAX),
        sequence: Sequence::Plain,
        op: Op::Acquire(acquire),
    };
    let one = (RequestId(u64::MAX), Request::Command(command));
    assert!(encode_client(&vec![one; 40], &mut Vec::new()).is_ok());
}

/// How a frame is heard that holds one request: field `kind` with this content.
fn heard(kind: u8, content: &[u8]) -> Result<Request, String> {
    let message = [&[0x08, 1, kind << 3 | 2][..], &varint(content.len()), content].concat();
    let body = [&[0x0a][..], &varint(message.len()), &message].concat();
    decode_client_frame(&body).expect("the frame is well formed").remove(0).1
}

fn varint(mut number: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number >= 0x80 {
        bytes.push(u8::try_from(number & 0x7f).expect("seven bits fit a byte") | 0x80);
        number >>= 7;
    }
    bytes.push(u8::try_from(number).expect("seven bits fit a byte"));
    bytes
}

const OPEN: u8 = 2;
const COMMAND: u8 = 5;
const READ: u8 = 7;

#[test]
fn names_are_taken_up_to_their_limit_and_shown_only_in_part() {
    for (length, taken) in [(MAX_NAME_BYTES - 1, true), (MAX_NAME_BYTES, true), (MAX_NAME_BYTES + 1, false)] {
        let name = "n".repeat(length);
        // read { lease }
        let read = [&[0x0a][..], &varint(length), name.as_bytes()].concat();
        match heard(READ, &read) {
            Ok(request) => {
                assert!(taken, "{length} bytes");
                assert_eq!(request, Request::Read(Query::Lease(ResourceName::new(&name).unwrap())));
            }
            Err(why) => {
                assert!(!taken, "{length} bytes");
                let shown = "n".repeat(48);
                let expected = format!(
                    "read.lease \"{shown}...\" is not taken: resource name of 513 bytes is above the maximum of 512 bytes"
                );
                assert_eq!(why, expected);
            }
        }
    }
}

#[test]
fn prefixes_are_taken_up_to_the_limit_of_names() {
    for (length, taken) in [(MAX_NAME_BYTES - 1, true), (MAX_NAME_BYTES, true), (MAX_NAME_BYTES + 1, false)] {
        let prefix = "p".repeat(length);
        let query = Query::Leases { prefix: prefix.clone(), after: None, limit: 1 };
        let watch = Watch { prefix, after: None };
        for request in [Request::Read(query), Request::Watch(watch)] {
            let mut bytes = Vec::new();
            encode_client(&[(RequestId(1), request)], &mut bytes).unwrap();
            let heard = decode_client_frame(&only_frame(&bytes)).unwrap();
            assert_eq!(heard[0].1.is_ok(), taken, "{length} bytes");
        }
    }
}

#[test]
fn labels_are_taken_up_to_their_limit() {
    for (length, taken) in
        [(MAX_LABEL_BYTES - 1, true), (MAX_LABEL_BYTES, true), (MAX_LABEL_BYTES + 1, false)]
    {
        // open { nonce, label, kind: streamed }
        let label = vec![b'l'; length];
        let open = [&[0x0a, 16][..], &[1; 16], &[0x12], &varint(length), &label, &[0x28, 1]].concat();
        assert_eq!(heard(OPEN, &open).is_ok(), taken, "{length} bytes");
    }
}

#[test]
fn values_are_taken_up_to_their_limit() {
    for (length, taken) in
        [(MAX_VALUE_BYTES - 1, true), (MAX_VALUE_BYTES, true), (MAX_VALUE_BYTES + 1, false)]
    {
        // command { plain {}, accept { resource: "a", value } }
        let accept = [&[0x0a, 1, b'a', 0x1a][..], &varint(length), &vec![7; length]].concat();
        let command = [&[0x1a, 0, 0x4a][..], &varint(accept.len()), &accept].concat();
        let heard = heard(COMMAND, &command);
        assert_eq!(heard.is_ok(), taken, "{length} bytes");
        if let Err(why) = heard {
            let expected =
                "accept.value is not taken: value of 65537 bytes is above the maximum of 65536 bytes";
            assert_eq!(why, expected);
        }
    }
}

#[test]
fn a_command_number_of_64_bits_survives() {
    let command = SessionCommand {
        session: SessionId::from_u64(1),
        sequence: Sequence::Plain,
        op: Op::Cancel { acquire: CommandNumber::new(u64::MAX) },
    };
    let mut bytes = Vec::new();
    encode_client(&[(RequestId(0), Request::Command(command.clone()))], &mut bytes).unwrap();
    let heard = decode_client_frame(&only_frame(&bytes)).unwrap();
    assert_eq!(heard, [(RequestId(0), Ok(Request::Command(command)))]);
}
