//! What the fence costs in Redis: one `SET` with and without it, in turns, on one connection.
//!
//! `cargo run --release -p leasehold-fence --example cost_redis`

use std::time::Duration;

use leasehold_fence::redis::Fence;
use leasehold_fence::{Receiver as _, Stamp};
use leasehold_kit::Receiver as _;
use leasehold_kit::redis::Server;
use redis::aio::MultiplexedConnection;
use tokio::task::JoinSet;

/// Each way is measured so many times, in turns; the median counts.
const REPEATS: usize = 9;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    for (durability, server) in [("log always", Server::start()?), ("no log", Server::start_fast()?)] {
        let connection = redis::Client::open(server.url())?.get_multiplexed_async_connection().await?;
        let fence = Fence::new("redis", connection.clone());
        let stamp = Stamp::new("cost", 34)?.held_by("worker-3")?;
        fence.seal(&stamp).await?;
        for (writers, each) in [(1, 2_000), (64, 400)] {
            let [mut without, mut with] = [Vec::new(), Vec::new()];
            for _ in 0..REPEATS {
                without.push(together(writers, |writer| plain(connection.clone(), writer, each)).await);
                let write = |writer| fenced(fence.clone(), stamp.clone(), writer, each);
                with.push(together(writers, write).await);
            }
            let [without, with] = [without, with].map(|times| median_us(times, writers * each));
            println!(
                "redis {} ({durability}): {} writes by {writers} at once: {with:.1} us with the fence, {without:.1} us without, ratio {:.2}",
                server.version(),
                writers * each,
                with / without,
            );
        }
    }
    Ok(())
}

/// How long writers take that begin at once.
async fn together<W: Future<Output = ()> + Send + 'static>(
    writers: usize,
    writer: impl Fn(usize) -> W,
) -> Duration {
    let began = now();
    (0..writers).map(writer).collect::<JoinSet<()>>().join_all().await;
    now() - began
}

async fn plain(mut connection: MultiplexedConnection, writer: usize, each: usize) {
    for n in 0..each {
        let set = redis::cmd("SET").arg(format!("{{cost}}:{writer}")).arg(n).to_owned();
        set.exec_async(&mut connection).await.expect("the server serves");
    }
}

async fn fenced(fence: Fence<MultiplexedConnection>, stamp: Stamp, writer: usize, each: usize) {
    for n in 0..each {
        let set = redis::pipe().set(format!("{{cost}}:{writer}"), n).to_owned();
        fence.write(&stamp, &set).await.expect("the token is good");
    }
}

fn median_us(mut times: Vec<Duration>, writes: usize) -> f64 {
    times.sort_unstable();
    times[times.len() / 2].as_secs_f64() * 1e6 / writes as f64
}

fn now() -> Duration {
    Duration::from_nanos(leasehold_clock::read().boot)
}
