//! A question to the person at the terminal, before something that cannot be taken back.

use std::io::{self, IsTerminal, Write};

use crate::trouble::Trouble;

/// Asks. Where nobody can be asked, says what is known and how it is done without asking.
pub(super) fn confirm(known: &str, question: &str, without: &str) -> Result<(), Trouble> {
    if !io::stdin().is_terminal() {
        return Err(Trouble::Misuse(format!("{known}; nobody can be asked here: {without}")));
    }
    let mut answer = String::new();
    let asked =
        write!(io::stderr(), "{known}{question} [y/N] ").and_then(|()| io::stdin().read_line(&mut answer));
    match asked {
        Ok(_) if matches!(answer.trim(), "y" | "Y" | "yes") => Ok(()),
        _ => Err(Trouble::NotConfirmed),
    }
}
