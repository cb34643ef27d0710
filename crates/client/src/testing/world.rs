//! The world of a test: one service, any number of stores, one clock.

use std::future::Future;
use std::ops::Deref;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use leasehold_core::holder::Reading;
use leasehold_node::ConnectionId;
use tokio::sync::{mpsc, oneshot};

use super::HandClock;
use super::network::Service;
use crate::driver::meter::{self, Meter};
use crate::driver::wheel::wheel;
use crate::driver::{Driver, ToDriver, WeakDriverHandle};
use crate::store::{DEFAULT_PATIENCE, Store};
use crate::time::Time;

/// Time moves in steps of this length, as often as a real service looks at its clocks.
const STEP: Duration = Duration::from_millis(10);
/// Rounds without an end mean that two parts talk to each other for ever.
const MAX_ROUNDS: usize = 100_000;

/// A service in memory, its clock, and the stores that are connected to it.
#[derive(Clone)]
pub struct World {
    shared: Arc<Mutex<Parts>>,
    clock: HandClock,
}

struct Parts {
    service: Service,
    drivers: Vec<Plug>,
}

/// One driver, and whether it is paused.
struct Plug {
    to_driver: WeakDriverHandle,
    clock: HandClock,
    /// Its connection; nothing while it is cut off.
    connection: Option<ConnectionId>,
    paused: bool,
}

impl Default for World {
    fn default() -> Self {
        Self::new()
    }
}

impl World {
    /// A world with an empty store.
    pub fn new() -> Self {
        let clock = HandClock::new();
        let parts = Parts { service: Service::new(clock.clone()), drivers: Vec::new() };
        Self { shared: Arc::new(Mutex::new(parts)), clock }
    }

    /// Another connection to the store, as another process would have it: with a driver and a clock of its own.
    pub fn store(&self) -> TestStore {
        let (reconnect, _) = mpsc::unbounded_channel();
        let clock = HandClock::new();
        let time = Time::Hand(clock.clone());
        let meter = Meter::new(&time, meter::GENERATION);
        let (to_driver, wheel) = wheel(time.clone(), meter.clone(), None, |handle| {
            Driver::new(handle, time.clone(), meter.clone(), "memory:", DEFAULT_PATIENCE, reconnect, None)
        });
        let weak = to_driver.downgrade();
        let store = Store::from_driver("memory:", to_driver.clone(), time, meter);
        std::thread::spawn(move || {
            let runtime =
                tokio::runtime::Builder::new_current_thread().build().expect("a runtime without I/O");
            if let Some(closing) = runtime.block_on(wheel.attend()) {
                let _ = closing.send(());
            }
        });
        let mut parts = self.lock();
        let connection = parts.service.connect(&to_driver);
        let number = parts.drivers.len();
        parts.drivers.push(Plug { to_driver: weak, clock, connection: Some(connection), paused: false });
        drop(parts);
        TestStore { world: self.clone(), number, store }
    }

    /// Moves time for everybody, in small steps, and comes back when everything was done that was to be done.
    pub fn advance(&self, length: Duration) {
        let mut left = length;
        self.settle();
        while !left.is_zero() {
            let step = left.min(STEP);
            self.clock.advance(step);
            for plug in &self.lock().drivers {
                plug.clock.advance(step);
            }
            self.settle();
            left -= step;
        }
    }

    /// Runs a call to its end, without moving time.
    ///
    /// # Panics
    /// When the call cannot end unless time moves: advance in another task, or use [`World::run_for`].
    pub fn run<T>(&self, call: impl Future<Output = T>) -> T {
        self.run_for(Duration::ZERO, call).expect("a call that waits for time needs run_for")
    }

    /// Runs a call to its end, moving time up to `length`. Nothing if it has not ended by then.
    pub fn run_for<T>(&self, length: Duration, call: impl Future<Output = T>) -> Option<T> {
        // Inside a runtime, futures yield after some polls and wait to be polled by it; here nobody would.
        let mut call = pin!(tokio::task::unconstrained(call));
        let mut context = Context::from_waker(Waker::noop());
        let mut left = length;
        loop {
            if let Poll::Ready(done) = call.as_mut().poll(&mut context) {
                return Some(done);
            }
            if self.settle() {
                // Something happened without time: the call may have more to ask.
                continue;
            }
            if let Poll::Ready(done) = call.as_mut().poll(&mut context) {
                return Some(done);
            }
            if left.is_zero() {
                return None;
            }
            let step = left.min(STEP);
            self.advance(step);
            left -= step;
        }
    }

