//! What one session for many leases saves, beside a session for every lease.
//!
//! A lease needs no renewal of its own: it lives as long as its session. This measures what that is worth. One process is the service, as
//! people run it; another is a client that uses the public library and holds the same number of leases in one of two shapes: all in
//! one session, or each in a session of its own. Then nothing happens for a while but renewals, and those are counted: by a relay between
//! the two, which sees every byte and every message, and by the kernel, which knows what each process has used.
//!
//! It also looks at what sharing a session must not cost: of many leases one can be given back alone, and several are acquired all or none.

pub mod client;
pub mod process;
pub mod relay;
pub mod report;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, ensure};

use crate::soak::server::Server;
use client::{Client, Shape};
use process::Usage;
use relay::Relay;
use report::{Report, Row};

/// What is to be done.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The program to serve with.
    pub program: PathBuf,
    /// This program, to be a client with.
    pub client: PathBuf,
    /// How many leases.
    pub leases: usize,
    /// The ttl of every session.
    pub ttl: Duration,
    /// How long is measured.
    pub idle: Duration,
    /// Which shapes.
    pub shapes: Vec<Shape>,
}

/// How often something is said while nothing happens.
const PROGRESS: Duration = Duration::from_secs(5);

/// Measures one shape after the other, each with a service of its own.
///
/// # Errors
/// When a process does not start, a lease is lost, or one of the checks fails.
pub fn run(plan: &Plan) -> Result<Report> {
    let rows = plan.shapes.iter().map(|shape| measure(plan, *shape)).collect::<Result<Vec<Row>>>()?;
    Ok(Report { leases: plan.leases, ttl_ms: plan.ttl.as_millis(), rows })
}

fn measure(plan: &Plan, shape: Shape) -> Result<Row> {
    let mut server = Server::start(&plan.program)?;
    let relay = Relay::start(server.address())?;
    eprintln!("{shape}: acquiring {} leases", plan.leases);
    let began = now();
    let mut client = Client::start(plan, shape, relay.address())?;
    client.expect("held")?;
    let opened_in = now().saturating_sub(began);
    eprintln!("{shape}: all held after {:.1} s; two ttls to settle", opened_in.as_secs_f64());
    pass(shape, 2 * plan.ttl);
    let begin = (now(), relay.counted(), Usage::of(server.pid())?, Usage::of(client.pid())?);
    pass(shape, plan.idle);
    let end = (now(), relay.counted(), Usage::of(server.pid())?, Usage::of(client.pid())?);
    ensure!(server.lives(), "the service ended by itself; its log is {}", server.log().display());
    client.ask("check")?;
    client.expect("checked")?;
    client.end()?;
    ensure!(server.stop()? == 0, "the service did not end well");
    Ok(Row {
        shape,
        opened_in_s: opened_in.as_secs_f64(),
        measured_s: end.0.saturating_sub(begin.0).as_secs_f64(),
        wire: end.1 - begin.1,
        server_cpu_s: end.2.cpu_s - begin.2.cpu_s,
        client_cpu_s: end.3.cpu_s - begin.3.cpu_s,
        server_resident_kib: end.2.resident_kib,
        client_resident_kib: end.3.resident_kib,
    })
}

/// Lets time pass, and says so.
fn pass(shape: Shape, length: Duration) {
    let mut left = length;
    while !left.is_zero() {
        let step = left.min(PROGRESS);
        std::thread::sleep(step);
        left -= step;
        eprintln!("{shape}: {} s left", left.as_secs());
    }
}

/// The machine's clock that counts suspend.
fn now() -> Duration {
    Duration::from_nanos(leasehold_clock::read().boot)
}
