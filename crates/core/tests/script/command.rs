//! The words of the script language and the commands they stand for.

use leasehold_core::{
    Acquire, Attach, AttachNumber, CallNumber, Command, CommandNumber, Due, Epoch, ItemNumber, Label, Millis,
    Mode, Nonce, Numbered, Offer, Op, Open, Operator, Policies, Reason, RegisterKey, RenewalNumber, Request,
    ResourceName, Sequence, SessionCommand, SessionId, SessionKind, Successor, System, Token, Value,
};

use super::look::{Look, read_look};
use super::words::{Words, length, number, token};
use super::world::{Client, World};

/// What a line asks for.
pub(crate) enum Line {
    /// A command of the entry, and who sent it.
    Log(String, Box<Command>),
    /// Something to look at once the entry is applied.
    Look(Look),
    /// Something that only the runner takes note of.
    Local,
}

impl World {
    /// Reads one line. Numbers that the line does not name are counted as a client would.
    pub(crate) fn line(&mut self, line: &str) -> Result<Line, String> {
        let mut words = Words::new(line);
        let first = words.next("a command")?;
        let read = if first.starts_with(|c: char| c.is_ascii_uppercase()) {
            self.client_line(first, &mut words)?
        } else if let Some(look) = read_look(self, first, &mut words)? {
            Line::Look(look)
        } else {
            let command = self.table_line(first, &mut words)?;
            Line::Log(first.to_owned(), Box::new(command))
        };
        words.end()?;
        Ok(read)
    }

    fn client_line(&mut self, name: &str, words: &mut Words<'_>) -> Result<Line, String> {
        let log = |command| Ok(Line::Log(name.to_owned(), Box::new(command)));
        let verb = words.next("a verb")?;
        if verb == "open" {
            return log(Command::Open(open(name, words)?));
        }
        let session = self.session(name)?;
        let plain = self.is_plain(session);
        let client = self.clients.get_mut(name).expect("whoever has a session is a client");
        let seen = words.number_option("seen")?.or(client.stuck).unwrap_or(client.delivered);
        let seen = ItemNumber::new(seen);
        match verb {
            "stops-reading" => {
                client.stuck = Some(client.delivered);
                Ok(Line::Local)
            }
            "reads" => {
                client.stuck = None;
                Ok(Line::Local)
            }
            "attach" => {
                let attach = words.number_option("number")?.unwrap_or(client.attach + 1);
                client.attach = client.attach.max(attach);
                log(Command::Attach(Attach { session, attach: AttachNumber::new(attach), seen }))
            }
            "detached" => {
                let attach = words.number_option("number")?.unwrap_or(client.attach);
                log(Command::Detached { session, attach: AttachNumber::new(attach) })
            }
            "renew" => {
                let number = words.number_option("number")?;
                if number.is_none() && plain {
                    client.renewals += 1;
                    return log(Command::RenewPlain { session });
                }
                let number = number.unwrap_or(client.renewals + 1);
                client.renewals = client.renewals.max(number);
                log(Command::Renew { session, number: RenewalNumber::new(number), seen })
            }
            _ => {
                let sequence = sequence(client, words, seen, plain)?;
                let op = self.op(name, verb, words)?;
                log(Command::Session(SessionCommand { session, sequence, op }))
            }
        }
    }

    fn op(&self, name: &str, verb: &str, words: &mut Words<'_>) -> Result<Op, String> {
        let value =
            |text: Option<&str>| Value::new(text.unwrap_or("").as_bytes().to_vec()).map_err(text_error);
        Ok(match verb {
            "acquire" => {
                let (wait, value) = (words.length_option("wait")?, value(words.option("value")?)?);
                let requests = words.rest().into_iter().map(requests).collect::<Result<Vec<_>, _>>()?;
                Op::Acquire(Acquire { requests: requests.concat(), value, wait })
            }
            "cancel" => {
                Op::Cancel { acquire: CommandNumber::new(number(words.next("the number of an acquire")?)?) }
            }
            "cancel-call" => {
                Op::CancelCall { call: CallNumber::new(number(words.next("the number of a call")?)?) }
            }
            "value" => {
                let (resource, token) = self.lease(name, words)?;
                Op::SetValue { resource, token, value: value(Some(words.next("a value")?))? }
            }
            "write" => {
                let with_lease = words.flag("with_lease");
                let (resource, token) = self.lease(name, words)?;
                let key = RegisterKey::new(words.next("a key")?).map_err(text_error)?;
                let text = words.next("a value or nothing")?;
                let value = if text == "nothing" { None } else { Some(value(Some(text))?) };
                Op::WriteRegister { resource, token, key, value, with_lease }
            }
            "offer" => {
                let length = words.length_option("for")?.unwrap_or(Millis::new(5_000));
                let to = words.option("to")?.ok_or("to whom is missing")?;
                let to = self.to_whom(to)?;
                let (resource, token) = self.lease(name, words)?;
                Op::Offer(Offer { resource, token, to, length })
            }
            "accept" => {
                let (value, stated) = (value(words.option("value")?)?, words.option("token")?);
                let resource = resource(words.next("a resource")?)?;
                let known = self.clients.get(name).and_then(|client| client.offers.get(&resource)).copied();
                let token = match stated {
                    Some(text) => self.token(&resource, text)?,
                    None => known.ok_or("nothing was offered")?,
                };
                Op::Accept { resource, token, value }
            }
            "release" => {
                let drained = words.flag("drained");
                let (resource, token) = self.lease(name, words)?;
                Op::Release { resource, token, drained }
            }
            "ready" | "warming" => {
                let ready = verb == "ready";
                let (resource, token) = self.lease(name, words)?;
                Op::SetReady { resource, token, ready }
            }
            "draining" => {
                let within = words.length_option("within")?.unwrap_or(Millis::new(5_000));
                let (resource, token) = self.lease(name, words)?;
                let in_flight = number(words.next("how many are in flight")?)?;
                let in_flight = u32::try_from(in_flight).map_err(|_| "too many are in flight")?;
                Op::SetDraining { resource, token, in_flight, within }
            }
            "close" => Op::Close,
            other => return Err(format!("{other:?} is not a verb of sessions")),
        })
    }

