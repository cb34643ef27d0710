//! The wheel: a driver's turns are taken by whoever brings it something, so that nobody has to be woken for it.
//!
//! Promises that one turn is taken after the other, that a message is followed by a turn that takes it in, that nobody waits until
//! somebody else's turn is over, and that a thread of the library, the attendant's, takes the turns whose time has come without anybody's asking. What
//! it deliberately does not do: it does not read sockets, and it decides nothing. The interleavings stand in decision 0029.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use leasehold_core::holder::Reading;
use tokio::sync::{Notify, oneshot};

use super::guest::Guest;
use super::meter::Meter;
use super::{Driver, ToDriver, Turned};
use crate::time::Time;

/// Turns that one taker takes before it leaves the wheel to the attendant, however many messages come meanwhile.
const MOST_TURNS: usize = 8;

/// Reaches a driver. The driver ends when nobody has one of these any more.
#[derive(Debug, Clone)]
pub(crate) struct DriverHandle(Arc<Held>);

/// Reaches a driver for as long as somebody else keeps it.
#[derive(Debug, Clone)]
pub(crate) struct WeakDriverHandle(Weak<Held>);

/// The driver of these handles is gone.
#[derive(Debug)]
pub(crate) struct Gone;

#[derive(Debug)]
struct Held {
    wheel: Arc<Wheel>,
    /// The process that has the driver.
    pid: u32,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.wheel.abandoned.store(true, Ordering::Release);
        // A copy of the process has nobody to call, and what it would call with may have been locked when it was copied.
        if std::process::id() == self.pid {
            self.wheel.attendant.notify_one();
        }
    }
}

impl DriverHandle {
    /// Brings the driver a message of the application, and takes the turn if nothing else is to be expected. Where many ask at once they are
    /// better off with one turn for all, by the attendant.
    pub(crate) fn send(&self, message: ToDriver) -> Result<(), Gone> {
        self.leave(message)?;
        let wheel = &self.0.wheel;
        let guest = wheel.guest.as_ref().inspect(|guest| guest.asked(|| wheel.time.now()));
        if wheel.alone.load(Ordering::Acquire) {
            self.turn_elsewhere();
        } else if let Some(guest) = guest.filter(|guest| guest.reads()) {
            guest.call();
        } else {
            wheel.attendant.notify_one();
        }
        Ok(())
    }

    /// Brings the driver a message from the attendant's own thread, and takes the turn.
    pub(crate) fn bring(&self, message: ToDriver) -> Result<(), Gone> {
        self.leave(message)?;
        self.turn();
        Ok(())
    }

    /// Takes the turn on the attendant's own thread.
    pub(crate) fn turn(&self) {
        let wheel = &self.0.wheel;
        wheel.note_lateness(wheel.time.now());
        wheel.take();
    }

    /// Takes the turn on a thread of the application. What panics in it is no business of whoever has just asked for something, or is
    /// dropping a lease: the driver ends.
    pub(crate) fn turn_elsewhere(&self) {
        let _ = catch_unwind(AssertUnwindSafe(|| self.0.wheel.take()));
    }

    /// Leaves a message for the next turn, which is to be taken behind it.
    pub(crate) fn leave(&self, message: ToDriver) -> Result<(), Gone> {
        let mut messages = self.0.wheel.messages();
        // Asked under the lock: behind the end nothing is put where nobody looks any more.
        if self.is_closed() {
            return Err(Gone);
        }
        messages.push(message);
        Ok(())
    }

    /// Whether the driver has ended.
    pub(crate) fn is_closed(&self) -> bool {
        self.0.wheel.ended.load(Ordering::Acquire)
    }

    pub(crate) fn downgrade(&self) -> WeakDriverHandle {
        WeakDriverHandle(Arc::downgrade(&self.0))
    }
}

impl WeakDriverHandle {
    pub(crate) fn upgrade(&self) -> Option<DriverHandle> {
        self.0.upgrade().map(DriverHandle)
    }
}

