//! Who holds what, as clients see it: the check that runs with every measurement.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use anyhow::{Result, ensure};

/// Names by their numbers. A client says `granted` when it knows that it holds one, and `leaves` before it says so to anybody: so
/// between a true handover's two, the name is nobody's here, and two holders at once are always seen.
#[derive(Debug)]
pub struct Book {
    names: Vec<Name>,
}

#[derive(Debug, Default)]
struct Name {
    held: AtomicBool,
    token: AtomicU64,
}

impl Book {
    /// So many names, all free.
    pub fn new(names: usize) -> Self {
        Self { names: (0..names).map(|_| Name::default()).collect() }
    }

    /// A client knows that it holds a name.
    ///
    /// # Errors
    /// When somebody else holds it, or held it with a token that is not smaller.
    pub fn granted(&self, name: usize, token: u64) -> Result<()> {
        let Name { held, token: last } = &self.names[name];
        ensure!(
            !held.swap(true, Ordering::SeqCst),
            "name {name} has two holders; the second has token {token}"
        );
        let before = last.swap(token, Ordering::SeqCst);
        ensure!(before < token, "token {token} of name {name} was granted after {before}");
        Ok(())
    }

    /// A client is about to give a name back.
    pub fn leaves(&self, name: usize) {
        self.names[name].held.store(false, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_holders_are_seen() {
        let book = Book::new(2);
        book.granted(0, 1).unwrap();
        book.granted(1, 1).unwrap();
        assert!(book.granted(0, 2).unwrap_err().to_string().contains("two holders"));
    }

    #[test]
    fn a_token_that_does_not_rise_is_seen() {
        let book = Book::new(1);
        book.granted(0, 7).unwrap();
        book.leaves(0);
        assert!(book.granted(0, 7).unwrap_err().to_string().contains("after 7"));
    }
}
