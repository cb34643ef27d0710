//! The wheel: a driver's turns are taken by whoever brings it something, so that nobody has to be woken for it.
//!
//! Promises that one turn is taken after the other, that a message is followed by a turn that takes it in, that nobody ever waits for
//! somebody else's turn, and that a thread of the library, the attendant's, takes the turns whose time has come without anybody's asking. What
//! it deliberately does not do: it does not read sockets, and it decides nothing. The interleavings stand in decision 0029.

use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use leasehold_core::holder::Reading;
use tokio::sync::{Notify, oneshot};

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
        self.put(message)?;
        let wheel = &self.0.wheel;
        if wheel.alone.load(Ordering::Acquire) {
            wheel.take();
        } else {
            wheel.attendant.notify_one();
        }
        Ok(())
    }

    /// Brings the driver a message from the attendant's own thread, and takes the turn.
    pub(crate) fn bring(&self, message: ToDriver) -> Result<(), Gone> {
        self.put(message)?;
        self.0.wheel.take();
        Ok(())
    }

    fn put(&self, message: ToDriver) -> Result<(), Gone> {
        if self.is_closed() {
            return Err(Gone);
        }
        self.0.wheel.messages().push(message);
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
    /// Whether everything that was sent was answered, and that by itself: whoever asks next seems to be the only one.
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
            if self.left.swap(false, Ordering::AcqRel) {
                self.steer();
            } else {
                self.take();
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

    /// Notes how late it is for the attendant, by whoever comes first after its time: what is taken in next is judged by that.
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
        let Ok(mut place) = self.driver.lock() else {
            // A turn has panicked: nothing that stands there can be relied on.
            return self.end(None);
        };
        // Looked at before the messages are: after the last handle nothing is sent.
        let abandoned = self.abandoned.load(Ordering::Acquire);
        let messages = std::mem::take(&mut *self.messages());
        let Some(driver) = place.as_mut() else { return };
        // What was received is never judged by a reading from before it was there.
        let now = self.time.now();
        self.note_lateness(now);
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
                if alarm.rings.is_some_and(|rings| !is_in_time(rings, point)) {
                    self.attendant.notify_one();
                }
            }
        }
    }

    fn end(&self, closing: Option<oneshot::Sender<()>>) {
        self.ended.store(true, Ordering::Release);
        *self.lock(&self.closing) = closing;
        // Whoever sent something since is told by its being dropped.
        self.messages().clear();
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
mod tests {
    use super::*;
    use crate::driver::{Key, Reply};
    use crate::error::Error;
    use leasehold_core::{Answer, Op};
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::Barrier;
    use std::task::{Context, Wake, Waker};
    use std::thread::JoinHandle;
    use tokio::sync::mpsc;

    const LONG: Duration = Duration::from_secs(20);

    fn put_behind_a_wheel() -> (DriverHandle, Arc<Wheel>) {
        let (reconnect, _) = mpsc::unbounded_channel();
        let meter = Meter::new(&Time::Machine, LONG);
        wheel(Time::Machine, meter.clone(), |handle| {
            Driver::new(handle, Time::Machine, meter, "nowhere:", LONG, reconnect, None)
        })
    }

    fn attended() -> (DriverHandle, Arc<Wheel>, JoinHandle<()>) {
        let (handle, wheel) = put_behind_a_wheel();
        let attendant = Arc::clone(&wheel);
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
            runtime.block_on(attendant.attend());
        });
        (handle, wheel, thread)
    }

    /// Something that a turn answers at once: no session has this key.
    fn question(reply: Reply<Answer>) -> ToDriver {
        ToDriver::Submit { key: Key(u64::MAX), op: Op::Close, reply: Some(reply) }
    }

    fn wait_until(what: &str, is_so: impl Fn() -> bool) {
        let began = leasehold_clock::read();
        while !is_so() {
            assert!(leasehold_clock::read().since(began).greater() < LONG, "{what}");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn whoever_asks_is_answered_by_a_turn_of_its_own() {
        let (handle, wheel) = put_behind_a_wheel();
        let (reply, mut answer) = oneshot::channel();
        handle.send(question(reply)).unwrap();
        // There is no attendant: nobody else can have done it.
        assert!(matches!(answer.try_recv(), Ok(Err(Error::SessionEnded(_)))));
        assert_eq!(wheel.asked.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn every_message_of_many_threads_is_followed_by_a_turn() {
        let (handle, _, attendant) = attended();
        let start = Arc::new(Barrier::new(8));
        let threads: Vec<_> = (0..8)
            .map(|_| {
                let (handle, start) = (handle.clone(), Arc::clone(&start));
                std::thread::spawn(move || {
                    start.wait();
                    for asked in 0..20_000 {
                        let (reply, answer) = oneshot::channel();
                        handle.send(question(reply)).unwrap();
                        let (done, heard) = std::sync::mpsc::channel();
                        drop(handle.clone());
                        let mut answer = answer;
                        if answer.try_recv().is_ok() {
                            continue;
                        }
                        // Somebody else has the turn.
                        let waiter = Told(done);
                        let waker = Waker::from(Arc::new(waiter));
                        let mut context = Context::from_waker(&waker);
                        while std::pin::Pin::new(&mut answer).poll(&mut context).is_pending() {
                            assert!(heard.recv_timeout(LONG).is_ok(), "question {asked} was left lying");
                        }
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        drop(handle);
        attendant.join().unwrap();
    }

    struct Told(std::sync::mpsc::Sender<()>);

    impl Wake for Told {
        fn wake(self: Arc<Self>) {
            let _ = self.0.send(());
        }
    }

    #[test]
    fn the_attendant_ends_with_the_last_handle_and_late_messages_are_refused() {
        let (handle, wheel, attendant) = attended();
        let weak = handle.downgrade();
        drop(handle);
        attendant.join().unwrap();
        assert!(weak.upgrade().is_none());
        assert!(wheel.ended.load(Ordering::Relaxed));
    }

    /// Does something when it is told.
    struct Then(Box<dyn Fn() + Send + Sync>);

    impl Wake for Then {
        fn wake(self: Arc<Self>) {
            (self.0)();
        }
    }

    /// Asks, with something to happen in the turn that answers.
    fn ask_and_then(handle: &DriverHandle, then: impl Fn() + Send + Sync + 'static) {
        let (reply, mut answer) = oneshot::channel();
        let waker = Waker::from(Arc::new(Then(Box::new(then))));
        assert!(std::pin::Pin::new(&mut answer).poll(&mut Context::from_waker(&waker)).is_pending());
        let sent = handle.send(question(reply));
        assert!(sent.is_ok());
    }

    #[test]
    fn a_waker_that_asks_in_a_turn_is_answered_by_the_next_one() {
        let (handle, _) = put_behind_a_wheel();
        let (again, answers) = (handle.clone(), Arc::new(Mutex::new(None)));
        let kept = Arc::clone(&answers);
        ask_and_then(&handle, move || {
            let (reply, answer) = oneshot::channel();
            again.send(question(reply)).unwrap();
            *kept.lock().unwrap() = Some(answer);
        });
        let mut answer = answers.lock().unwrap().take().unwrap();
        assert!(matches!(answer.try_recv(), Ok(Err(Error::SessionEnded(_)))));
    }

    #[test]
    fn a_turn_that_panics_ends_the_driver_and_whoever_waits_is_told() {
        let (handle, wheel, attendant) = attended();
        let panics =
            catch_unwind(AssertUnwindSafe(|| ask_and_then(&handle, || panic!("a waker that panics"))));
        assert!(panics.is_err());
        wait_until("it has not ended", || handle.is_closed());
        let (reply, mut answer) = oneshot::channel();
        assert!(handle.send(question(reply)).is_err());
        assert!(answer.try_recv().is_err());
        attendant.join().unwrap();
        assert!(wheel.messages().is_empty());
    }

    #[cfg(feature = "testing")]
    #[test]
    fn a_turn_that_names_an_earlier_point_calls_the_attendant() {
        use crate::driver::Wire;
        let (handle, wheel, attendant) = attended();
        let rings = || wheel.lock(&wheel.alarm).rings;
        wait_until("it does not sleep", || rings().is_some());
        let (sender, mut sent) = mpsc::unbounded_channel();
        handle.send(ToDriver::Connected { wire: Wire::Memory(sender), leaderless: None }).unwrap();
        let before = leasehold_clock::read().plus(Duration::from_millis(300));
        *wheel.lock(&wheel.alarm) = Alarm { point: before, rings: Some(before.plus(LONG)), slept: None };
        let (reply, _) = oneshot::channel();
        handle.send(question(reply)).unwrap();
        wait_until("it sleeps too long", || {
            rings().is_some_and(|rings| rings.is_before(before.plus(LONG / 2)))
        });
        assert!(sent.try_recv().is_err());
        drop(handle);
        attendant.join().unwrap();
    }
}
