//! The rules, alerts and dashboard that are shipped, with a real Prometheus that scrapes a real service.
//!
//! A gap is made: a holder dies, one of its names is taken after a while, the other by nobody. Prometheus has to see both, and every query that is
//! shipped must be one, of metrics that exist.

#[path = "monitoring/prometheus.rs"]
mod prometheus;
#[path = "monitoring/promql.rs"]
mod promql;

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};

use self::prometheus::{Prometheus, curl, promtool};
use self::promql::{exported, metrics_of, older_format};
use super::stage::{Serving, Stage, eventually};

/// A file that is shipped.
fn shipped(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../deploy").join(name).canonicalize().unwrap()
}

/// Asks the service, which must do it.
fn post(serving: &Serving, path: &str, body: &Value) -> Value {
    let mut body = body.clone();
    let key = body.as_object_mut().and_then(|fields| fields.remove("session_key"));
    let key = key.as_ref().and_then(Value::as_str).unwrap_or_default();
    let path = path.replace("SESSION", key.split('-').next().unwrap_or_default());
    let url = format!("http://{}{path}", serving.address);
    let session = format!("Leasehold-Session: {key}");
    let answer =
        curl(&["-H", "Content-Type: application/json", "-H", &session, "-d", &body.to_string(), &url]);
    let answer: Value = serde_json::from_str(&answer).unwrap();
    assert!(answer.get("kind").is_none(), "{path} {body}: {answer}");
    answer
}

fn get(serving: &Serving, target: &str) -> Value {
    serde_json::from_str(&curl(&[&format!("http://{}{target}", serving.address)])).unwrap()
}

fn open(serving: &Serving, label: &str, ttl: u64) -> Value {
    post(serving, "/v1/sessions", &json!({ "label": label, "ttl_ms": ttl }))["session_key"].clone()
}

fn acquire(serving: &Serving, key: &Value, resource: &str) {
    post(serving, "/v1/leases/acquire", &json!({ "session_key": key, "resource": resource }));
}

/// Two names lose their holder, and one of them is taken some time after it could be.
fn make_gaps(serving: &Serving) {
    let dies = open(serving, "dies", 5_000);
    acquire(serving, &dies, "watched/taken");
    acquire(serving, &dies, "watched/left");
    let next = open(serving, "next", 60_000);
    eventually("the holder has died", || {
        std::thread::sleep(Duration::from_millis(50));
        let lease = get(serving, "/v1/leases/get?resource=watched/taken");
        (lease["lease"]["held"] == false).then_some(())
    });
    std::thread::sleep(Duration::from_millis(300));
    acquire(serving, &next, "watched/taken");
    let gaps = get(serving, "/v1/leases/gaps?resource=watched/taken");
    let causes: Vec<&str> = gaps["names"][0]["gaps"][0]["parts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|part| part["cause"].as_str().unwrap())
        .collect();
    // A machine that stood still makes an outage as well.
    assert!(causes.contains(&"detection") && causes.contains(&"queue"), "{gaps}");
}

/// Every query of the dashboard, with the words of Grafana replaced.
fn dashboard_queries(dashboard: &str) -> Vec<String> {
    let dashboard: Value = serde_json::from_str(dashboard).expect("the dashboard is JSON");
    let panels = dashboard["panels"].as_array().unwrap();
    let targets =
        panels.iter().filter_map(|panel| panel.get("targets")).flat_map(|list| list.as_array().unwrap());
    let queries = targets.map(|target| target["expr"].as_str().unwrap());
    let queries: Vec<String> =
        queries.map(|query| query.replace("$job", "leasehold").replace("$__rate_interval", "1m")).collect();
    assert!(queries.len() > 20 && queries.iter().all(|query| !query.contains('$')), "{queries:?}");
    queries
}

/// Metrics of the queries that nobody has.
fn strangers(queries: &[String], known: &BTreeSet<String>) -> BTreeSet<String> {
    let named = queries.iter().flat_map(|query| metrics_of(query));
    named.filter(|name| !known.contains(name)).collect()
}

#[test]
fn prometheus_sees_a_gap_and_everything_that_is_shipped_works_with_it() {
    let stage = Stage::new();
    let serving = stage.serve(&["--set", "gap_patterns=watched/*"]);
    let (rules, alerts) = (shipped("prometheus/rules.yml"), shipped("prometheus/alerts.yml"));
    let prometheus = Prometheus::start(&stage, &serving.address, &[&rules, &alerts]);
    make_gaps(&serving);

    let seen = prometheus.until("leasehold_leaderless_seconds_total{pattern=\"watched/*\"} > 0.8");
    assert_eq!(seen[0]["metric"]["job"], "leasehold", "{seen}");
    prometheus.until("leasehold_gap_seconds_sum{cause=\"detection\"} > 0");
    prometheus.until("leasehold_gap_seconds_sum{cause=\"queue\"} >= 0.25");
    prometheus.until("leasehold_leaderless_names{pattern=\"watched/*\"} == 1");
    prometheus.until("job_pattern:leasehold_leaderless_seconds:increase1h{pattern=\"watched/*\"} > 0");
    // The name that nobody took: five seconds later somebody is about to be told.
    let told = "ALERTS{alertname=\"LeaseholdNameLeaderless\", pattern=\"watched/*\", severity=\"critical\"}";
    let staged = prometheus.until(told);
    assert_eq!(staged[0]["metric"]["alertstate"], "pending", "{staged}");
    // What a busy machine cannot cause is not told.
    let others = "ALERTS{alertname=~\"LeaseholdAlarmRaised|LeaseholdMemberUnreachable\"}";
    assert_eq!(prometheus.ask(others), json!([]));

    let scrape = curl(&[&format!("http://{}/metrics", serving.address)]);
    let mut known = exported(&scrape);
    let mut shipped_queries = Vec::new();
    for rule in prometheus.rules() {
        assert_eq!((&rule["health"], rule.get("lastError")), (&json!("ok"), None), "{rule}");
        if rule["type"] == "recording" {
            known.insert(rule["name"].as_str().unwrap().to_owned());
        } else {
            for said in ["summary", "next"] {
                assert!(rule["annotations"][said].is_string(), "an alert names the next step: {rule}");
            }
        }
        shipped_queries.push(rule["query"].as_str().unwrap().to_owned());
    }
    assert_eq!(shipped_queries.len(), 7 + 12, "every rule is loaded");
    let dashboard = fs::read_to_string(shipped("grafana/leasehold.json")).unwrap();
    let panels = dashboard_queries(&dashboard);
    for query in &panels {
        prometheus.ask(query);
    }
    shipped_queries.extend(panels);
    assert_eq!(strangers(&shipped_queries, &known), BTreeSet::new(), "there are no such metrics");
    // That would be found, too.
    let misspelt = dashboard_queries(&dashboard.replace("leasehold_waiters", "leasehold_waitres"));
    assert_eq!(strangers(&misspelt, &known), BTreeSet::from(["leasehold_waitres".to_owned()]));
    assert!(prometheus.refuses("max by (pattern ("), "a query that is none");

    promtool(&["check", "metrics"], &older_format(&scrape));
    drop(prometheus);
    serving.stop();
}

#[test]
fn the_alerts_say_what_they_should_to_made_up_series() {
    let path = |name: &str| shipped(name).to_str().unwrap().to_owned();
    promtool(&["check", "rules", &path("prometheus/rules.yml"), &path("prometheus/alerts.yml")], "");
    promtool(&["test", "rules", &path("prometheus/tests.yml")], "");
}
