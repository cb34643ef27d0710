//! What comes in on the connection of a driver: read by the library's thread, or by a [guest](crate::driver::guest) while the application asks briskly.
//!
//! Promises that messages reach the driver in the order in which they came, whoever reads them, and that nothing lies unread for longer than two
//! looks of the library's thread, whatever the guest does. Only the library's thread ends a connection.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, TryLockError};
use std::time::Duration;

use tokio::time::{Instant, MissedTickBehavior};

use super::connection::{Incoming, Reader};
use super::learned::Learning;
use super::socket::{AllRead, Registered, Socket};
use crate::driver::guest::Guest;
use crate::driver::{ToDriver, WeakDriverHandle};
use crate::error::Unreachable;

/// How often the library's thread looks whether a guest reads. A renewal is sent again after at least 80 ms, with the shortest ttl.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// A guest that did nothing in so many looks, and had nothing to do, is relieved: nobody asks any more.
const IDLE_LOOKS: u32 = 10;
/// So many looks in a row that find something unread: the guest's runtime stands still.
const UNREAD_LOOKS: u32 = 2;
/// Before the next try, while the guest has the reader: it needs microseconds.
const TAKEN_PAUSE: Duration = Duration::from_millis(1);

/// What comes in on one connection.
#[derive(Debug)]
pub(super) struct Receiving {
    socket: Arc<Socket>,
    reader: Mutex<Reader>,
    learning: Option<Learning>,
    driver: WeakDriverHandle,
    /// Why the connection has ended, if the guest found out.
    ended: Mutex<Option<Option<Unreachable>>>,
    /// Whether the link has let go of it.
    is_over: AtomicBool,
}

/// What came of reading once.
#[derive(Debug)]
enum Step {
    /// Something was there, and was handed to the driver.
    Read {
        more: bool,
    },
    /// Nothing was there.
    Nothing,
    /// Somebody else is reading.
    Taken,
    Ended(Option<Unreachable>),
}

/// Who takes the turn behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Taker {
    Library,
    Guest,
}

impl Receiving {
    pub(super) fn new(
        incoming: Incoming,
        learning: Option<Learning>,
        driver: &WeakDriverHandle,
    ) -> Arc<Self> {
        let (socket, reader) = incoming.into_parts();
        let (reader, driver) = (Mutex::new(reader), driver.clone());
        let (ended, is_over) = (Mutex::default(), AtomicBool::new(false));
        Arc::new(Self { socket, reader, learning, driver, ended, is_over })
    }

    /// Reads until the connection ends, and says why if it is the other side's doing.
    pub(super) async fn run(self: Arc<Self>, guest: Option<&Arc<Guest>>) -> Option<Unreachable> {
        let _over = Over { receiving: &self, guest };
        // What was read behind the hello is here already.
        if let Err(why) = self.hand_over(&mut self.reader.lock().unwrap_or_else(PoisonError::into_inner)) {
            return Some(why);
        }
        self.take_turn(Taker::Library);
        let Some(guest) = guest else {
            return self.read_here(None).await.err().flatten();
        };
        let receiving = Arc::clone(&self);
        guest.begin(|guest| async move { receiving.read_there(&guest).await });
        loop {
            if let Err(why) = self.read_here(Some(guest)).await {
                return why;
            }
            if let Err(why) = self.look_after(guest).await {
                return why;
            }
        }
    }