/// Where a driver is, and who takes its turns.
#[derive(Debug)]
pub(crate) struct Wheel {
    /// Only whoever has the wheel locks this, so nobody ever waits for it.
    driver: Mutex<Option<Driver>>,
    messages: Mutex<Vec<ToDriver>>,
    /// How often a turn was asked for since the wheel was last let go of; more than zero means that somebody has it.
    asked: AtomicUsize,
    /// Whether the last thing on the connection was a single message from the service: whoever asks next seems to be the only one.
    alone: AtomicBool,
    /// Whether whoever had the wheel has left it to the attendant.
    left: AtomicBool,
    /// Whether no handle is left.
    abandoned: AtomicBool,
    ended: AtomicBool,
    /// Whom to tell that it has ended.
    closing: Mutex<Option<oneshot::Sender<()>>>,
    alarm: Mutex<Alarm>,
    attendant: Notify,
    /// Who takes turns for many while it reads.
    guest: Option<Arc<Guest>>,
    time: Time,
    meter: Meter,
}

/// When there is something to do if nothing comes before, and how the attendant sleeps.
#[derive(Debug)]
struct Alarm {
    point: Reading,
    /// When the attendant wakes if nobody calls it.
    rings: Option<Reading>,
    /// Since when it sleeps until then; nothing if what came of it was seen.
    slept: Option<Reading>,
}

/// Puts a driver behind a wheel. Nobody takes a turn before there is a message or an attendant.
pub(crate) fn wheel(
    time: Time,
    meter: Meter,
    guest: Option<Arc<Guest>>,
    driver: impl FnOnce(WeakDriverHandle) -> Driver,
) -> (DriverHandle, Arc<Wheel>) {
    let now = time.now();
    let wheel = Arc::new(Wheel {
        driver: Mutex::new(None),
        messages: Mutex::default(),
        asked: AtomicUsize::new(0),
        alone: AtomicBool::new(true),
        left: AtomicBool::new(false),
        abandoned: AtomicBool::new(false),
        ended: AtomicBool::new(false),
        closing: Mutex::default(),
        alarm: Mutex::new(Alarm { point: now, rings: None, slept: None }),
        attendant: Notify::new(),
        guest,
        time,
        meter,
    });
    let handle = DriverHandle(Arc::new(Held { wheel: Arc::clone(&wheel), pid: std::process::id() }));
    *wheel.lock(&wheel.driver) = Some(driver(handle.downgrade()));
    (handle, wheel)
}

impl Wheel {
    /// Takes turns at every point in time that the driver names, until it has ended. Gives back whom to tell.
    pub(crate) async fn attend(&self) -> Option<oneshot::Sender<()>> {
        let time = &self.time;
        let mut alarm = pin!(time.sleep(Duration::ZERO));
        let mut rings: Option<Reading> = None;
        loop {
            self.note_lateness(time.now());
            let turns = catch_unwind(AssertUnwindSafe(|| {
                if self.left.swap(false, Ordering::AcqRel) {
                    self.steer();
                } else {
                    self.take();
                }
            }));
            if turns.is_err() {
                // The wheel was left to this one again, and the next turn finds it spoiled.
                continue;
            }
            if self.ended.load(Ordering::Acquire) {
                self.meter.end();
                return self.lock(&self.closing).take();
            }
            let slept = time.now();
            // An alarm that rings too early costs a look; one that is set anew in every turn costs more than the turn.
            let set = {
                let mut told = self.lock(&self.alarm);
                let kept = rings.filter(|rings| {
                    time.keeps_alarms() && !slept.has_reached(*rings) && is_in_time(*rings, told.point)
                });
                told.slept = Some(slept);
                let set = kept.unwrap_or(told.point);
                told.rings = Some(set);
                set
            };
            if rings != Some(set) {
                alarm.set(time.sleep(slept.until(set)));
                rings = Some(set);
            }
            let rang = tokio::select! {
                biased;
                () = self.attendant.notified() => false,
                () = &mut alarm => true,
            };
            if rang {
                rings = None;
            } else {
                // Others on this thread have their turn, whoever calls.
                tokio::task::yield_now().await;
            }
        }
    }

