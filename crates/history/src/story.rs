//! A history put together: which grants there were, and what became of each.
//!
//! Lines of one client must stand in the order in which they happened; those of different clients may stand in any. So the files of
//! several programs can be put behind each other. Memory grows with grants, looks and writes, not with renewals.

mod grant;

use std::collections::HashMap;

use leasehold_core::Token;

pub(crate) use self::grant::Beyond;
use self::grant::{Beginning, Queued};
pub use self::grant::{End, Grant, LineNumber, Moment, Window};
use crate::event::{Event, Line};
use crate::names::{Name, Names};
use crate::read::Mistake;
use crate::time::At;

/// How a refusal begins that the token is the reason of.
const NOT_CURRENT: &str = "not-current";

/// Somebody looked who holds a resource.
#[derive(Debug, Clone)]
pub struct Look {
    /// When it was asked.
    pub asked: At,
    /// When the answer came.
    pub answered: Moment,
    /// Whose clock said so.
    pub clock: Name,
    /// What was looked at.
    pub resource: Name,
    /// The token of the holder.
    pub token: Option<Token>,
}

/// What a receiver made of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It was taken.
    Taken,
    /// It was refused because of its token.
    NotCurrent,
    /// It was refused for another reason.
    Refused,
}

/// A write whose outcome is known.
#[derive(Debug, Clone)]
pub struct Write {
    /// Who.
    pub client: Name,
    /// Under which resource.
    pub resource: Name,
    /// Whose clock its times are of.
    pub clock: Name,
    /// To which receiver.
    pub receiver: Name,
    /// Whether that is a register of the service.
    pub register: bool,
    /// The token that was shown.
    pub token: Token,
    /// When the client was about to ask.
    pub asked: At,
    /// When the answer came.
    pub answered: Moment,
    /// What the answer was.
    pub outcome: Outcome,
}

/// An acquire that is not answered yet.
#[derive(Debug)]
struct Asking {
    call: Box<str>,
    asked: Moment,
    queued: Option<Queued>,
}

/// Who writes lines.
#[derive(Debug)]
struct Client {
    clock: Name,
    latest: Moment,
    askings: Vec<Asking>,
}

/// A history put together.
#[derive(Debug, Default)]
pub struct Story {
    /// Every acknowledged grant, in the order of their lines.
    pub grants: Vec<Grant>,
    /// Every look.
    pub looks: Vec<Look>,
    /// Every write whose outcome is known.
    pub writes: Vec<Write>,
    /// How many lines there were.
    pub lines: u64,
    /// How many lines speak of a grant that is not in this history: nothing could be made of them.
    pub strays: u64,
    /// The first of them.
    pub first_stray: Option<LineNumber>,
    names: Names,
    clients: Vec<Client>,
    resources: Names,
    receivers: Names,
    clocks: Names,
    /// Leases that more may be said about.
    open: HashMap<(Name, Token), usize>,
    /// Room for the name of a client with its process, so that none is made for every line.
    full_name: String,
}

/// Between the name of a resource and its slot.
const SLOT: char = '#';
/// Between the name of a client and its process.
const OF: &str = " of ";

impl Story {
    /// How many clocks there are.
    pub fn clocks(&self) -> usize {
        self.clocks.len()
    }

    pub(crate) fn every_clock(&self) -> impl Iterator<Item = Name> + use<> {
        self.clocks.all()
    }

    /// The name of a client, with its process if there is one.
    pub fn client(&self, client: Name) -> &str {
        self.names.text(client)
    }

    /// The name of a resource.
    pub fn resource(&self, resource: Name) -> &str {
        self.resources.text(resource)
    }

    /// Takes in the next line.
    ///
    /// # Errors
    /// When it cannot stand where it stands.
    pub fn take(&mut self, number: LineNumber, line: &Line<'_>) -> Result<(), Mistake> {
        self.lines += 1;
        let now = Moment { at: line.at, line: number };
        let clock = self.clocks.number(line.clock.as_deref().unwrap_or_default());
        let client = match named(&line.event) {
            Some(name) => Some(self.who(name, line, clock, now)?),
            None => None,
        };
        match (&line.event, client) {
            (Event::Looked { asked, resource, token }, _) => {
                let (asked, resource) = (*asked, self.resources.number(resource));
                self.looks.push(Look { asked, answered: now, clock, resource, token: *token });
            }
            (event, Some(client)) => self.take_of(client, clock, now, event),
            (_, None) => {}
        }
        Ok(())
    }

