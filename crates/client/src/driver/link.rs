//! The link: keeps one connection to the store.
//!
//! A connection is a pair of streams whose opening is done, whatever carries them. A directory is also served by this process when
//! nobody else serves it; a service is looked for at its addresses.

mod address;
mod backoff;
mod connection;
#[cfg(feature = "embedded")]
mod directory;
mod learned;
mod life;
mod reach;
mod receiving;
mod rotation;
mod service;
mod socket;
mod wire;

use std::sync::Arc;
use std::time::Duration;

use leasehold_core::holder::Reading;
use tokio::sync::mpsc;

pub(crate) use address::Address;
pub use address::DEFAULT_PORT;
use backoff::Backoff;
pub(crate) use connection::{Connection, Leaderless, Outgoing, encode};
#[cfg(feature = "embedded")]
use directory::Directory;
use learned::{Learned, Learning};
use life::Lives;
use receiving::Receiving;
pub(crate) use receiving::Reception;
use service::{Service, Wanted};
use wire::Sending;
pub(crate) use wire::Wire;

use super::{ToDriver, WeakDriverHandle, random};
use crate::error::Unreachable;
use crate::store::ConnectOptions;

/// Between two attempts to connect to a directory: a server that has just begun needs a few milliseconds.
#[cfg(feature = "embedded")]
const SHORTEST_PAUSE: Duration = Duration::from_millis(2);
#[cfg(feature = "embedded")]
const LONGEST_PAUSE: Duration = Duration::from_millis(50);
/// Between two attempts to connect to a service: all its clients may be trying.
const SHORTEST_SERVICE_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_SERVICE_PAUSE: Duration = Duration::from_millis(500);
/// A server says hello within this time, or is given up for this attempt: it may be stopped.
const HELLO_TIME: Duration = Duration::from_millis(1_000);

/// A connection that lasted so long was a good one: when it ends, the next attempt is made at once. One that is ended sooner may be ended
/// again and again.
const STEADY: Duration = Duration::from_millis(100);

/// What the connections of a store have found out for those after them. Clones share it: a store and its watches know the same.
#[derive(Debug, Clone, Default)]
pub(crate) struct Known {
    lives: Lives,
    learned: Learned,
}

impl Known {
    /// How often the state was restored that was met last.
    pub(super) fn epoch(&self) -> Option<u32> {
        self.lives.epoch()
    }
}

/// Where connections come from, and how long to wait between two attempts.
pub(crate) struct Home {
    place: Place,
    backoff: Backoff,
    /// Since when there is the present connection, or was the last one.
    up_since: Option<Reading>,
}

enum Place {
    #[cfg(feature = "embedded")]
    Directory(Directory),
    Service(Service),
}

impl Home {
    pub(crate) fn new(address: Address, options: &ConnectOptions, known: Known) -> Self {
        // A short patience must still leave time to find out who is silent.
        let hello_time = HELLO_TIME.min(options.patience / 2);
        match address {
            #[cfg(feature = "embedded")]
            Address::Directory(path) => Self {
                place: Place::Directory(Directory::new(path, options, hello_time)),
                backoff: Backoff::new(SHORTEST_PAUSE, LONGEST_PAUSE),
                up_since: None,
            },
            Address::Service(hosts) => Self {
                place: Place::Service(Service::new(hosts, draw(), known, options, hello_time)),
                backoff: Backoff::new(SHORTEST_SERVICE_PAUSE, LONGEST_SERVICE_PAUSE),
                up_since: None,
            },
        }
    }

    /// One attempt. A directory that nobody serves is served by this process from then on.
    async fn connect(&mut self) -> Result<Connection, Unreachable> {
        let connected = match &mut self.place {
            #[cfg(feature = "embedded")]
            Place::Directory(directory) => directory.connect().await,
            Place::Service(service) => service.connect(Wanted::Leader).await,
        };
        self.note(connected)
    }

    /// One attempt, as a guest: serving is left to others.
    pub(crate) async fn visit(&mut self) -> Result<Connection, Unreachable> {
        let connected = match &mut self.place {
            #[cfg(feature = "embedded")]
            Place::Directory(directory) => directory.visit().await,
            Place::Service(service) => service.connect(Wanted::Anyone).await,
        };
        self.note(connected)
    }

    fn note(&mut self, connected: Result<Connection, Unreachable>) -> Result<Connection, Unreachable> {
        self.up_since = connected.is_ok().then(leasehold_clock::read);
        connected
    }

