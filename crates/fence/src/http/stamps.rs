//! A stamp in headers, and back.
//!
//! The token is plain decimal. Name and holder are text: bytes that a header cannot carry, or that something on the way might change
//! (a space at the end, a comma by which two headers are joined), are written as `%` and two hexadecimal digits.

use http::header::{HeaderMap, HeaderName, HeaderValue};

use super::problem::Problem;
use crate::error::NoAuthority;
use crate::stamp::{Authority, LARGEST_TOKEN, MAX_FENCE_NAME_BYTES, MAX_HOLDER_BYTES, Stamp};

/// The token, in decimal.
pub const TOKEN_HEADER: HeaderName = HeaderName::from_static("fencing-token");
/// The fence name, unless the receiver knows it from the route.
pub const NAME_HEADER: HeaderName = HeaderName::from_static("fencing-name");
/// Who holds it, for people that look at refusals. Not needed.
pub const HOLDER_HEADER: HeaderName = HeaderName::from_static("fencing-holder");

/// More of a value than this is not repeated to whoever sent it.
const LONGEST_QUOTE: usize = 40;

/// Sets the headers of one request from whoever may act *now*, and says with which stamp it goes out. Ask again for every request.
///
/// # Errors
/// When the authority has lapsed: the request must not be sent.
pub fn stamped(headers: &mut HeaderMap, authority: &impl Authority) -> Result<Stamp, NoAuthority> {
    let stamp = authority.stamp()?;
    headers.insert(TOKEN_HEADER, HeaderValue::from(stamp.token()));
    headers.insert(NAME_HEADER, encoded(stamp.name()));
    match stamp.holder() {
        Some(holder) => headers.insert(HOLDER_HEADER, encoded(holder)),
        // Somebody else's, if a request is sent again.
        None => headers.remove(HOLDER_HEADER),
    };
    Ok(stamp)
}

/// Reads the stamp of a request. `name` is what the receiver knows from the route; without it the header says. Nothing when there is no
/// token.
///
/// # Errors
/// A [`Problem`] to answer with, when a header is malformed or stands there twice, the name is missing, or it is not that of the route.
pub fn read(headers: &HeaderMap, name: Option<&str>) -> Result<Option<Stamp>, Problem> {
    let Some(token) = single(headers, &TOKEN_HEADER)? else { return Ok(None) };
    let token = token_of(token)?;
    let given = text(headers, &NAME_HEADER, MAX_FENCE_NAME_BYTES)?;
    let name = match (name, given) {
        (Some(name), Some(given)) if name != given => return Err(Problem::name_differs(&given, name)),
        (Some(name), _) => name.to_owned(),
        (None, Some(given)) => given,
        (None, None) => return Err(Problem::name_missing()),
    };
    let holder = text(headers, &HOLDER_HEADER, MAX_HOLDER_BYTES)?.unwrap_or_default();
    let stamp = Stamp::new(name, token).and_then(|stamp| stamp.held_by(holder));
    stamp.map(Some).map_err(|bad| Problem::malformed(format!("{bad}; send the stamp of your lease")))
}

fn token_of(value: &HeaderValue) -> Result<u64, Problem> {
    let bytes = value.as_bytes();
    let plain = !bytes.is_empty() && bytes.iter().all(u8::is_ascii_digit) && bytes[0] != b'0';
    let token = value.to_str().ok().filter(|_| plain).and_then(|text| text.parse().ok());
    token.filter(|token| *token <= LARGEST_TOKEN).ok_or_else(|| {
        Problem::malformed(format!(
            "{TOKEN_HEADER} of {} is no whole number between 1 and {LARGEST_TOKEN} in plain digits; send the token of your lease",
            quote(bytes)
        ))
    })
}

/// A header that stands there once. Twice is a mistake of which nobody can say what was meant.
fn single<'a>(headers: &'a HeaderMap, header: &HeaderName) -> Result<Option<&'a HeaderValue>, Problem> {
    let mut values = headers.get_all(header).iter();
    let first = values.next();
    match values.count() {
        0 => Ok(first),
        more => Err(Problem::malformed(format!("{header} stands there {} times; send it once", more + 1))),
    }
}

fn text(headers: &HeaderMap, header: &HeaderName, limit: usize) -> Result<Option<String>, Problem> {
    let Some(value) = single(headers, header)? else { return Ok(None) };
    let bytes = value.as_bytes();
    // Three bytes for one, at most.
    if bytes.len() > limit * 3 {
        let length = bytes.len();
        return Err(Problem::malformed(format!(
            "{header} of {length} bytes is above the limit of {limit} bytes; choose a shorter one"
        )));
    }
    let decoded = decoded(bytes).and_then(|bytes| String::from_utf8(bytes).ok());
    decoded.map(Some).ok_or_else(|| {
        Problem::malformed(format!(
            "{header} of {} is not text; write a comma as %2C, % as %25, and what is not ASCII as % and the two hexadecimal digits \
             of each byte",
            quote(bytes)
        ))
    })
}

/// Text for a header: everything that could be lost or changed on the way as `%` and two digits.
pub(crate) fn encoded(text: &str) -> HeaderValue {
    let last = text.len().saturating_sub(1);
    let mut value = String::with_capacity(text.len());
    for (at, byte) in text.bytes().enumerate() {
        let at_an_end = at == 0 || at == last;
        match byte {
            b'%' | b',' => value.push_str(&format!("%{byte:02X}")),
            b' ' if at_an_end => value.push_str("%20"),
            b' '..=b'~' => value.push(char::from(byte)),
            _ => value.push_str(&format!("%{byte:02X}")),
        }
    }
    HeaderValue::from_str(&value).expect("visible ASCII is left")
}

