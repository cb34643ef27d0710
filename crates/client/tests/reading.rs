//! Answers that are read in a runtime of the application, and what happens when that runtime does not read them.
#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

#[expect(dead_code, reason = "shared with the tests on directories")]
#[path = "embedded/place.rs"]
mod place;

#[expect(dead_code, reason = "shared with the tests on services")]
#[path = "service/stage.rs"]
mod stage;

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use leasehold::{ConnectOptions, Session, Store, blocking};
use leasehold_kit::Timer;
use place::{Place, since, ttl};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use stage::Stage;
use tokio::runtime::{Builder, Handle, Runtime};

/// One at a time: they count threads, and what those do.
static ALONE: Mutex<()> = Mutex::new(());
/// No answer takes longer on a machine that is busy with other things, if anybody reads it.
const SOON: Duration = Duration::from_secs(2);

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn one_thread() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

/// Another process would serve the directory; another store does here, with threads of its own.
fn serve(place: &Place) -> blocking::Store {
    blocking::Store::connect(&place.url()).unwrap()
}

async fn reads_here(place: &Place) -> Store {
    Store::connect_with(&place.url(), ConnectOptions::new().read_in(Handle::current())).await.unwrap()
}

/// The same, and the thread of the library that it has.
async fn reads_here_beside_a_thread(place: &Place) -> (Store, u32) {
    let others = drivers();
    let store = reads_here(place).await;
    (store, *drivers().difference(&others).next().unwrap())
}

/// Asks often enough that the application reads.
async fn briskly(session: &Session, times: usize) {
    for _ in 0..times {
        session.renew().await.unwrap();
    }
}

/// Asks often enough that the application reads, and makes sure that it does.
async fn briskly_here(session: &Session, thread: u32) {
    let mut woken = u64::MAX;
    for _ in 0..20 {
        let before = sleeps(thread);
        briskly(session, 100).await;
        woken = sleeps(thread) - before;
        // Where the library reads, it is more than once for each.
        if woken < 50 {
            return;
        }
    }
    panic!("the library's thread was woken {woken} times for 100 renewals");
}

/// The threads of the library's drivers.
fn drivers() -> BTreeSet<u32> {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let ids = tasks.filter_map(|task| task.unwrap().file_name().to_str()?.parse().ok());
    ids.filter(|id| {
        let name = std::fs::read_to_string(format!("/proc/self/task/{id}/comm"));
        name.is_ok_and(|name| "leasehold-client".starts_with(name.trim()) && !name.trim().is_empty())
    })
    .collect()
}

/// How often a thread has gone to sleep.
fn sleeps(thread: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/self/task/{thread}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:")).unwrap();
    line.trim().parse().unwrap()
}

/// How often the library's thread was woken for so many renewals, one after the other.
fn woken(read_in: bool, renewals: usize) -> u64 {
    let place = Place::in_memory();
    let _serving = serve(&place);
    let others = drivers();
    one_thread().block_on(async {
        let options = ConnectOptions::new();
        let options = if read_in { options.read_in(Handle::current()) } else { options };
        let store = Store::connect_with(&place.url(), options).await.unwrap();
        let thread = *drivers().difference(&others).next().unwrap();
        let session = store.session_with(&ttl(30)).await.unwrap();
        briskly(&session, 50).await;
        let before = sleeps(thread);
        briskly(&session, renewals).await;
        sleeps(thread) - before
    })
}

#[test]
fn no_thread_of_the_library_is_woken_for_what_the_application_reads() {
    let _alone = alone();
    let renewals = 2_000;
    let began = leasehold_clock::read();
    let here = woken(true, renewals);
    // It looks every 20 ms.
    let looks = since(began).as_millis() / 20;
    let there = woken(false, renewals);
    println!("woken {here} times while the application read, in at most {looks} looks; {there} times else");
    assert!(u128::from(here) < looks + renewals as u128 / 20, "{here} times");
    assert!(there >= renewals as u64 / 2, "{there} times: this test measures something else");
}

/// Asks for a renewal, and does not wait for it.
async fn ask(renewal: std::pin::Pin<&mut impl Future>) {
    let mut renewal = Some(renewal);
    std::future::poll_fn(|context| {
        let _ = renewal.take().map(|renewal| renewal.poll(context).is_ready());
        std::task::Poll::Ready(())
    })
    .await;
}

#[test]
fn a_runtime_that_is_blocked_costs_no_lease() {
    let _alone = alone();
    let place = Place::in_memory();
    let _serving = serve(&place);
    one_thread().block_on(async {
        let (store, thread) = reads_here_beside_a_thread(&place).await;
        let session = store.session_with(&ttl(2)).await.unwrap();
        let lease = session.acquire("job").await.unwrap();
        for _ in 0..3 {
            briskly_here(&session, thread).await;
            let mut renewal = std::pin::pin!(session.renew());
            ask(renewal.as_mut()).await;
            std::thread::sleep(Duration::from_millis(2_500));
            assert!(lease.state().is_held(), "{:?}", lease.state());
            renewal.await.unwrap();
        }
        lease.release().await.unwrap();
    });
}

