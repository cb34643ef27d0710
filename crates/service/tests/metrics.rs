//! The reference of metrics against what a running service says.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::TcpStream;

use leasehold_service::config::{Config, ServiceName};

/// Names, types and labels as the reference has them.
fn told() -> BTreeSet<(String, String)> {
    let reference = include_str!("../../../docs/reference/metrics.md");
    let rows = reference.lines().filter_map(|line| line.strip_prefix("| `"));
    rows.map(|row| {
        let (name, rest) = row.split_once("` | ").expect("a name, then its type");
        let kind = rest.split(" |").next().expect("a type");
        (name.to_owned(), kind.to_owned())
    })
    .collect()
}

/// The same as a scrape has them: counters are named with their ending.
fn said(scrape: &str) -> BTreeSet<(String, String)> {
    let types = scrape.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    types
        .map(|line| {
            let (name, kind) = line.split_once(' ').expect("a name, then its type");
            let ending = match kind {
                "counter" => "_total",
                "info" => "_info",
                _ => "",
            };
            (format!("{name}{ending}"), kind.to_owned())
        })
        .collect()
}

fn get(address: std::net::SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("it listens");
    write!(stream, "GET {path} HTTP/1.1\r\nhost: test\r\nconnection: close\r\n\r\n").expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers in text");
    answer
}

#[test]
fn every_metric_is_in_the_reference_and_every_one_in_the_reference_exists() {
    let directory = tempfile::tempdir().unwrap();
    let mut config = Config::new(directory.path().join("data"));
    config.listen = "127.0.0.1:0".parse().unwrap();
    config.name = ServiceName::new("n1").unwrap();
    let service = leasehold_service::start(&config).unwrap();
    assert!(get(service.address(), "/v1/lease/get?resource=job").contains("\"lease\":null"));
    let scrape = get(service.address(), "/metrics");
    assert_eq!(told(), said(&scrape));
    assert!(scrape.contains("leasehold_operations_total{operation=\"read\",outcome=\"done\"} 1"), "{scrape}");
    assert!(scrape.contains("door=\"http\",operation=\"get\",code=\"ok\"} 1"), "{scrape}");
    let release = env!("CARGO_PKG_VERSION");
    assert!(scrape.contains(&format!("leasehold_info{{name=\"n1\",version=\"{release}\"}} 1")), "{scrape}");
    assert!(scrape.trim_end().ends_with("# EOF"), "{scrape}");
    assert_eq!(scrape.matches("# EOF").count(), 1);
    service.drain();
    service.wait().unwrap();
}
