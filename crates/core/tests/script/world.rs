//! The table under test, the clients of a script, and carrying out a step.
//!
//! Beside the table stands a twin that goes through a snapshot after every step. Both must say the same and be the same,
//! byte for byte: what a script shows then holds wherever a snapshot falls.

use std::collections::BTreeMap;

use leasehold_core::{
    Command, Entry, Event, ItemKind, LeaseTable, LogTime, ResourceName, SessionId, SessionKind, Token,
};

use super::command::Line;
use super::words::{Words, length, number};

/// Entries that tidy up everything a script can leave behind: no script has more than a few dozen things in it.
const MOST_TIDYING: usize = 50;

/// What the runner remembers of a client, as the client itself would.
#[derive(Default)]
pub(crate) struct Client {
    /// Its session, once opened.
    pub(crate) session: Option<SessionId>,
    /// The highest attach number sent.
    pub(crate) attach: u64,
    /// The highest renewal number sent.
    pub(crate) renewals: u64,
    /// The last command applied, plus those sent in this entry.
    pub(crate) commands: u64,
    /// The newest item that reached it.
    pub(crate) delivered: u64,
    /// What it goes on saying it has seen, if it has stopped reading.
    pub(crate) stuck: Option<u64>,
    /// The newest token it was granted, by resource.
    pub(crate) tokens: BTreeMap<ResourceName, Token>,
    /// The newest offer it got, by resource.
    pub(crate) offers: BTreeMap<ResourceName, Token>,
}

/// Everything a script acts on.
pub(crate) struct World {
    pub(crate) table: LeaseTable,
    twin: LeaseTable,
    pub(crate) at: LogTime,
    pub(crate) clients: BTreeMap<String, Client>,
    names: BTreeMap<SessionId, (String, SessionKind)>,
    newest_token: Option<Token>,
}

impl World {
    pub(crate) fn new() -> Self {
        Self {
            table: LeaseTable::new(Default::default()),
            twin: LeaseTable::new(Default::default()),
            at: LogTime::ZERO,
            clients: BTreeMap::new(),
            names: BTreeMap::new(),
            newest_token: None,
        }
    }

    /// Carries out one step and says what came out. Errors name the line.
    pub(crate) fn step(&mut self, lines: &[(usize, String)]) -> Result<Vec<String>, String> {
        let mut rest = lines;
        let mut timed = false;
        if let Some(((number, first), behind)) = lines.split_first()
            && let Some(at) = time(self.at, first).map_err(|error| format!("line {number}: {error}"))?
        {
            (self.at, rest, timed) = (at, behind, true);
        }
        let (mut who, mut commands, mut looks) = (Vec::new(), Vec::new(), Vec::new());
        for (number, line) in rest {
            let locate = |error| format!("line {number}: {error}");
            match self.line(line).map_err(locate)? {
                Line::Local => {}
                Line::Look(look) => looks.push((number, look)),
                Line::Log(name, command) if looks.is_empty() => {
                    who.push(name);
                    commands.push(*command);
                }
                Line::Log(..) => return Err(locate("commands come before what is looked at".to_owned())),
            }
        }
        let mut output = Vec::new();
        if timed || !commands.is_empty() {
            output = self.apply(&who, commands)?;
        } else if looks.is_empty() {
            // Only the runner took note of something: nothing can come of it.
            return Ok(output);
        }
        for (number, look) in looks {
            output.extend(self.look(&look).map_err(|error| format!("line {number}: {error}"))?);
        }
        if output.is_empty() {
            output.push("nothing".to_owned());
        }
        Ok(output)
    }

