//! What a write costs through the proxy and without it, in one run, alternating.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::http::Request;
use leasehold_fence::http::Proxy;

use crate::stage::{Stage, stamp};

const REPEATS: usize = 7;
const CALLERS: u64 = 16;
/// Enough to be measured where it was built for that, and few enough elsewhere not to keep anybody waiting.
const WRITES: u64 = if cfg!(debug_assertions) { 320 } else { 8_000 };

/// Microseconds for one write, with so many callers at once.
async fn round(proxy: &Proxy) -> f64 {
    let left = Arc::new(AtomicU64::new(WRITES));
    let begin = leasehold_clock::read();
    let callers: Vec<_> = (0..CALLERS)
        .map(|_| {
            let (proxy, left) = (proxy.clone(), Arc::clone(&left));
            tokio::spawn(async move {
                while left
                    .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1))
                    .is_ok()
                {
                    let request = Request::post("/plain").body("0123456789".repeat(10)).unwrap();
                    let answer = proxy.send(&stamp(34), request).await.unwrap();
                    assert_eq!(answer.status(), 200);
                    let body =
                        axum::body::to_bytes(axum::body::Body::new(answer.into_body()), 100).await.unwrap();
                    assert_eq!(&body[..], b"100");
                }
            })
        })
        .collect();
    for caller in callers {
        caller.await.unwrap();
    }
    let took = leasehold_clock::read().since(begin).greater();
    #[expect(clippy::cast_precision_loss, reason = "a measurement")]
    let micros = took.as_micros() as f64 / WRITES as f64;
    micros
}

fn median(mut all: Vec<f64>) -> f64 {
    all.sort_by(f64::total_cmp);
    all[all.len() / 2]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_line_for_the_guide() {
    let stage = Stage::new().await;
    let direct = Proxy::new(&stage.upstream).unwrap();
    let (mut with, mut without) = (Vec::new(), Vec::new());
    round(&direct).await;
    round(&stage.proxy).await;
    for _ in 0..REPEATS {
        without.push(round(&direct).await);
        with.push(round(&stage.proxy).await);
    }
    let (with, without) = (median(with), median(without));
    println!(
        "fence-proxy: axum 0.8 behind it, {CALLERS} callers, {REPEATS} x {WRITES} writes, everything in one process: median {with:.0} us \
         ({:.0}/s) with, {without:.0} us ({:.0}/s) without, ratio {:.2}",
        1e6 / with,
        1e6 / without,
        with / without
    );
    assert!(with > 0.0 && without > 0.0);
}