    /// Reads on the library's thread until the connection ends, or a guest reads.
    async fn read_here(&self, guest: Option<&Arc<Guest>>) -> Result<(), Option<Unreachable>> {
        let registered = self.register().await?;
        let guest_reads = async {
            match guest {
                Some(guest) => {
                    while !guest.reads() {
                        guest.changed().await;
                    }
                }
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            ended = self.read_whenever(&registered) => Err(ended),
            () = guest_reads => Ok(()),
        }
    }

    /// Registers the socket with the library's thread. That needs a descriptor, and an application may have used up its own: until it has not,
    /// the socket is looked at now and then. Its leases are not to end by that.
    async fn register(&self) -> Result<Registered, Option<Unreachable>> {
        loop {
            if let Ok(registered) = Registered::new(&self.socket) {
                return Ok(registered);
            }
            if let Step::Ended(why) = self.step(Taker::Library) {
                return Err(why);
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    async fn read_whenever(&self, registered: &Registered) -> Option<Unreachable> {
        while registered.readable().await.is_ok() {
            match self.read(registered, Taker::Library) {
                Step::Read { .. } | Step::Nothing => {}
                Step::Taken => tokio::time::sleep(TAKEN_PAUSE).await,
                Step::Ended(why) => return why,
            }
        }
        None
    }

    fn read(&self, registered: &Registered, taker: Taker) -> Step {
        let mut step = Step::Nothing;
        registered.read(|| {
            step = self.step(taker);
            AllRead(matches!(step, Step::Read { more: false } | Step::Nothing))
        });
        step
    }

    /// Looks after a guest that reads, until the library's thread is to read again.
    async fn look_after(&self, guest: &Guest) -> Result<(), Option<Unreachable>> {
        let mut looks = tokio::time::interval_at(origin(), LOOK_EVERY);
        looks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        // The first is over at once: it is that of a moment in the past.
        looks.tick().await;
        let (mut idle, mut unread) = (0, 0);
        while guest.reads() {
            tokio::select! {
                _ = looks.tick() => {}
                () = guest.changed() => {
                    if let Some(ended) = self.ended.lock().unwrap_or_else(PoisonError::into_inner).take() {
                        return Err(ended);
                    }
                    continue;
                }
            }
            if guest.has_moved() {
                (idle, unread) = (0, 0);
                continue;
            }
            match self.step(Taker::Library) {
                Step::Read { .. } => unread += 1,
                Step::Nothing => (idle, unread) = (idle + 1, 0),
                Step::Taken => {}
                Step::Ended(why) => return Err(why),
            }
            // What was asked and left to the guest.
            self.take_turn(Taker::Library);
            if unread == UNREAD_LOOKS {
                guest.relieve_of_unread();
            } else if idle == IDLE_LOOKS {
                guest.relieve();
            }
        }
        Ok(())
    }

    /// Reads in the guest's runtime whenever it is to, until the link has let go of the connection.
    async fn read_there(&self, guest: &Guest) {
        loop {
            guest.called().await;
            if self.is_over.load(Ordering::Acquire) {
                // It may have been the guest on the next connection who was called.
                return guest.call();
            }
            if guest.reads() && !self.read_while_called(guest).await {
                return;
            }
        }
    }

    /// Reads until the library's thread does again; says whether it may be called once more.
    async fn read_while_called(&self, guest: &Guest) -> bool {
        let Ok(registered) = Registered::new(&self.socket) else { return false };
        while guest.reads() && !self.is_over.load(Ordering::Acquire) {
            tokio::select! {
                ready = registered.readable() => {
                    if ready.is_err() || !guest.is_at_home() {
                        return false;
                    }
                    guest.moves();
                    match self.read(&registered, Taker::Guest) {
                        Step::Read { .. } | Step::Nothing => {}
                        Step::Taken => tokio::task::yield_now().await,
                        Step::Ended(why) => {
                            *self.ended.lock().unwrap_or_else(PoisonError::into_inner) = Some(why);
                            guest.tell();
                            return false;
                        }
                    }
                }
                () = guest.called() => {
                    guest.moves();
                    // Everybody who has something to ask does so first: one frame for all of them.
                    tokio::task::yield_now().await;
                    self.take_turn(Taker::Guest);
                }
            }
        }
        if self.is_over.load(Ordering::Acquire) {
            guest.call();
            return false;
        }
        true
    }

    /// Reads once, hands to the driver what came, and takes the turn.
    fn step(&self, taker: Taker) -> Step {
        let mut reader = match self.reader.try_lock() {
            Ok(reader) => reader,
            Err(TryLockError::WouldBlock) => return Step::Taken,
            // Whoever panicked has left half a frame, or none: it cannot be known.
            Err(TryLockError::Poisoned(_)) => return Step::Ended(None),
        };
        let more = match reader.fill(&self.socket) {
            Ok((0, _)) => return Step::Ended(None),
            Ok((_, more)) => more,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Step::Nothing,
            Err(_) => return Step::Ended(None),
        };
        let handed_over = self.hand_over(&mut reader);
        // Not before the next may read: a turn takes longer than reading.
        drop(reader);
        self.take_turn(taker);
        handed_over.map_or_else(|why| Step::Ended(Some(why)), |()| Step::Read { more })
    }

    /// Hands over whatever is whole. Only for whoever has the reader: the next one's comes behind it.
    fn hand_over(&self, reader: &mut Reader) -> Result<(), Unreachable> {
        let mut messages = Vec::new();
        let understood = loop {
            match reader.frame() {
                Ok(Some(frame)) if messages.is_empty() => messages = frame,
                Ok(Some(frame)) => messages.extend(frame),
                Ok(None) => break Ok(()),
                Err(why) => break Err(why),
            }
        };
        if let Some(learning) = &self.learning {
            messages.retain(|message| !learning.takes(message));
        }
        if !messages.is_empty()
            && let Some(driver) = self.driver.upgrade()
        {
            // A driver that has just ended wants nothing more.
            let _ = driver.leave(ToDriver::Received(messages));
        }
        understood
    }

    fn take_turn(&self, taker: Taker) {
        let Some(driver) = self.driver.upgrade() else { return };
        match taker {
            Taker::Library => driver.turn(),
            Taker::Guest => driver.turn_elsewhere(),
        }
    }
}

/// The moment from which looks are counted, so that those of many connections are one waking of their thread.
fn origin() -> Instant {
    static ORIGIN: OnceLock<Instant> = OnceLock::new();
    *ORIGIN.get_or_init(Instant::now)
}

/// Lets go of a connection, whoever else still has its socket.
struct Over<'a> {
    receiving: &'a Receiving,
    guest: Option<&'a Arc<Guest>>,
}

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.receiving.is_over.store(true, Ordering::Release);
        self.receiving.socket.shut_down();
        if let Some(guest) = self.guest {
            guest.relieve();
        }
    }
}