    fn apply(&mut self, who: &[String], commands: Vec<Command>) -> Result<Vec<String>, String> {
        let bytes = Entry { at: self.at, commands }.encode();
        let entry = Entry::decode(&bytes).map_err(|error| error.to_string())?;
        let applied = self.table.apply(&entry);
        if self.twin.apply(&entry) != applied {
            return Err("the outcome depends on where a snapshot was taken".to_owned());
        }
        self.table.check_invariants()?;
        let snapshot = self.table.encode();
        if self.twin.encode() != snapshot {
            return Err("the state depends on where a snapshot was taken".to_owned());
        }
        self.twin = LeaseTable::decode(&snapshot).map_err(|error| error.to_string())?;
        self.twin.check_invariants()?;
        if self.twin.encode() != snapshot {
            return Err("a snapshot read and written again has other bytes".to_owned());
        }
        self.tidying_comes_to_an_end()?;
        for (name, reply) in who.iter().zip(&applied.replies) {
            if let leasehold_core::Reply::Opened(opened) = reply {
                self.bind(name, opened.session);
            }
        }
        for event in &applied.events {
            if let Event::Granted { grant, session, .. } = event {
                if self.newest_token.is_some_and(|newest| grant.token <= newest) {
                    return Err(format!("token {} does not rise", grant.token));
                }
                self.newest_token = Some(grant.token);
                if let Some(client) = self.client_of(*session) {
                    client.tokens.insert(grant.resource.clone(), grant.token);
                }
            }
        }
        for (session, item) in &applied.items {
            let Some(client) = self.client_of(*session) else { continue };
            client.delivered = item.number.get();
            if let ItemKind::Offered { resource, token, .. } = &item.kind {
                client.offers.insert(resource.clone(), *token);
            }
        }
        for client in self.clients.values_mut() {
            if let Some((last, _)) = client.session.and_then(|id| self.table.stream_position(id)) {
                client.commands = last.get();
            }
        }
        Ok(self.render(who, &entry.commands, &applied))
    }

    /// A leader that tidies up what is due, again and again at one point in time, has nothing left to do after a while.
    fn tidying_comes_to_an_end(&self) -> Result<(), String> {
        let mut table = self.table.clone();
        for _ in 0..MOST_TIDYING {
            let due = table.due(self.at);
            if due.is_empty() {
                return table.check_invariants();
            }
            table.apply(&Entry { at: self.at, commands: vec![Command::Tidy(due)] });
        }
        Err(format!("after {MOST_TIDYING} entries that tidy up, something is due still"))
    }

    /// Goes on with a table that was read from a snapshot.
    pub(crate) fn pass_through_snapshot(&mut self) -> Result<usize, String> {
        let bytes = self.table.encode();
        self.table = LeaseTable::decode(&bytes).map_err(|error| error.to_string())?;
        if self.table.encode() != bytes {
            return Err("a snapshot read and written again has other bytes".to_owned());
        }
        Ok(bytes.len())
    }

    fn bind(&mut self, name: &str, session: SessionId) {
        let kind = self.table.session_kind(session).unwrap_or(SessionKind::Streamed);
        let client = self.clients.entry(name.to_owned()).or_default();
        if client.session != Some(session) {
            let tokens = std::mem::take(&mut client.tokens);
            *client = Client { session: Some(session), tokens, ..Client::default() };
        }
        self.names.insert(session, (name.to_owned(), kind));
    }

    fn client_of(&mut self, session: SessionId) -> Option<&mut Client> {
        self.clients.values_mut().find(|client| client.session == Some(session))
    }

    /// What scripts call a session. One that was followed by another of the same client is called by its id.
    pub(crate) fn name(&self, session: SessionId) -> String {
        match self.names.get(&session) {
            Some((name, _)) if self.clients.get(name).and_then(|c| c.session) == Some(session) => {
                name.clone()
            }
            Some((name, _)) => format!("{name}({session})"),
            None => format!("session {session}"),
        }
    }

    pub(crate) fn is_plain(&self, session: SessionId) -> bool {
        self.names.get(&session).is_some_and(|(_, kind)| *kind == SessionKind::Plain)
    }
}

/// The point in log time that a line names: `at 1200`, `at 10s` or `+500ms`. Nothing if it names none.
fn time(now: LogTime, line: &str) -> Result<Option<LogTime>, String> {
    if let Some(ahead) = line.strip_prefix('+') {
        return Ok(Some(now.plus(length(ahead)?)));
    }
    let mut words = Words::new(line);
    if words.maybe() != Some("at") {
        return Ok(None);
    }
    let point = words.next("a point in log time")?;
    words.end()?;
    let millis = length(point).map(leasehold_core::Millis::get).or_else(|_| number(point))?;
    Ok(Some(LogTime::new(millis)))
}