/// Whoever has used up what the system allows can register no socket, and make no connection.
#[test]
fn an_application_that_has_used_up_its_descriptors_keeps_its_lease() {
    let _alone = alone();
    let place = Place::in_memory();
    let _serving = serve(&place);
    let allowed = getrlimit(Resource::Nofile);
    one_thread().block_on(async {
        let (store, thread) = reads_here_beside_a_thread(&place).await;
        let session = store.session_with(&ttl(2)).await.unwrap();
        let lease = session.acquire("job").await.unwrap();
        briskly_here(&session, thread).await;
        let open = std::fs::read_dir("/proc/self/fd").unwrap().count() as u64;
        setrlimit(Resource::Nofile, Rlimit { current: Some(open + 16), ..allowed }).unwrap();
        // Also those that become free meanwhile.
        let mut used = Vec::new();
        let began = leasehold_clock::read();
        while since(began) < Duration::from_secs(3) {
            used.extend(std::fs::File::open("/dev/null"));
            std::thread::yield_now();
        }
        let state = lease.state();
        drop(used);
        setrlimit(Resource::Nofile, allowed).unwrap();
        assert!(state.is_held(), "{state:?}");
        briskly(&session, 50).await;
        lease.release().await.unwrap();
    });
}

#[test]
fn what_a_blocked_runtime_leaves_unread_is_read_by_the_library_soon() {
    let _alone = alone();
    let place = Place::in_memory();
    let _serving = serve(&place);
    one_thread().block_on(async {
        let (store, thread) = reads_here_beside_a_thread(&place).await;
        // Renewed every ten seconds, and sent again after 400 ms.
        let session = store.session_with(&ttl(30)).await.unwrap();
        let lease = session.acquire("job").await.unwrap();
        let mut took = Vec::new();
        for _ in 0..9 {
            briskly_here(&session, thread).await;
            let (before, began, timer) = (lease.deadline(), leasehold_clock::read(), Timer::start());
            let mut renewal = std::pin::pin!(session.renew());
            ask(renewal.as_mut()).await;
            // The runtime stands still in this loop.
            while lease.deadline() == before && since(began) < SOON {
                std::thread::sleep(Duration::from_millis(1));
            }
            took.push(timer.took());
            renewal.await.unwrap();
        }
        took.sort_unstable();
        println!("read after {took:?}");
        assert!(took[4] < Duration::from_millis(200) && took[8] < SOON / 2, "{took:?}");
    });
}

#[test]
fn whoever_asks_from_elsewhere_is_answered_while_the_runtime_is_blocked() {
    let _alone = alone();
    let place = Place::in_memory();
    let _serving = serve(&place);
    one_thread().block_on(async {
        let (store, thread) = reads_here_beside_a_thread(&place).await;
        let mut sessions = Vec::new();
        for _ in 0..4 {
            sessions.push(store.session_with(&ttl(30)).await.unwrap());
        }
        briskly_here(&sessions[0], thread).await;
        let timer = Timer::start();
        std::thread::scope(|scope| {
            for session in &sessions {
                scope.spawn(move || (0..100).for_each(|_| blocking::wait(session.renew()).unwrap()));
            }
            // This thread, and with it the runtime, waits for all of them here.
        });
        let took = timer.took();
        println!("400 renewals in {took:?}");
        assert!(took < SOON, "{took:?}");
        // The runtime moves again, and reads again.
        briskly_here(&sessions[0], thread).await;
    });
}

#[test]
fn a_runtime_that_has_ended_is_not_waited_for() {
    let _alone = alone();
    let place = Place::in_memory();
    let _serving = serve(&place);
    let runtime = one_thread();
    let (_store, session, other) = runtime.block_on(async {
        let (store, thread) = reads_here_beside_a_thread(&place).await;
        let session = store.session_with(&ttl(30)).await.unwrap();
        let other = store.session_with(&ttl(30)).await.unwrap();
        briskly_here(&session, thread).await;
        (store, session, other)
    });
    // Several that ask at once leave their turn to the guest, whose runtime ends before it comes to that.
    let (mut first, mut second) = (Box::pin(session.renew()), Box::pin(other.renew()));
    runtime.block_on(async {
        ask(first.as_mut()).await;
        ask(second.as_mut()).await;
    });
    drop(runtime);
    let timer = Timer::start();
    blocking::wait(async { (first.await.unwrap(), second.await.unwrap()) });
    let mut longest = timer.took();
    for _ in 0..200 {
        let timer = Timer::start();
        blocking::wait(session.renew()).unwrap();
        longest = longest.max(timer.took());
    }
    println!("answered within {longest:?}");
    // The driver looks around by itself every half second.
    assert!(longest < SOON / 8, "{longest:?}");
}