    fn table_line(&mut self, verb: &str, words: &mut Words<'_>) -> Result<Command, String> {
        Ok(match verb {
            "config" => Command::System(System::Found(config(words)?)),
            "rebooted" => Command::System(System::Rebooted),
            "unserved" => Command::System(System::Unserved { length: words.length_option("for")? }),
            "version" => {
                let version = number(words.next("a version")?)?;
                let version = u32::try_from(version).map_err(|_| "no such version")?;
                Command::System(System::ClusterVersion { version })
            }
            "restored" => {
                let epoch = words.number_option("epoch")?.and_then(|epoch| u16::try_from(epoch).ok());
                let epoch = epoch.and_then(Epoch::new).ok_or("an epoch is missing")?;
                Command::System(System::Restored {
                    epoch,
                    wait: words.length_option("wait")?.unwrap_or_default(),
                })
            }
            "tidy" => Command::Tidy(match words.maybe() {
                None => self.table.due(self.at),
                Some("session") => vec![Due::Session(self.session(words.next("a session")?)?)],
                Some(name) => vec![Due::Resource(resource(name)?)],
            }),
            "ask" => {
                let successor = words.option("to")?.map(|to| self.to_whom(to)).transpose()?;
                let by = Label::new(words.option("by")?.unwrap_or("ops")).map_err(text_error)?;
                let resource = resource(words.next("a resource")?)?;
                let token = words.maybe().map(|text| self.token(&resource, text)).transpose()?;
                Command::Operator(Operator::AskRelease { resource, token, successor, by })
            }
            "revoke" => {
                let now = words.flag("now");
                let by = Label::new(words.option("by")?.unwrap_or("ops")).map_err(text_error)?;
                let reason = Reason::new(words.option("reason")?.unwrap_or("stuck")).map_err(text_error)?;
                let resource = resource(words.next("a resource")?)?;
                let token = self.token(&resource, words.next("a token")?)?;
                Command::Operator(Operator::Revoke { resource, token, by, reason, now })
            }
            "kind" => {
                let requests = requests(words.next("a resource and its new mode")?)?;
                let [Request { resource, mode }] = requests.as_slice() else {
                    return Err("one resource".to_owned());
                };
                let (resource, by) = (resource.clone(), Label::new("ops").map_err(text_error)?);
                Command::Operator(Operator::ChangeKind { resource, mode: *mode, by })
            }
            "clear" => {
                let by = Label::new(words.option("by")?.unwrap_or("ops")).map_err(text_error)?;
                let reason = Reason::new(words.option("reason")?.unwrap_or("looked")).map_err(text_error)?;
                let resource = resource(words.next("a resource")?)?;
                let token = self.token(&resource, words.next("a token")?)?;
                Command::Operator(Operator::ClearAlarm { resource, token, by, reason })
            }
            other => return Err(format!("{other:?} is not a command")),
        })
    }

    pub(crate) fn session(&self, name: &str) -> Result<SessionId, String> {
        self.clients
            .get(name)
            .and_then(|client| client.session)
            .ok_or_else(|| format!("{name} was not opened before"))
    }

    /// A resource and a token of it: the one stated, else the newest that this client was granted.
    fn lease(&self, name: &str, words: &mut Words<'_>) -> Result<(ResourceName, Token), String> {
        let stated = words.option("token")?;
        let resource = resource(words.next("a resource")?)?;
        let token = self.token(&resource, stated.unwrap_or(&format!("${name}")))?;
        Ok((resource, token))
    }

    /// A token: `t7`, or `$A` for the newest that A was granted of this resource.
    pub(crate) fn token(&self, resource: &ResourceName, text: &str) -> Result<Token, String> {
        let Some(name) = text.strip_prefix('$') else { return token(text) };
        let newest = self.clients.get(name).and_then(|client| client.tokens.get(resource));
        newest.copied().ok_or_else(|| format!("{name} was never granted {resource}"))
    }