    /// What a client says.
    fn take_of(&mut self, client: Name, clock: Name, now: Moment, event: &Event<'_>) {
        let askings = &mut self.clients[client.place()].askings;
        let last = |askings: &[Asking], call: &str| askings.iter().rposition(|asking| *asking.call == *call);
        match event {
            Event::Asked { call, .. } => {
                if let Some(place) = last(askings, call) {
                    askings.remove(place);
                }
                let call = call.as_ref().into();
                askings.push(Asking { call, asked: now, queued: None });
            }
            Event::Queued { call, promised, .. } => {
                if let Some(place) = last(askings, call) {
                    let first = Queued { since: now, promised: *promised };
                    let queued = &mut askings[place].queued;
                    *queued = Some(queued.map_or(first, |queued| queued.again(now, *promised)));
                }
            }
            Event::Refused { call, .. } | Event::Unknown { call, .. } => {
                if let Some(place) = last(askings, call) {
                    askings.remove(place);
                }
            }
            Event::Granted { call, resource, token, fence, shared, handed_over, until, promised, .. } => {
                let asking = last(askings, call).map(|place| askings.remove(place));
                let mut grant = Grant::new(&Beginning {
                    token: *token,
                    fence: *fence,
                    client,
                    resource: self.resources.number(resource),
                    family: self.resources.number(resource.split(SLOT).next().unwrap_or_default()),
                    clock,
                    shared: *shared,
                    handed_over: *handed_over,
                    asked: asking.as_ref().map(|asking| asking.asked),
                    queued: asking.and_then(|asking| asking.queued),
                    granted: now,
                });
                grant.confirm(now, *until, *promised);
                self.open.insert((client, *token), self.grants.len());
                self.grants.push(grant);
            }
            Event::Confirmed { token, until, promised, .. } => {
                self.of_grant(client, *token, now, |grant| grant.confirm(now, *until, *promised));
            }
            Event::GivingBack { token, .. } => {
                self.of_grant(client, *token, now, |grant| grant.end_with(End::GivenBack, now));
            }
            Event::GaveBack { token, .. } => {
                // A client need not say that it begins to give back; then belief ended here at the latest.
                self.of_grant(client, *token, now, |grant| grant.end_with(End::GivenBack, now));
                self.open.remove(&(client, *token));
            }
            Event::Lost { token, revoked, restored, .. } => {
                let how = match (revoked, restored) {
                    (true, _) => End::Revoked,
                    (false, true) => End::Restored,
                    (false, false) => End::Lost,
                };
                self.of_grant(client, *token, now, |grant| grant.end_with(how, now));
            }
            Event::Wrote { resource, token, asked, refused, receiver, register, .. } => {
                let outcome = match refused {
                    None => Outcome::Taken,
                    Some(why) if why.starts_with(NOT_CURRENT) => Outcome::NotCurrent,
                    Some(_) => Outcome::Refused,
                };
                self.writes.push(Write {
                    client,
                    resource: self.resources.number(resource),
                    clock,
                    receiver: self.receivers.number(receiver),
                    register: *register,
                    token: *token,
                    asked: *asked,
                    answered: now,
                    outcome,
                });
            }
            _ => {}
        }
    }

    fn of_grant(&mut self, client: Name, token: Token, now: Moment, change: impl FnOnce(&mut Grant)) {
        match self.open.get(&(client, token)) {
            Some(place) => change(&mut self.grants[*place]),
            None => {
                self.strays += 1;
                self.first_stray.get_or_insert(now.line);
            }
        }
    }

    /// The client of a line, which must come after what it said before, by the same clock.
    fn who(&mut self, name: &str, line: &Line<'_>, clock: Name, now: Moment) -> Result<Name, Mistake> {
        self.full_name.clear();
        self.full_name.push_str(name);
        if let Some(process) = &line.process {
            self.full_name.extend([OF, process]);
        }
        let client = self.names.number(&self.full_name);
        let Some(known) = self.clients.get_mut(client.place()) else {
            self.clients.push(Client { clock, latest: now, askings: Vec::new() });
            return Ok(client);
        };
        let wrong = |what: String| Err(Mistake { line: now.line.get(), what });
        if known.clock != clock {
            let (first, second) = (self.clocks.text(known.clock), self.clocks.text(clock));
            return wrong(format!(
                "client {name} has clock {second:?}, and clock {first:?} on line {}; a client has one clock, so give another one \
                 another name or `process`",
                known.latest.line.get()
            ));
        }
        if now.at < known.latest.at {
            return wrong(format!(
                "client {name} is at {}, and was at {} on line {}; the lines of a client stand in the order in which they \
                 happened, and no two clients have the same name and `process`",
                now.at.0,
                known.latest.at.0,
                known.latest.line.get()
            ));
        }
        known.latest = now;
        Ok(client)
    }
}

