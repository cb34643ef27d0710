//! A receiver with a fence: a file of items that were begun and done, each line with the token it was written under.
//!
//! What makes it a fence: comparing the token with the highest one so far and writing are one step, under a lock of the file. In a
//! database it would be one statement in the transaction of the write.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};
use leasehold::Token;
use rustix::fs::{FlockOperation, flock};

/// A file that takes nothing below the highest token it has seen.
#[derive(Debug, Clone)]
pub struct Ledger {
    path: PathBuf,
}

/// What is known of one item.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Item {
    /// How often it was begun. More than once: somebody left it half done.
    pub begun: u32,
    /// How often it was done. More than once is what a fence is there to prevent.
    pub done: u32,
    /// The token under which it was begun last.
    begun_by: u64,
}

impl Ledger {
    /// The ledger in this file, which is made with the first item.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// Begins an item: one that a holder before this one has left half done, or a new one.
    ///
    /// # Errors
    /// When the token is stale, or the file cannot be used.
    pub fn begin(&self, token: Token) -> Result<u64> {
        let token = token.get();
        self.write(token, |items| {
            let left = items.iter().find(|(_, item)| item.done == 0 && item.begun_by < token);
            let next = items.keys().next_back().map_or(0, |last| last + 1);
            let item = left.map_or(next, |(item, _)| *item);
            Ok((format!("begun {item} {token}\n"), item))
        })
    }

    /// Writes down that an item is done.
    ///
    /// # Errors
    /// When the token is stale, the item was done before, or the file cannot be used.
    pub fn finish(&self, item: u64, token: Token) -> Result<()> {
        let token = token.get();
        self.write(token, |items| {
            ensure!(items.get(&item).is_none_or(|item| item.done == 0), "item {item} was done before");
            Ok((format!("done {item} {token}\n"), ()))
        })
    }

    /// All items that were ever begun or done.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn items(&self) -> Result<BTreeMap<u64, Item>> {
        let text = std::fs::read_to_string(&self.path);
        Ok(parse(&text.with_context(|| format!("cannot read {}", self.path.display()))?)?.1)
    }

    fn write<T>(
        &self,
        token: u64,
        line: impl FnOnce(&BTreeMap<u64, Item>) -> Result<(String, T)>,
    ) -> Result<T> {
        // The lock ends when the file is closed.
        let mut file = open(&self.path)?;
        flock(&file, FlockOperation::LockExclusive).context("cannot lock the ledger")?;
        let mut text = String::new();
        file.read_to_string(&mut text).context("cannot read the ledger")?;
        let (highest, items) = parse(&text)?;
        ensure!(token >= highest, "refused: token {token} is below {highest}");
        let (line, answer) = line(&items)?;
        file.write_all(line.as_bytes()).context("cannot write to the ledger")?;
        Ok(answer)
    }
}

fn open(path: &Path) -> Result<File> {
    let file = File::options().create(true).read(true).append(true).open(path);
    file.with_context(|| format!("cannot open {}", path.display()))
}

/// The highest token, and what is known of every item.
fn parse(text: &str) -> Result<(u64, BTreeMap<u64, Item>)> {
    let (mut highest, mut items) = (0, BTreeMap::<u64, Item>::new());
    for line in text.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let [word, item, token] = words[..] else { bail!("the ledger has a line {line:?}") };
        let token: u64 = token.parse().context("a token")?;
        let item = items.entry(item.parse().context("an item")?).or_default();
        match word {
            "begun" => (item.begun, item.begun_by) = (item.begun + 1, token),
            "done" => item.done += 1,
            _ => bail!("the ledger has a line {line:?}"),
        }
        highest = highest.max(token);
    }
    Ok((highest, items))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(number: u64) -> Token {
        Token::from_u64(number)
    }

    #[test]
    fn a_stale_token_is_refused_and_what_it_left_half_done_is_done_by_the_next() {
        let directory = tempfile::tempdir().unwrap();
        let ledger = Ledger::new(directory.path().join("ledger"));
        assert_eq!(ledger.begin(token(2)).unwrap(), 0);
        assert_eq!(ledger.begin(token(2)).unwrap(), 1, "what is in flight is not begun again");
        ledger.finish(0, token(2)).unwrap();
        assert_eq!(ledger.begin(token(5)).unwrap(), 1, "left half done");
        let refused = ledger.finish(1, token(2)).unwrap_err();
        assert_eq!(refused.to_string(), "refused: token 2 is below 5");
        ledger.finish(1, token(5)).unwrap();
        assert_eq!(ledger.finish(1, token(5)).unwrap_err().to_string(), "item 1 was done before");
        let items = ledger.items().unwrap();
        assert_eq!(items[&0], Item { begun: 1, done: 1, begun_by: 2 });
        assert_eq!(items[&1], Item { begun: 2, done: 1, begun_by: 5 });
    }
}
