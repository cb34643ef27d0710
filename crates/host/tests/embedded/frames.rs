//! Clients that talk nonsense, too much, or not at all: their connection ends, and everybody else's goes on.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use leasehold_core::Millis;
use leasehold_core::protocol::{Query, Request};
use leasehold_wire::{Hello, MAX_FRAME_BYTES, PREFACE, encode_client, encode_opening};

use crate::caller::{Caller, dial, token_of};
use crate::place::serve;

/// Says something and reads to the end of the connection, which must come.
fn say_and_hang_up(mut stream: UnixStream, bytes: &[u8], end: bool) {
    // The server may hang up before it has read everything.
    let _ = stream.write_all(bytes);
    if end {
        stream.shutdown(std::net::Shutdown::Write).unwrap();
    }
    let mut heard = Vec::new();
    match stream.read_to_end(&mut heard) {
        Ok(_) => {}
        Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => {}
        Err(error) => panic!("the connection did not end: {error}"),
    }
}

fn opening() -> Vec<u8> {
    let mut bytes = Vec::new();
    encode_opening(&Hello::new("test", 1, ""), &mut bytes).unwrap();
    bytes
}

fn status_frame() -> Vec<u8> {
    let mut bytes = Vec::new();
    encode_client(&[(leasehold_core::protocol::RequestId(1), Request::Read(Query::Status))], &mut bytes)
        .unwrap();
    bytes
}

#[test]
fn nonsense_ends_its_own_connection_and_no_other() {
    let directory = tempfile::tempdir().unwrap();
    let server = serve(directory.path());
    let mut good = Caller::new(directory.path());
    let mut member = good.member(1, Millis::new(60_000));
    let token = good.take(&mut member, "job").token;

    let too_long = u32::try_from(MAX_FRAME_BYTES + 1).unwrap().to_be_bytes();
    let garbage: Vec<u8> = (0..100_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let short_garbage = [8_u32.to_be_bytes().as_slice(), &[0xff; 8]].concat();
    let behind_hello: [(&str, Vec<u8>, bool); 5] = [
        ("half a length", vec![0, 0], true),
        ("half a frame", status_frame()[..5].to_vec(), true),
        ("a length above the limit", too_long.to_vec(), false),
        ("a frame of garbage", short_garbage, false),
        ("a flood of garbage", garbage.clone(), true),
    ];
    for (what, bytes, end) in behind_hello {
        println!("{what}");
        say_and_hang_up(dial(directory.path()), &[opening(), bytes].concat(), end);
    }
    let instead_of_hello: [(&str, Vec<u8>, bool); 5] = [
        ("nothing", Vec::new(), true),
        ("another protocol", b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n".to_vec(), false),
        ("garbage", garbage, true),
        ("half a preface", PREFACE[..4].to_vec(), true),
        ("a hello of four gigabytes", [PREFACE.as_slice(), &[0xff; 4]].concat(), false),
    ];
    for (what, bytes, end) in instead_of_hello {
        println!("{what}");
        say_and_hang_up(dial(directory.path()), &bytes, end);
    }

    assert!(server.is_serving());
    assert_eq!(token_of(&good.lease("job").unwrap()), token);
    assert!(server.stop().is_none());
}

#[test]
fn a_client_of_a_later_protocol_is_told_ours_and_sent_away() {
    let directory = tempfile::tempdir().unwrap();
    let _server = serve(directory.path());
    let mut hello = Hello::new("test", 1, "");
    hello.protocol += 1;
    let mut bytes = Vec::new();
    encode_opening(&hello, &mut bytes).unwrap();
    let mut stream = dial(directory.path());
    stream.write_all(&bytes).unwrap();
    let mut heard = Vec::new();
    stream.read_to_end(&mut heard).unwrap();
    assert!(heard.starts_with(&PREFACE), "its hello comes first, so that both can name both versions");
}

/// It asks and never listens. What waits for it is bounded: then nothing more is read from it, and in the end its connection is cut.
#[test]
fn a_client_that_never_reads_is_cut_off_and_others_do_not_notice() {
    let directory = tempfile::tempdir().unwrap();
    let server = serve(directory.path());
    let mut good = Caller::new(directory.path());
    let mut deaf = dial(directory.path());
    // Longer than the server is patient with what it does not read.
    deaf.set_write_timeout(Some(Duration::from_secs(90))).unwrap();
    deaf.write_all(&opening()).unwrap();
    let frame = status_frame();
    let mut asked = 0_u64;
    let cut_off = loop {
        if let Err(error) = deaf.write_all(&frame) {
            break error;
        }
        asked += 1;
        assert!(asked < 100_000, "{asked} questions were taken in and no answer was read");
        if asked.is_multiple_of(10_000) {
            assert!(good.lease("job").is_none());
        }
    };
    println!("cut off after {asked} questions: {cut_off}");
    assert_ne!(cut_off.kind(), std::io::ErrorKind::WouldBlock, "it was kept for longer than it asked");
    assert!(server.is_serving());
    assert!(good.lease("job").is_none());
    assert!(server.stop().is_none(), "nothing of it is left that would keep the server");
}

#[test]
fn two_hundred_clients_at_once_are_all_served() {
    let directory = tempfile::tempdir().unwrap();
    let server = serve(directory.path());
    let mut callers: Vec<Caller> = (0..200).map(|_| Caller::new(directory.path())).collect();
    let mut members = Vec::new();
    for (number, caller) in (0_u8..).zip(&mut callers) {
        members.push(caller.member(number, Millis::new(60_000)));
    }
    // All ask before anybody listens.
    for (number, (caller, member)) in callers.iter_mut().zip(&mut members).enumerate() {
        let request = member.acquire(&format!("job-{number}"), None);
        caller.send(vec![request]);
    }
    for (caller, member) in callers.iter_mut().zip(&mut members) {
        let answer = caller.answer(member);
        assert!(matches!(answer, leasehold_core::Answer::Granted(_)), "{answer:?}");
    }
    for number in 0..200 {
        let lease = callers[199 - number].lease(&format!("job-{number}")).unwrap();
        assert_eq!(lease.holders[0].session, members[number].session);
    }
    assert!(server.stop().is_none());
}
