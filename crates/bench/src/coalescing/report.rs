//! The figures, for people and for programs.

use std::fmt;

use serde::Serialize;

use super::client::Shape;
use super::relay::Counted;

/// One shape, measured.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    /// Which.
    pub shape: Shape,
    /// How long it took until every lease was held.
    pub opened_in_s: f64,
    /// For how long everything below was counted.
    pub measured_s: f64,
    /// What passed between the two.
    pub wire: Counted,
    /// Processor time of the service.
    pub server_cpu_s: f64,
    /// Processor time of the client.
    pub client_cpu_s: f64,
    /// Memory of the service at the end.
    pub server_resident_kib: u64,
    /// Memory of the client at the end.
    pub client_resident_kib: u64,
}

/// All of it.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// How many leases.
    pub leases: usize,
    /// The ttl of every session.
    pub ttl_ms: u128,
    /// In the order of measuring.
    pub rows: Vec<Row>,
}

impl Row {
    #[expect(clippy::cast_precision_loss, reason = "counts of minutes are far below 2^52")]
    fn per_second(&self, count: u64) -> f64 {
        count as f64 / self.measured_s
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} leases, ttl {} s, idle\n", self.leases, self.ttl_ms / 1_000)?;
        write!(f, "| |")?;
        self.rows.iter().try_for_each(|row| write!(f, " {} |", row.shape))?;
        write!(f, "\n|---|")?;
        self.rows.iter().try_for_each(|_| write!(f, "---:|"))?;
        writeln!(f)?;
        type Cell = fn(&Row) -> String;
        let lines: [(&str, Cell); 9] = [
            ("until all are held, s", |row| format!("{:.1}", row.opened_in_s)),
            ("requests per second", |row| format!("{:.1}", row.per_second(row.wire.to_server))),
            ("messages of the service per second", |row| {
                format!("{:.1}", row.per_second(row.wire.to_client))
            }),
            ("frames per second, both ways", |row| format!("{:.1}", row.per_second(row.wire.frames))),
            ("bytes per second, both ways", |row| format!("{:.0}", row.per_second(row.wire.bytes))),
            ("processor of the service, % of a core", |row| {
                format!("{:.2}", 100.0 * row.server_cpu_s / row.measured_s)
            }),
            ("processor of the client, % of a core", |row| {
                format!("{:.2}", 100.0 * row.client_cpu_s / row.measured_s)
            }),
            ("memory of the service, MiB", |row| format!("{}", row.server_resident_kib / 1_024)),
            ("memory of the client, MiB", |row| format!("{}", row.client_resident_kib / 1_024)),
        ];
        for (what, cell) in lines {
            write!(f, "| {what} |")?;
            self.rows.iter().try_for_each(|row| write!(f, " {} |", cell(row)))?;
            writeln!(f)?;
        }
        Ok(())
    }
}
