//! One line of a script as words: options are taken out by name, what is left is read in order, and nothing may remain.

use leasehold_core::{Epoch, Millis, Token};

/// The words of a line that were not read yet.
pub(crate) struct Words<'a> {
    words: Vec<&'a str>,
}

impl<'a> Words<'a> {
    /// All words of a line.
    pub(crate) fn new(line: &'a str) -> Self {
        Self { words: line.split_whitespace().collect() }
    }

    /// The next word; an error names what should have stood there.
    pub(crate) fn next(&mut self, what: &str) -> Result<&'a str, String> {
        if self.words.is_empty() {
            return Err(format!("{what} is missing"));
        }
        Ok(self.words.remove(0))
    }

    /// The next word, if there is one.
    pub(crate) fn maybe(&mut self) -> Option<&'a str> {
        (!self.words.is_empty()).then(|| self.words.remove(0))
    }

    /// Takes out the word `name` and the one behind it.
    pub(crate) fn option(&mut self, name: &str) -> Result<Option<&'a str>, String> {
        let Some(position) = self.words.iter().position(|word| *word == name) else { return Ok(None) };
        self.words.remove(position);
        if position == self.words.len() {
            return Err(format!("something must stand behind {name:?}"));
        }
        Ok(Some(self.words.remove(position)))
    }

    /// Takes out an option that is a length.
    pub(crate) fn length_option(&mut self, name: &str) -> Result<Option<Millis>, String> {
        self.option(name)?.map(length).transpose()
    }

    /// Takes out an option that is a number.
    pub(crate) fn number_option(&mut self, name: &str) -> Result<Option<u64>, String> {
        self.option(name)?.map(number).transpose()
    }

    /// Takes out the word `name` alone.
    pub(crate) fn flag(&mut self, name: &str) -> bool {
        let position = self.words.iter().position(|word| *word == name);
        position.is_some_and(|position| self.words.remove(position) == name)
    }

    /// All words that are left.
    pub(crate) fn rest(&mut self) -> Vec<&'a str> {
        std::mem::take(&mut self.words)
    }

    /// Refuses words that nobody has read.
    pub(crate) fn end(&self) -> Result<(), String> {
        match self.words.first() {
            None => Ok(()),
            Some(word) => Err(format!("{word:?} is not understood here")),
        }
    }
}

/// A whole number.
pub(crate) fn number(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("{text:?} is not a number"))
}

/// A length with its unit: `500ms`, `10s`, `5m`, `24h`.
pub(crate) fn length(text: &str) -> Result<Millis, String> {
    let units = [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000)];
    let read =
        |(unit, millis): (&str, u64)| text.strip_suffix(unit)?.parse::<u64>().ok()?.checked_mul(millis);
    let found = units.into_iter().find_map(read);
    found.map(Millis::new).ok_or_else(|| format!("{text:?} is not a length such as 500ms, 10s, 5m or 24h"))
}

/// A token as scripts write it: `t7`, or `t1.7` in epoch 1.
pub(crate) fn token(text: &str) -> Result<Token, String> {
    let bad = || format!("{text:?} is not a token such as t7 or t1.7");
    let digits = text.strip_prefix('t').ok_or_else(bad)?;
    let (epoch, number) = digits.split_once('.').unwrap_or(("0", digits));
    let epoch = epoch.parse().ok().and_then(Epoch::new).ok_or_else(bad)?;
    Token::new(epoch, number.parse().map_err(|_| bad())?).map_err(|_| bad())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_that_nobody_reads_is_an_error() {
        let mut words = Words::new("db wait 5s loudly");
        assert_eq!(words.length_option("wait"), Ok(Some(Millis::new(5_000))));
        assert_eq!(words.next("resource"), Ok("db"));
        assert_eq!(words.end(), Err("\"loudly\" is not understood here".to_owned()));
    }

    #[test]
    fn lengths_need_a_unit() {
        assert_eq!(length("90ms"), Ok(Millis::new(90)));
        assert_eq!(length("24h"), Ok(Millis::new(86_400_000)));
        assert!(length("90").is_err());
    }

    #[test]
    fn tokens_of_a_later_epoch_are_written_with_it() {
        assert_eq!(token("t7").unwrap().get(), 7);
        assert_eq!(token("t1.7").unwrap().get(), (1 << 48) + 7);
        assert!(token("7").is_err());
    }
}
