//! Turns: who takes them, and that none is left out.

use super::*;
use crate::driver::{Key, Reply};
use crate::error::Error;
use leasehold_core::protocol::{Query, Request};
use leasehold_core::{Answer, Op};
use std::sync::Barrier;
use std::task::{Context, Wake, Waker};
use std::thread::JoinHandle;
use tokio::sync::mpsc;

const LONG: Duration = Duration::from_secs(20);

fn put_behind_a_wheel() -> (DriverHandle, Arc<Wheel>) {
    let (reconnect, _) = mpsc::unbounded_channel();
    let meter = Meter::new(&Time::Machine, LONG);
    wheel(Time::Machine, meter.clone(), None, |handle| {
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

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
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
    let (handle, wheel, attendant) = attended();
    let start = Arc::new(Barrier::new(8));
    let threads: Vec<_> = (0..8)
        .map(|_| {
            let (handle, wheel, start) = (handle.clone(), Arc::clone(&wheel), Arc::clone(&start));
            std::thread::spawn(move || {
                start.wait();
                for asked in 0..20_000 {
                    let (reply, answer) = oneshot::channel();
                    // Sometimes it is left to the attendant.
                    wheel.alone.store(asked % 3 > 0, Ordering::Relaxed);
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
    let late = DriverHandle(Arc::new(Held { wheel, pid: std::process::id() }));
    let (reply, mut answer) = oneshot::channel();
    assert!(late.send(question(reply)).is_err());
    assert!(answer.try_recv().is_err());
}

/// Does something when it is told.
struct Then(Box<dyn Fn() + Send + Sync>);

impl Wake for Then {
    fn wake(self: Arc<Self>) {
        (self.0)();
    }
}

/// Asks, with something to happen in the turn that answers.
fn ask_and_then(
    handle: &DriverHandle,
    then: impl Fn() + Send + Sync + 'static,
) -> oneshot::Receiver<Result<Answer, Error>> {
    let (reply, mut answer) = oneshot::channel();
    let waker = Waker::from(Arc::new(Then(Box::new(then))));
    assert!(std::pin::Pin::new(&mut answer).poll(&mut Context::from_waker(&waker)).is_pending());
    let sent = handle.send(question(reply));
    assert!(sent.is_ok());
    answer
}

#[test]
fn a_waker_that_asks_in_a_turn_is_answered_by_the_next_one() {
    let (handle, _) = put_behind_a_wheel();
    let (again, answers) = (handle.clone(), Arc::new(Mutex::new(None)));
    let kept = Arc::clone(&answers);
    let _first = ask_and_then(&handle, move || {
        let (reply, answer) = oneshot::channel();
        again.send(question(reply)).unwrap();
        *kept.lock().unwrap() = Some(answer);
    });
    let mut answer = answers.lock().unwrap().take().unwrap();
    assert!(matches!(answer.try_recv(), Ok(Err(Error::SessionEnded(_)))));
}

#[test]
fn a_turn_that_panics_ends_the_driver_whoever_takes_it_and_whoever_waits_is_told() {
    end_by_a_panic(true);
    end_by_a_panic(false);
}

fn end_by_a_panic(own_turn: bool) {
    let (handle, wheel, attendant) = attended();
    let (waits, mut waiting) = oneshot::channel();
    let request = Box::new(Request::Read(Query::Status));
    handle.send(ToDriver::Request { request, reply: waits }).unwrap();
    let rests = || wheel.lock(&wheel.alarm).rings.is_some() && wheel.asked.load(Ordering::Relaxed) == 0;
    wait_until("the attendant does not come to rest", rests);
    wheel.alone.store(own_turn, Ordering::Relaxed);
    // Whoever asked goes on, also if the turn was its own.
    let _asked = ask_and_then(&handle, || panic!("a waker that panics"));
    wait_until("it has not ended", || handle.is_closed());
    wait_until("nobody is told", || matches!(waiting.try_recv(), Err(oneshot::error::TryRecvError::Closed)));
    let (reply, mut answer) = oneshot::channel();
    assert!(handle.send(question(reply)).is_err());
    assert!(answer.try_recv().is_err());
    attendant.join().unwrap();
    assert!(wheel.messages().is_empty());
}

#[test]
fn a_turn_that_names_an_earlier_point_calls_the_attendant() {
    let (handle, wheel) = put_behind_a_wheel();
    let is_called = || {
        let mut called = pin!(wheel.attendant.notified());
        called.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready()
    };
    let sleeps_until = |rings| wheel.lock(&wheel.alarm).rings = Some(rings);
    for (sleeps, called) in [(LONG, true), (Duration::from_millis(100), false)] {
        sleeps_until(leasehold_clock::read().plus(sleeps));
        let (reply, _) = oneshot::channel();
        handle.send(question(reply)).unwrap();
        assert_eq!(is_called(), called, "it sleeps for {sleeps:?}");
    }
}

#[test]
fn whoever_closes_is_told_and_nobody_who_asks_meanwhile_is_forgotten() {
    for round in 0..300 {
        let (handle, wheel, attendant) = attended();
        let asking = handle.clone();
        let asker = std::thread::spawn(move || {
            let mut answers = Vec::new();
            loop {
                let (reply, answer) = oneshot::channel();
                wheel.alone.store(false, Ordering::Relaxed);
                if asking.send(question(reply)).is_err() {
                    return answers;
                }
                answers.push(answer);
            }
        });
        let (reply, told) = oneshot::channel();
        handle.send(ToDriver::Close { reply }).unwrap();
        attendant.join().unwrap();
        let mut answers = asker.join().unwrap();
        // The attendant of a test tells nobody, but it has whom to tell, and drops it.
        assert!(told.blocking_recv().is_err());
        let is_open = |answer: &mut oneshot::Receiver<_>| {
            matches!(answer.try_recv(), Err(oneshot::error::TryRecvError::Empty))
        };
        let open = answers.iter_mut().map(is_open).filter(|open| *open);
        assert_eq!(open.count(), 0, "round {round}");
    }
}
