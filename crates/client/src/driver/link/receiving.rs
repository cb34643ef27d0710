//! What comes in on the connection of a driver: read by the library's thread, or by a [guest](crate::driver::guest) while the application asks briskly.
//!
//! Promises that messages reach the driver in the order in which they came, whoever reads them, and that nothing lies unread for longer than two
//! looks of the library's thread, whatever the guest does. Only the library's thread ends a connection.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError, Weak};
use std::time::Duration;

use tokio::runtime::Handle;

use super::connection::{Incoming, Reader};
use super::learned::Learning;
use super::socket::{AllRead, Registered, Socket};
use crate::driver::guest::{Guest, Leaves};
use crate::driver::{ToDriver, WeakDriverHandle};
use crate::error::Unreachable;

/// How often the library's thread looks whether a guest reads. A renewal is sent again after at least 80 ms, with the shortest ttl.
const LOOK_EVERY: Duration = Duration::from_nanos(LOOK_NANOS);
const LOOK_NANOS: u64 = 20_000_000;
/// A guest that read nothing in so many looks, and had nothing to read, is relieved: nobody asks any more.
const IDLE_LOOKS: u32 = 10;
/// So many looks that find something unread, without the guest's having read anything between them: its runtime stands still.
const UNREAD_LOOKS: u32 = 2;
/// Before the next try, while the guest has the reader: it needs microseconds.
const TAKEN_PAUSE: Duration = Duration::from_millis(1);

/// What comes in on one connection.
#[derive(Debug)]
pub(super) struct Receiving {
    /// Which connection of its driver.
    number: u64,
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

/// Where a guest is received: it reads the connection that there is.
#[derive(Debug)]
pub(crate) struct Reception {
    guest: Arc<Guest>,
    /// Weak: a runtime that stands still is not to keep the sockets of connections that are over.
    present: Mutex<Weak<Receiving>>,
}

impl Reception {
    /// Begins the task of a guest in its runtime, for the life of a driver.
    pub(crate) fn begin(runtime: &Handle, guest: Arc<Guest>, driver: WeakDriverHandle) -> Arc<Self> {
        let reception = Arc::new(Self { guest, present: Mutex::default() });
        let (own, leaves) = (Arc::clone(&reception), Leaves(Arc::clone(&reception.guest)));
        runtime.spawn(async move {
            own.receive(&driver).await;
            drop(leaves);
        });
        reception
    }

    async fn receive(&self, driver: &WeakDriverHandle) {
        let guest = &self.guest;
        loop {
            guest.called().await;
            if guest.is_over() {
                return;
            }
            // Whoever left something to the guest is served, also if there is nothing to read just now.
            if let Some(driver) = driver.upgrade() {
                driver.turn_elsewhere();
            }
            let receiving = self.present().upgrade().filter(|_| guest.reads());
            if let Some(receiving) = receiving {
                receiving.read_there(guest).await;
            }
        }
    }

    /// There will be no connection any more.
    pub(super) fn end(&self) {
        self.guest.end();
    }

    fn connected(&self, receiving: &Arc<Receiving>) {
        *self.present() = Arc::downgrade(receiving);
        self.guest.connected(true);
    }

    fn disconnected(&self) {
        *self.present() = Weak::new();
        self.guest.connected(false);
    }

