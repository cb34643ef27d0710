//! What passes, what is refused, and what the proxy says about itself.

use leasehold_fence::proxy::{FenceProxy, Settings};
use leasehold_fence::{Counts, Error, Outcome, Receiver};

use crate::proxy::stage::{Serving, Stage, Store, head, highest, stamp, write};

#[tokio::test]
async fn a_stale_write_is_refused_and_never_reaches_the_store() {
    let stage = Stage::new().await;
    assert_eq!(stage.write(33, "one").await.unwrap(), 201);
    assert_eq!(stage.write(33, "two").await.unwrap(), 201);
    assert_eq!(stage.write(34, "three").await.unwrap(), 201);
    assert_eq!(highest(stage.write(33, "late").await), Some(34));
    assert_eq!(stage.write(34, "four").await.unwrap(), 201);
    let order = stage.store.order();
    assert_eq!(order.iter().map(|(token, _)| *token).collect::<Vec<_>>(), [33, 33, 34, 34]);
    assert!(!stage.store.ever_had("late"));
}

#[tokio::test]
async fn a_seal_refuses_what_comes_before_the_first_write() {
    let stage = Stage::new().await;
    stage.proxy.seal(&stamp(34)).await.unwrap();
    stage.proxy.seal(&stamp(34)).await.unwrap();
    assert_eq!(highest(stage.write(33, "late").await), Some(34));
    match stage.proxy.seal(&stamp(33)).await {
        Err(Error::Stale(stale)) => assert_eq!((stale.token, stale.highest), (33, Some(34))),
        other => panic!("{other:?}"),
    }
    assert_eq!(stage.store.log(), []);
}

#[tokio::test]
async fn tokens_above_two_to_the_53_differ() {
    let stage = Stage::new().await;
    let large = (1 << 53) + 1;
    stage.proxy.seal(&stamp(large)).await.unwrap();
    assert_eq!(highest(stage.write(large - 1, "late").await), Some(large));
    assert_eq!(stage.write(i64::MAX as u64, "last").await.unwrap(), 201);
}

#[tokio::test]
async fn a_look_shows_the_highest_token_and_who_was_refused() {
    let stage =
        Stage::with(Store::default(), |settings| Settings { at: Some(|| "noon".to_owned()), ..settings })
            .await;
    let unknown = stage.proxy.look("a").await.unwrap();
    assert_eq!((unknown.highest, unknown.refusals), (None, Some(Vec::new())));
    stage.write(34, "x").await.unwrap();
    stage.write(33, "x").await.unwrap_err();
    let seen = stage.proxy.look("a").await.unwrap();
    let mark = seen.highest.unwrap();
    assert_eq!((mark.token, mark.holder.as_deref()), (34, Some("holder-34")));
    let refused = &seen.refusals.unwrap()[0];
    assert_eq!((refused.token, refused.highest, refused.holder.as_deref()), (33, 34, Some("holder-33")));
    assert_eq!(refused.at.as_deref(), Some("noon"));
    // A name that needs encoding is found too.
    let odd = leasehold_fence::Stamp::new("a, b+c&d=%e é", 7).unwrap();
    stage.proxy.seal(&odd).await.unwrap();
    assert_eq!(stage.proxy.look(odd.name()).await.unwrap().highest.unwrap().token, 7);
}

#[tokio::test]
async fn the_highest_token_is_known_after_a_restart() {
    let stage = Stage::new().await;
    stage.write(34, "x").await.unwrap();
    let directory = stage.directory.path().join("fence");
    stage.serving.stop().await;
    let again = Serving::start(Settings::new(&stage.upstream, &directory)).await;
    assert_eq!(highest(write(&again.proxy(), 33, "/append/a", "late").await), Some(34));
    let in_use = FenceProxy::open(Settings::new(&stage.upstream, &directory)).unwrap_err().to_string();
    assert!(in_use.contains(&format!("is used by process {}", std::process::id())), "{in_use}");
}

