//! The reference of metrics against what a running service says.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::TcpStream;

use leasehold_node::GapPattern;
use leasehold_server::config::{Config, ServiceName};

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

fn post(address: std::net::SocketAddr, path: &str, key: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("it listens");
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: test\r\nconnection: close\r\ncontent-type: application/json\r\nleasehold-session: {key}"
    );
    write!(stream, "{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len()).expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers in text");
    assert!(answer.starts_with("HTTP/1.1 200"), "{path} {body}: {answer}");
    answer
}

/// A text of an answer, by its name.
fn field(answer: &str, name: &str) -> String {
    let (_, rest) = answer.split_once(&format!("\"{name}\":\"")).expect("the answer has it");
    rest.split('"').next().expect("it ends").to_owned()
}

/// The value of a series; nothing if it is not there.
fn value(scrape: &str, series: &str) -> Option<f64> {
    let line = scrape.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '))?;
    Some(line.parse().expect("a number"))
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
    let service = leasehold_server::start(&config).unwrap();
    assert!(get(service.address(), "/v1/leases/get?resource=job").contains("\"lease\":null"));
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

#[test]
fn the_time_in_which_nobody_acted_is_counted_for_the_first_pattern_that_fits() {
    let directory = tempfile::tempdir().unwrap();
    let mut config = Config::new(directory.path().join("data"));
    config.listen = "127.0.0.1:0".parse().unwrap();
    config.gap_patterns = ["jobs/night", "jobs/*"].map(|text| GapPattern::new(text).unwrap()).into();
    let service = leasehold_server::start(&config).unwrap();
    let address = service.address();
    let key = field(&post(address, "/v1/sessions", "", "{\"ttl_ms\":120000}"), "session_key");
    let acquire = |resource: &str| {
        let body = format!("{{\"resource\":\"{resource}\"}}");
        field(&post(address, "/v1/leases/acquire", &key, &body), "token")
    };
    for resource in ["jobs/day", "jobs/evening", "other"] {
        let body = format!("{{\"resource\":\"{resource}\",\"token\":\"{}\"}}", acquire(resource));
        post(address, "/v1/leases/release", &key, &body);
    }
    let of = |name: &str, pattern: &str| format!("leasehold_{name}{{pattern=\"{pattern}\"}}");
    let mut scrape = get(address, "/metrics");
    assert_eq!(value(&scrape, &of("leaderless_seconds_total", "jobs/night")), Some(0.0), "{scrape}");
    // The longest is told up to now, the total up to the newest entry, and one is written at least every second: behind a few of them two names
    // are without a holder for longer than either of them.
    let entries = |scrape: &str| value(scrape, "leasehold_revision").unwrap();
    let first = entries(&scrape);
    let exceeds = |scrape: &str| {
        let longest = value(scrape, &of("leaderless_longest_seconds", "jobs/*")).unwrap();
        longest > 0.0 && value(scrape, &of("leaderless_seconds_total", "jobs/*")).unwrap() > longest
    };
    while !exceeds(&scrape) {
        assert!(entries(&scrape) < first + 20.0, "{scrape}");
        std::thread::sleep(std::time::Duration::from_millis(20));
        scrape = get(address, "/metrics");
    }
    assert_eq!(value(&scrape, &of("leaderless_names", "jobs/*")), Some(2.0), "{scrape}");
    assert_eq!(value(&scrape, &of("leaderless_names", "jobs/night")), Some(0.0), "{scrape}");
    let total = value(&scrape, &of("leaderless_seconds_total", "jobs/*")).unwrap();
    acquire("jobs/day");
    acquire("jobs/evening");
    let scrape = get(address, "/metrics");
    assert_eq!(value(&scrape, &of("leaderless_names", "jobs/*")), Some(0.0), "{scrape}");
    assert_eq!(value(&scrape, &of("leaderless_longest_seconds", "jobs/*")), Some(0.0), "{scrape}");
    assert!(value(&scrape, &of("leaderless_seconds_total", "jobs/*")).unwrap() >= total, "{scrape}");
    assert_eq!(value(&scrape, "leasehold_gap_seconds_count{cause=\"queue\"}"), Some(2.0), "{scrape}");
    assert_eq!(
        value(&scrape, "leasehold_gap_seconds_count{cause=\"detection\"}"),
        None,
        "nobody fell silent"
    );
    // A service that a busy machine did not let run counts that as an outage, and says how long it was.
    let stood_still = value(&scrape, "leasehold_log_time_cut_seconds_total").is_some_and(|cut| cut > 0.0);
    let outages = value(&scrape, "leasehold_outage_seconds_count");
    assert!(outages == Some(0.0) || stood_still, "{scrape}");
    assert_eq!(value(&scrape, "leasehold_waiters"), Some(0.0), "{scrape}");
    assert!(
        !scrape.contains("evening") && !scrape.contains("other\""),
        "a name that a client chose is no label"
    );
    service.drain();
    service.wait().unwrap();
}
