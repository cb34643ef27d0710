//! Medians and ranges, the price of HTTP/2 as a difference, and the table people read.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::plan::{Cell, Contender, Plan, Work};

/// What HTTP/2 alone may add to a round trip.
const ROUND_TRIP_LIMIT_US: f64 = 60.0;

/// What HTTP/2 alone may take of a server's core, in seconds of processor time for each 100 000 operations: half
/// a core at 100 000 operations a second.
const CPU_LIMIT_S: f64 = 0.5;

/// What one run of one cell came to.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Figures {
    /// Median time from sending a frame to its answer.
    pub p50_us: f64,
    /// The same, 99 of 100 are below.
    pub p99_us: f64,
    /// Processor seconds of the server for 100 000 operations.
    pub server_cpu_s: f64,
    /// Processor seconds of the client for 100 000 operations.
    pub client_cpu_s: f64,
    /// Operations answered per second of real time.
    pub ops_per_second: f64,
}

impl Figures {
    /// From latencies of frames, operations done, and lengths in nanoseconds.
    pub(crate) fn new(mut latencies: Vec<u64>, ops: u64, wall: u64, server: u64, client: u64) -> Figures {
        latencies.sort_unstable();
        let at = |percent: usize| latencies.get(latencies.len() * percent / 100).copied().unwrap_or(0);
        let per_100k = |ns: u64| ns as f64 / 1e9 / ops as f64 * 1e5;
        Figures {
            p50_us: at(50) as f64 / 1e3,
            p99_us: at(99) as f64 / 1e3,
            server_cpu_s: per_100k(server),
            client_cpu_s: per_100k(client),
            ops_per_second: ops as f64 / (wall as f64 / 1e9),
        }
    }
}

/// A median with the lowest and the highest.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
struct Spread {
    median: f64,
    low: f64,
    high: f64,
}

impl Spread {
    fn of(values: impl Iterator<Item = f64>) -> Spread {
        let mut values: Vec<f64> = values.collect();
        values.sort_by(f64::total_cmp);
        let (Some(&low), Some(&high)) = (values.first(), values.last()) else {
            return Spread { median: 0.0, low: 0.0, high: 0.0 };
        };
        Spread { median: values[values.len() / 2], low, high }
    }

    /// Median and range, with `digits` after the point.
    fn text(&self, digits: usize) -> String {
        format!("{:.digits$} ({:.digits$}..{:.digits$})", self.median, self.low, self.high)
    }
}

/// One row: a cell and all its runs.
#[derive(Debug, Serialize)]
struct Row {
    cell: Cell,
    runs: Vec<Figures>,
}

impl Row {
    fn spread(&self, of: impl Fn(&Figures) -> f64) -> Spread {
        Spread::of(self.runs.iter().map(of))
    }
}

/// What HTTP/2 adds to the same cell on the same runtime, run by run.
#[derive(Debug, Serialize)]
struct Price {
    cell: Cell,
    p50_us: Spread,
    server_cpu_s: Spread,
    client_cpu_s: Spread,
    above_limit: bool,
}

impl Price {
    fn between(framed: &Row, grpc: &Row) -> Price {
        let diff = |of: fn(&Figures) -> f64| {
            Spread::of(framed.runs.iter().zip(&grpc.runs).map(|(f, g)| of(g) - of(f)))
        };
        let (p50_us, server_cpu_s) = (diff(|f| f.p50_us), diff(|f| f.server_cpu_s));
        let above_limit = match grpc.cell.work {
            Work::PingPong { .. } => p50_us.median > ROUND_TRIP_LIMIT_US,
            Work::Paced { .. } => server_cpu_s.median > CPU_LIMIT_S,
        };
        let client_cpu_s = diff(|f| f.client_cpu_s);
        Price { cell: grpc.cell, p50_us, server_cpu_s, client_cpu_s, above_limit }
    }
}

/// All rows, and what follows from them; its text is a pair of Markdown tables.
#[derive(Debug, Serialize)]
pub struct Report {
    plan: Plan,
    rows: Vec<Row>,
    http2_alone: Vec<Price>,
}