    /// Notes how late the attendant's thread is, by whatever runs on it first: what is taken in next is judged by that.
    fn note_lateness(&self, now: Reading) {
        let mut alarm = self.lock(&self.alarm);
        if let (Some(slept), Some(rings)) = (alarm.slept, alarm.rings)
            && now.has_reached(rings)
        {
            alarm.slept = None;
            drop(alarm);
            self.meter.woke(slept, slept.until(rings), now);
        }
    }

    /// Takes turns, unless somebody has the wheel: then that one takes one more.
    fn take(&self) {
        if self.asked.fetch_add(1, Ordering::AcqRel) == 0 {
            self.steer();
        }
    }

    /// Takes turns until nobody asks for one any more. Only for whoever has the wheel.
    fn steer(&self) {
        let spoiled = Spoiled(self);
        for _ in 0..MOST_TURNS {
            let asked = self.asked.load(Ordering::Acquire);
            self.turn();
            if self.asked.compare_exchange(asked, 0, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
                std::mem::forget(spoiled);
                return;
            }
        }
        // The attendant goes on.
        drop(spoiled);
    }

    fn turn(&self) {
        let mut place = match self.driver.lock() {
            Ok(place) => place,
            // A turn has panicked: nothing that stands there can be relied on. Whoever waits is told by its being dropped.
            Err(poisoned) => {
                *poisoned.into_inner() = None;
                return self.end(None);
            }
        };
        // Looked at before the messages are: after the last handle nothing is sent.
        let abandoned = self.abandoned.load(Ordering::Acquire);
        let messages = std::mem::take(&mut *self.messages());
        let Some(driver) = place.as_mut() else { return };
        // What was received is never judged by a reading from before it was there.
        let now = self.time.now();
        if !self.time.keeps_alarms() {
            self.note_lateness(now);
        }
        let turned = driver.turn(messages, now);
        self.alone.store(driver.is_alone(), Ordering::Release);
        match turned {
            Turned::Over(closing) => {
                *place = None;
                self.end(Some(closing));
            }
            Turned::GoesOn(_) if abandoned => {
                *place = None;
                self.end(None);
            }
            Turned::GoesOn(point) => {
                let mut alarm = self.lock(&self.alarm);
                alarm.point = point;
                if !self.time.keeps_alarms() {
                    // Whoever moves the clock by hand calls at every step: the whole driver sleeps from now until then.
                    (alarm.slept, alarm.rings) = (Some(now), Some(point));
                }
                let sleeps_too_long = |rings| self.time.keeps_alarms() && !is_in_time(rings, point);
                if alarm.rings.is_some_and(sleeps_too_long) {
                    self.attendant.notify_one();
                }
            }
        }
    }

    fn end(&self, closing: Option<oneshot::Sender<()>>) {
        // Before the end is to be seen: the attendant takes it then.
        *self.lock(&self.closing) = closing;
        let rest = {
            let mut messages = self.messages();
            self.ended.store(true, Ordering::Release);
            std::mem::take(&mut *messages)
        };
        // Whoever sent something since is told by its being dropped, and may ask again in that.
        drop(rest);
        self.attendant.notify_one();
    }

    fn messages(&self) -> MutexGuard<'_, Vec<ToDriver>> {
        self.lock(&self.messages)
    }

    #[expect(clippy::unused_self, reason = "reads as what it is: a part of the wheel")]
    fn lock<'a, T>(&self, part: &'a Mutex<T>) -> MutexGuard<'a, T> {
        part.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether an alarm that rings then will do for that point. Points are rounded to what the slower of two clocks says, a little differently each
/// time, and timers ring within a millisecond at best.
fn is_in_time(rings: Reading, point: Reading) -> bool {
    rings.is_before(point.plus(Duration::from_millis(1)))
}

/// Leaves the wheel to the attendant when it is dropped: after many turns, or in a panic.
struct Spoiled<'a>(&'a Wheel);

impl Drop for Spoiled<'_> {
    fn drop(&mut self) {
        self.0.left.store(true, Ordering::Release);
        self.0.attendant.notify_one();
    }
}

#[cfg(test)]
mod tests;