    fn to_whom(&self, text: &str) -> Result<Successor, String> {
        match text.strip_prefix("label:") {
            Some(label) => Ok(Successor::Labelled(Label::new(label).map_err(text_error)?)),
            None if text == "first" => Ok(Successor::FirstWaiter),
            None => Ok(Successor::Session(self.session(text)?)),
        }
    }
}

fn open(name: &str, words: &mut Words<'_>) -> Result<Open, String> {
    let ttl = words.length_option("ttl")?.unwrap_or(Millis::new(10_000));
    let grace = words.length_option("grace")?.unwrap_or_default();
    let hard = words.length_option("hard")?.unwrap_or(grace);
    let delay = words.length_option("delay")?.unwrap_or_default();
    let label = Label::new(words.option("label")?.unwrap_or(&name.to_lowercase())).map_err(text_error)?;
    let nonce = words.option("nonce")?.unwrap_or(name);
    let kind = if words.flag("plain") { SessionKind::Plain } else { SessionKind::Streamed };
    let mut bytes = [0; 16];
    bytes.iter_mut().zip(nonce.bytes()).for_each(|(byte, letter)| *byte = letter);
    Ok(Open { nonce: Nonce(bytes), label, ttl, policies: Policies { grace, hard, delay }, kind })
}

fn sequence(
    client: &mut Client,
    words: &mut Words<'_>,
    seen: ItemNumber,
    plain: bool,
) -> Result<Sequence, String> {
    if let Some(number) = words.number_option("call")? {
        let settled = CallNumber::new(words.number_option("settled")?.unwrap_or(0));
        return Ok(Sequence::Numbered(Numbered { number: CallNumber::new(number), settled }));
    }
    if words.flag("unnumbered") || (plain && !words.flag("numbered")) {
        return Ok(Sequence::Plain);
    }
    let number = words.number_option("number")?.unwrap_or(client.commands + 1);
    client.commands = client.commands.max(number);
    let attach = words.number_option("attach")?.unwrap_or(client.attach);
    Ok(Sequence::Streamed { attach: AttachNumber::new(attach), number: CommandNumber::new(number), seen })
}

fn config(words: &mut Words<'_>) -> Result<leasehold_core::Config, String> {
    let mut config = leasehold_core::Config::default();
    for word in words.rest() {
        let (key, text) = word.split_once('=').ok_or_else(|| format!("{word:?} is not key=value"))?;
        let count = || number(text).map(|n| usize::try_from(n).unwrap_or(usize::MAX));
        let limits = &mut config.limits;
        match key {
            "max_ttl" => config.max_ttl = length(text)?,
            "leases_per_session" => limits.leases_per_session = count()?,
            "waits_per_session" => limits.waits_per_session = count()?,
            "sessions" => limits.sessions = count()?,
            "waiters_per_resource" => limits.waiters_per_resource = count()?,
            "resources" => limits.resources = count()?,
            "idle_resources" => limits.idle_resources = count()?,
            "history" => limits.history = count()?,
            "registers_per_resource" => limits.registers_per_resource = count()?,
            "unseen" => limits.unseen = count()?,
            "tidy_leases" => limits.tidy_leases = count()?,
            "drift_ppm" => {
                let ppm = u32::try_from(number(text)?).ok();
                config.drift = ppm.and_then(leasehold_core::Drift::from_ppm).ok_or("a drift above half")?;
            }
            _ => return Err(format!("{key:?} is not a key of the configuration")),
        }
    }
    Ok(config)
}

/// Resources of an acquire: `db`, `db:shared`, `pool:3` for one of three slots, `r1..r5` for several.
fn requests(word: &str) -> Result<Vec<Request>, String> {
    let (names, mode) = match word.split_once(':') {
        None | Some((_, "exclusive")) => (word.split(':').next().unwrap_or(word), Mode::Exclusive),
        Some((names, "shared")) => (names, Mode::Shared),
        Some((names, slots)) => (names, Mode::Slot { of: u32::try_from(number(slots)?).unwrap_or(u32::MAX) }),
    };
    let request = |name: &str| Ok(Request { resource: resource(name)?, mode });
    let Some((first, last)) = names.split_once("..") else { return Ok(vec![request(names)?]) };
    let digits = |text: &str| number(text.trim_start_matches(|c: char| !c.is_ascii_digit()));
    let prefix = first.trim_end_matches(|c: char| c.is_ascii_digit());
    (digits(first)?..=digits(last)?).map(|n| request(&format!("{prefix}{n}"))).collect()
}

pub(crate) fn resource(text: &str) -> Result<ResourceName, String> {
    ResourceName::new(text).map_err(text_error)
}

#[expect(clippy::needless_pass_by_value, reason = "it is handed to map_err")]
fn text_error(error: leasehold_core::TextError) -> String {
    error.to_string()
}
