//! How a service ends: asked once it finishes what is under way, asked twice it ends at once, which is as safe as a crash.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use leasehold_clock::read;
use leasehold_server::Service;
use rustix::process::Signal;
use signal_hook::consts::SIGHUP;
use signal_hook::iterator::Signals;
use signal_hook::low_level::signal_name;
use tracing::{error, info, warn};

use crate::exit::Exit;
use crate::serve::notify;
use crate::signals::{CANNOT_LISTEN, is_ignored};
use crate::trouble::Trouble;

/// How often it is looked whether the service has ended by itself.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// The same, once it was asked to end.
const LOOK_OFTEN: Duration = Duration::from_millis(5);
/// What a service whose grace is over needs to close its files.
const AFTER_GRACE: Duration = Duration::from_secs(5);

/// Signals are heard from the moment this exists.
#[derive(Debug)]
pub(crate) struct Stopping {
    asked: Receiver<()>,
}

impl Stopping {
    /// Takes over the signals of this process, except those that were ignored when it was started (`nohup`, or `&` in a script).
    pub(crate) fn listen() -> Result<Self, Trouble> {
        let heard =
            [Signal::TERM, Signal::INT, Signal::HUP].into_iter().filter(|signal| !is_ignored(*signal));
        let mut signals = Signals::new(heard.map(Signal::as_raw)).map_err(Trouble::system(CANNOT_LISTEN))?;
        let (ask, asked) = channel();
        std::thread::Builder::new()
            .name("leasehold-signals".into())
            .spawn(move || {
                let mut ask = Some(ask);
                for signal in signals.forever() {
                    hear(signal, &mut ask);
                }
            })
            .map_err(Trouble::system(CANNOT_LISTEN))?;
        Ok(Self { asked })
    }

    /// Stays with the service until it has ended: an error if nobody had asked it to, or it did not end well.
    pub(crate) fn run(self, service: Service, grace: Duration) -> Result<(), Trouble> {
        while !service.has_ended() {
            if self.asked.recv_timeout(LOOK_EVERY).is_ok() {
                info!("finishing what is under way, for at most {} ms", grace.as_millis());
                notify::stopping();
                service.drain();
                finish(&service, grace);
                break;
            }
        }
        service.wait().map_err(|why| Trouble::Service(format!("the service has ended: {why}")))
    }
}

/// Gives a service that was asked to end its time. One that takes longer is ended.
fn finish(service: &Service, grace: Duration) {
    let begin = read();
    let over = |length: Duration| read().since(begin).greater() >= length;
    while !service.has_ended() && !over(grace) {
        std::thread::sleep(LOOK_OFTEN);
    }
    if service.has_ended() {
        return;
    }
    warn!("not finished within shutdown_grace_ms of {}: ending", grace.as_millis());
    service.stop();
    while !service.has_ended() {
        if over(grace + AFTER_GRACE) {
            error!("not ended {} ms later, as if its disk were stuck: leaving", AFTER_GRACE.as_millis());
            std::process::exit(Exit::FAILURE.get().into());
        }
        std::thread::sleep(LOOK_OFTEN);
    }
}

/// The first one asks, the next one does not ask any more.
fn hear(signal: i32, ask: &mut Option<Sender<()>>) {
    let name = signal_name(signal).unwrap_or("a signal");
    if signal == SIGHUP {
        info!("{name} is ignored: the configuration is read at the start alone");
        return;
    }
    let Some(ask) = ask.take() else {
        warn!("{name} again: ending at once");
        std::process::exit(Exit::of_signal(signal).get().into());
    };
    info!("{name}: stopping");
    // Nobody hears it when the service has just ended, and then there is nothing to ask for.
    let _ = ask.send(());
}
