//! What is said, and where: results on standard output, everything else on standard error.
//!
//! Colours and aligned columns go to terminals alone. With `--json` results are one JSON document each, and what goes to
//! standard error is one JSON object a line, so that a program can read both.

mod table;

use std::fmt::Display;
use std::io::{self, IsTerminal, Write};

use serde::Serialize;

use crate::exit::Exit;
use crate::trouble::Trouble;

pub(crate) use table::Table;

const BOLD: &str = "\x1b[1m";
const RED: &str = "\x1b[31m";
const PLAIN: &str = "\x1b[0m";
const CLEAR_LINE: &str = "\r\x1b[K";

/// A terminal's code for a colour.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Paint(pub(crate) &'static str);

/// The two streams and how they are written to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Console {
    json: bool,
    out_is_terminal: bool,
    err_is_terminal: bool,
    colours: bool,
}

#[derive(Serialize)]
struct ErrorLine<'a> {
    error: ErrorBody<'a>,
}

#[derive(Serialize)]
struct ErrorBody<'a> {
    code: &'a str,
    kind: &'static str,
    message: String,
    exit_code: u8,
}

impl Console {
    pub(crate) fn new(json: bool) -> Self {
        // See no-color.org: set to anything but nothing.
        let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        Self {
            json,
            out_is_terminal: io::stdout().is_terminal(),
            err_is_terminal: io::stderr().is_terminal(),
            colours: !no_color && !dumb,
        }
    }

    /// Whether a line that changes can be shown.
    pub(crate) fn can_animate(&self) -> bool {
        self.err_is_terminal && !self.json && self.colours
    }

    /// A result: text for people, or the same as JSON.
    pub(crate) fn result(&self, text: impl Display, json: &impl Serialize) -> Result<(), Trouble> {
        let text = if self.json { to_json(json)? } else { text.to_string() };
        let mut out = io::stdout().lock();
        let written =
            out.write_all(text.as_bytes()).and_then(|()| match text.ends_with('\n') || text.is_empty() {
                true => out.flush(),
                false => out.write_all(b"\n").and_then(|()| out.flush()),
            });
        written.map_err(Trouble::Output)
    }

    /// A table, laid out for whoever reads it.
    pub(crate) fn table(&self, table: &Table, json: &impl Serialize) -> Result<(), Trouble> {
        self.result(table.layout(self.out_is_terminal, self.out_is_terminal && self.colours), json)
    }

    /// The same with a line above it.
    pub(crate) fn headed_table(
        &self,
        head: &str,
        table: &Table,
        json: &impl Serialize,
    ) -> Result<(), Trouble> {
        self.framed_table(head, table, "", json)
    }

    /// The same with text below it too.
    pub(crate) fn framed_table(
        &self,
        head: &str,
        table: &Table,
        below: &str,
        json: &impl Serialize,
    ) -> Result<(), Trouble> {
        let rows = table.layout(self.out_is_terminal, self.out_is_terminal && self.colours);
        self.result(format_args!("{head}\n{rows}{below}"), json)
    }

    /// Something that is worth saying beside the result.
    pub(crate) fn note(&self, text: impl Display, json: &impl Serialize) {
        // Whoever closed standard error does not want to be told that it is closed.
        let _ = match self.json {
            true => to_json(json).map(|line| writeln!(io::stderr(), "{line}")).map(drop).map_err(drop),
            false => writeln!(io::stderr(), "leasehold: {text}").map_err(drop),
        };
    }

    /// A line that the next one replaces; only where [`can_animate`](Self::can_animate).
    pub(crate) fn progress(&self, text: impl Display) {
        let mut err = io::stderr().lock();
        let _ = write!(err, "{CLEAR_LINE}{text}").and_then(|()| err.flush());
    }

    pub(crate) fn clear_progress(&self) {
        self.progress("");
    }

    /// Says why it ends, and with which code.
    pub(crate) fn trouble(&self, trouble: &Trouble, exit: Exit) -> Exit {
        if trouble.is_closed_output() {
            return Exit::OK;
        }
        let (code, kind) = trouble.code();
        let line = ErrorLine {
            error: ErrorBody {
                code,
                kind: kind.as_str(),
                message: trouble.to_string(),
                exit_code: exit.get(),
            },
        };
        let mark = if self.err_is_terminal && self.colours { (RED, PLAIN) } else { ("", "") };
        let _ = match self.json {
            true => to_json(&line).map(|line| writeln!(io::stderr(), "{line}")).map(drop).map_err(drop),
            false => writeln!(io::stderr(), "{}leasehold:{} {trouble}", mark.0, mark.1).map_err(drop),
        };
        exit
    }

    /// A heading, marked on a terminal.
    pub(crate) fn heading(&self, text: &str) -> String {
        match self.out_is_terminal && self.colours {
            true => format!("{BOLD}{text}{PLAIN}"),
            false => text.to_owned(),
        }
    }

    /// The same in a colour, on a terminal.
    pub(crate) fn painted(&self, Paint(code): Paint, text: &str) -> String {
        match self.out_is_terminal && self.colours {
            true => format!("\x1b[{code}m{text}{PLAIN}"),
            false => text.to_owned(),
        }
    }

    /// How wide the terminal is that results go to; nothing if they go elsewhere or it does not say.
    pub(crate) fn columns(&self) -> Option<usize> {
        let size = self.out_is_terminal.then(|| rustix::termios::tcgetwinsize(io::stdout()).ok());
        size.flatten().map(|size| usize::from(size.ws_col)).filter(|columns| *columns > 0)
    }

    /// Whether results go to a terminal.
    pub(crate) fn is_terminal(&self) -> bool {
        self.out_is_terminal
    }
}

fn to_json(value: &impl Serialize) -> Result<String, Trouble> {
    serde_json::to_string(value).map_err(|error| Trouble::Output(error.into()))
}
