//! The stream inside a gRPC call.

use leasehold_core::protocol::{Failure, RequestId, Response, ToClient};
use leasehold_wire::messages::{SessionIn, SessionMessage, SessionOut};
use leasehold_wire::{
    FrameError, Hello, MAX_FRAME_BYTES, decode_client_frame, decode_server_frame, encode_server,
};
use proptest::prelude::*;
use prost::Message;

use crate::strategies::server;

proptest! {
    #[test]
    fn a_frame_as_a_message_is_the_frame_without_its_length(messages in server::messages()) {
        let mut framed = Vec::new();
        encode_server(&messages, &mut framed).unwrap();
        let bytes = SessionOut::frame(&messages).unwrap().encode_to_vec();
        let Some(SessionMessage::Frame(frame)) = SessionOut::decode(&bytes[..]).unwrap().message else {
            panic!("a frame went in");
        };
        prop_assert_eq!(&frame[..], &framed[4..]);
        prop_assert_eq!(decode_server_frame(&frame).unwrap(), messages);
    }

    #[test]
    fn random_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        if let Ok(SessionIn { message: Some(SessionMessage::Frame(frame)) }) = SessionIn::decode(&bytes[..]) {
            let _ = decode_client_frame(&frame);
        }
    }
}

#[test]
fn a_hello_is_field_1_and_a_frame_is_field_2() {
    let hello = Hello { protocol: 1, ..Hello::new("a", 2, "") };
    let bytes = SessionOut::hello(&hello).unwrap().encode_to_vec();
    assert_eq!(bytes, [0x0a, 7, 0x08, 1, 0x12, 1, b'a', 0x18, 2]);
    let Some(SessionMessage::Hello(heard)) = SessionIn::decode(&bytes[..]).unwrap().message else {
        panic!("a hello went in");
    };
    assert_eq!(Hello::from_message(heard), Ok(hello));
    assert_eq!(SessionOut::frame(&[]).unwrap().encode_to_vec(), [0x12, 0]);
}

#[test]
fn a_frame_as_a_message_is_sent_up_to_the_limit_with_what_is_around_it() {
    let frame = |why: usize| {
        let failure = Failure::Unavailable { why: "w".repeat(why) };
        let message = ToClient::Response { id: RequestId(1), response: Response::Failed(failure) };
        SessionOut::frame(&[message])
    };
    let around = frame(MAX_FRAME_BYTES / 2).unwrap().encoded_len() - MAX_FRAME_BYTES / 2;
    for (bytes, taken) in [(MAX_FRAME_BYTES - 1, true), (MAX_FRAME_BYTES, true), (MAX_FRAME_BYTES + 1, false)]
    {
        match frame(bytes - around) {
            Ok(message) => assert!(taken && message.encoded_len() == bytes, "{bytes} bytes"),
            Err(error) => {
                assert!(!taken, "{bytes} bytes");
                assert_eq!(error, FrameError::TooLong { bytes, limit: MAX_FRAME_BYTES });
            }
        }
    }
}
