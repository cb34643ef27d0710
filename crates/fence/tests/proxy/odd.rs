//! Requests that are no plain requests: refused in words, or passed on as they are meant.

use std::time::Duration;

use leasehold_fence::proxy::{MAX_HEAD_BYTES, MAX_HEADERS, Settings};
use leasehold_fence::{Error, Outcome, Receiver};

use crate::proxy::stage::{Serving, Stage, Store, eventually, head, stamp, write};

#[tokio::test]
async fn what_takes_a_connection_over_is_refused() {
    let stage = Stage::new().await;
    let upgrade =
        "GET /plain HTTP/1.1\r\nHost: a\r\nConnection: upgrade, close\r\nUpgrade: websocket\r\n\r\n";
    let said = stage.serving.raw(upgrade).await;
    assert!(said.starts_with("HTTP/1.1 501 ") && said.contains("an upgrade to \\\"websocket\\\""), "{said}");
    let said = stage.serving.raw("CONNECT a:443 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").await;
    assert!(said.starts_with("HTTP/1.1 501 ") && said.contains("upgrade-refused"), "{said}");
}

#[tokio::test]
async fn a_read_that_asks_to_be_taken_for_a_write_is_refused_and_a_write_with_a_token_may_ask() {
    let stage = Stage::new().await;
    for header in ["X-HTTP-Method-Override", "x-http-method", "X-Method-Override"] {
        let ask = format!("GET /plain HTTP/1.1\r\nHost: a\r\nConnection: close\r\n{header}: DELETE\r\n\r\n");
        let said = stage.serving.raw(&ask).await;
        assert!(said.starts_with("HTTP/1.1 400 ") && said.contains("\"override-refused\""), "{said}");
        assert!(said.contains(&format!("{} asks", header.to_lowercase())), "{said}");
        let fenced = format!("{header}: PATCH\r\nContent-Length: 0\r\n\r\n");
        let said = stage.serving.raw(&head(34, "/headers", &fenced)).await;
        assert!(said.starts_with("HTTP/1.1 200 ") && said.contains("PATCH"), "{said}");
    }
}

