//! A lease as its holder saw it, small enough that a million of them fit.

use std::num::NonZeroU32;

use leasehold_core::Token;

use crate::names::Name;
use crate::time::At;

/// The number of a line, from one on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LineNumber(NonZeroU32);

impl LineNumber {
    /// Of this number; nothing for zero and above 2^32 - 1.
    pub fn new(number: u64) -> Option<Self> {
        u32::try_from(number).ok().and_then(NonZeroU32::new).map(Self)
    }

    /// The number.
    pub const fn get(self) -> u64 {
        self.0.get() as u64
    }
}

/// A point in time, and the line that says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// When.
    pub at: At,
    /// Where it stands.
    pub line: LineNumber,
}

/// A time in which a client believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// From when on.
    pub from: At,
    /// Until when.
    pub until: At,
    /// The line that reaches so far.
    pub line: LineNumber,
}

/// How a lease ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The client was about to give it back.
    GivenBack,
    /// The service ended it.
    Lost,
    /// An operator ended it.
    Revoked,
    /// A backup took the place of the state that it stood in.
    Restored,
}

/// A lease as its holder saw it.
///
/// Fields are laid out for size: what may be missing is there if its line is.
#[derive(Debug)]
pub struct Grant {
    /// The token.
    pub token: Token,
    /// Who holds it.
    pub client: Name,
    /// What, with its slot if it has one.
    pub resource: Name,
    /// The same without its slot: all of one family stand in one queue.
    pub family: Name,
    /// Whose clock its times are of.
    pub clock: Name,
    /// Whether others may hold it too, if they also share.
    pub shared: bool,
    /// Whether it took up an offer: a named successor is served past the queue.
    pub handed_over: bool,
    said_promise: bool,
    how: End,
    asked_line: Option<LineNumber>,
    queued_line: Option<LineNumber>,
    granted_line: LineNumber,
    promised_line: LineNumber,
    window_line: LineNumber,
    end_line: Option<LineNumber>,
    asked: At,
    queued: At,
    queued_until: At,
    granted: At,
    /// The first time of belief; of most leases there is no second.
    from: At,
    until: At,
    promised: At,
    ended: At,
    rare: Option<Box<Rare>>,
}

#[derive(Debug, Default)]
struct Rare {
    fence: Option<Token>,
    /// Belief that ran out, or was said to have ended, and was confirmed again.
    windows: Vec<Window>,
    /// The first claim beyond what was promised.
    beyond: Option<Beyond>,
}

/// A claim beyond what was promised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Beyond {
    pub(crate) until: At,
    pub(crate) promised: At,
    pub(crate) line: LineNumber,
}

/// A place in the queue.
#[derive(Debug, Clone, Copy)]
pub(super) struct Queued {
    /// Since when.
    pub(super) since: Moment,
    /// Until when the session that waits cannot be overdue, if that is known.
    pub(super) promised: Option<At>,
}

impl Queued {
    /// The client says once more that it stands there. What was promised without a gap is one promise; behind a gap its session may
    /// have been overdue, and only from here on is something known again.
    pub(super) fn again(self, now: Moment, promised: Option<At>) -> Self {
        match self.promised {
            Some(until) if now.at <= until => Self { promised: Some(until).max(promised), ..self },
            _ => Self { since: now, promised },
        }
    }
}

/// What a grant begins with.
pub(super) struct Beginning {
    pub(super) token: Token,
    pub(super) fence: Option<Token>,
    pub(super) client: Name,
    pub(super) resource: Name,
    pub(super) family: Name,
    pub(super) clock: Name,
    pub(super) shared: bool,
    pub(super) handed_over: bool,
    pub(super) asked: Option<Moment>,
    pub(super) queued: Option<Queued>,
    pub(super) granted: Moment,
}

impl Grant {
    pub(super) fn new(beginning: &Beginning) -> Self {
        let Beginning { token, fence, client, resource, family, clock, shared, handed_over, .. } = *beginning;
        let Beginning { asked, queued, granted: Moment { at, line }, .. } = *beginning;
        let since = queued.map(|queued| queued.since);
        let at_queued = since.map_or(at, |since| since.at);
        Self {
            token,
            client,
            resource,
            family,
            clock,
            shared,
            handed_over,
            said_promise: false,
            how: End::Lost,
            asked_line: asked.map(|asked| asked.line),
            queued_line: since.map(|since| since.line),
            granted_line: line,
            promised_line: line,
            window_line: line,
            end_line: None,
            asked: asked.map_or(at, |asked| asked.at),
            queued: at_queued,
            queued_until: queued.and_then(|queued| queued.promised).unwrap_or(at_queued),
            granted: at,
            from: at,
            until: at,
            promised: at,
            ended: at,
            rare: fence.map(|fence| Box::new(Rare { fence: Some(fence), ..Rare::default() })),
        }
    }