    /// What a connection can learn for the next ones. A directory is where it is.
    fn learning(&self, connection: &Connection) -> Option<Learning> {
        match &self.place {
            #[cfg(feature = "embedded")]
            Place::Directory(_) => None,
            Place::Service(service) => service.learning(connection),
        }
    }

    /// The last attempt was good, and then it ended or nothing came: the next one is made at another address, if there is one.
    pub(crate) fn move_on(&mut self) {
        match &mut self.place {
            #[cfg(feature = "embedded")]
            Place::Directory(_) => {}
            Place::Service(service) => service.next(),
        }
    }

    /// Waits before the next attempt.
    pub(crate) async fn pause(&mut self) {
        let lasted = self.up_since.take().map(|since| leasehold_clock::read().since(since).greater());
        if lasted.is_some_and(|lasted| lasted >= STEADY) {
            self.backoff.reset();
            return;
        }
        tokio::time::sleep(self.backoff.pause(draw())).await;
    }

    /// Hands a directory to the next process.
    async fn leave(self) {
        match self.place {
            #[cfg(feature = "embedded")]
            Place::Directory(directory) => directory.leave().await,
            Place::Service(_) => {}
        }
    }
}

fn draw() -> u32 {
    u32::from_le_bytes(random())
}

/// Keeps a connection until the driver is gone.
pub(super) async fn run(
    mut home: Home,
    driver: WeakDriverHandle,
    mut reconnects: mpsc::UnboundedReceiver<()>,
    reception: Option<Arc<Reception>>,
) {
    let mut number = 0;
    loop {
        let attempt = tokio::select! {
            attempt = home.connect() => attempt,
            () = gone(&mut reconnects) => break,
        };
        let why = match attempt {
            Ok(connection) => {
                while reconnects.try_recv().is_ok() {}
                let learning = home.learning(&connection);
                number += 1;
                let receiving = reception.as_deref();
                match converse(number, connection, learning, &driver, &mut reconnects, receiving).await {
                    Ended::Lost(why) => {
                        home.move_on();
                        why
                    }
                    Ended::GivenUp => {
                        home.move_on();
                        None
                    }
                    Ended::DriverGone => break,
                }
            }
            Err(trouble) => Some(trouble),
        };
        if !tell(&driver, ToDriver::Disconnected { why }) {
            break;
        }
        tokio::select! {
            () = home.pause() => {}
            () = gone(&mut reconnects) => break,
        }
    }
    if let Some(reception) = reception {
        reception.end();
    }
    home.leave().await;
}

/// Ends when the driver has dropped its side.
async fn gone(reconnects: &mut mpsc::UnboundedReceiver<()>) {
    while reconnects.recv().await.is_some() {}
}

fn tell(driver: &WeakDriverHandle, message: ToDriver) -> bool {
    driver.upgrade().is_some_and(|driver| driver.bring(message).is_ok())
}

/// How a connection ended.
enum Ended {
    /// By the other side, or by what it said.
    Lost(Option<Unreachable>),
    /// By the driver, because nothing came.
    GivenUp,
    /// There is nobody to talk for.
    DriverGone,
}

/// Moves frames until the connection ends or is given up.
async fn converse(
    number: u64,
    connection: Connection,
    learning: Option<Learning>,
    driver: &WeakDriverHandle,
    reconnects: &mut mpsc::UnboundedReceiver<()>,
    reception: Option<&Reception>,
) -> Ended {
    let leaderless = connection.leaderless();
    let sending = Sending::new(connection.outgoing);
    let wire = Wire::Stream(Arc::clone(&sending));
    if !tell(driver, ToDriver::Connected { number, wire, leaderless }) {
        return Ended::DriverGone;
    }
    let learns = learning.is_some();
    let receiving = Receiving::new(number, connection.incoming, learning, driver);
    tokio::select! {
        why = receiving.run(reception) => Ended::Lost(why),
        () = sending.write_what_is_left() => Ended::Lost(None),
        () = ask(&sending), if learns => Ended::Lost(None),
        again = reconnects.recv() => again.map_or(Ended::DriverGone, |()| Ended::GivenUp),
    }
}

/// Asks who the members are, now and then, for as long as there is the connection.
async fn ask(sending: &Sending) {
    for asked in 0_u32.. {
        tokio::time::sleep(Learning::pause(asked, draw())).await;
        sending.send(&[Learning::question()]);
    }
}
