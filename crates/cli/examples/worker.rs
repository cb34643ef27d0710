//! A process for tests to start, stop and kill: it holds a lease or very many, or takes and releases leases in a loop, and says on
//! stdout what it knows and when. Lines are words separated by spaces; times are nanoseconds of the boot clock and of the raw clock.

use std::io::Write;
use std::time::Duration;

use futures_util::future::try_join_all;
use leasehold::core::protocol::TokenCheck;
use leasehold::{LeaseState, SessionOptions, Store};
use tokio::signal::unix::{SignalKind, signal};

fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    // Whoever started this process may be gone; then nobody needs the line.
    let _ = writeln!(out, "{line}");
    let _ = out.flush();
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let done = runtime.block_on(async {
        match words.as_slice() {
            ["idle", url] => idle(url).await,
            ["act", url, name, label, ttl_ms, rest @ ..] => act(url, name, label, millis(ttl_ms), rest).await,
            ["hold", url, name, ttl_ms] => hold(url, name, millis(ttl_ms)).await,
            ["cycle", url, names, ttl_ms] => cycle(url, names, millis(ttl_ms)).await,
            ["fill", url, sessions, each] => fill(url, count(sessions), count(each)).await,
            _ => panic!(
                "idle URL | act URL NAME LABEL TTL_MS [warm] [grace=MS] [delay=MS] [drains=MS] | hold URL NAME TTL_MS | cycle URL NAMES TTL_MS | fill URL SESSIONS LEASES_EACH"
            ),
        }
    });
    if let Err(error) = done {
        say(&format!("error {error}"));
        std::process::exit(1);
    }
}

fn millis(text: &str) -> Duration {
    Duration::from_millis(text.parse().expect("a number of milliseconds"))
}

fn count(text: &str) -> usize {
    text.parse().expect("a number")
}

/// Only connects: the first to do so serves.
async fn idle(url: &str) -> Result<(), leasehold::Error> {
    let _store = Store::connect(url).await?;
    say("connected");
    std::future::pending().await
}

/// Acts under one lease whenever it may, and says when. SIGTERM has it give the lease back, SIGINT close its session, and SIGUSR1 say that it is ready.
/// A request to release ends its work, at once or after a while, and a successor that is named gets the lease.
async fn act(
    url: &str,
    name: &str,
    label: &str,
    ttl: Duration,
    rest: &[&str],
) -> Result<(), leasehold::Error> {
    let mut options = SessionOptions::new().ttl(ttl).label(label);
    let (mut ready, mut work_left) = (true, Duration::ZERO);
    for word in rest {
        match word.split_once('=') {
            Some(("grace", length)) => options = options.grace(millis(length)),
            Some(("delay", length)) => options = options.delay(millis(length)),
            Some(("drains", length)) => work_left = millis(length),
            _ if *word == "warm" => ready = false,
            _ => panic!("{word} is neither warm, nor grace=MS, delay=MS or drains=MS"),
        }
    }
    let signal = |kind| signal(kind).expect("a signal can be listened for");
    let (mut term, mut int) = (signal(SignalKind::terminate()), signal(SignalKind::interrupt()));
    let mut usr1 = signal(SignalKind::user_defined1());
    let session = Store::connect(url).await?.session_with(&options).await?;
    let request = session.acquire(name).wait(Duration::from_secs(600));
    let lease = if ready { request.await? } else { request.warms_up().await? };
    let token = lease.granted().token;
    say(&format!("granted {token} {}", leasehold_clock::read().boot));
    let mut done = None;
    loop {
        tokio::select! {
            biased;
            _ = term.recv() => return lease.release().await,
            _ = int.recv() => {
                drop(lease);
                return session.close().await;
            }
            _ = usr1.recv() => {
                lease.ready();
                ready = true;
            }
            state = lease.ended() => {
                say(&format!("ended {state:?}"));
                // A holder that was told so says that it knows.
                drop(lease);
                return session.close().await;
            }
            request = lease.release_requested(), if done.is_none() => {
                if let Some(to) = request.successor {
                    lease.offer(to, Duration::from_secs(20)).await?;
                }
                let now = leasehold_clock::read().boot;
                done = Some(now + u64::try_from(work_left.as_nanos()).expect("work is short"));
            }
            () = tokio::time::sleep(Duration::from_millis(2)) => {}
        }
        if done.is_some_and(|done| leasehold_clock::read().boot >= done) {
            return if work_left.is_zero() { lease.release().await } else { lease.release_drained().await };
        }
        if ready && lease.guard(Duration::from_millis(1)).is_ok() {
            say(&format!("acts {token} {}", leasehold_clock::read().boot));
        }
    }
}