    fn present(&self) -> MutexGuard<'_, Weak<Receiving>> {
        self.present.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Receiving {
    pub(super) fn new(
        number: u64,
        incoming: Incoming,
        learning: Option<Learning>,
        driver: &WeakDriverHandle,
    ) -> Arc<Self> {
        let (socket, reader) = incoming.into_parts();
        let (reader, driver) = (Mutex::new(reader), driver.clone());
        let (ended, is_over) = (Mutex::default(), AtomicBool::new(false));
        Arc::new(Self { number, socket, reader, learning, driver, ended, is_over })
    }

    /// Reads until the connection ends, and says why if it is the other side's doing.
    pub(super) async fn run(self: Arc<Self>, reception: Option<&Reception>) -> Option<Unreachable> {
        let _over = Over { receiving: &self, reception };
        // What was read behind the hello is here already.
        if let Err(why) = self.hand_over(&mut self.reader.lock().unwrap_or_else(PoisonError::into_inner)) {
            return Some(why);
        }
        self.take_turn(Taker::Library);
        let Some(reception) = reception else {
            return self.read_here(None).await.err().flatten();
        };
        reception.connected(&self);
        let guest = &*reception.guest;
        loop {
            if let Err(why) = self.read_here(Some(guest)).await {
                return why;
            }
            if let Err(why) = self.look_after(guest).await {
                return why;
            }
            // What was left to the guest before it was relieved.
            self.take_turn(Taker::Library);
        }
    }

    /// Reads on the library's thread until the connection ends, or a guest reads.
    async fn read_here(&self, guest: Option<&Guest>) -> Result<(), Option<Unreachable>> {
        let registered = self.register().await?;
        let guest_reads = async {
            let Some(guest) = guest else { return std::future::pending().await };
            loop {
                self.found_ended()?;
                if guest.reads() {
                    return Ok(());
                }
                guest.changed().await;
            }
        };
        tokio::select! {
            ended = self.read_whenever(&registered) => Err(ended),
            changed = guest_reads => changed,
        }
    }

    /// What the guest found out, if the connection has ended.
    fn found_ended(&self) -> Result<(), Option<Unreachable>> {
        let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner).take();
        ended.map_or(Ok(()), Err)
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
        let (mut idle, mut unread) = (0, 0);
        while guest.reads() {
            tokio::select! {
                () = tokio::time::sleep(until_next_look()) => {}
                () = guest.changed() => {
                    self.found_ended()?;
                    continue;
                }
            }
            if guest.has_moved() {
                (idle, unread) = (0, 0);
                continue;
            }
            match self.step(Taker::Library) {
                Step::Read { .. } => unread += 1,
                Step::Nothing => idle += 1,
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
        self.found_ended()
    }

    /// Reads in the guest's runtime until the library's thread does again, or the link has let go of the connection.
    async fn read_there(&self, guest: &Guest) {
        // Without a descriptor for it, the library's thread goes on looking, and relieves it.
        let Ok(registered) = Registered::new(&self.socket) else { return };
        while guest.reads() && !self.is_over.load(Ordering::Acquire) {
            tokio::select! {
                ready = registered.readable() => {
                    guest.stay_at_home().await;
                    if ready.is_err() {
                        return;
                    }
                    match self.read(&registered, Taker::Guest) {
                        Step::Read { .. } => guest.moves(),
                        Step::Nothing => {}
                        Step::Taken => tokio::task::yield_now().await,
                        Step::Ended(why) => {
                            *self.ended.lock().unwrap_or_else(PoisonError::into_inner) = Some(why);
                            return guest.tell();
                        }
                    }
                }
                () = guest.called() => {
                    // Everybody who has something to ask does so first: one frame for all of them.
                    tokio::task::yield_now().await;
                    guest.stay_at_home().await;
                    self.take_turn(Taker::Guest);
                }
            }
        }
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
            let _ = driver.leave(ToDriver::Received { number: self.number, messages });
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

/// All connections look at the same moments: that is one waking of their thread.
fn until_next_look() -> Duration {
    Duration::from_nanos(LOOK_NANOS - leasehold_clock::read().boot % LOOK_NANOS)
}

/// Lets go of a connection, whoever else still has its socket.
struct Over<'a> {
    receiving: &'a Receiving,
    reception: Option<&'a Reception>,
}

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.receiving.is_over.store(true, Ordering::Release);
        self.receiving.socket.shut_down();
        if let Some(reception) = self.reception {
            reception.disconnected();
        }
    }
}