/// The client that a line speaks of.
fn named<'e>(event: &'e Event<'_>) -> Option<&'e str> {
    match event {
        Event::Asked { client, .. }
        | Event::Queued { client, .. }
        | Event::Granted { client, .. }
        | Event::Confirmed { client, .. }
        | Event::Refused { client, .. }
        | Event::Unknown { client, .. }
        | Event::GivingBack { client, .. }
        | Event::GaveBack { client, .. }
        | Event::Lost { client, .. }
        | Event::Wrote { client, .. } => Some(client),
        Event::Looked { .. }
        | Event::Fault { .. }
        | Event::Healed { .. }
        | Event::AllHealed
        | Event::Finishing => None,
    }
}

#[cfg(test)]
mod tests {
    use crate::tests::planted::{asked, confirmed, giving_back, granted, ms, of_clock, story, told};

    fn windows(lines: &[String]) -> Vec<(u64, u64)> {
        let story = story(lines);
        story.grants[0]
            .windows()
            .map(|window| (window.from.0 / 1_000_000, window.until.0 / 1_000_000))
            .collect()
    }

    #[test]
    fn belief_that_ran_out_and_came_back_makes_two_windows() {
        let lines = [
            asked(0, 1, "r"),
            granted(10, 1, "r", 5),
            confirmed(500, 1, 5),
            confirmed(1500, 1, 5),
            giving_back(1600, 1, 5),
        ];
        assert_eq!(windows(&lines), [(10, 1400), (1500, 1600)]);
    }

    #[test]
    fn a_grant_that_is_not_believed_before_a_renewal_begins_with_that() {
        let not_yet = format!(
            r#"{{"at_ns":{0},"what":"granted","client":1,"resource":"r","token":"5","until_ns":{0}}}"#,
            ms(10).0
        );
        assert_eq!(windows(std::slice::from_ref(&not_yet)), []);
        assert_eq!(windows(&[not_yet, confirmed(30, 1, 5)]), [(30, 930)]);
    }

    #[test]
    fn who_believes_after_it_gave_back_is_taken_at_its_word() {
        let lines =
            [granted(0, 1, "r", 5), giving_back(100, 1, 5), confirmed(200, 1, 5), confirmed(2000, 1, 5)];
        assert_eq!(windows(&lines), [(0, 100), (200, 1100), (2000, 2900)]);
        // Also at the very same moment, and until it says once more that it does not.
        let lines = [
            granted(0, 1, "r", 5),
            giving_back(100, 1, 5),
            confirmed(100, 1, 5),
            confirmed(300, 1, 5),
            giving_back(400, 1, 5),
        ];
        assert_eq!(windows(&lines), [(0, 100), (100, 400)]);
    }

    #[test]
    fn a_line_before_an_earlier_one_of_the_same_client_cannot_be_used() {
        let wrong = told(&[granted(10, 1, "r", 5), asked(9, 1, "r")]).unwrap_err();
        assert!(
            wrong.to_string().starts_with("line 2: client 1 is at 9000000, and was at 10000000"),
            "{wrong}"
        );
        assert!(told(&[granted(10, 1, "r", 5), asked(9, 2, "r")]).is_ok());
    }

    #[test]
    fn a_client_has_one_clock() {
        let wrong = told(&[granted(10, 1, "r", 5), of_clock("other", &asked(11, 1, "r"))]).unwrap_err();
        assert!(wrong.to_string().contains("a client has one clock"), "{wrong}");
    }

    #[test]
    fn lines_of_grants_that_are_not_there_are_counted() {
        let story = story(&[granted(0, 1, "r", 6), confirmed(1, 1, 5), giving_back(2, 1, 5)]);
        assert_eq!((story.strays, story.first_stray.map(super::LineNumber::get)), (2, Some(2)));
    }
}
