//! The suite that every receiver passes, through the proxy; and ways around it that the suite finds.

use std::sync::Arc;
use std::time::Duration;

use axum::http::Request;
use leasehold_fence::conformance::{Load, Report, Subject, Trouble, Violation, Writer, Written, run};
use leasehold_fence::http::{Proxy, stamped};
use leasehold_fence::{Error, Receiver, Stamp};

use crate::proxy::stage::{Stage, Store};

/// How writes reach the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// Through the proxy.
    Proxied,
    /// Past it: the guard is taken out.
    Past,
    /// Sealed at the proxy for each write, and sent past it: checked, then acted.
    CheckedThenPast,
}

struct Tried {
    stage: Stage,
    way: Way,
}

struct Writing {
    through: Proxy,
    past: Proxy,
    way: Way,
    has_begun: bool,
}

impl Writer for Writing {
    async fn write(&mut self, stamp: &Stamp, value: &str) -> Result<(), Error> {
        if !std::mem::replace(&mut self.has_begun, true) {
            // Later holders come later: each finds the one before it in the middle of its work, and not all at the same door.
            tokio::time::sleep(Duration::from_millis((stamp.token() + 2) % 5 * 20)).await;
        }
        if self.way == Way::CheckedThenPast {
            self.through.seal(stamp).await?;
        }
        let path = format!("/append/{}", stamp.name());
        let mut request = Request::post(path).body(value.to_owned()).unwrap();
        stamped(request.headers_mut(), stamp)?;
        let proxy = if self.way == Way::Proxied { &self.through } else { &self.past };
        let answer = proxy.send(stamp, request).await?;
        assert_eq!(answer.status(), 201);
        Ok(())
    }
}

impl Subject for Tried {
    type Writer = Writing;

    fn receiver(&self) -> Arc<dyn Receiver> {
        Arc::new(self.stage.proxy.clone())
    }

    async fn writer(&self) -> Result<Writing, Trouble> {
        let (through, past) = (self.stage.serving.proxy(), Proxy::new(&self.stage.upstream)?);
        Ok(Writing { through, past, way: self.way, has_begun: false })
    }

    async fn written(&self, name: &str) -> Result<Vec<Written>, Trouble> {
        let log = self.stage.store.log().into_iter().filter(|(of, _, _)| of == name);
        Ok(log.map(|(_, token, value)| Written { token, value }).collect())
    }
}

async fn tried(way: Way) -> Result<Report, Violation> {
    let stage = Stage::with(Store::dawdling(), |settings| settings).await;
    run(&Tried { stage, way }, "t", Load::default()).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_proxy_does_what_every_receiver_must_do() {
    let report = tried(Way::Proxied).await.unwrap();
    println!("fence-proxy: {report}");
    assert_eq!((report.races, report.failed, report.unknown), (8, 0, 0));
    assert!(report.accepted > 50 && report.stale_tried > 50, "{report}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wrong_way_writes_past_the_proxy_are_found_by_the_suite() {
    match tried(Way::Past).await {
        Err(Violation::Broken { rule, .. }) => assert_eq!(rule, "tokens never fall"),
        other => panic!("{other:?}"),
    }
}

/// Every write was checked, and everything that was checked was right at that moment.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wrong_way_check_then_act_is_found_by_the_suite() {
    // Who overtakes whom is left to chance, so it is given a few.
    for _ in 0..5 {
        match tried(Way::CheckedThenPast).await {
            Err(Violation::Broken { rule, .. }) => return assert_eq!(rule, "tokens never fall"),
            Ok(_) => {}
            Err(other) => panic!("{other:?}"),
        }
    }
    panic!("it was not found");
}

/// The same step by step: asked first, and sent afterwards by another way.
#[tokio::test]
async fn wrong_way_a_check_at_the_proxy_and_a_write_past_it() {
    let stage = Stage::new().await;
    let past = Proxy::new(&stage.upstream).unwrap();
    let (old, new) = (crate::proxy::stage::stamp(33), crate::proxy::stage::stamp(34));
    stage.proxy.seal(&old).await.unwrap();
    stage.proxy.seal(&new).await.unwrap();
    crate::proxy::stage::write(&past, 34, "/append/a", "new").await.unwrap();
    crate::proxy::stage::write(&past, 33, "/append/a", "old").await.unwrap();
    assert_eq!(
        stage.store.order(),
        [(34, "new".to_owned()), (33, "old".to_owned())],
        "this is the corruption"
    );
    // The right way, from the same state.
    assert_eq!(crate::proxy::stage::highest(stage.write(33, "late").await), Some(34));
}
