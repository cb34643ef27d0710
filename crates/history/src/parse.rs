//! A line of a history as text: what is in it, or what was expected instead.

mod field;

use std::borrow::Cow;

use serde::Deserialize;

use self::field::Field;
use crate::event::{Event, KINDS, Line};
use crate::time::At;

/// Parses one line. Fields that it does not know are passed over.
///
/// # Errors
/// What is wrong with the line, and what was expected.
pub fn parse(text: &[u8]) -> Result<Line<'_>, String> {
    if !text.trim_ascii_start().starts_with(b"{") {
        // Otherwise a list would be taken for the values of the fields.
        return Err(format!("it begins with {}; a JSON object was expected", beginning(text)));
    }
    let mut raw: Raw<'_> = serde_json::from_slice(text).map_err(|error| {
        // The parser counts lines of its own, of which there is one.
        let what = error.to_string();
        let what = what.split(" at line ").next().unwrap_or_default();
        format!("{what} at column {}; a JSON object was expected", error.column())
    })?;
    let what = match std::mem::take(&mut raw.what) {
        Field::Text(what) => what,
        other => return Err(other.instead_of("what", &format!("one of {}", kinds()))),
    };
    let at = At(raw.at_ns.whole("at_ns", NANOSECONDS)?);
    let clock = std::mem::take(&mut raw.clock).if_any(|field| field.name("clock"))?;
    let process = std::mem::take(&mut raw.process).if_any(|field| field.name("process"))?;
    let event = raw.event(&what).map_err(|wrong| format!("`{what}`: {wrong}"))?;
    Ok(Line { at, clock, process, event })
}

/// What stands where an object should begin, in words.
fn beginning(text: &[u8]) -> String {
    let text = text.trim_ascii_start();
    match text {
        [0xef, 0xbb, 0xbf, ..] => "a byte order mark (write UTF-8 without one)".to_owned(),
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => "the mark of UTF-16 (write UTF-8)".to_owned(),
        [b'[', ..] => "a list (write each object on a line of its own)".to_owned(),
        _ => {
            let first: String = String::from_utf8_lossy(text).chars().take(FIRST_SHOWN).collect();
            format!("{first:?}")
        }
    }
}

/// So much of a line is shown that is not one.
const FIRST_SHOWN: usize = 20;

const NANOSECONDS: &str = "nanoseconds";

fn kinds() -> String {
    KINDS.map(|kind| format!("`{kind}`")).join(", ")
}

/// All fields that any line has, whatever stands in them.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Raw<'a> {
    // Where one field borrows, all may.
    #[serde(borrow)]
    at_ns: Field<'a>,
    what: Field<'a>,
    clock: Field<'a>,
    process: Field<'a>,
    client: Field<'a>,
    call: Field<'a>,
    resource: Field<'a>,
    ttl_ms: Field<'a>,
    token: Field<'a>,
    fence: Field<'a>,
    shared: Field<'a>,
    handed_over: Field<'a>,
    until_ns: Field<'a>,
    promised_ns: Field<'a>,
    why: Field<'a>,
    trouble: Field<'a>,
    revoked: Field<'a>,
    restored: Field<'a>,
    asked_ns: Field<'a>,
    refused: Field<'a>,
    receiver: Field<'a>,
    register: Field<'a>,
    text: Field<'a>,
}