    /// The service stands still: it takes nothing in, and its log time stops, as under SIGSTOP.
    pub fn stop_service(&self) {
        self.lock().service.stop(true);
    }

    /// The service goes on. What it slept through is not held against anybody.
    pub fn continue_service(&self) {
        self.lock().service.stop(false);
        self.settle();
    }

    /// Lets the service and every driver that is not paused act until nobody has anything left to do.
    /// Says whether anybody had.
    fn settle(&self) -> bool {
        for round in 0..MAX_ROUNDS {
            let served = self.lock().service.serve();
            let barriers: Vec<oneshot::Receiver<bool>> = self
                .lock()
                .drivers
                .iter()
                .filter(|plug| !plug.paused)
                .filter_map(|plug| {
                    let (reply, done) = oneshot::channel();
                    plug.to_driver.upgrade()?.send(ToDriver::Barrier { reply }).ok()?;
                    Some(done)
                })
                .collect();
            let mut sent = false;
            for barrier in barriers {
                // A driver that has ended answers nothing.
                sent |= crate::blocking::wait(barrier).unwrap_or(false);
            }
            if !served && !sent {
                return round > 0;
            }
        }
        panic!("the service and its clients do not come to rest");
    }

    fn lock(&self) -> MutexGuard<'_, Parts> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection to the store of a [`World`], with the faults that can happen to it.
pub struct TestStore {
    world: World,
    number: usize,
    store: Store,
}

impl TestStore {
    /// Cuts the connection and keeps it cut.
    pub fn cut(&self) {
        let mut parts = self.world.lock();
        if let Some(connection) = parts.drivers[self.number].connection.take() {
            parts.service.disconnect(connection);
        }
        drop(parts);
        self.world.settle();
    }

    /// Connects again.
    pub fn heal(&self) {
        let mut parts = self.world.lock();
        let plug = &parts.drivers[self.number];
        if plug.connection.is_none()
            && let Some(to_driver) = plug.to_driver.upgrade()
        {
            let connection = parts.service.connect(&to_driver);
            parts.drivers[self.number].connection = Some(connection);
        }
        drop(parts);
        self.world.settle();
    }

    /// Holds back every answer from now on. They arrive, late, with [`deliver`](Self::deliver).
    pub fn hold_back_answers(&self) {
        let mut parts = self.world.lock();
        if let Some(connection) = parts.drivers[self.number].connection {
            parts.service.delay(connection, true);
        }
    }

    /// Lets all answers held back arrive.
    pub fn deliver(&self) {
        let mut parts = self.world.lock();
        if let Some(connection) = parts.drivers[self.number].connection {
            parts.service.delay(connection, false);
        }
        drop(parts);
        self.world.settle();
    }

    /// Pauses the process behind this store: its driver does nothing, but its clocks run on.
    pub fn pause(&self) {
        self.hold_back_answers();
        self.world.lock().drivers[self.number].paused = true;
    }

    /// The process goes on.
    pub fn unpause(&self) {
        self.world.lock().drivers[self.number].paused = false;
        self.deliver();
    }

    /// Puts the machine behind this store to sleep for `length`: only the clock that counts suspend sees it.
    pub fn suspend(&self, length: Duration) {
        self.world.lock().drivers[self.number].clock.advance_boot(length);
        self.world.settle();
    }

    /// Sets the time of day of the machine behind this store forwards. No lease depends on it; [figures](Store::figures) show it.
    pub fn step_wall_clock(&self, forwards: Duration) {
        self.world.lock().drivers[self.number].clock.step_wall_clock(forwards);
    }

    /// The clocks of the machine behind this store.
    pub fn now(&self) -> Reading {
        self.world.lock().drivers[self.number].clock.now()
    }
}

impl Deref for TestStore {
    type Target = Store;

    fn deref(&self) -> &Store {
        &self.store
    }
}