    /// The client believes until then, and the service must honour it until `promised`: as long as is believed if that is not said.
    pub(super) fn confirm(&mut self, now: Moment, until: At, promised: Option<At>) {
        let Moment { at, line } = now;
        self.said_promise |= promised.is_some();
        if let Some(promised) = promised
            && promised < until
        {
            self.rare().beyond.get_or_insert(Beyond { until, promised, line });
        }
        let owed = promised.unwrap_or(until);
        if owed > self.promised {
            (self.promised, self.promised_line) = (owed, line);
        }
        let ended_line = self.end_line;
        let last = self.rare.as_mut().and_then(|rare| rare.windows.last_mut());
        let (from, end, end_line) = match last {
            Some(last) => (&mut last.from, &mut last.until, &mut last.line),
            None => (&mut self.from, &mut self.until, &mut self.window_line),
        };
        // Whoever believes after it said that it does not is taken at its last word.
        let goes_on = ended_line.is_none_or(|ended| *end_line > ended);
        if goes_on && (at <= *end || *end <= *from) {
            // Belief goes on, or there was none yet.
            if *end <= *from && at > *end {
                *from = at;
            }
            if until > *end {
                (*end, *end_line) = (until, line);
            }
        } else if until > at {
            self.rare().windows.push(Window { from: at, until, line });
        }
    }

    /// Only the first ending counts; a later one ends belief that came back in between.
    pub(super) fn end_with(&mut self, how: End, now: Moment) {
        let Some(ended) = self.end_line else {
            (self.how, self.ended, self.end_line) = (how, now.at, Some(now.line));
            return;
        };
        let back = self.rare.as_mut().and_then(|rare| rare.windows.last_mut());
        if let Some(back) = back.filter(|back| back.line > ended) {
            back.until = back.until.min(now.at);
        }
    }

    fn rare(&mut self) -> &mut Rare {
        self.rare.get_or_insert_default()
    }

    /// When the client was about to ask, if that is known.
    pub fn asked(&self) -> Option<Moment> {
        self.asked_line.map(|line| Moment { at: self.asked, line })
    }

    /// When the client was told that it stands in the queue.
    pub fn queued(&self) -> Option<Moment> {
        self.queued_line.map(|line| Moment { at: self.queued, line })
    }

    /// Until when its session cannot have been overdue while it stood there: for no time, if nobody said so.
    pub const fn queued_until(&self) -> At {
        self.queued_until
    }

    /// When the client was told that it holds it.
    pub const fn granted(&self) -> Moment {
        Moment { at: self.granted, line: self.granted_line }
    }

    /// Until when the service must honour it, and the line that follows from.
    pub const fn promised(&self) -> Moment {
        Moment { at: self.promised, line: self.promised_line }
    }

    /// How it ended, if it did.
    pub fn end(&self) -> Option<(End, Moment)> {
        self.end_line.map(|line| (self.how, Moment { at: self.ended, line }))
    }

    /// Whether the two exclude each other: not if both share, nor in two slots. Something without a slot excludes every slot.
    pub fn rivals(&self, other: &Self) -> bool {
        let apart = self.is_in_slot() && other.is_in_slot() && self.resource != other.resource;
        self.family == other.family && !apart && !(self.shared && other.shared)
    }

    pub(crate) fn is_in_slot(&self) -> bool {
        self.family != self.resource
    }

    /// The token that receivers compare.
    pub fn fence(&self) -> Token {
        self.rare.as_ref().and_then(|rare| rare.fence).unwrap_or(self.token)
    }

    /// Whether the client ever said what was promised.
    pub(crate) const fn is_promised(&self) -> bool {
        self.said_promise
    }

    pub(crate) fn beyond(&self) -> Option<Beyond> {
        self.rare.as_ref().and_then(|rare| rare.beyond)
    }

    /// The times in which the client believed. Belief that ran out, or ended, and was confirmed again makes two of them.
    pub fn windows(&self) -> impl Iterator<Item = Window> {
        let end = self.end().map(|(_, end)| end);
        let first = Window { from: self.from, until: self.until, line: self.window_line };
        let others = self.rare.iter().flat_map(|rare| rare.windows.iter().copied());
        let clipped = std::iter::once(first).chain(others);
        clipped
            .map(move |window| match end {
                // What reaches so far by an earlier line ends here; the lines of a client stand in order.
                Some(end) if window.line < end.line => Window { until: window.until.min(end.at), ..window },
                _ => window,
            })
            .filter(|window| window.from < window.until)
    }

    /// Until when nobody else may be granted it: as promised, unless the client or an operator ended it before.
    pub fn owed(&self) -> At {
        match self.end() {
            Some((End::GivenBack | End::Revoked, end)) => self.promised.min(end.at),
            _ => self.promised,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_million_of_them_fit() {
        assert!(size_of::<Grant>() <= 128, "{} bytes", size_of::<Grant>());
    }
}
