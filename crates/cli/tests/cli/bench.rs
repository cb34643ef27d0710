//! `bench`. Each test says which mistake it is there to find.

use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::process::{Child, Stdio};
use std::sync::Arc;

use leasehold::{SessionOptions, Store};
use leasehold_kit::Awaited;
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::stage::{Running, Stage, eventually};

/// What begins a line that replaces the one before.
const NEW_FRAME: &str = "\r\x1b[K";
/// A terminal beside another one.
const NARROW: u16 = 60;

/// There to find: a phase that measures nothing; a session or lease that is left behind; figures that do not say what they are of.
#[test]
fn it_measures_cycles_and_renewals_and_leaves_nothing_behind() {
    let stage = Stage::new();
    let said = stage.json(0, &["bench", "--for", "1s", "--clients", "4", "--connections", "2"]);
    for figure in ["cycles", "renewals"] {
        let of = &said[figure];
        assert!(of["count"].as_u64().unwrap() > 3 && of["per_second"].as_u64().unwrap() > 0, "{said}");
        assert!(of["p50_us"].as_u64().unwrap() <= of["longest_us"].as_u64().unwrap(), "{said}");
    }
    assert_eq!((&said["interrupted"], &said["ended"]), (&json!(false), &json!("complete")));
    assert_eq!((&said["clients"], &said["connections"]), (&json!(4), &json!(2)));
    assert_eq!((&said["asked_for_ms"], &said["version"]), (&json!(1_000), &json!(env!("CARGO_PKG_VERSION"))));
    assert_eq!(stage.json(0, &["list", "--sessions"])["sessions"], Value::Array(Vec::new()));
    assert_eq!(stage.json(0, &["list"])["leases"], Value::Array(Vec::new()));
}

/// There to find: load on a store that others use, without a word.
#[test]
fn a_store_that_others_use_is_left_alone_unless_asked_for() {
    let stage = Stage::new();
    let (holding, _) = stage.hold("orders", &[]);
    let said = stage.say(&["bench", "--for", "1s"]);
    assert_eq!(said.code, Some(2), "{said:?}");
    let url = format!("dir:{}", stage.store().display());
    assert_eq!(
        said.err,
        format!(
            "leasehold: others use {url}: holder holds orders; load would slow them down, so measure another store, \
             or this one all the same with --beside-others\n"
        )
    );
    let beside = stage.say(&["bench", "--for", "1s", "--beside-others"]);
    assert_eq!(beside.code, Some(0), "{beside:?}");
    holding.signal(Signal::TERM);
    holding.end();
}

/// There to find: a look at the first page of names alone, which free ones fill, as a bench before this one leaves them.
#[test]
fn a_held_lease_behind_a_thousand_free_names_is_seen() {
    let stage = Stage::new();
    free_names(&stage, 1_100);
    let (_holding, _) = stage.hold("zzz", &[]);
    let said = stage.say(&["bench", "--for", "1s"]);
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(said.err.contains(": holder holds zzz; "), "{said:?}");
}

/// There to find: a signal that ends it without a word, or leaves its leases; a rate of what was never begun.
#[test]
fn it_ends_early_when_asked_and_shows_what_it_has() {
    let stage = Stage::new();
    let mut running = stage.start(&["bench", "--for", "1h", "--clients", "2"]);
    assert_eq!(running.error_line(), "leasehold: 2 clients over 1 connection for 1h");
    until_cycles(&stage, &format!("dir:{}", stage.store().display()));
    running.signal(Signal::INT);
    let said = running.end();
    assert_eq!(said.code, Some(0), "{said:?}");
    let mut lines = said.out.lines();
    let head = lines.next().unwrap();
    let version = env!("CARGO_PKG_VERSION");
    let expected = format!(", 2 clients over 1 connection for 1h, leasehold {version}, ended early after ");
    assert!(head.contains(&expected), "{said:?}");
    assert_eq!(lines.next(), Some("OPERATION  PER SECOND  P50  P99  P99.9  LONGEST  COUNT"));
    assert!(lines.next().unwrap().starts_with("cycles  "), "{said:?}");
    assert_eq!(lines.next(), Some("renewals  -  -  -  -  -  0"), "{said:?}");
    assert_eq!(stage.json(0, &["list", "--sessions"])["sessions"], Value::Array(Vec::new()));
}