#[tokio::test]
async fn writes_need_a_stamp_and_reads_do_not() {
    let stage = Stage::new().await;
    let said = stage
        .serving
        .raw("POST /append/a HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 1\r\n\r\nx")
        .await;
    assert!(said.starts_with("HTTP/1.1 428 ") && said.contains("fencing-answer: token-missing"), "{said}");
    assert!(said.contains("fencing-token is missing, and writes need one"), "{said}");
    let nameless = "POST /append/a HTTP/1.1\r\nHost: a\r\nFencing-Token: 3\r\nConnection: close\r\n\r\n";
    let said = stage.serving.raw(nameless).await;
    assert!(said.starts_with("HTTP/1.1 428 ") && said.contains("name-missing"), "{said}");
    let said = stage.serving.raw(&nameless.replace('3', "three")).await;
    assert!(said.starts_with("HTTP/1.1 400 ") && said.contains("\\\"three\\\" is no whole number"), "{said}");
    for method in ["GET", "HEAD"] {
        let said = stage
            .serving
            .raw(&format!("{method} /plain HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"))
            .await;
        assert!(said.starts_with("HTTP/1.1 200 ") && said.contains("content-length: 5"), "{said}");
        assert_eq!(said.ends_with("plain"), method == "GET", "{said}");
    }
    assert_eq!(stage.store.log(), []);
}

#[tokio::test]
async fn with_all_reads_are_fenced_too_and_with_a_name_everything_is_under_it() {
    let change = |settings| Settings { all: true, name: Some("service".to_owned()), ..settings };
    let stage = Stage::with(Store::default(), change).await;
    let get = |token: &str| format!("GET /plain HTTP/1.1\r\nHost: a\r\n{token}Connection: close\r\n\r\n");
    assert!(stage.serving.raw(&get("")).await.starts_with("HTTP/1.1 428 "));
    assert!(stage.serving.raw(&get("Fencing-Token: 34\r\n")).await.ends_with("plain"));
    assert!(stage.serving.raw(&get("Fencing-Token: 33\r\n")).await.starts_with("HTTP/1.1 412 "));
    let other = stage.serving.raw(&get("Fencing-Token: 35\r\nFencing-Name: other\r\n")).await;
    assert!(other.starts_with("HTTP/1.1 400 ") && other.contains("name-differs"), "{other}");
    assert_eq!(stage.proxy.look("service").await.unwrap().highest.unwrap().token, 34);
}

#[tokio::test]
async fn a_refusal_has_the_members_that_programs_compare() {
    let stage = Stage::new().await;
    stage.write(34, "x").await.unwrap();
    let said = stage.serving.raw(&head(33, "/append/a", "Content-Length: 1\r\n\r\ny")).await;
    assert!(said.starts_with("HTTP/1.1 412 Precondition Failed\r\n"), "{said}");
    for part in [
        "content-type: application/problem+json",
        "\"code\":\"stale\"",
        "\"kind\":\"refused\"",
        "\"name\":\"a\"",
        "\"token\":\"33\"",
        "\"highest\":\"34\"",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
}

#[tokio::test]
async fn every_write_and_seal_is_counted_once_by_its_end() {
    let stage = Stage::new().await;
    let counts = Counts::default();
    let proxy = stage.proxy.clone().counted(&counts);
    proxy.seal(&stamp(34)).await.unwrap();
    proxy.seal(&stamp(33)).await.unwrap_err();
    write(&proxy, 34, "/append/a", "x").await.unwrap();
    write(&proxy, 34, "/no-such-path", "x").await.unwrap();
    write(&proxy, 33, "/append/a", "x").await.unwrap_err();
    let place = proxy.place();
    assert_eq!(counts.writes(place, Outcome::Accepted), 2, "an answer of the service is an answer");
    assert_eq!((counts.writes(place, Outcome::Stale), counts.seals(place, Outcome::Stale)), (1, 1));

    let metrics = "GET /.leasehold/metrics HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    let page = stage.serving.raw(metrics).await;
    let receiver = &stage.upstream;
    for line in [
        format!("leasehold_fence_writes_total{{receiver=\"{receiver}\",outcome=\"accepted\"}} 2"),
        format!("leasehold_fence_writes_total{{receiver=\"{receiver}\",outcome=\"stale\"}} 1"),
        format!("leasehold_fence_seals_total{{receiver=\"{receiver}\",outcome=\"accepted\"}} 1"),
        format!("leasehold_fence_seals_total{{receiver=\"{receiver}\",outcome=\"stale\"}} 1"),
    ] {
        assert!(page.contains(&line), "{line}: {page}");
    }
}

#[tokio::test]
async fn a_service_that_is_no_proxy_is_not_taken_for_sealed() {
    let upstream = Store::default().serve().await;
    let wrong = leasehold_fence::http::Proxy::new(&upstream).unwrap();
    let said = wrong.seal(&stamp(34)).await.unwrap_err();
    assert!(matches!(said, Error::Failed { .. }) && said.to_string().contains("is no fence proxy"), "{said}");
}