/// The runtime is there and does not run: nobody blocks in it any more.
#[test]
fn a_runtime_that_nobody_runs_is_not_waited_for_and_keeps_no_sockets() {
    let _alone = alone();
    let place = Place::in_memory();
    let runtime = one_thread();
    let serving = serve(&place);
    let (store, session, thread) = runtime.block_on(async {
        let (store, thread) = reads_here_beside_a_thread(&place).await;
        let session = store.session_with(&ttl(30)).await.unwrap();
        briskly_here(&session, thread).await;
        (store, session, thread)
    });
    let renewed = |times: usize| (0..times).for_each(|_| blocking::wait(session.renew()).unwrap());
    renewed(50);
    // From now on this process serves by itself, with files of its own.
    serving.close();
    renewed(50);
    let open = || std::fs::read_dir("/proc/self/fd").unwrap().count();
    let before = open();
    runtime.block_on(briskly_here(&session, thread));
    renewed(50);
    let after = open();
    assert!(after <= before + 2, "{before} descriptors became {after}");
    runtime.block_on(async {
        session.close().await.unwrap();
        store.close().await;
    });
}

/// Tokio says in a panic of a task that such a runtime registers no sockets. Nothing else comes of it.
#[test]
fn a_runtime_without_input_and_output_is_not_read_in() {
    let _alone = alone();
    let place = Place::in_memory();
    let _serving = serve(&place);
    Builder::new_current_thread().build().unwrap().block_on(async {
        let store = reads_here(&place).await;
        let session = store.session_with(&ttl(30)).await.unwrap();
        let began = leasehold_clock::read();
        briskly(&session, 500).await;
        assert!(since(began) < 10 * SOON, "{:?}", since(began));
    });
}

#[test]
fn a_connection_that_ends_while_the_application_reads_is_made_anew() {
    let _alone = alone();
    let place = Place::in_memory();
    let serving = serve(&place);
    one_thread().block_on(async {
        let (store, thread) = reads_here_beside_a_thread(&place).await;
        let session = store.session_with(&ttl(30)).await.unwrap();
        let lease = session.acquire("job").await.unwrap();
        briskly_here(&session, thread).await;
        let closing = std::thread::spawn(move || serving.close());
        // Through the end of the one that served, until this process serves by itself.
        while !closing.is_finished() {
            briskly(&session, 10).await;
        }
        closing.join().unwrap();
        briskly(&session, 200).await;
        // The new connection is read here as well. The library's thread has more to do now: it serves.
        assert!(lease.state().is_held(), "{:?}", lease.state());
        lease.release().await.unwrap();
        store.close().await;
    });
}

#[test]
fn many_that_ask_at_once_are_all_answered_and_tokens_rise() {
    let _alone = alone();
    let place = Place::in_memory();
    let _serving = serve(&place);
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let mut tasks = tokio::task::JoinSet::new();
        for connection in 0..4 {
            let store = reads_here(&place).await;
            for client in 0..16 {
                let session = store.session_with(&ttl(30)).await.unwrap();
                tasks.spawn(async move {
                    let (name, mut last) = (format!("job-{connection}-{client}"), 0);
                    for _ in 0..100 {
                        let lease = session.acquire(&name).await.unwrap();
                        let token = lease.granted().token.get();
                        assert!(token > last, "{token} after {last}");
                        last = token;
                        lease.release().await.unwrap();
                    }
                });
            }
        }
        let all = async {
            while let Some(done) = tasks.join_next().await {
                done.unwrap();
            }
        };
        tokio::time::timeout(Duration::from_secs(60), all).await.expect("everybody is answered");
    });
}

/// Asks a service often enough that the application reads, and makes sure that it does.
async fn status_here(store: &Store, thread: u32) {
    let mut woken = u64::MAX;
    for _ in 0..20 {
        let before = sleeps(thread);
        for _ in 0..100 {
            store.status().await.unwrap();
        }
        woken = sleeps(thread) - before;
        if woken < 50 {
            return;
        }
    }
    panic!("the library's thread was woken {woken} times for 100 answers");
}

#[test]
fn every_connection_to_a_service_is_read_here_and_none_is_kept_that_is_over() {
    let _alone = alone();
    let theirs = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let ours = one_thread();
    let mut stage = theirs.block_on(Stage::new());
    let address = stage.address.to_string();
    let others = drivers();
    let options = ConnectOptions::new().read_in(ours.handle().clone());
    let store = ours.block_on(Store::connect_with(&stage.url(), options)).unwrap();
    let thread = *drivers().difference(&others).next().unwrap();
    let mut open = Vec::new();
    for _ in 0..12 {
        ours.block_on(status_here(&store, thread));
        // Nobody runs our runtime while the connection ends and another one is made, several times.
        for _ in 0..3 {
            theirs.block_on(stage.stop());
            stage = theirs.block_on(Stage::at(&address));
            let began = leasehold_clock::read();
            while stage.taken() == 0 {
                assert!(since(began) < 10 * SOON, "nobody connects");
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        open.push(std::fs::read_dir("/proc/self/fd").unwrap().count());
    }
    println!("descriptors: {open:?}");
    assert!(open[11] <= open[1] + 3, "{open:?}");
    ours.block_on(status_here(&store, thread));
    ours.block_on(store.close());
}