impl Report {
    pub(crate) fn new(plan: Plan) -> Report {
        Report { plan, rows: Vec::new(), http2_alone: Vec::new() }
    }

    /// Takes the runs of cells that differ in nothing but the contender.
    pub(crate) fn add_group(&mut self, group: Vec<(Cell, Vec<Figures>)>) {
        let rows: Vec<Row> = group.into_iter().map(|(cell, runs)| Row { cell, runs }).collect();
        let find = |c| rows.iter().find(|row| row.cell.contender == c);
        if let (Some(framed), Some(grpc)) = (find(Contender::Framed), find(Contender::Grpc)) {
            self.http2_alone.push(Price::between(framed, grpc));
        }
        self.rows.extend(rows);
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "| work | carrier | p50 us | p99 us | server cpu s/100k | client cpu s/100k | ops/s |")?;
        writeln!(f, "|---|---|---|---|---|---|---|")?;
        for row in &self.rows {
            writeln!(
                f,
                "| {} | {:?} | {} | {} | {} | {} | {:.0} |",
                row.cell.describe(),
                row.cell.contender,
                row.spread(|r| r.p50_us).text(0),
                row.spread(|r| r.p99_us).text(0),
                row.spread(|r| r.server_cpu_s).text(2),
                row.spread(|r| r.client_cpu_s).text(2),
                row.spread(|r| r.ops_per_second).median,
            )?;
        }
        writeln!(f, "\n| HTTP/2 alone | p50 us | server cpu s/100k | client cpu s/100k | above the limit |")?;
        writeln!(f, "|---|---|---|---|---|")?;
        for price in &self.http2_alone {
            writeln!(
                f,
                "| {} | {} | {} | {} | {} |",
                price.cell.describe(),
                price.p50_us.text(0),
                price.server_cpu_s.text(2),
                price.client_cpu_s.text(2),
                if price.above_limit { "yes" } else { "no" },
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::plan::{Placement, Sharing, Threads, Transport};
    use super::*;

    fn row(contender: Contender, work: Work, p50_us: f64, server_cpu_s: f64) -> Row {
        let (transport, threads, sharing) = (Transport::Unix, Threads::Current, Sharing::Each);
        let placement = Placement::Free;
        let run = Figures { p50_us, p99_us: 0.0, server_cpu_s, client_cpu_s: 0.0, ops_per_second: 0.0 };
        Row { cell: Cell { contender, transport, threads, placement, sharing, work }, runs: vec![run; 3] }
    }

    #[test]
    fn a_spread_is_the_middle_and_both_ends() {
        let spread = Spread::of([3.0, 1.0, 2.0].into_iter());
        assert_eq!(spread, Spread { median: 2.0, low: 1.0, high: 3.0 });
    }

    #[test]
    fn processor_time_is_counted_for_a_hundred_thousand_operations() {
        let figures = Figures::new(vec![1_000, 3_000, 2_000], 50_000, 500_000_000, 250_000_000, 100_000_000);
        assert_eq!(figures.p50_us, 2.0);
        assert!((figures.server_cpu_s - 0.5).abs() < 1e-9);
        assert!((figures.ops_per_second - 100_000.0).abs() < 1e-6);
    }

    #[test]
    fn a_round_trip_is_judged_by_time_and_a_load_by_processor_time() {
        let ping = Work::PingPong { round_trips: 1 };
        let load = Work::Paced { ops_per_second: 1, ops_per_frame: 1, sessions: 1, length_ms: 1 };
        let price = |work, us, cpu| {
            Price::between(&row(Contender::Framed, work, 40.0, 0.2), &row(Contender::Grpc, work, us, cpu))
        };
        assert!(price(ping, 101.0, 0.2).above_limit);
        assert!(!price(ping, 99.0, 0.9).above_limit);
        assert!(price(load, 40.0, 0.71).above_limit);
        assert!(!price(load, 400.0, 0.69).above_limit);
    }
}