/// There to find: an end that leaves one with the advice for a single lease, without the figures, under a code that the help does not name.
#[test]
fn a_store_that_goes_away_in_the_middle_is_said_with_what_was_measured() {
    let stage = Stage::new();
    let (serving, url) = serve(&stage);
    let arguments = ["--store", &url, "--timeout", "1s", "bench", "--for", "1h", "--clients", "2"];
    let running = stage.start(&arguments);
    until_cycles(&stage, &url);
    serving.signal(Signal::KILL);
    serving.end();
    let said = running.end();
    assert_eq!(said.code, Some(1), "{said:?}");
    let mut lines = said.out.lines();
    assert!(lines.next().unwrap().contains(", the store went away after "), "{said:?}");
    let cycles: Vec<&str> = lines.nth(1).unwrap().split("  ").collect();
    assert!(cycles[0] == "cycles" && cycles[1] != "-" && cycles[6] != "0", "{said:?}");
    let last = said.err.lines().last().unwrap();
    assert!(last.starts_with(&format!("leasehold: {url} went away after ")), "{said:?}");
    assert!(last.contains(" of load, during cycles") && !said.err.contains("leasehold get"), "{said:?}");
}

/// There to find: the same while it renews, where no request is answered with an error.
#[test]
fn a_store_that_goes_away_while_leases_are_renewed_gives_the_same_code() {
    let stage = Stage::new();
    let (serving, url) = serve(&stage);
    let running = stage.start(&["--json", "--store", &url, "--timeout", "1s", "bench", "--for", "16s"]);
    eventually("leases are kept, which is while they are renewed", || {
        let listed = stage.json(0, &["--store", &url, "list"]);
        let held = listed["leases"][0]["holders"][0]["held_for_ms"].as_u64();
        held.filter(|held| *held > 300)
    });
    serving.signal(Signal::KILL);
    serving.end();
    let said = running.end();
    assert_eq!(said.code, Some(1), "{said:?}");
    let result: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!((&result["ended"], &result["interrupted"]), (&json!("store-gone"), &json!(false)), "{said:?}");
    assert!(result["renewals"]["count"].as_u64().unwrap() > 0, "{said:?}");
    assert!(result["renewals"]["measured_for_ms"].as_u64().unwrap() < 8_000, "{said:?}");
    let error: Value = serde_json::from_str(said.err.lines().last().unwrap()).unwrap();
    assert_eq!(
        (&error["error"]["code"], &error["error"]["exit_code"]),
        (&json!("service-failed"), &json!(1))
    );
}

/// There to find: a signal that is heeded only when thousands of sessions are open; a run of nothing that looks like a good one.
#[test]
fn a_signal_while_sessions_are_opened_ends_it_and_nothing_was_measured() {
    let stage = Stage::new();
    let mut bench = OnTerminal::start(&stage, &["bench", "--for", "1h", "--clients", "4096"], 80);
    bench.until("opening sessions ");
    bench.signal(Signal::INT);
    let (code, screen) = bench.end();
    assert_eq!(code, Some(130), "{screen:?}");
    assert!(screen.contains("/4096"), "{screen:?}");
    let last = screen.lines().last().unwrap();
    assert!(last.contains("ended by signal 2 ") && last.ends_with(": nothing was measured"), "{last:?}");
}

/// There to find: a line that is wider than the terminal, of which every frame would leave a rest behind; a figure of nothing.
#[test]
fn the_line_fits_a_narrow_terminal() {
    let stage = Stage::new();
    let bench = OnTerminal::start(&stage, &["bench", "--for", "1s", "--clients", "2"], NARROW);
    let (code, screen) = bench.end();
    assert_eq!(code, Some(0), "{screen:?}");
    let frames: Vec<&str> = screen.split(NEW_FRAME).collect();
    assert!(
        frames.iter().any(|frame| frame.starts_with("cycles ") && frame.contains("/s, p50 ")),
        "{screen:?}"
    );
    for frame in frames {
        assert!(frame.chars().count() < usize::from(NARROW), "{frame:?}");
        assert!(!frame.contains("0.00 ms"), "{frame:?}");
    }
}

/// There to find: a number that is lowered without a word, and limits in the words of a program.
#[test]
fn numbers_that_make_no_sense_are_refused_in_words() {
    let stage = Stage::new();
    let said = stage.say(&["bench", "--clients", "2", "--connections", "3"]);
    assert_eq!(said.code, Some(2), "{said:?}");
    assert_eq!(
        said.err,
        "leasehold: 3 connections are more than 2 clients, and a connection without a client measures nothing; \
         give --connections 2 or --clients 3\n"
    );
    assert!(!stage.store().exists(), "refused before anything is made");
    for (option, wrong, expected) in [
        ("--clients", "0", "\"0\" is not a number of clients; give a whole number from 1 to 4096"),
        ("--clients", "4097", "\"4097\" is not a number of clients; give a whole number from 1 to 4096"),
        ("--connections", "-1", "\"-1\" is not a number of connections; give a whole number from 1 to 64"),
    ] {
        let said = stage.say(&["bench", option, wrong]);
        assert_eq!(said.code, Some(2), "{said:?}");
        assert!(said.err.contains(expected), "{said:?}");
    }
}

