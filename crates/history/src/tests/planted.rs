//! Short histories for the tests of the checkers, as text: what is planted went through the parser.

use crate::read::ReadError;
use crate::story::Story;
use crate::time::At;

/// The ttl of all leases below, in milliseconds; belief ends 100 earlier.
pub(crate) const TTL: u64 = 1000;

pub(crate) fn ms(at: u64) -> At {
    At(at * 1_000_000)
}

/// Puts lines together, if they can be.
pub(crate) fn told(lines: &[String]) -> Result<Story, ReadError> {
    let mut story = Story::default();
    crate::read(lines.join("\n").as_bytes(), |number, line| story.take(number, line))?;
    Ok(story)
}

pub(crate) fn story(lines: &[String]) -> Story {
    told(lines).expect("planted lines can be read")
}

fn line(at: u64, what: &str, rest: &str) -> String {
    format!(r#"{{"at_ns":{},"what":"{what}",{rest}}}"#, ms(at).0)
}

pub(crate) fn asked(at: u64, client: u32, resource: &str) -> String {
    line(at, "asked", &format!(r#""client":{client},"resource":"{resource}""#))
}

pub(crate) fn queued(at: u64, client: u32) -> String {
    line(at, "queued", &format!(r#""client":{client}"#))
}

/// The same line, with something promised.
pub(crate) fn promised(until: u64, line: &str) -> String {
    line.replace('}', &format!(r#","promised_ns":{}}}"#, ms(until).0))
}

fn held(at: u64) -> String {
    format!(r#""until_ns":{},"promised_ns":{}"#, ms(at + TTL - 100).0, ms(at + TTL).0)
}

/// Granted, and last confirmed by something sent just then.
pub(crate) fn granted(at: u64, client: u32, resource: &str, token: u64) -> String {
    let held = held(at);
    line(at, "granted", &format!(r#""client":{client},"resource":"{resource}","token":"{token}",{held}"#))
}

pub(crate) fn shared(at: u64, client: u32, resource: &str, token: u64, fence: u64) -> String {
    granted(at, client, resource, token).replace('}', &format!(r#","shared":true,"fence":"{fence}"}}"#))
}

pub(crate) fn confirmed(at: u64, client: u32, token: u64) -> String {
    line(at, "confirmed", &format!(r#""client":{client},"token":"{token}",{}"#, held(at)))
}

pub(crate) fn claimed(at: u64, client: u32, token: u64, until: u64, promised: u64) -> String {
    let held = format!(r#""until_ns":{},"promised_ns":{}"#, ms(until).0, ms(promised).0);
    line(at, "confirmed", &format!(r#""client":{client},"token":"{token}",{held}"#))
}

pub(crate) fn giving_back(at: u64, client: u32, token: u64) -> String {
    line(at, "giving-back", &format!(r#""client":{client},"token":"{token}""#))
}

pub(crate) fn lost(at: u64, client: u32, token: u64, revoked: bool) -> String {
    line(at, "lost", &format!(r#""client":{client},"token":"{token}","why":"planted","revoked":{revoked}"#))
}

/// Lost because a backup took the place of everything.
pub(crate) fn restored(at: u64, client: u32, token: u64) -> String {
    lost(at, client, token, false).replace('}', r#","restored":true}"#)
}

pub(crate) fn looked(asked: u64, at: u64, resource: &str, token: Option<u64>) -> String {
    let token = token.map_or("null".to_owned(), |token| format!("\"{token}\""));
    line(at, "looked", &format!(r#""asked_ns":{},"resource":"{resource}","token":{token}"#, ms(asked).0))
}

pub(crate) fn wrote(asked: u64, at: u64, client: u32, resource: &str, token: u64, taken: bool) -> String {
    let refused = if taken { "null" } else { r#""not-current: planted""# };
    let asked = ms(asked).0;
    let who = format!(r#""client":{client},"resource":"{resource}","token":"{token}""#);
    line(at, "wrote", &format!(r#"{who},"asked_ns":{asked},"refused":{refused}"#))
}

/// The same write, to a register of the service.
pub(crate) fn to_register(line: &str) -> String {
    line.replace('}', r#","register":true}"#)
}

/// The same line, by another clock.
pub(crate) fn of_clock(clock: &str, line: &str) -> String {
    line.replace('}', &format!(r#","clock":"{clock}"}}"#))
}
