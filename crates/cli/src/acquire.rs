//! Getting a lease: connect, open a session, wait in line, say who is in the way.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use leasehold::core::limits::MAX_WAIT;
use leasehold::core::table::{HoldingState, LeaseView};
use leasehold::core::{Millis, Policies, Unavailable, WaitEnding};
use leasehold::{
    ConnectOptions, Error, Label, Lease, Refusal, ResourceName, Session, SessionId, SessionOptions, Store,
};
use tokio::time::{sleep, timeout};

use crate::args::AcquireArgs;
use crate::console::Console;
use crate::exit::Exit;
use crate::guardian::clock::Point;
use crate::holding::{FAREWELL, Holding, Keeper};
use crate::place::Place;
use crate::receivers;
use crate::record::Record;
use crate::sealing;
use crate::signals::Signals;
use crate::trouble::Trouble;
use crate::words;

/// Whoever waits longer than this is told why.
const SAY_AFTER: Duration = Duration::from_secs(1);
/// How often a line on a terminal moves.
const FRAME: Duration = Duration::from_millis(120);
/// How often the holder is looked up again for that line.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// A store that has not answered for so long is said not to: what it said before that may not be so any more.
const SILENCE: Duration = Duration::from_secs(4);
const NOBODY: &str = "nobody holds it";
/// Whoever waits and holds it already waits for its receivers.
const SEALING: &str = "granted, and not yet sealed at every receiver";
const SPINNER: [char; 8] = ['⠋', '⠙', '⠸', '⠴', '⠦', '⠇', '⠏', '⠟'];

/// What is asked for.
#[derive(Debug)]
pub(crate) struct Wanted<'a> {
    pub(crate) names: &'a [ResourceName],
    pub(crate) args: &'a AcquireArgs,
    /// What the holder is called if it was given no name.
    pub(crate) default_label: Label,
    /// Whether the holder itself says when it is ready.
    pub(crate) warms_up: bool,
}

/// Gets all of these leases, or none. Nothing is left behind when it does not.
pub(crate) async fn acquire(
    console: &Console,
    place: &Place,
    wanted: Wanted<'_>,
    signals: &mut Signals,
    record: &mut Record,
) -> Result<Holding, Trouble> {
    let Wanted { names, args, default_label, warms_up } = wanted;
    let mut options = session_options(args, default_label);
    // What makes no sense is refused before anything is made or opened.
    options.numbers()?;
    check_policies(args)?;
    let receivers = receivers::open_all(&args.seal_at, args.variable)?;
    for receiver in &receivers {
        options = options.seal_at(Arc::clone(receiver));
    }
    let store = place.connect_with(ConnectOptions::new()).await?;
    record.opening();
    let keeper = Keeper::open(store, &options).await?;
    let asked = ask(&keeper.session, names, args, warms_up);
    match wait_in_line(console, &keeper, names, args, asked, signals, record).await {
        Ok(leases) => {
            if !args.quiet {
                sealing::warn(console, receivers).await;
            }
            Ok(Holding { leases, keeper })
        }
        Err(trouble) => {
            let _ = keeper.close().await;
            Err(sealing::told(trouble, args, place))
        }
    }
}

/// What is left to say when there is no lease: nothing, if that was wanted and somebody else has it.
pub(crate) fn without_a_lease(
    args: &AcquireArgs,
    trouble: Trouble,
    so: &'static str,
) -> Result<Exit, Trouble> {
    match trouble {
        Trouble::NotAcquired { .. } if args.quiet => {
            Ok(args.held_exit.map_or(trouble.exit(), |code| Exit::of_command(code.into())))
        }
        other => Err(other.without_a_lease(so)),
    }
}

fn session_options(args: &AcquireArgs, default_label: Label) -> SessionOptions {
    let label = args.label.clone().unwrap_or(default_label);
    let options = SessionOptions::new()
        .ttl(args.ttl)
        .label(label.as_str())
        .grace(args.grace.unwrap_or_default())
        .hard(args.hard.or(args.grace).unwrap_or_default())
        .delay(args.delay.unwrap_or_default());
    match args.renew_every {
        Some(interval) => options.renew_every(interval),
        None => options,
    }
}