pub(crate) fn decoded(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut text = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let [first, behind @ ..] = rest {
        rest = match (first, behind) {
            (b'%', [high, low, behind @ ..]) => {
                let digit =
                    |byte: &u8| char::from(*byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
                text.push(digit(high)? * 16 + digit(low)?);
                behind
            }
            (b'%' | b',', _) => return None,
            _ => {
                text.push(*first);
                behind
            }
        };
    }
    Some(text)
}

fn quote(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    if text.chars().count() <= LONGEST_QUOTE {
        return format!("{text:?}");
    }
    let start: String = text.chars().take(LONGEST_QUOTE).collect();
    format!("{start:?}... ({} bytes)", bytes.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&HeaderName, &str)]) -> HeaderMap {
        let pairs = pairs
            .iter()
            .map(|(name, value)| ((*name).clone(), HeaderValue::from_bytes(value.as_bytes()).unwrap()));
        // Collecting appends, so that a header may stand there twice.
        let mut map = HeaderMap::new();
        for (name, value) in pairs {
            map.append(name, value);
        }
        map
    }

    fn said(pairs: &[(&HeaderName, &str)]) -> (&'static str, String) {
        let problem = read(&headers(pairs), None).unwrap_err();
        (problem.code(), problem.detail().to_owned())
    }

    #[test]
    fn what_is_sent_is_what_is_read() {
        for name in ["reports/nightly#3", "50% off, today", " a ", "Bücher", "a\u{a0}", ",", "%41"] {
            let sent = Stamp::new(name, LARGEST_TOKEN).unwrap().held_by("me, myself").unwrap();
            let mut map = headers(&[(&HOLDER_HEADER, "another")]);
            assert_eq!(stamped(&mut map, &sent).unwrap(), sent);
            assert_eq!(read(&map, None).unwrap(), Some(sent), "{name}");
            assert!(map.values().all(|value| value.to_str().is_ok()), "only ASCII travels: {map:?}");
        }
    }

    #[test]
    fn names_are_read_as_people_write_them() {
        let map = headers(&[(&TOKEN_HEADER, "34"), (&NAME_HEADER, "a b#3"), (&HOLDER_HEADER, "é")]);
        let stamp = read(&map, None).unwrap().unwrap();
        assert_eq!((stamp.name(), stamp.token(), stamp.holder()), ("a b#3", 34, Some("é")));
    }

    #[test]
    fn a_token_is_a_number_in_plain_digits_within_the_limit() {
        for token in ["1", "34", "9223372036854775807"] {
            assert!(read(&headers(&[(&TOKEN_HEADER, token)]), Some("a")).unwrap().is_some(), "{token}");
        }
        for token in
            ["", "0", "-1", "+34", "034", "34.0", "3e1", "34, 35", "9223372036854775808", "0x22", "٣٤"]
        {
            let (code, detail) = said(&[(&TOKEN_HEADER, token), (&NAME_HEADER, "a")]);
            assert_eq!(code, "stamp-malformed", "{token}");
            assert!(
                detail.contains(&format!("{token:?}")) && detail.contains("9223372036854775807"),
                "{detail}"
            );
        }
    }

    #[test]
    fn what_stands_there_twice_is_refused() {
        let twice = [(&TOKEN_HEADER, "34"), (&NAME_HEADER, "a"), (&TOKEN_HEADER, "34")];
        assert_eq!(
            said(&twice),
            ("stamp-malformed", "fencing-token stands there 2 times; send it once".to_owned())
        );
        let joined = [(&TOKEN_HEADER, "34"), (&NAME_HEADER, "a, b")];
        assert!(said(&joined).1.contains("write a comma as %2C"), "{:?}", said(&joined));
    }

    #[test]
    fn names_are_bounded_before_they_are_decoded() {
        for (length, fits) in [(543, true), (544, true), (545, false), (5_000, false)] {
            let map = headers(&[(&TOKEN_HEADER, "1"), (&NAME_HEADER, &"x".repeat(length))]);
            assert_eq!(read(&map, None).is_ok(), fits, "{length}");
            let wide = headers(&[(&TOKEN_HEADER, "1"), (&NAME_HEADER, &"%78".repeat(length))]);
            assert_eq!(read(&wide, None).is_ok(), fits, "{length}");
        }
    }

    #[test]
    fn control_characters_are_refused_in_disguise_too() {
        let (code, detail) = said(&[(&TOKEN_HEADER, "1"), (&NAME_HEADER, "a%1b[2J")]);
        assert_eq!(code, "stamp-malformed");
        assert!(detail.contains("\\u{1b}") && !detail.contains('\u{1b}'), "{detail}");
    }

    #[test]
    fn a_name_that_is_not_the_routes_is_refused() {
        let map = headers(&[(&TOKEN_HEADER, "34"), (&NAME_HEADER, "b")]);
        assert_eq!(read(&map, Some("a")).unwrap_err().code(), "name-differs");
        assert_eq!(read(&map, Some("b")).unwrap().unwrap().name(), "b");
        assert_eq!(read(&headers(&[(&TOKEN_HEADER, "34")]), None).unwrap_err().code(), "name-missing");
        assert_eq!(read(&headers(&[(&NAME_HEADER, "b")]), None).unwrap(), None, "no token, no stamp");
    }
}
