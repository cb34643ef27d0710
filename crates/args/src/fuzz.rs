//! The targets of the fuzzer, and what each decodes.

/// Name and what is decoded, in the order in which they are tried.
pub const NAMES: [(&str, &str); 14] = [
    ("log-records", "the records of a log, behind good checksums"),
    ("log-files", "the directory of a log: segments and snapshots"),
    ("log-entry", "what an entry of the log carries"),
    ("table", "the table in a snapshot"),
    ("snapshot", "the snapshot of a node"),
    ("backup", "a backup file"),
    ("client-frames", "the stream from a client: opening and requests"),
    ("server-frames", "the stream from the service: opening, responses and items"),
    ("peer-frames", "the stream between nodes: opening and messages"),
    ("http-fields", "the fields of a request over HTTP: JSON and queries"),
    ("http-door", "requests over HTTP to a service that runs"),
    ("config", "the file of a configuration"),
    ("store-url", "the URL of a store"),
    ("history", "the history of a run, line by line"),
];