/// Holds one lease, and says every deadline and every state.
async fn hold(url: &str, name: &str, ttl: Duration) -> Result<(), leasehold::Error> {
    let store = Store::connect(url).await?;
    let session = store.session_with(&SessionOptions::new().ttl(ttl)).await?;
    let lease = session.acquire(name).wait(Duration::from_secs(600)).await?;
    let now = leasehold_clock::read();
    say(&format!("granted {} {} {}", lease.granted().token, now.boot, now.raw));
    let mut last = None;
    loop {
        // A guard first: whoever was paused must learn it before it acts.
        let guard = lease.guard(Duration::from_millis(1));
        let now = leasehold_clock::read();
        if guard.is_ok() {
            say(&format!("guard {} {}", now.boot, now.raw));
        }
        if let Some(deadline) = lease.deadline()
            && last != Some(deadline)
        {
            last = Some(deadline);
            say(&format!("deadline {} {}", deadline.boot, deadline.raw));
        }
        let state = lease.state();
        let word = match &state {
            LeaseState::Held { .. } => "held",
            LeaseState::Retrying { .. } => "retrying",
            LeaseState::Uncertain { .. } => "uncertain",
            LeaseState::Lapsed { .. } => "lapsed",
            _ => "ended",
        };
        say(&format!("state {word} {} {}", now.boot, now.raw));
        if word == "ended" {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Takes one of several leases, makes sure that the store still knows it, says so, and gives it back; for ever.
async fn cycle(url: &str, names: &str, ttl: Duration) -> Result<(), leasehold::Error> {
    let count: u32 = names.parse().expect("a number of names");
    let store = Store::connect(url).await?;
    let mut turn = std::process::id();
    loop {
        let session = match store.session_with(&SessionOptions::new().ttl(ttl)).await {
            Ok(session) => session,
            Err(error) => {
                say(&format!("trouble {error}"));
                continue;
            }
        };
        loop {
            turn = turn.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let name = format!("job-{}", (turn >> 8) % count);
            let lease = match session.acquire(&name).wait(Duration::from_secs(5)).await {
                Ok(lease) => lease,
                Err(error) => {
                    say(&format!("trouble {error}"));
                    break;
                }
            };
            let now = leasehold_clock::read();
            say(&format!("granted {name} {} {} {}", lease.granted().token, now.boot, now.raw));
            let check = store.check(lease.resource(), lease.granted().token).await;
            // Only while this process may still believe does the store have to know.
            if lease.guard(Duration::from_millis(1)).is_ok()
                && let Ok(check) = check
                && check != TokenCheck::Current
            {
                say(&format!("lost {name} {} {check:?}", lease.granted().token));
            }
            let token = lease.granted().token;
            let now = leasehold_clock::read();
            let believed = lease.state().is_held();
            say(&format!("until {name} {token} {} {} {believed}", now.boot, now.raw));
            if let Err(error) = lease.release().await {
                say(&format!("trouble {error}"));
                break;
            }
        }
    }
}

/// Holds very many leases, asked for all at once by each session, and keeps them.
async fn fill(url: &str, sessions: usize, each: usize) -> Result<(), leasehold::Error> {
    let store = Store::connect(url).await?;
    let began = leasehold_clock::read();
    let mut held = Vec::new();
    for number in 0..sessions {
        let session = store.session_with(&SessionOptions::new().ttl(Duration::from_secs(60))).await?;
        let names: Vec<String> = (0..each).map(|lease| format!("job-{number}-{lease}")).collect();
        // All are on their way before the first is waited for.
        let leases = try_join_all(names.iter().map(|name| session.acquire(name).into_future())).await?;
        held.push((session, leases));
    }
    let took = leasehold_clock::read().since(began).greater();
    say(&format!("filled {}", took.as_millis()));
    std::future::pending().await
}