fn check_policies(args: &AcquireArgs) -> Result<(), Error> {
    let millis = |length: Option<Duration>| length.map_or(Millis::ZERO, Millis::from_duration);
    let grace = millis(args.grace);
    let hard = args.hard.map_or(grace, Millis::from_duration);
    Ok(Policies { grace, hard, delay: millis(args.delay) }.check()?)
}

async fn wait_in_line(
    console: &Console,
    keeper: &Keeper,
    names: &[ResourceName],
    args: &AcquireArgs,
    asked: impl Future<Output = Result<Vec<Lease>, Error>>,
    signals: &mut Signals,
    record: &mut Record,
) -> Result<Vec<Lease>, Trouble> {
    let mut spinner = Spinner { console, drawn: false, said: None };
    // Before anything is sent, so that no answer is missed.
    let events = keeper.session.events();
    let granted = tokio::select! {
        // Whoever has the lease by now does not say that it waits.
        biased;
        granted = asked => granted,
        signal = signals.next() => return Err(Trouble::Signal(signal.as_raw())),
        never = record.waits(events) => match never {},
        never = spinner.say_who_is_in_the_way(keeper, names), if !args.quiet => match never {},
    };
    let said = spinner.said.take();
    drop(spinner);
    match granted {
        Ok(mut leases) => {
            // As they were asked for: the first one is special to the command.
            leases.sort_by_key(|lease| names.iter().position(|name| name == lease.resource()));
            Ok(leases)
        }
        Err(Error::NotFree { resource, why }) => {
            let why = match &why {
                Unavailable::Held { .. } => held_since(&keeper.store, &resource).await,
                _ => None,
            }
            .unwrap_or_else(|| words::unavailable(&why));
            Err(Trouble::NotAcquired { resource, why })
        }
        Err(Error::WaitEnded(WaitEnding::TimedOut)) => {
            let holder = match names {
                [name] => keeper.store.lease(name).await.ok().flatten().map(|view| in_the_way(&view, None)),
                several => describe(keeper, several).await.ok(),
            };
            // A name that nobody ever held is not known any more once nobody waits for it.
            let unknown = || said.unwrap_or_else(|| "nobody knows who holds it".to_owned());
            let holder = holder.unwrap_or_else(unknown);
            let waited = words::length(args.wait.unwrap_or(MAX_WAIT.duration()));
            let resource = names.first().cloned().expect("at least one name is asked for");
            Err(Trouble::NotAcquired { resource, why: format!("waited {waited}, {holder}") })
        }
        Err(Error::Refused(Refusal::WrongKind { has })) => {
            Err(Trouble::WrongKind { names: words::names(names), has, asked: args.mode() })
        }
        Err(error) => Err(error.into()),
    }
}

/// Asks for all at once.
async fn ask(
    session: &Session,
    names: &[ResourceName],
    args: &AcquireArgs,
    warms_up: bool,
) -> Result<Vec<Lease>, Error> {
    let mut request = session.acquire_all(names.iter().map(ResourceName::as_str));
    if warms_up {
        request = request.warms_up();
    }
    if args.shared {
        request = request.shared();
    }
    if let Some(of) = args.slots {
        request = request.slots(of);
    }
    if let Some(value) = &args.value {
        request = request.value(value.as_bytes());
    }
    if !args.no_wait {
        request = request.wait(args.wait.unwrap_or(MAX_WAIT.duration()));
    }
    request.await
}

/// Who holds it, and since when, if that is known a moment later.
async fn held_since(store: &Store, name: &ResourceName) -> Option<String> {
    let view = timeout(FAREWELL, store.lease(name)).await.ok()?.ok()??;
    (!view.holders.is_empty()).then(|| in_the_way(&view, None))
}

/// Says, once or on a line that moves, what the wait is for. The line is gone when this is dropped.
struct Spinner<'a> {
    console: &'a Console,
    drawn: bool,
    /// What the store said last.
    said: Option<String>,
}

