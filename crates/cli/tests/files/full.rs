//! A file system without space: whoever holds something keeps it, nobody gets anything new, and all is well when there is space again.
//!
//! The file systems are mounted for the test, which needs the right to do so.

use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use super::stage::{Serving, Stage};

/// Longer than anything here takes on a machine that is busy with something else.
const PATIENCE_SECONDS: usize = 60;
/// So many renewals are written on a full disk.
const RENEWALS: f64 = 15.0;

/// A mounted file system, unmounted at the end.
struct Mounted(PathBuf);

impl Mounted {
    fn tmpfs(stage: &Stage, size: &str) -> Self {
        let path = stage.path("small");
        fs::create_dir(&path).unwrap();
        run(Command::new("mount").args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"]).arg(&path));
        Self(path)
    }

    fn ext4(stage: &Stage, bytes: u64) -> Self {
        let (image, path) = (stage.path("image"), stage.path("small"));
        fs::create_dir(&path).unwrap();
        fs::File::create(&image).unwrap().set_len(bytes).unwrap();
        run(Command::new("mkfs.ext4").args(["-q", "-F", "-m", "0"]).arg(&image));
        run(Command::new("mount").args(["-o", "loop"]).arg(&image).arg(&path));
        Self(path)
    }

    /// Takes all the space that is left.
    fn fill(&self) {
        let mut file = fs::File::create(self.0.join("filler")).unwrap();
        for size in [64 << 10, 4 << 10, 512] {
            while file.write_all(&vec![1; size]).and_then(|()| file.sync_all()).is_ok() {}
        }
    }

    fn free(&self) {
        fs::remove_file(self.0.join("filler")).unwrap();
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

fn run(command: &mut Command) {
    let status = command.status().unwrap();
    assert!(
        status.success(),
        "{command:?}: {status}; this test mounts a file system and must be run by root"
    );
}

/// Takes a lease with a large value for a moment; whether it was had before the service said that its disk is full. The command itself waits for
/// better times.
fn large(stage: &Stage, serving: &Serving, name: &str) -> bool {
    let value = "v".repeat(60_000);
    let words = ["--store", &serving.url, "run", name, "--value", &value, "--", "true"];
    let mut child = stage.command(&words).spawn().unwrap();
    for _ in 0..PATIENCE_SECONDS {
        for _ in 0..100 {
            if let Some(status) = child.try_wait().unwrap() {
                return status.success();
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        if is_full(serving) {
            child.kill().unwrap();
            child.wait().unwrap();
            return false;
        }
    }
    panic!("{name} was neither had nor refused within {PATIENCE_SECONDS} s");
}

/// What the service says to a request.
fn post(serving: &Serving, path: &str, body: &Value) -> String {
    let address = serving.url.strip_prefix("leasehold://").unwrap();
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    let mut body = body.clone();
    let key = body.as_object_mut().and_then(|fields| fields.remove("session_key"));
    let key = key.as_ref().and_then(Value::as_str).unwrap_or_default();
    let path = path.replace("SESSION", key.split('-').next().unwrap_or_default());
    let body = body.to_string();
    write!(
        stream,
        "POST {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\nleasehold-session: {key}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// What the service says to whoever wants a session.
fn open(serving: &Serving) -> String {
    post(serving, "/v1/sessions", &json!({ "ttl_ms": 2_000 }))
}

/// Whether the service says that there is no space.
fn is_full(serving: &Serving) -> bool {
    let said = open(serving);
    said.contains("503") && said.contains("disk is full")
}

/// How many renewals the service has carried out.
fn renewals(serving: &Serving) -> f64 {
    let (_, numbers) = serving.get("/metrics");
    let line = numbers.lines().find_map(|line| line.strip_prefix("leasehold_renewals_total "));
    line.unwrap().parse().unwrap()
}

/// The key of a session that lives as long as the test.
fn session(serving: &Serving) -> String {
    let said = post(serving, "/v1/sessions", &json!({ "ttl_ms": 300_000 }));
    let body: Value = serde_json::from_str(said.split("\r\n\r\n").nth(1).unwrap()).unwrap();
    body["session_key"].as_str().unwrap().to_owned()
}

/// Names and lengths of the files of a log whose names end so.
fn files(data: &Path, end: &str) -> Vec<(String, u64)> {
    let entries = fs::read_dir(data.join("log")).unwrap().filter_map(Result::ok);
    let named = entries.filter_map(|entry| {
        let name = entry.file_name().into_string().unwrap();
        Some((name, entry.metadata().ok()?.len()))
    });
    named.filter(|(name, _)| name.ends_with(end)).collect()
}

fn a_full_disk_refuses_what_is_new_and_keeps_what_is_held(stage: &Stage, mounted: &Mounted) {
    let data = mounted.0.join("data");
    let serving = stage.serve(data.to_str().unwrap());
    let hold = ["--store", &serving.url, "hold", "mine", "--ttl", "20s", "--renew-every", "200ms"];
    let mut holder = stage.command(&hold).spawn().unwrap();
    let holds = || stage.run(&["--store", &serving.url, "get", "mine"]).0 == Some(0);
    (0..500)
        .find(|_| {
            holds() || {
                std::thread::sleep(Duration::from_millis(20));
                false
            }
        })
        .unwrap();
    // The reserve is made by now: nothing was answered before it.
    mounted.fill();
    let refused = (0..100).find(|round| !large(stage, &serving, &format!("job-{round}")));
    assert!(refused.is_some_and(|round| round > 0), "it was never full, or at once");
    // Renewals, and small ones at that: the log goes on.
    let before = renewals(&serving);
    for _ in 0..PATIENCE_SECONDS * 5 {
        if renewals(&serving) >= before + RENEWALS {
            break;
        }
        std::thread::sleep(Duration::from_millis(200));
        assert!(holds(), "it was lost");
    }
    assert!(renewals(&serving) >= before + RENEWALS, "it is not renewed");
    assert!(is_full(&serving), "there was space all the same");
    assert!(holder.try_wait().unwrap().is_none());
    mounted.free();
    let again = (0..5).find(|_| large(stage, &serving, "later"));
    assert!(again.is_some(), "it does not recover");
    assert!(holds(), "it was lost in the end");
    holder.kill().unwrap();
    holder.wait().unwrap();
    drop(serving);
    assert_eq!(stage.json(&["data", "verify", data.to_str().unwrap()])["good"], true);
}

#[test]
fn on_tmpfs() {
    let stage = Stage::new();
    let mounted = Mounted::tmpfs(&stage, "40m");
    a_full_disk_refuses_what_is_new_and_keeps_what_is_held(&stage, &mounted);
}

#[test]
fn on_ext4() {
    let stage = Stage::new();
    let mounted = Mounted::ext4(&stage, 48 << 20);
    a_full_disk_refuses_what_is_new_and_keeps_what_is_held(&stage, &mounted);
}

/// What was kept aside at the start is enough for the table of the start. Snapshot after snapshot of a larger one must fit too.
#[test]
fn a_table_that_has_grown_lives_on_a_full_disk_for_many_snapshots() {
    let stage = Stage::new();
    let mounted = Mounted::tmpfs(&stage, "96m");
    let data = mounted.0.join("data");
    let serving = stage.serve_with(data.to_str().unwrap(), &["--set", "snapshot_entries=64"]);
    let (large, small) = (session(&serving), session(&serving));
    let value = "v".repeat(60_000);
    let renew = || post(&serving, "/v1/sessions/SESSION/renew", &json!({ "session_key": small }));
    for number in 0..170 {
        let body = json!({ "session_key": large, "resource": format!("job/{number}"), "value": value });
        let said = post(&serving, "/v1/leases/acquire", &body);
        assert!(said.starts_with("HTTP/1.1 200"), "{number}: {said}");
    }
    // A snapshot of everything, and what is kept for the next one.
    let enough = (0..2_000).find(|_| {
        assert!(renew().starts_with("HTTP/1.1 200"));
        let snapshot = files(&data, ".snap").iter().map(|(_, len)| *len).max().unwrap_or(0);
        let kept = files(&data, "reserve-snapshot.zero").iter().map(|(_, len)| *len).sum::<u64>();
        snapshot > 10_000_000 && kept > snapshot
    });
    assert!(enough.is_some(), "{:?}", files(&data, ""));
    mounted.fill();
    let mut seen = std::collections::BTreeSet::new();
    // They are made beside whatever else is done: how many entries lie between two of them depends on the machine.
    for round in 0..20_000 {
        if seen.len() > 5 {
            break;
        }
        let said = renew();
        assert!(said.starts_with("HTTP/1.1 200"), "{round}: {said} {:?}", files(&data, ""));
        seen.extend(files(&data, ".snap").into_iter().map(|(name, _)| name));
    }
    assert!(seen.len() > 5, "{seen:?}");
    drop(serving);
    assert_eq!(stage.json(&["data", "verify", data.to_str().unwrap()])["good"], true);
}
