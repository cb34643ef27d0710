//! Very many watchers, half over HTTP and half with the library, while thousands of changes are made and the service is killed in
//! the middle: each is told everything once and in order.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use leasehold::core::protocol::Change;
use leasehold::{Session, SessionOptions, Store};
use tokio::task::JoinSet;

use super::raw::Messages;
use super::stage::{Stage, raise_descriptors, run, since};
use super::story::{Story, judge, same};

/// Grants and endings under the prefix.
const CHANGES: usize = 10_000;
/// Few sessions, each of which does several things at once.
const SESSIONS: usize = 4;
const WRITERS_EACH: usize = 8;
const PREFIX: &str = "jobs/";
/// The last grant of all. Whoever sees it has seen everything before it.
const END: &str = "jobs/end";
/// Fewer than the thousand that `LEASEHOLD_WATCHERS=1000` asks for, so that a debug build is done in a minute.
const WATCHERS: usize = 200;
/// Everything takes less than this; a watcher that misses the end would wait for ever.
const TIME_LIMIT: Duration = Duration::from_secs(280);

#[derive(Default)]
struct Counts {
    begun: AtomicUsize,
    changed: AtomicUsize,
    resumed: AtomicUsize,
}

#[test]
fn every_watcher_is_told_everything_once_and_in_order_across_a_crash() {
    let watchers = std::env::var("LEASEHOLD_WATCHERS").map_or(WATCHERS, |text| text.parse().unwrap());
    raise_descriptors(2 * watchers as u64 + 200);
    let mut stage = Stage::new(&[]);
    let (address, url) = (stage.address(), stage.server.url());
    let counts = Arc::new(Counts::default());
    let began = leasehold_clock::read();
    let over_http = in_a_thread(&counts, move |counts| watch_over_http(address, watchers / 2, counts));
    let library_url = url.clone();
    let with_library =
        in_a_thread(&counts, move |counts| watch_with_library(library_url, watchers / 2, counts));
    wait_for(&counts.begun, watchers / 2 * 2, began);
    let all_watch = since(began);
    let writing = in_a_thread(&counts, move |counts| write(url, counts));
    wait_for(&counts.changed, CHANGES / 2, began);
    stage.server.kill();
    std::thread::sleep(Duration::from_millis(100));
    stage.server.start_again();
    let known = writing.join().unwrap();
    let all_written = since(began);
    let mut stories = over_http.join().unwrap();
    stories.extend(with_library.join().unwrap());
    let (resumed, memory) = (counts.resumed.load(Ordering::SeqCst), stage.memory());
    println!(
        "{watchers} watchers began in {all_watch:?}, {CHANGES} changes were made after {all_written:?} and told after {:?}; \
         {resumed} resumed over HTTP; the service has {memory} MiB",
        since(began)
    );
    assert_eq!(stories.len(), watchers / 2 * 2);
    assert!(resumed >= watchers / 2, "only {resumed} connections were cut by the crash");
    judge(&stories[0].told, &known).unwrap();
    for (number, story) in stories.iter().enumerate() {
        same(&stories[0].told, &story.told).unwrap_or_else(|why| panic!("watcher {number}: {why}"));
    }
}

fn in_a_thread<T, F>(
    counts: &Arc<Counts>,
    work: impl FnOnce(Arc<Counts>) -> F + Send + 'static,
) -> std::thread::JoinHandle<T>
where
    T: Send + 'static,
    F: Future<Output = T>,
{
    let counts = Arc::clone(counts);
    std::thread::spawn(move || {
        let in_time = async { tokio::time::timeout(TIME_LIMIT, work(counts)).await };
        run(in_time).expect("everything is told in time")
    })
}

