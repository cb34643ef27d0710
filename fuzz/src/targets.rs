//! The decoders, and what each is tried on.

mod backup;
mod config;
mod frames;
mod history;
mod http;
mod log;
mod peers;
mod sealing;
mod service;
mod snapshot;
mod store_url;
mod values;

use crate::Target;

/// Every decoder.
pub const TARGETS: [Target; 14] = [
    Target {
        name: "log-records",
        what: "the records of a log, behind good checksums",
        seeds: log::record_seeds,
        check: log::check_records,
    },
    Target {
        name: "log-files",
        what: "the directory of a log: segments and snapshots",
        seeds: log::file_seeds,
        check: log::check_files,
    },
    Target {
        name: "log-entry",
        what: "what an entry of the log carries",
        seeds: snapshot::entry_seeds,
        check: snapshot::check_entry,
    },
    Target {
        name: "table",
        what: "the table in a snapshot",
        seeds: snapshot::table_seeds,
        check: snapshot::check_table,
    },
    Target {
        name: "snapshot",
        what: "the snapshot of a node",
        seeds: snapshot::snapshot_seeds,
        check: snapshot::check_snapshot,
    },
    Target { name: "backup", what: "a backup file", seeds: backup::seeds, check: backup::check },
    Target {
        name: "client-frames",
        what: "the stream from a client: opening and requests",
        seeds: frames::client_seeds,
        check: frames::check_client,
    },
    Target {
        name: "server-frames",
        what: "the stream from the service: opening, responses and items",
        seeds: frames::server_seeds,
        check: frames::check_server,
    },
    Target {
        name: "peer-frames",
        what: "the stream between nodes: opening and messages",
        seeds: peers::seeds,
        check: peers::check,
    },
    Target {
        name: "http-fields",
        what: "the fields of a request over HTTP: JSON and queries",
        seeds: http::seeds,
        check: http::check,
    },
    Target {
        name: "http-door",
        what: "requests over HTTP to a service that runs",
        seeds: service::seeds,
        check: service::check,
    },
    Target {
        name: "config",
        what: "the file of a configuration",
        seeds: config::seeds,
        check: config::check,
    },
    Target {
        name: "store-url",
        what: "the URL of a store",
        seeds: store_url::seeds,
        check: store_url::check,
    },
    Target {
        name: "history",
        what: "the history of a run, line by line",
        seeds: history::seeds,
        check: history::check,
    },
];