impl<'a> Raw<'a> {
    fn event(self, what: &str) -> Result<Event<'a>, String> {
        let client = |field: Field<'a>| field.name("client");
        let name_or_none = |field: Field<'a>, name| -> Result<Cow<'a, str>, String> {
            Ok(field.if_any(|field| field.name(name))?.unwrap_or_default())
        };
        let call = |field| name_or_none(field, "call");
        let text = |field: Field<'a>, name| field.if_any(|field| field.text(name));
        let words = |field, name| Ok::<_, String>(text(field, name)?.unwrap_or_default());
        let at = |field: Field<'a>, name| field.whole(name, NANOSECONDS).map(At);
        let promised = |field: Field<'a>| field.if_any(|field| at(field, "promised_ns"));
        Ok(match what {
            "asked" => Event::Asked {
                client: client(self.client)?,
                call: call(self.call)?,
                resource: self.resource.text("resource")?,
                ttl_ms: ttl_ms(self.ttl_ms)?,
            },
            "queued" => Event::Queued {
                client: client(self.client)?,
                call: call(self.call)?,
                promised: promised(self.promised_ns)?,
            },
            "granted" => Event::Granted {
                client: client(self.client)?,
                call: call(self.call)?,
                resource: self.resource.text("resource")?,
                token: self.token.token("token")?,
                fence: self.fence.if_any(|fence| fence.token("fence"))?,
                shared: self.shared.flag("shared")?,
                handed_over: self.handed_over.flag("handed_over")?,
                until: at(self.until_ns, "until_ns")?,
                promised: promised(self.promised_ns)?,
            },
            "confirmed" => Event::Confirmed {
                client: client(self.client)?,
                token: self.token.token("token")?,
                until: at(self.until_ns, "until_ns")?,
                promised: promised(self.promised_ns)?,
            },
            "refused" => Event::Refused {
                client: client(self.client)?,
                call: call(self.call)?,
                why: words(self.why, "why")?,
            },
            "unknown" => Event::Unknown {
                client: client(self.client)?,
                call: call(self.call)?,
                why: words(self.why, "why")?,
            },
            "giving-back" => {
                Event::GivingBack { client: client(self.client)?, token: self.token.token("token")? }
            }
            "gave-back" => Event::GaveBack {
                client: client(self.client)?,
                token: self.token.token("token")?,
                trouble: text(self.trouble, "trouble")?,
            },
            "lost" => Event::Lost {
                client: client(self.client)?,
                token: self.token.token("token")?,
                why: words(self.why, "why")?,
                revoked: self.revoked.flag("revoked")?,
                restored: self.restored.flag("restored")?,
            },
            "looked" => Event::Looked {
                asked: at(self.asked_ns, "asked_ns")?,
                resource: self.resource.text("resource")?,
                token: self.token.token_or_null("token")?,
            },
            "wrote" => Event::Wrote {
                client: client(self.client)?,
                resource: self.resource.text("resource")?,
                token: self.token.token("token")?,
                asked: at(self.asked_ns, "asked_ns")?,
                refused: text(self.refused, "refused")?,
                receiver: name_or_none(self.receiver, "receiver")?,
                register: self.register.flag("register")?,
            },
            "fault" => Event::Fault { text: words(self.text, "text")? },
            "healed" => Event::Healed { text: words(self.text, "text")? },
            "all-healed" => Event::AllHealed,
            "finishing" => Event::Finishing,
            _ => return Err(format!("not a kind of event that is known; known are {}", kinds())),
        })
    }
}