fn wait_for(count: &AtomicUsize, target: usize, began: leasehold::core::holder::Reading) {
    while count.load(Ordering::SeqCst) < target {
        assert!(since(began) < TIME_LIMIT, "waited in vain for {target}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Takes and gives back names under the prefix, and others that no watcher may be told of. Gives the tokens under the prefix.
async fn write(url: String, counts: Arc<Counts>) -> BTreeMap<u64, String> {
    let mut writers = JoinSet::new();
    for number in 0..SESSIONS {
        let store = Store::connect(&url).await.unwrap();
        let options = SessionOptions::new().ttl(Duration::from_secs(60));
        let session = Arc::new(store.session_with(&options).await.unwrap());
        for writer in 0..WRITERS_EACH {
            let (session, counts) = (Arc::clone(&session), Arc::clone(&counts));
            writers.spawn(async move { write_as(&session, number * WRITERS_EACH + writer, &counts).await });
        }
    }
    let known: Vec<(u64, String)> = writers.join_all().await.into_iter().flatten().collect();
    let store = Store::connect(&url).await.unwrap();
    let session = store.session().await.unwrap();
    session.acquire(END).await.unwrap().release().await.unwrap();
    let (count, known) = (known.len(), BTreeMap::from_iter(known));
    assert_eq!((count, known.len()), (CHANGES / 2, CHANGES / 2), "a token came twice");
    known
}

async fn write_as(session: &Session, writer: usize, counts: &Counts) -> Vec<(u64, String)> {
    let mut known = Vec::new();
    // The first writers take a turn more where the turns cannot be shared out evenly.
    let writers = SESSIONS * WRITERS_EACH;
    for turn in (writer..CHANGES / 2).step_by(writers).map(|turn| turn / writers) {
        // Some names are wanted by all, so that a release and the next grant are one entry.
        let name = match turn % 10 {
            0 => format!("jobs/wanted-{}", writer % SESSIONS),
            other => format!("jobs/{writer}-{other}"),
        };
        let lease = session.acquire(&name).wait(Duration::from_secs(60)).await.unwrap();
        known.push((lease.granted().token.get(), name));
        if turn % 10 == 5 {
            session.acquire(&format!("job/{writer}")).await.unwrap().release().await.unwrap();
        }
        lease.release().await.unwrap();
        counts.changed.fetch_add(2, Ordering::SeqCst);
    }
    known
}

/// Watches that are resumed by hand, with the last id that was seen.
async fn watch_over_http(address: SocketAddr, count: usize, counts: Arc<Counts>) -> Vec<Story> {
    let mut watching = JoinSet::new();
    for _ in 0..count {
        let counts = Arc::clone(&counts);
        watching.spawn(async move {
            let (mut story, mut last) = (Story::default(), None);
            loop {
                if let Some(mut messages) = Messages::watch(address, PREFIX, last).await {
                    while let Some(message) = messages.next().await {
                        let id = message.id.parse().unwrap_or_else(|_| panic!("{message:?}"));
                        match (message.event.as_str(), last) {
                            ("started", None) => _ = counts.begun.fetch_add(1, Ordering::SeqCst),
                            ("started", Some(_)) => _ = counts.resumed.fetch_add(1, Ordering::SeqCst),
                            ("progress", _) => {}
                            ("changes", _) if read(&message.data, id, &mut story) => return story,
                            ("changes", _) => {}
                            _ => panic!("{message:?}"),
                        }
                        last = Some(id);
                    }
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        });
    }
    watching.join_all().await
}

/// Adds what is in a message to the story; says whether it is over. A JSON parser would take most of the time of this test, and a
/// quotation mark in a text is escaped, so the beginnings of events cannot be mistaken.
fn read(data: &str, revision: u64, story: &mut Story) -> bool {
    let (mut changes, mut over) = (Vec::new(), false);
    for event in data.split("{\"kind\":\"").skip(1) {
        let field = |name: &str| {
            let rest = event.split_once(name).unwrap_or_else(|| panic!("no {name} in {event}")).1;
            rest.split('"').next().unwrap_or_else(|| panic!("no end in {event}"))
        };
        let resource = field("\"resource\":\"");
        assert!(resource.starts_with(PREFIX), "{resource} was not asked for");
        let ended = match event.split('"').next() {
            Some("granted") => false,
            Some("ended") => true,
            _ => panic!("{event}"),
        };
        over |= resource == END;
        if resource != END {
            changes.push((field("\"token\":\"").parse().unwrap(), ended));
        }
    }
    story.take(revision, changes.into_iter()).unwrap();
    over
}

/// Watches that the library resumes.
async fn watch_with_library(url: String, count: usize, counts: Arc<Counts>) -> Vec<Story> {
    let store = Store::connect(&url).await.unwrap();
    let mut watching = JoinSet::new();
    for _ in 0..count {
        let (store, counts) = (store.clone(), Arc::clone(&counts));
        watching.spawn(async move {
            let mut watch = store.watch(PREFIX).await.unwrap();
            counts.begun.fetch_add(1, Ordering::SeqCst);
            let mut story = Story::default();
            loop {
                let batch = watch.next().await.unwrap();
                let (mut changes, mut over) = (Vec::new(), false);
                for change in &batch.changes {
                    let name = change.resource().as_str();
                    assert!(name.starts_with(PREFIX), "{name} was not asked for");
                    over |= name == END;
                    match change {
                        _ if name == END => {}
                        Change::Granted { grant, .. } => changes.push((grant.token.get(), false)),
                        Change::Ended { token, .. } => changes.push((token.get(), true)),
                        other => panic!("{other:?}"),
                    }
                }
                story.take(batch.revision.get(), changes.into_iter()).unwrap();
                if over {
                    return story;
                }
            }
        });
    }
    watching.join_all().await
}
