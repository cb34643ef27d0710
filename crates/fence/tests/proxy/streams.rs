//! Bodies go through as they come, both ways, and nothing is gathered.

use std::time::Duration;

use leasehold_fence::proxy::Settings;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::proxy::stage::{Stage, Store, head};

const PIECE: usize = 64 * 1024;

async fn read_until(stream: &mut TcpStream, wanted: &[u8]) -> Vec<u8> {
    let mut all = Vec::new();
    let mut buffer = vec![0; PIECE];
    while !all.windows(wanted.len()).any(|window| window == wanted) {
        let read = stream.read(&mut buffer).await.unwrap();
        assert_ne!(read, 0, "the connection ended: {}", String::from_utf8_lossy(&all));
        all.extend_from_slice(&buffer[..read]);
    }
    all
}

#[tokio::test]
async fn the_first_piece_is_answered_before_the_last_is_sent() {
    let stage = Stage::new().await;
    let mut stream = TcpStream::connect(stage.serving.address).await.unwrap();
    stream.write_all(head(34, "/echo", "Transfer-Encoding: chunked\r\n\r\n").as_bytes()).await.unwrap();
    for piece in ["one", "two", "six"] {
        stream.write_all(format!("3\r\n{piece}\r\n").as_bytes()).await.unwrap();
        read_until(&mut stream, piece.as_bytes()).await;
    }
    stream.write_all(b"0\r\n\r\n").await.unwrap();
    read_until(&mut stream, b"0\r\n\r\n").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn large_bodies_come_back_whole() {
    let stage = Stage::new().await;
    let pieces = 256;
    let stream = TcpStream::connect(stage.serving.address).await.unwrap();
    let (mut reading, mut writing) = stream.into_split();
    let length = PIECE * pieces;
    let request = head(34, "/echo", &format!("Content-Length: {length}\r\n\r\n"));
    let sending = tokio::spawn(async move {
        writing.write_all(request.as_bytes()).await.unwrap();
        for nth in 0..pieces {
            writing.write_all(&vec![u8::try_from(nth % 251).unwrap(); PIECE]).await.unwrap();
        }
        writing
    });
    let mut answer = Vec::new();
    reading.read_to_end(&mut answer).await.unwrap();
    drop(sending.await.unwrap());
    let body_at = answer.windows(4).position(|window| window == b"\r\n\r\n").unwrap() + 4;
    let head = String::from_utf8_lossy(&answer[..body_at]).into_owned();
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    // The echo does not know how long it will be, so it comes in chunks.
    let body =
        if head.contains("chunked") { dechunked(&answer[body_at..]) } else { answer[body_at..].to_vec() };
    assert_eq!(body.len(), length);
    assert!(
        body.chunks(PIECE)
            .zip(0..)
            .all(|(piece, nth): (&[u8], usize)| piece.iter().all(|byte| usize::from(*byte) == nth % 251))
    );
}

fn dechunked(mut rest: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    loop {
        let line = rest.windows(2).position(|window| window == b"\r\n").unwrap();
        let length = usize::from_str_radix(std::str::from_utf8(&rest[..line]).unwrap(), 16).unwrap();
        if length == 0 {
            return body;
        }
        body.extend_from_slice(&rest[line + 2..line + 2 + length]);
        rest = &rest[line + 2 + length + 2..];
    }
}

/// A search may have its question in the body, and who sends it may not know how long it is.
#[tokio::test]
async fn a_read_has_its_body_too_however_its_length_is_told() {
    let stage = Stage::new().await;
    for body in
        ["Content-Length: 5\r\n\r\nhello", "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"]
    {
        let read = format!("GET /echo HTTP/1.1\r\nHost: a\r\nConnection: close\r\n{body}");
        let said = stage.serving.raw(&read).await;
        assert!(said.starts_with("HTTP/1.1 200 ") && said.contains("hello"), "{body:?}: {said}");
        let fenced = read.replace("Connection", "Fencing-Token: 34\r\nFencing-Name: a\r\nConnection");
        let fenced = stage.serving.raw(&fenced).await;
        assert!(fenced.contains("hello"), "{body:?}: {fenced}");
    }
}

/// A caller that asks for much and reads nothing must not keep the next holder out for longer than the time-out.
#[tokio::test]
async fn a_caller_that_does_not_read_is_cut_in_time() {
    let change = |settings| Settings { timeout: Duration::from_millis(1_500), ..settings };
    let stage = Stage::with(Store::default(), change).await;
    let mut lazy = TcpStream::connect(stage.serving.address).await.unwrap();
    let request = head(33, "/echo", "Transfer-Encoding: chunked\r\n\r\n");
    lazy.write_all(request.as_bytes()).await.unwrap();
    let piece = [format!("{PIECE:x}\r\n").as_bytes(), &vec![b'x'; PIECE], b"\r\n"].concat();
    // Until nothing goes in any more: every buffer on the way is full.
    while tokio::time::timeout(Duration::from_millis(200), lazy.write_all(&piece))
        .await
        .is_ok_and(|sent| sent.is_ok())
    {}
    assert_eq!(stage.write(34, "new").await.unwrap(), 201);
    let mut rest = Vec::new();
    let _ = lazy.read_to_end(&mut rest).await;
    assert!(!rest.ends_with(b"0\r\n\r\n"), "half of an answer must not look whole");
}

#[tokio::test]
async fn one_connection_carries_many_requests_and_a_refusal_does_not_end_it() {
    let stage = Stage::new().await;
    let mut stream = TcpStream::connect(stage.serving.address).await.unwrap();
    for (token, status) in [(33, "201"), (34, "201"), (33, "412"), (34, "201")] {
        let request =
            head(token, "/append/a", "Content-Length: 1\r\n\r\nx").replace("Connection: close\r\n", "");
        stream.write_all(request.as_bytes()).await.unwrap();
        let said = read_until(&mut stream, if status == "412" { b"}" } else { b"\r\n\r\n" }).await;
        assert!(
            said.starts_with(format!("HTTP/1.1 {status} ").as_bytes()),
            "{}",
            String::from_utf8_lossy(&said)
        );
    }
}