fn ttl_ms(field: Field<'_>) -> Result<Option<u32>, String> {
    let Some(ttl) = field.if_any(|field| field.whole("ttl_ms", "milliseconds"))? else { return Ok(None) };
    u32::try_from(ttl).map(Some).map_err(|_| format!("`ttl_ms` is {ttl}, which is longer than any ttl"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use leasehold_core::Token;

    fn wrong(text: &str) -> String {
        parse(text.as_bytes()).unwrap_err()
    }

    #[test]
    fn a_line_is_read_as_it_was_written() {
        let token = Token::from_u64(u64::MAX >> 1);
        let (at, client, call) = (At(17), Cow::Borrowed("a \"b\""), Cow::Borrowed("1"));
        let resource = Cow::Borrowed("a/b");
        let why = Cow::Borrowed("why\n");
        let all = [
            Event::Asked {
                client: client.clone(),
                call: call.clone(),
                resource: resource.clone(),
                ttl_ms: Some(500),
            },
            Event::Queued { client: client.clone(), call: call.clone(), promised: Some(at) },
            Event::Granted {
                client: client.clone(),
                call: call.clone(),
                resource: resource.clone(),
                token,
                fence: Some(Token::from_u64(3)),
                shared: true,
                handed_over: true,
                until: at,
                promised: Some(at),
            },
            Event::Confirmed { client: client.clone(), token, until: at, promised: None },
            Event::Refused { client: client.clone(), call: call.clone(), why: why.clone() },
            Event::Unknown { client: client.clone(), call, why: why.clone() },
            Event::GivingBack { client: client.clone(), token },
            Event::GaveBack { client: client.clone(), token, trouble: Some(why.clone()) },
            Event::Lost { client: client.clone(), token, why: why.clone(), revoked: true, restored: true },
            Event::Looked { asked: at, resource: resource.clone(), token: None },
            Event::Wrote {
                client,
                resource,
                token,
                asked: at,
                refused: Some(why.clone()),
                receiver: "db".into(),
                register: true,
            },
            Event::Fault { text: why.clone() },
            Event::Healed { text: why },
            Event::AllHealed,
            Event::Finishing,
        ];
        assert_eq!(all.len(), KINDS.len(), "every kind is tried");
        for (event, kind) in all.into_iter().zip(KINDS) {
            let line = Line { at, clock: Some("c".into()), process: Some("p".into()), event };
            let text = line.to_json();
            assert!(text.contains(&format!("\"what\":\"{kind}\"")), "{text}");
            assert_eq!(parse(text.as_bytes()).unwrap(), line, "{text}");
        }
    }

    #[test]
    fn fields_that_nobody_knows_are_passed_over_and_numbers_are_names() {
        let text = br#"{"at_ns":5,"what":"queued","client":7,"call":null,"new":{"a":[1,{}]},"more":1.5}"#;
        let event = Event::Queued { client: "7".into(), call: "".into(), promised: None };
        assert_eq!(parse(text).unwrap(), Line::new(At(5), event));
    }

    #[test]
    fn what_is_wrong_is_said_with_what_was_expected() {
        assert_eq!(wrong("{"), "EOF while parsing an object at column 1; a JSON object was expected");
        let no_kind = wrong(r#"{"at_ns":1}"#);
        assert!(no_kind.starts_with("`what` is missing; one of `asked`, "), "{no_kind}");
        let other = wrong(r#"{"at_ns":1,"what":"acquired","client":1}"#);
        assert!(
            other.starts_with("`acquired`: not a kind of event that is known; known are `asked`"),
            "{other}"
        );
        assert_eq!(
            wrong(r#"{"at_ns":"12","what":"finishing"}"#),
            "`at_ns` is the text \"12\"; a whole number of nanoseconds was expected"
        );
        assert_eq!(
            wrong(r#"{"at_ns":1,"what":"confirmed","client":1,"token":"3"}"#),
            "`confirmed`: `until_ns` is missing; a whole number of nanoseconds was expected"
        );
        assert_eq!(
            wrong(r#"{"at_ns":1,"what":"giving-back","client":1,"token":3}"#),
            "`giving-back`: `token` is the number 3; a token in quotes, a number below 2^64 such as \"17\", was expected"
        );
        assert!(wrong(r#"{"at_ns":1.5,"what":"finishing"}"#).contains("is the number 1.5, with a fraction;"));
        assert!(wrong(r#"{"at_ns":-1,"what":"finishing"}"#).contains("is the negative number -1;"));
        let great = wrong(r#"{"at_ns":1,"what":"giving-back","client":1,"token":"18446744073709551616"}"#);
        assert!(
            great.contains("\"18446744073709551616\"; a token in quotes, a number below 2^64"),
            "{great}"
        );
        assert!(wrong("\u{feff}{}").starts_with("it begins with a byte order mark"));
        assert!(wrong("hello").starts_with("it begins with \"hello\"; a JSON object"));
        assert!(wrong(r#"{"at_ns":1,"at_ns":1,"what":"finishing"}"#).contains("duplicate field `at_ns`"));
        assert!(
            wrong(r#"{"at_ns":1,"what":"looked","asked_ns":1,"resource":"r"}"#)
                .contains("`token` is missing")
        );
        assert!(wrong(r#"[1]"#).contains("a JSON object was expected"));
    }
}