/// There to find: figures whose words are explained nowhere.
#[test]
fn the_help_explains_its_words() {
    let help = Stage::new().good(&["bench", "--help"]);
    // Lines are broken anywhere.
    let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
    for words in ["A cycle is", "1 to 4096", "1 to 64", "a sixteenth", "leasehold list --all", "130"] {
        assert!(help.contains(words), "{words}: {help}");
    }
}

/// Names that somebody has held and nobody holds.
fn free_names(stage: &Stage, count: usize) {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let store = Store::connect(&format!("dir:{}", stage.store().display())).await.unwrap();
        let session = Arc::new(store.session_with(&SessionOptions::new()).await.unwrap());
        let mut tasks = JoinSet::new();
        for number in 0..count {
            let session = Arc::clone(&session);
            tasks.spawn(async move {
                let lease = session.acquire(&format!("free/{number}")).await.unwrap();
                lease.release().await.unwrap();
            });
        }
        tasks.join_all().await;
        Arc::into_inner(session).unwrap().close().await.unwrap();
        store.close().await;
    });
}

/// A service, and where it is.
fn serve(stage: &Stage) -> (Running, String) {
    let [data, port] = ["data", "port"].map(|name| stage.dir.path().join(name).display().to_string());
    let serving = stage.start(&["serve", "--data", &data, "--listen", "127.0.0.1:0", "--port-file", &port]);
    let address = eventually("the service listens", || fs::read_to_string(&port).ok());
    (serving, format!("leasehold://{}", address.trim_end()))
}

/// Waits until a name was granted again, so that a cycle is behind it.
fn until_cycles(stage: &Stage, url: &str) {
    eventually("a cycle was done", || {
        let said = stage.say(&["--json", "--store", url, "list", "--all", "leasehold-bench/"]);
        let listed: Value = serde_json::from_str(&said.out).ok()?;
        let granted = listed["leases"].as_array()?.iter().map(|lease| lease["transitions"].as_u64());
        granted.flatten().any(|granted| granted > 1).then_some(())
    });
}

/// A program whose standard error is a terminal.
struct OnTerminal {
    child: Child,
    terminal: Awaited<File>,
    seen: Vec<u8>,
}

impl OnTerminal {
    fn start(stage: &Stage, arguments: &[&str], columns: u16) -> Self {
        let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&terminal).unwrap();
        unlockpt(&terminal).unwrap();
        let size = Winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&terminal, size).unwrap();
        let name = ptsname(&terminal, Vec::new()).unwrap();
        let theirs = File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
        let mut command = stage.command(arguments);
        let child = command.env("TERM", "xterm").stdout(Stdio::null()).stderr(theirs).spawn().unwrap();
        Self { child, terminal: Awaited::new(File::from(terminal)), seen: Vec::new() }
    }

    /// Reads on; nothing at the end.
    fn read(&mut self) -> Option<()> {
        let mut bytes = [0; 4_096];
        let read = self.terminal.read(&mut bytes);
        if let Err(error) = &read {
            assert_ne!(error.kind(), ErrorKind::TimedOut, "{error}: {:?}", self.screen());
        }
        let count = read.ok().filter(|count| *count > 0)?;
        self.seen.extend_from_slice(&bytes[..count]);
        Some(())
    }

    fn screen(&self) -> String {
        String::from_utf8_lossy(&self.seen).into_owned()
    }

    /// Reads until there is such a text; the line moves all the time, so that reading always comes back.
    fn until(&mut self, text: &str) {
        eventually(text, || {
            assert!(self.read().is_some(), "ended without {text:?}: {:?}", self.screen());
            self.screen().contains(text).then_some(())
        });
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Its code, and all that was on the screen.
    fn end(mut self) -> (Option<i32>, String) {
        while self.read().is_some() {}
        let code = self.child.wait().unwrap().code();
        (code, self.screen())
    }
}

impl Drop for OnTerminal {
    fn drop(&mut self) {
        // Nothing happens to one that has ended and was waited for.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
