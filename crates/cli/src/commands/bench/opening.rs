//! Before the load: connections, and a session for every client. Many are opened at once, but not all: a store that is asked for thousands of
//! things in one moment has a queue before the measurement begins.

use std::sync::Arc;

use futures_util::future::join_all;
use futures_util::stream::{self, StreamExt as _};
use leasehold::{ConnectOptions, Session, SessionOptions, Store};
use tokio::runtime::Handle;
use tokio::time::{MissedTickBehavior, interval};

use super::{progress, used};
use crate::args::BenchArgs;
use crate::console::Console;
use crate::place::Place;
use crate::trouble::Trouble;
use crate::words;

/// Names begin with this, so that whoever looks knows whose they are.
const PREFIX: &str = "leasehold-bench";
/// So many sessions are asked for at once: enough to fill every write to the disk, few enough to end at once.
const AT_ONCE: usize = 64;

/// A session and the name that it alone uses.
pub(super) type Client = (String, Arc<Session>);

/// What is open so far. It is filled step by step, so that whoever stops in the middle can close it.
#[derive(Debug, Default)]
pub(super) struct Opened {
    pub(super) stores: Vec<Store>,
    pub(super) sessions: Vec<Client>,
}

impl Opened {
    /// How far it came, for whoever stopped it.
    pub(super) fn words(&self, clients: u16) -> String {
        match self.sessions.len() {
            0 => "before the first session was open".to_owned(),
            open => format!("while sessions were opened, {open} of {clients}"),
        }
    }

    /// Closes all sessions together, then the connections.
    pub(super) async fn close(self) {
        let sessions = self.sessions.into_iter().filter_map(|(_, session)| Arc::into_inner(session));
        join_all(sessions.map(Session::close)).await;
        for store in self.stores {
            store.close().await;
        }
    }
}

/// As a program that asks for much connects.
async fn connect(place: &Place) -> Result<Store, Trouble> {
    place.connect_with(ConnectOptions::new().read_in(Handle::current())).await
}

/// Connects, looks whether others use the store, and opens the sessions.
pub(super) async fn open(
    console: &Console,
    place: &Place,
    args: &BenchArgs,
    opened: &mut Opened,
) -> Result<(), Trouble> {
    let store = connect(place).await?;
    opened.stores.push(store.clone());
    if !args.beside_others {
        used::refuse_if_used(place.url(), &store).await?;
    }
    if !console.can_animate() {
        let message = asked(args);
        console.note(&message, &object! { event: "measuring", store: place.url(), message: &message });
    }
    for _ in 1..args.connections {
        opened.stores.push(connect(place).await?);
    }
    sessions(console, args, opened).await
}

/// What is to be run, in words.
pub(super) fn asked(args: &BenchArgs) -> String {
    let (clients, connections) =
        (words::count(args.clients, "client"), words::count(args.connections, "connection"));
    format!("{clients} over {connections} for {}", words::length(args.length))
}

async fn sessions(console: &Console, args: &BenchArgs, opened: &mut Opened) -> Result<(), Trouble> {
    let random = getrandom::u64().expect("the system gives random bytes");
    let prefix = format!("{PREFIX}/{random:016x}");
    let options = SessionOptions::new().label(format!("{} bench", words::own_label(None)));
    let clients = usize::from(args.clients);
    let mut frames = interval(progress::FRAME);
    frames.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let Opened { stores, sessions } = opened;
    let each = stream::iter(stores.iter().cycle().take(clients));
    let mut opening = each.map(|store| store.session_with(&options)).buffer_unordered(AT_ONCE);
    while sessions.len() < clients {
        tokio::select! {
            Some(session) = opening.next() => {
                sessions.push((format!("{prefix}/{}", sessions.len()), Arc::new(session?)));
            }
            _ = frames.tick(), if console.can_animate() => {
                console.progress(progress::opening(sessions.len(), clients, progress::columns()));
            }
        }
    }
    Ok(())
}
