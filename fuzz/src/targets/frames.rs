//! The session stream, in both directions: bodies of frames, and whole streams in pieces of any length.

use leasehold_core::protocol::RequestId;
use leasehold_wire::{
    FrameError, FrameReader, Hello, OpeningReader, PREFACE, decode_client_frame, decode_server_frame,
    encode_client, encode_opening, encode_server,
};

use super::values::{requests, story};
use crate::Shape;

/// Bytes of the length before a frame.
const PREFIX: usize = 4;

fn opening(leader: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let hello = Hello::new("leasehold 0.1.0", 4_711, "b2f1").with_epoch(3).with_leader(leader);
    encode_opening(&hello, &mut bytes).expect("a short hello");
    bytes
}

pub(super) fn client_seeds() -> Vec<Vec<u8>> {
    let mut stream = opening("");
    let mut seeds = Vec::new();
    for (request, id) in requests().into_iter().zip(1..) {
        let mut frame = Vec::new();
        encode_client(&[(RequestId(id), request)], &mut frame).expect("a short frame");
        seeds.push(frame[PREFIX..].to_vec());
        if id % 6 == 0 {
            stream.extend_from_slice(&frame);
        }
    }
    seeds.push(stream);
    seeds
}

pub(super) fn server_seeds() -> Vec<Vec<u8>> {
    let mut stream = opening("10.0.0.1:7420");
    let mut seeds = Vec::new();
    for (message, number) in story().messages.into_iter().zip(1..) {
        let mut frame = Vec::new();
        encode_server(&[message], &mut frame).expect("a short frame");
        seeds.push(frame[PREFIX..].to_vec());
        if number % 12 == 0 {
            stream.extend_from_slice(&frame);
        }
    }
    seeds.push(stream);
    seeds
}

pub(super) fn check_client(input: &[u8]) -> Shape {
    let mut shape = check_requests(input);
    for frame in frames(input, &mut shape) {
        shape = shape.and(check_requests(&frame));
    }
    shape
}

fn check_requests(body: &[u8]) -> Shape {
    let heard = decode_client_frame(body);
    if let Ok(heard) = &heard {
        let good: Vec<_> =
            heard.iter().cloned().filter_map(|(id, request)| Some((id, request.ok()?))).collect();
        let mut bytes = Vec::new();
        encode_client(&good, &mut bytes).expect("what came in one frame goes into one");
        let expected: Vec<_> = good.into_iter().map(|(id, request)| (id, Ok(request))).collect();
        assert_eq!(decode_client_frame(&bytes[PREFIX..]), Ok(expected), "requests come out as others");
    }
    Shape::of(&heard)
}

pub(super) fn check_server(input: &[u8]) -> Shape {
    let mut shape = check_messages(input);
    for frame in frames(input, &mut shape) {
        shape = shape.and(check_messages(&frame));
    }
    shape
}

fn check_messages(body: &[u8]) -> Shape {
    let messages = decode_server_frame(body);
    if let Ok(messages) = &messages {
        let mut bytes = Vec::new();
        encode_server(messages, &mut bytes).expect("what came in one frame goes into one");
        let again = decode_server_frame(&bytes[PREFIX..]);
        assert_eq!(again.as_ref(), Ok(messages), "messages come out as others");
    }
    Shape::of(&messages)
}

/// The frames of a stream: behind its opening, if it has one, else from its beginning.
fn frames(input: &[u8], shape: &mut Shape) -> Vec<Vec<u8>> {
    let with_opening = input.starts_with(&PREFACE);
    // How the bytes arrive must not matter: all at once, or in pieces of a length that the input decides.
    let step = 1 + usize::from(input.last().copied().unwrap_or(0)) % 40;
    let (whole, pieces) = (read(input, input.len(), with_opening), read(input, step, with_opening));
    assert_eq!(whole, pieces, "a stream in pieces of {step} bytes says something else");
    *shape = shape.and(Shape::of(&whole.1)).and(Shape::of(&whole.2));
    whole.0
}

type Read = (Vec<Vec<u8>>, String, Result<(), FrameError>);

fn read(input: &[u8], step: usize, with_opening: bool) -> Read {
    let mut said = String::new();
    let (mut reader, rest) = if with_opening {
        let mut opening = OpeningReader::new();
        let mut pushed = 0;
        while pushed < input.len() && matches!(opening.hello(), Ok(None)) {
            let next = (pushed + step).min(input.len());
            opening.push(&input[pushed..next]);
            pushed = next;
        }
        match opening.hello() {
            Ok(Some(hello)) => {
                said = format!("{hello:?} {:?} {:?}", hello.check_client(), hello.check_service());
                check_hello(&hello);
            }
            other => return (Vec::new(), format!("{other:?}"), Ok(())),
        }
        (opening.into_frames().expect("the opening is all here"), &input[pushed..])
    } else {
        (FrameReader::new(), input)
    };
    let mut frames = Vec::new();
    let mut taken = take(&mut reader, &mut frames);
    for piece in rest.chunks(step.max(1)) {
        if taken.is_err() {
            break;
        }
        reader.push(piece);
        taken = take(&mut reader, &mut frames);
    }
    let ended = taken.and_then(|()| reader.finish());
    (frames, said, ended)
}

fn take(reader: &mut FrameReader, frames: &mut Vec<Vec<u8>>) -> Result<(), FrameError> {
    while let Some(frame) = reader.next_frame()? {
        frames.push(frame.to_vec());
    }
    Ok(())
}

fn check_hello(hello: &Hello) {
    let mut bytes = Vec::new();
    encode_opening(hello, &mut bytes).expect("a hello that was taken can be sent");
    let mut reader = OpeningReader::new();
    reader.push(&bytes);
    assert_eq!(reader.hello().as_ref(), Ok(&Some(hello.clone())), "a hello comes out as another");
}