#[tokio::test]
async fn http_2_is_refused_in_words_that_both_versions_show() {
    let stage = Stage::new().await;
    let said = stage.serving.raw("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await;
    assert!(said.starts_with("HTTP/1.1 505 ") && said.contains("version-refused"), "{said}");
}

#[tokio::test]
async fn targets_that_are_no_paths_are_refused_and_whole_urls_are_understood() {
    let stage = Stage::new().await;
    let ask = |line: &str| format!("{line}\r\nHost: a\r\nConnection: close\r\n\r\n");
    let said = stage.serving.raw(&ask("OPTIONS * HTTP/1.1")).await;
    assert!(said.starts_with("HTTP/1.1 400 ") && said.contains("target-refused"), "{said}");
    let said = stage.serving.raw(&ask("GET http://elsewhere/plain HTTP/1.1")).await;
    assert!(said.starts_with("HTTP/1.1 200 ") && said.ends_with("plain"), "{said}");
    let said = stage.serving.raw(&ask("GET http://elsewhere/.leasehold/nothing HTTP/1.1")).await;
    assert!(said.starts_with("HTTP/1.1 404 ") && said.contains("no-such-path"), "{said}");
    let said = stage.serving.raw(&ask("POST /.leasehold/seal HTTP/1.1")).await;
    assert!(said.starts_with("HTTP/1.1 405 ") && said.contains("allow: PUT"), "{said}");
    let said = stage.serving.raw(&ask("GET /.leasehold/fence?nmae=a HTTP/1.1")).await;
    assert!(said.starts_with("HTTP/1.1 400 ") && said.contains("fence?name=NAME"), "{said}");
    let said = stage.serving.raw("GET /plain HTTP/1.0\r\n\r\n").await;
    assert!(said.starts_with("HTTP/1.0 200 ") && said.ends_with("plain"), "{said}");
}

#[tokio::test]
async fn heads_are_bounded() {
    let stage = Stage::new().await;
    let get = |more: &str| format!("GET /plain HTTP/1.1\r\nHost: a\r\nConnection: close\r\n{more}\r\n");
    let many = |count: usize| get(&(2..count).map(|nth| format!("x-{nth}: 1\r\n")).collect::<String>());
    assert!(stage.serving.raw(&many(MAX_HEADERS)).await.starts_with("HTTP/1.1 200 "));
    assert!(stage.serving.raw(&many(MAX_HEADERS + 1)).await.starts_with("HTTP/1.1 431 "));
    let long = |bytes: usize| get(&format!("x: {}\r\n", "x".repeat(bytes)));
    assert!(stage.serving.raw(&long(MAX_HEAD_BYTES / 2)).await.starts_with("HTTP/1.1 200 "));
    assert!(stage.serving.raw(&long(MAX_HEAD_BYTES * 2)).await.starts_with("HTTP/1.1 431 "));
}

#[tokio::test]
async fn headers_of_the_connection_stay_behind_and_others_arrive() {
    let stage = Stage::new().await;
    let more = "Connection: x-mine\r\nX-Mine: 1\r\nX-Yours: 2\r\nFencing-Holder: me\r\nExpect: 100-continue\r\nContent-Length: 0\r\n\r\n";
    let said = stage.serving.raw(&head(34, "/headers", more)).await;
    for (part, there) in [
        ("\"host\": \"a\"", true),
        ("\"x-yours\": \"2\"", true),
        ("\"fencing-token\": \"34\"", true),
        ("\"x-forwarded-for\": \"127.0.0.1\"", true),
        ("x-mine", false),
        ("\"expect\"", false),
    ] {
        assert_eq!(said.contains(part), there, "{part}: {said}");
    }
}

#[tokio::test]
async fn two_lengths_that_differ_are_refused_by_the_door() {
    let stage = Stage::new().await;
    let both = head(
        34,
        "/append/a",
        "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /x HTTP/1.1\r\n\r\n",
    );
    let said = stage.serving.raw(&both).await;
    let answers = said.matches("HTTP/1.1 ").count();
    assert!(answers <= 1, "a second request was smuggled: {said}");
    let twice = head(34, "/append/a", "Content-Length: 1\r\nContent-Length: 2\r\n\r\nxy");
    assert!(stage.serving.raw(&twice).await.starts_with("HTTP/1.1 400 "));
}

#[tokio::test]
async fn an_upstream_that_is_not_there_is_failed_and_nothing_was_sent() {
    let directory = tempfile::tempdir().unwrap();
    let serving = Serving::start(Settings::new("http://127.0.0.1:1", directory.path())).await;
    let said = write(&serving.proxy(), 34, "/append/a", "x").await.unwrap_err();
    assert!(
        matches!(said, Error::Failed { .. }) && said.to_string().contains("takes no connection"),
        "{said}"
    );
    let raw = serving.raw(&head(34, "/append/a", "Content-Length: 0\r\n\r\n")).await;
    assert!(raw.starts_with("HTTP/1.1 502 ") && raw.contains("upstream-unreachable"), "{raw}");
    // The fence was raised before, and that is no mistake.
    assert_eq!(serving.proxy().look("a").await.unwrap().highest.unwrap().token, 34);
}

#[tokio::test]
async fn a_disk_that_takes_nothing_is_failed_and_nothing_was_sent() {
    let stage = Stage::new().await;
    stage.write(33, "one").await.unwrap();
    std::fs::remove_dir_all(stage.directory.path().join("fence")).unwrap();
    // Until the file has to be written anew nobody notices that it has no name any more.
    for nth in 0..3_000 {
        let name = format!("{nth:0>500}");
        match stage.proxy.seal(&leasehold_fence::Stamp::new(name, 1).unwrap()).await {
            Ok(()) => {}
            Err(Error::Failed { source, .. }) => {
                assert!(source.to_string().contains("the fence cannot be kept"), "{source}");
                let said = stage.write(34, "two").await.unwrap_err();
                assert_eq!(said.outcome(), Outcome::Failed);
                assert!(!stage.store.ever_had("two"));
                assert_eq!(stage.write(33, "again").await.unwrap_err().outcome(), Outcome::Stale);
                return;
            }
            Err(other) => panic!("{other}"),
        }
    }
    panic!("it was never written anew");
}

#[tokio::test]
async fn requests_at_once_are_bounded() {
    let change = |settings| Settings { max_in_flight: 3, ..settings };
    let stage = Stage::with(Store::default(), change).await;
    stage.store.hold("held");
    let full: Vec<_> = (0..3).map(|_| stage.begin(34, "/append/a", "held")).collect();
    eventually("it is full", || stage.store.arrivals() == 3).await;
    let said = stage.write(34, "too much").await.unwrap_err();
    assert!(
        matches!(said, Error::Failed { .. }) && said.to_string().contains("the limit of 3 requests"),
        "{said}"
    );
    let read = stage.serving.raw("GET /plain HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").await;
    assert!(read.starts_with("HTTP/1.1 503 ") && read.contains("retry-after: 1"), "{read}");
    // A seal takes nothing of the upstream's room.
    stage.proxy.seal(&stamp(34)).await.unwrap();
    stage.store.let_go("held");
    for one in full {
        assert_eq!(one.await.unwrap().unwrap(), 201);
    }
    assert_eq!(stage.write(34, "again").await.unwrap(), 201);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_at_once_go_through_and_a_greater_token_waits_for_every_one_of_them() {
    descriptors();
    let change = |settings| Settings { timeout: Duration::from_secs(60), ..settings };
    let stage = Stage::with(Store::default(), change).await;
    stage.store.hold("held");
    let many: Vec<_> = (0..1_000).map(|_| tokio::spawn(until_taken(stage.proxy.clone()))).collect();
    eventually("all are there at once", || stage.store.arrivals() == 1_000).await;
    let new = stage.begin(34, "/append/a", "new");
    while stage.proxy.look("a").await.unwrap().highest.unwrap().token < 34 {}
    assert!(!stage.store.ever_had("new"));
    stage.store.let_go("held");
    for one in many {
        assert_eq!(one.await.unwrap(), 201);
    }
    assert_eq!(new.await.unwrap().unwrap(), 201);
    let order = stage.store.order();
    assert_eq!(order.len(), 1_001);
    assert_eq!(order.last(), Some(&(34, "new".to_owned())));
}

/// A machine that is busy with something else may take no connection for a while. What failed was not written, and is tried again.
async fn until_taken(proxy: leasehold_fence::http::Proxy) -> u16 {
    loop {
        match write(&proxy, 33, "/append/a", "held").await {
            Ok(status) => return status,
            Err(Error::Failed { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

/// A thousand requests are four thousand sockets here, because both ends of every connection are in this process.
fn descriptors() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).unwrap();
}