impl Spinner<'_> {
    async fn say_who_is_in_the_way(&mut self, keeper: &Keeper, names: &[ResourceName]) -> Infallible {
        let begun = Point::now();
        let name = words::names(names);
        sleep(SAY_AFTER).await;
        if !self.console.can_animate() {
            let message = describe(keeper, names).await.unwrap_or_else(|error| error.to_string());
            let event = object! { event: "waiting", resource: &name, message: &message };
            self.console.note(format_args!("waiting for {name}: {message}"), &event);
            self.said = Some(message);
            return std::future::pending().await;
        }
        let mut known = Known { message: "asking who holds it".to_owned(), heard: Point::now() };
        let mut looking = pin!(describe(keeper, names));
        let mut next_look = None;
        for frame in 0_usize.. {
            let now = Point::now();
            let (wheel, waited) = (SPINNER[frame % SPINNER.len()], words::length(now.remaining(begun)));
            self.drawn = true;
            self.console
                .progress(format_args!("{wheel} waiting for {name}: {} ({waited})", known.words(now)));
            // A look may take as long as the store is away, and the line moves meanwhile.
            tokio::select! {
                found = &mut looking, if next_look.is_none() => {
                    next_look = Some(Point::now().plus(LOOK_EVERY));
                    if let Ok(message) = found {
                        self.said = Some(message.clone());
                        known = Known { message, heard: Point::now() };
                    }
                }
                () = sleep(FRAME) => {}
            }
            if next_look.is_some_and(|next| next.remaining(Point::now()).is_zero()) {
                next_look = None;
                looking.set(describe(keeper, names));
            }
        }
        std::future::pending().await
    }
}

/// What the store said last, and when.
struct Known {
    message: String,
    heard: Point,
}

impl Known {
    fn words(&self, now: Point) -> String {
        let silent = now.remaining(self.heard);
        if silent < SILENCE {
            return self.message.clone();
        }
        format!("the store has not answered for {}", words::length(Duration::from_secs(silent.as_secs())))
    }
}

impl Drop for Spinner<'_> {
    fn drop(&mut self) {
        if self.drawn {
            self.console.clear_progress();
        }
    }
}

/// What one waits for; of several names, the first that somebody holds.
async fn describe(keeper: &Keeper, names: &[ResourceName]) -> Result<String, Error> {
    let (store, own) = (&keeper.store, Some(keeper.session.id()));
    if let [name] = names {
        let view = store.lease(name).await?;
        return Ok(view.map_or_else(|| NOBODY.to_owned(), |view| in_the_way(&view, own)));
    }
    let mut first = None;
    for name in names {
        let Some(view) = store.lease(name).await? else { continue };
        let words = format!("{name} is {}", in_the_way(&view, own));
        if !view.holders.is_empty() {
            return Ok(words);
        }
        // Nobody holds this one, but something else may be in the way.
        if view.alarm.is_some() || view.cool_down.is_some() || view.restore_wait.is_some() {
            first.get_or_insert(format!("{name}: {}", in_the_way(&view, own)));
        }
    }
    Ok(first.unwrap_or_else(|| "nobody holds any of them".to_owned()))
}

/// Who or what stands between a waiter and this resource.
fn in_the_way(view: &LeaseView, own: Option<SessionId>) -> String {
    if view.holders.iter().any(|holder| Some(holder.session) == own) {
        return SEALING.to_owned();
    }
    let line = match view.waiting {
        0 | 1 => String::new(),
        waiting => format!(", {waiting} wait in line"),
    };
    let Some(holder) = view.holders.first() else {
        if let Some(left) = view.restore_wait {
            return format!("{}{line}", words::restore_wait(left));
        }
        return match (&view.alarm, view.cool_down) {
            (Some(alarm), _) => format!("{}, see `leasehold alarms`{line}", words::alarm(alarm)),
            (None, Some(left)) => format!("it goes to nobody for another {}{line}", words::millis(left)),
            (None, None) => format!("{NOBODY}{line}"),
        };
    };
    let state = match holder.state {
        HoldingState::Held => "",
        HoldingState::Overdue => ", overdue",
        HoldingState::Revoked => ", revoked but perhaps still acting",
    };
    let others = match view.holders.len() {
        1 => String::new(),
        several => format!(" and {} others", several - 1),
    };
    let (who, since) = (words::somebody(&holder.label), words::millis(holder.held_for));
    format!("held by {who}{others} with token {} for {since}{state}{line}", holder.token)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_store_said_is_not_repeated_when_it_is_away() {
        let heard = Point::now();
        let known = Known { message: "held by w".to_owned(), heard };
        assert_eq!(known.words(heard.plus(Duration::from_millis(3_900))), "held by w");
        let away = known.words(heard.plus(Duration::from_millis(7_900)));
        assert_eq!(away, "the store has not answered for 7s");
    }
}
