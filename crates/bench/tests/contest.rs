//! The harness itself, run small on ourselves: counts add up, nothing is granted twice, and renewals are renewals.

use std::process::Command;
use std::sync::Arc;

use leasehold_bench::contest::results::{Line, Outcome};
use leasehold_bench::peers::leasehold::{Client, start};
use leasehold_bench::peers::{Client as _, TTL, Tools};
use leasehold_bench::workloads::{Figures, Work};

fn run(words: &[&str]) -> Vec<(Work, Figures)> {
    let directory = tempfile::tempdir().expect("there is room");
    let out = Command::new(env!("CARGO_BIN_EXE_bench"))
        .args(["run", "--quick", "--repeats", "1", "--json", "--program"])
        .arg(leasehold_kit::leasehold().expect("the program is built"))
        .arg("--results")
        .arg(directory.path().join("results.jsonl"))
        .args(words)
        .output()
        .expect("the harness starts");
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let lines: Vec<Line> = serde_json::from_slice(&out.stdout).expect("it prints JSON");
    let measured = lines.into_iter().map(|line| match line.outcome {
        Outcome::Measured(figures) => (line.key.work, figures),
        Outcome::Failed(why) => panic!("{:?}: {why}", line.key),
    });
    measured.collect()
}

#[test]
fn cycles_are_counted_and_cost_something() {
    let measured = run(&["--workloads", "A", "--nodes", "1"]);
    assert_eq!(measured.len(), 3, "{measured:?}");
    for (work, figures) in measured {
        let get = |name: &str| figures.get(name).unwrap_or_else(|| panic!("no {name} of {work:?}"));
        let (operations, rate) = (get("operations"), get("per_second"));
        assert!(operations > 0.0 && (rate * 0.25 - operations).abs() < 1.0, "{work:?}: {figures:?}");
        assert!(get("p50_us") <= get("p99_us") && get("p99_us") <= get("max_us"), "{figures:?}");
        assert!(get("server_dirtied_bytes") > 0.0, "nothing reached a disk: {figures:?}");
    }
}

#[test]
fn handovers_have_one_holder_at_a_time() {
    let measured = run(&["--workloads", "C", "--nodes", "1"]);
    assert_eq!(measured[0].1.get("handovers"), Some(50.0), "{measured:?}");
}

#[test]
fn a_dead_holder_is_not_succeeded_early() {
    let measured = run(&["--workloads", "D", "--nodes", "1"]);
    let late = measured[0].1.get("late_p50_us").unwrap();
    assert!(late > 0.0, "{measured:?}");
}

/// What a renewal is taken for here is what the library itself counts as one that was confirmed.
#[tokio::test(flavor = "multi_thread")]
async fn every_renewal_that_is_counted_was_confirmed() {
    let directory = tempfile::tempdir().expect("there is room");
    let (installed, data) = (directory.path().to_owned(), directory.path().to_owned());
    let running = start(
        &Tools { program: leasehold_kit::leasehold().expect("the program is built"), installed, data },
        1,
    )
    .unwrap();
    let link = Arc::new(Client::link(&running.url, TTL).await.unwrap());
    let client = Client::open(&link, 0, TTL).await.unwrap();
    let (_, mut held) = client.acquire("counted").await.unwrap();
    let before = link.figures().renewals_confirmed;
    for _ in 0..200 {
        client.renew(&mut held).await.unwrap();
    }
    assert_eq!(link.figures().renewals_confirmed - before, 200);
}
