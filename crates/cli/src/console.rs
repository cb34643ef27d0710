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

const BOLD: Paint = Paint("1");
const RED: &str = "\x1b[31m";
const PLAIN: &str = "\x1b[0m";
const CLEAR_LINE: &str = "\r\x1b[K";

/// A terminal's code for a colour.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Paint(pub(crate) &'static str);

impl Paint {
    fn on(self, text: &str) -> String {
        format!("\x1b[{}m{text}{PLAIN}", self.0)
    }
}

/// The two streams and how they are written to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Console {
    json: bool,
    out_is_terminal: bool,
    err_is_terminal: bool,
    colours: bool,
}

impl Console {
    pub(crate) fn new(json: bool) -> Self {
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        Self {
            json,
            out_is_terminal: io::stdout().is_terminal(),
            err_is_terminal: io::stderr().is_terminal(),
            colours: !no_color() && !dumb,
        }
    }

    /// Whether a line that changes can be shown.
    pub(crate) fn can_animate(&self) -> bool {
        self.err_is_terminal && !self.json && self.colours
    }

    /// A result: text for people, or the same as JSON. Gives the exit code of what went well.
    pub(crate) fn result(&self, text: impl Display, json: &impl Serialize) -> Result<Exit, Trouble> {
        let text = if self.json { to_json(json)? } else { text.to_string() };
        let end = if text.ends_with('\n') || text.is_empty() { "" } else { "\n" };
        let mut out = io::stdout().lock();
        let written = write!(out, "{text}{end}").and_then(|()| out.flush());
        written.map(|()| Exit::OK).map_err(Trouble::Output)
    }

    /// A table, laid out for whoever reads it.
    pub(crate) fn table(&self, table: &Table, json: &impl Serialize) -> Result<Exit, Trouble> {
        self.result(table.layout(self.out_is_terminal, self.paints()), json)
    }

    /// The same with a line above it and text below it.
    pub(crate) fn framed_table(
        &self,
        head: &str,
        table: &Table,
        below: &str,
        json: &impl Serialize,
    ) -> Result<Exit, Trouble> {
        let rows = table.layout(self.out_is_terminal, self.paints());
        self.result(format_args!("{head}\n{rows}{below}"), json)
    }

    /// Something that is worth saying beside the result.
    pub(crate) fn note(&self, text: impl Display, json: &impl Serialize) {
        self.say(format_args!("leasehold: {text}"), json);
    }

    /// The same where there is no more to it than what happened, and the words.
    pub(crate) fn remark(&self, event: &'static str, message: &str) {
        self.note(message, &object! { event, message });
    }

    fn say(&self, text: impl Display, json: &impl Serialize) {
        // Whoever closed standard error does not want to be told that it is closed.
        let _ = match self.json {
            true => to_json(json).map(|line| writeln!(io::stderr(), "{line}")).map(drop).map_err(drop),
            false => writeln!(io::stderr(), "{text}").map_err(drop),
        };
    }

    /// A line that the next one replaces; nothing where none [can](Self::can_animate).
    pub(crate) fn progress(&self, text: impl Display) {
        if self.can_animate() {
            let mut err = io::stderr().lock();
            let _ = write!(err, "{CLEAR_LINE}{text}").and_then(|()| err.flush());
        }
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
        let (kind, message, exit_code) = (kind.as_str(), trouble.to_string(), exit.get());
        let mark = if self.err_is_terminal && self.colours { (RED, PLAIN) } else { ("", "") };
        let json = object! { error: object! { code, kind, message, exit_code } };
        self.say(format_args!("{}leasehold:{} {trouble}", mark.0, mark.1), &json);
        exit
    }

    /// A heading, marked on a terminal.
    pub(crate) fn heading(&self, text: &str) -> String {
        self.painted(BOLD, text)
    }

    /// The same in a colour, on a terminal.
    pub(crate) fn painted(&self, paint: Paint, text: &str) -> String {
        if self.paints() { paint.on(text) } else { text.to_owned() }
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

    fn paints(&self) -> bool {
        self.out_is_terminal && self.colours
    }
}

/// Whether the user wants no colours. See no-color.org: set to anything but nothing.
pub(crate) fn no_color() -> bool {
    std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
}

fn to_json(value: &impl Serialize) -> Result<String, Trouble> {
    serde_json::to_string(value).map_err(|error| Trouble::Output(error.into()))
}
