//! The holder's side: one session, one deadline, and what is under way to it.

use crate::rules::{Rules, WrongRule};
use crate::table::{ClientId, SessionId, Token};
use crate::time::{Rate, TTL, Tick};

/// What the service has sent to a client and the client has not heard yet. It may never hear it, or late, or in another order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Answer {
    /// The session is open.
    Opened,
    /// The renewal of this number is confirmed.
    Renewed(u8),
    /// A lease with this token.
    Granted(Token),
    /// The release of this token was carried out. Sent only where belief waits for it.
    Released(Token),
}

/// A lease as its holder knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Held {
    /// Its token.
    pub token: Token,
    /// Whether its release was sent.
    pub let_go: bool,
}

/// A client. All points in time are true ones and become readings of its clock only by its rate.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Client {
    /// Raised by a restart.
    pub life: u8,
    /// When the open of this life was sent, while it is not answered.
    pub opening: Option<Tick>,
    /// What the deadline counts from: the sending of the last confirmed open or renewal.
    pub confirmed: Option<Tick>,
    /// The number of the last renewal sent.
    pub number: u8,
    /// Renewals that are not answered, with their sending.
    pub renewals: Vec<(u8, Tick)>,
    /// Whether an acquire is under way.
    pub asking: bool,
    /// What it holds.
    pub held: Option<Held>,
    /// What is under way to it.
    pub inbox: Vec<Answer>,
    /// Acquires left.
    pub acquires: u8,
    /// Renewals left.
    pub renewals_left: u8,
    /// Restarts left.
    pub restarts: u8,
    /// Whether it writes to the receiver.
    pub writes: bool,
    /// The last token that it wrote with.
    pub written: Option<Token>,
}

impl Client {
    /// The session of its present life.
    pub fn session(&self, client: ClientId) -> SessionId {
        SessionId { client, life: self.life }
    }

    /// The token it believes in at `now`. The deadline itself is counted in, to be on the strict side: code may count it out.
    pub fn believes(&self, rate: Rate, now: Tick) -> Option<Token> {
        let held = self.held.filter(|held| !held.let_go)?;
        let confirmed = self.confirmed?;
        (rate.units(now.since(confirmed)) <= TTL).then_some(held.token)
    }

    /// Hears an answer.
    pub fn hear(&mut self, rules: Rules, answer: Answer, now: Tick) {
        match answer {
            Answer::Opened => {
                if let Some(sent) = self.opening.take() {
                    self.confirm(rules, sent, now);
                }
            }
            Answer::Renewed(number) => {
                let sent = self.renewals.iter().find(|(sent, _)| *sent == number);
                if let Some((_, sent)) = sent.copied() {
                    self.confirm(rules, sent, now);
                    self.renewals.retain(|(sent, _)| *sent != number);
                }
            }
            Answer::Granted(token) => {
                self.asking = false;
                self.held = Some(Held { token, let_go: false });
                if rules.has(WrongRule::GrantMovesDeadline) {
                    self.confirmed = self.confirmed.max(Some(now));
                }
            }
            Answer::Released(token) => {
                self.held.take_if(|held| held.token == token);
            }
        }
    }

    fn confirm(&mut self, rules: Rules, sent: Tick, now: Tick) {
        let from = if rules.has(WrongRule::DeadlineFromReceipt) { now } else { sent };
        self.confirmed = self.confirmed.max(Some(from));
    }
}
