//! A whole history, line by line.

use std::io::{self, BufRead, Read as _};

use crate::event::Line;
use crate::parse::parse;
use crate::story::LineNumber;

/// The longest line. The longest name has 512 bytes; this leaves room for whatever others put beside it.
pub const MAX_LINE_BYTES: usize = 1024 * 1024;

/// A line that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct Mistake {
    /// Which.
    pub line: u64,
    /// What is wrong with it, and what was expected.
    pub what: String,
}

/// A history that cannot be read to its end.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// Not a history.
    #[error(transparent)]
    Mistake(#[from] Mistake),
    /// The machine did not give it.
    #[error("cannot be read: {0}")]
    Io(#[from] io::Error),
}

/// What the reader of JSON says of a text that stops in the middle.
const ENDS_EARLY: &str = "EOF while parsing";

/// Reads line by line, and gives each to `take` with its number. Empty lines are passed over. Only one line is in memory.
///
/// # Errors
/// When it cannot be read, when a line is not understood, or when `take` says so.
pub fn read(
    mut from: impl BufRead,
    mut take: impl FnMut(LineNumber, &Line<'_>) -> Result<(), Mistake>,
) -> Result<(), ReadError> {
    let mut text = Vec::new();
    let mut line = 0_u64;
    loop {
        text.clear();
        let most = u64::try_from(MAX_LINE_BYTES).unwrap_or(u64::MAX) + 1;
        if from.by_ref().take(most).read_until(b'\n', &mut text)? == 0 {
            return Ok(());
        }
        line += 1;
        let mistake = |what: String| Mistake { line, what };
        let whole = text.ends_with(b"\n");
        if !whole && text.len() > MAX_LINE_BYTES {
            return Err(mistake(format!("longer than {MAX_LINE_BYTES} bytes")).into());
        }
        if text.trim_ascii().is_empty() {
            continue;
        }
        let number = LineNumber::new(line).ok_or_else(|| {
            mistake("this program counts no further; judge the history in parts".to_owned())
        })?;
        let parsed = parse(text.trim_ascii()).map_err(|what| {
            // Whoever is killed while it writes leaves half a line behind, and others may go on below it.
            let is_half = !whole || what.contains(ENDS_EARLY);
            let torn = if !is_half {
                ""
            } else {
                "; it has no end: take it away if its writer was stopped while writing it"
            };
            mistake(format!("{what}{torn}"))
        })?;
        take(number, &parsed)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_a_line_is_named_as_such_also_where_others_went_on_below_it() {
        for text in ["{\"at_ns\":1,\"wh", "{\"at_ns\":1,\"wh\n{}\n"] {
            let said = numbers(text).unwrap_err();
            assert!(said.contains("take it away if its writer was stopped"), "{said}");
        }
        let said = numbers("{\"at_ns\":x}\n").unwrap_err();
        assert!(!said.contains("take it away"), "{said}");
    }

    fn numbers(text: &str) -> Result<Vec<u64>, String> {
        let mut numbers = Vec::new();
        let read = read(text.as_bytes(), |number, _| {
            numbers.push(number.get());
            Ok(())
        });
        read.map(|()| numbers).map_err(|error| error.to_string())
    }

    const LINE: &str = r#"{"at_ns":1,"what":"finishing"}"#;

    #[test]
    fn lines_are_counted_from_one_and_empty_ones_too() {
        assert_eq!(numbers(&format!("{LINE}\n\n{LINE}\r\n{LINE}")), Ok(vec![1, 3, 4]));
        assert_eq!(numbers(""), Ok(vec![]));
    }

    #[test]
    fn a_broken_line_is_named() {
        let error = numbers(&format!("{LINE}\n{{\n{LINE}\n")).unwrap_err();
        let half = "it has no end: take it away if its writer was stopped while writing it";
        assert_eq!(
            error,
            format!("line 2: EOF while parsing an object at column 1; a JSON object was expected; {half}")
        );
        let torn = numbers(&format!("{LINE}\n{}", &LINE[..9])).unwrap_err();
        assert!(torn.starts_with("line 2: ") && torn.contains("take it away"), "{torn}");
    }

    #[test]
    fn a_line_that_is_too_long_is_not_taken_into_memory() {
        let long = vec![b' '; MAX_LINE_BYTES + 2];
        let error = read(&long[..], |_, _| Ok(())).unwrap_err();
        assert_eq!(error.to_string(), format!("line 1: longer than {MAX_LINE_BYTES} bytes"));
        let longest = [vec![b' '; MAX_LINE_BYTES], b"\n".to_vec()].concat();
        assert!(read(&longest[..], |_, _| Ok(())).is_ok());
    }
}
