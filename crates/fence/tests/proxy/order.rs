//! Who waits for whom, while the store takes its time.

use std::time::Duration;

use leasehold_fence::proxy::Settings;
use leasehold_fence::{Error, Outcome, Receiver};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::proxy::stage::{Stage, Store, eventually, head, highest, stamp};

async fn kept(stage: &Stage, token: u64) {
    while stage.proxy.look("a").await.unwrap().highest.is_none_or(|mark| mark.token < token) {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test]
async fn equal_tokens_are_with_the_store_at_the_same_time() {
    let stage = Stage::new().await;
    stage.store.hold("one");
    let one = stage.begin(33, "/append/a", "one");
    stage.store.has("one").await;
    assert_eq!(stage.write(33, "two").await.unwrap(), 201);
    stage.store.let_go("one");
    assert_eq!(one.await.unwrap().unwrap(), 201);
}

#[tokio::test]
async fn a_greater_token_is_sent_when_the_smaller_ones_are_answered_and_not_before() {
    let stage = Stage::new().await;
    stage.store.hold("old");
    let old = stage.begin(33, "/append/a", "old");
    stage.store.has("old").await;
    let new = stage.begin(34, "/append/a", "new");
    kept(&stage, 34).await;
    let sealed = tokio::spawn({
        let proxy = stage.proxy.clone();
        async move { proxy.seal(&stamp(34)).await }
    });
    assert_eq!(highest(stage.write(33, "late").await), Some(34), "refused while the new one waits");
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(!stage.store.ever_had("new") && !sealed.is_finished(), "the old one is still at work");
    stage.store.let_go("old");
    assert_eq!(old.await.unwrap().unwrap(), 201, "it began before, and is carried out before");
    assert_eq!(new.await.unwrap().unwrap(), 201);
    sealed.await.unwrap().unwrap();
    assert_eq!(stage.store.order(), [(33, "old".to_owned()), (34, "new".to_owned())]);
}

/// A holder that is killed takes its connection with it, but not what it has sent.
#[tokio::test]
async fn a_caller_that_goes_away_does_not_let_the_next_one_in_early() {
    let stage = Stage::new().await;
    stage.store.hold("old");
    let mut old = TcpStream::connect(stage.serving.address).await.unwrap();
    let request = head(33, "/held/old", "Content-Length: 0\r\n\r\n");
    old.write_all(request.as_bytes()).await.unwrap();
    stage.store.has("old").await;
    drop(old);
    let new = stage.begin(34, "/append/a", "new");
    kept(&stage, 34).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(!stage.store.ever_had("new"), "the store may still carry out the old one");
    stage.store.let_go("old");
    assert_eq!(new.await.unwrap().unwrap(), 201);
    assert_eq!(stage.store.order(), [(33, "old".to_owned()), (34, "new".to_owned())]);
}

/// A holder that is paused in the middle of a request: half of it is with the store, and the rest never comes.
#[tokio::test]
async fn half_of_a_request_keeps_the_next_holder_out_no_longer_than_the_time_out() {
    let change = |settings| Settings { timeout: Duration::from_secs(3), ..settings };
    let stage = Stage::with(Store::default(), change).await;
    let mut old = TcpStream::connect(stage.serving.address).await.unwrap();
    let request = head(33, "/append/a", "Content-Length: 100\r\n\r\nhalf of it");
    old.write_all(request.as_bytes()).await.unwrap();
    kept(&stage, 33).await;
    assert_eq!(stage.write(34, "new").await.unwrap(), 201);
    assert_eq!(stage.store.order(), [(34, "new".to_owned())], "the store does not act on half of a request");
    let _ = old.write_all(&[b'x'; 90]).await;
    assert_eq!(stage.write(34, "more").await.unwrap(), 201);
    assert_eq!(stage.store.order().len(), 2);
}

#[tokio::test]
async fn an_upstream_that_is_too_slow_is_unknown_and_the_next_one_goes_on() {
    let change = |settings| Settings { timeout: Duration::from_secs(3), ..settings };
    let stage = Stage::with(Store::default(), change).await;
    stage.store.hold("slow");
    let said = stage.write(33, "slow").await.unwrap_err();
    assert_eq!(said.outcome(), Outcome::Unknown, "{said}");
    for part in [
        "nobody can say whether it was carried out",
        "no whole answer within 3000 ms",
        "look before you send it again",
    ] {
        assert!(said.to_string().contains(part), "{said}");
    }
    assert_eq!(stage.write(34, "new").await.unwrap(), 201);
    let raw = stage.serving.raw(&head(34, "/append/a", "Content-Length: 4\r\n\r\nslow")).await;
    assert!(raw.starts_with("HTTP/1.1 504 ") && raw.contains("\"kind\":\"unknown\""), "{raw}");
    // A read that is slow is unknown as well, and holds up nobody.
    let metrics =
        stage.serving.raw("GET /.leasehold/metrics HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").await;
    assert!(metrics.contains("outcome=\"unknown\"} 2"), "{metrics}");
}

/// What no proxy can do, shown so that nobody believes otherwise: the store has the request, and nobody can take it back.
#[tokio::test]
async fn not_covered_a_request_that_was_cut_is_carried_out_after_a_greater_token() {
    let change = |settings| Settings { timeout: Duration::from_secs(3), ..settings };
    let stage = Stage::with(Store::default(), change).await;
    stage.store.hold("old");
    let said = stage.begin(33, "/held/old", "").await.unwrap().unwrap_err();
    assert_eq!(said.outcome(), Outcome::Unknown, "the holder was told the truth");
    assert_eq!(stage.write(34, "new").await.unwrap(), 201);
    stage.store.let_go("old");
    eventually("it is carried out late", || stage.store.log().len() == 2).await;
    assert_eq!(
        stage.store.order(),
        [(34, "new".to_owned()), (33, "old".to_owned())],
        "this is the corruption"
    );
}

/// The same with a settling time that covers what the store needs.
#[tokio::test]
async fn a_settling_time_keeps_the_next_one_out_after_a_cut() {
    let change =
        |settings| Settings { timeout: Duration::from_secs(3), settle: Duration::from_secs(5), ..settings };
    let stage = Stage::with(Store::default(), change).await;
    stage.store.hold("old");
    let said = stage.begin(33, "/held/old", "").await.unwrap().unwrap_err();
    assert_eq!(said.outcome(), Outcome::Unknown);
    let new = stage.begin(34, "/append/a", "new");
    kept(&stage, 34).await;
    stage.store.let_go("old");
    eventually("it is carried out late", || stage.store.log().len() == 1).await;
    assert_eq!(new.await.unwrap().unwrap(), 201);
    assert_eq!(stage.store.order(), [(33, "old".to_owned()), (34, "new".to_owned())]);
}

#[tokio::test]
async fn an_upstream_that_dies_in_the_middle_is_unknown() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let upstream = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut buffer = [0; 1024];
            let read = tokio::io::AsyncReadExt::read(&mut stream, &mut buffer).await.unwrap();
            // Half of an answer for one, nothing for the other.
            if String::from_utf8_lossy(&buffer[..read]).contains("/half") {
                stream
                    .write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n")
                    .await
                    .unwrap();
            }
        }
    });
    let directory = tempfile::tempdir().unwrap();
    let serving = crate::proxy::stage::Serving::start(Settings::new(upstream, directory.path())).await;
    let said = crate::proxy::stage::write(&serving.proxy(), 33, "/nothing", "x").await.unwrap_err();
    assert!(matches!(said, Error::Unknown { .. }) && said.to_string().contains("ended"), "{said}");
    let raw = serving.raw(&head(33, "/half", "Content-Length: 0\r\n\r\n")).await;
    assert!(
        raw.contains("half") && !raw.ends_with("0\r\n\r\n"),
        "half of an answer must not look whole: {raw:?}"
    );
    let page = serving.raw("GET /.leasehold/metrics HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").await;
    assert!(page.contains("outcome=\"unknown\"} 2"), "{page}");
}

#[tokio::test]
async fn a_stop_answers_what_is_under_way_and_takes_nothing_new() {
    let mut stage = Stage::new().await;
    let idle = TcpStream::connect(stage.serving.address).await.unwrap();
    stage.store.hold("old");
    let (old, address) = (stage.begin(33, "/append/a", "old"), stage.serving.address);
    stage.store.has("old").await;
    let waiting = stage.begin(34, "/append/a", "new");
    kept(&stage, 34).await;
    stage.serving.ask_to_stop();
    let mut refused = false;
    for _ in 0..10_000 {
        refused = TcpStream::connect(address).await.is_err();
        if refused {
            break;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert!(refused, "the port is closed");
    stage.store.let_go("old");
    assert_eq!(old.await.unwrap().unwrap(), 201);
    assert_eq!(waiting.await.unwrap().unwrap(), 201);
    stage.serving.stop().await;
    drop(idle);
}
