//! Frames between clients and nodes as bytes, there and back: what does not survive that is a panic, and so a violation.

use leasehold_core::protocol::{Request, RequestId, ToClient};
use leasehold_wire::{FrameReader, decode_client_frame, decode_server_frame, encode_client, encode_server};

/// What a node makes of the bytes of a client's frame.
pub(super) fn requests(frame: &[(RequestId, Request)]) -> Vec<(RequestId, Request)> {
    let mut bytes = Vec::new();
    encode_client(frame, &mut bytes).expect("a frame of a client fits");
    let mut reader = FrameReader::new();
    reader.push(&bytes);
    let body = reader.next_frame().expect("a frame begins with its length").expect("all of it is here");
    let heard = decode_client_frame(body).expect("what was encoded can be decoded");
    heard.into_iter().map(|(id, request)| (id, request.expect("every request is understood"))).collect()
}

/// What a client makes of the bytes of a node's frame.
pub(super) fn messages(frame: &[ToClient]) -> Vec<ToClient> {
    let mut bytes = Vec::new();
    encode_server(frame, &mut bytes).expect("a frame of a node fits");
    let mut reader = FrameReader::new();
    reader.push(&bytes);
    let body = reader.next_frame().expect("a frame begins with its length").expect("all of it is here");
    decode_server_frame(body).expect("what was encoded can be decoded")
}
