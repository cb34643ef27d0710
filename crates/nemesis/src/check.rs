//! What a run is judged by: the checkers of histories that anybody can use, and one that knows when things were healed.

pub mod healing;

use std::time::Duration;

use leasehold_history::check::{self as history, Knowledge};
use leasehold_history::{LineNumber, Story};
use serde::Serialize;

use crate::history::Line;

/// What a checker found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Verdict {
    /// What was checked.
    pub name: &'static str,
    /// How many things were compared: a checker that compared nothing says nothing.
    pub compared: usize,
    /// What is wrong, in words, with tokens and times.
    pub violations: Vec<String>,
}

impl Verdict {
    /// Whether nothing is wrong.
    pub const fn is_good(&self) -> bool {
        self.violations.is_empty()
    }
}

impl From<history::Verdict> for Verdict {
    fn from(verdict: history::Verdict) -> Self {
        let shown = verdict.violations.len();
        let mut violations: Vec<String> =
            verdict.violations.into_iter().map(|violation| violation.words).collect();
        let more = usize::try_from(verdict.found).unwrap_or(usize::MAX) - shown;
        violations.extend((more > 0).then(|| format!("{more} more are not kept")));
        let compared = usize::try_from(verdict.judged).unwrap_or(usize::MAX);
        Self { name: verdict.check.about, compared, violations }
    }
}

/// Which rules hold in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// Clocks of the service keep their bound, and no state is set back: leases are honoured for their whole ttl.
    pub honoured: bool,
    /// Clocks keep their bound and are not stopped: windows of belief never overlap.
    pub exclusion: bool,
    /// Within this time of the healing every client is served.
    pub healing: Option<Duration>,
}

/// A history put together.
///
/// # Panics
/// When lines of one client are not in their order, which the recorder sees to.
pub fn story(lines: &[Line<'_>]) -> Story {
    let mut story = Story::default();
    for (place, line) in lines.iter().enumerate() {
        let number = u64::try_from(place).ok().and_then(|place| LineNumber::new(place + 1));
        let number = number.expect("a history that fits into memory has few enough lines");
        story.take(number, line).expect("clients record in order, by one clock");
    }
    story
}

/// All checkers that apply.
pub fn all(lines: &[Line<'_>], rules: Rules) -> Vec<Verdict> {
    let mut verdicts = of_story(&story(lines), rules);
    if let Some(bound) = rules.healing {
        verdicts.push(healing::check(lines, bound));
    }
    verdicts
}

/// All checkers that apply and need no more than a story.
pub fn of_story(story: &Story, rules: Rules) -> Vec<Verdict> {
    let knowledge = Knowledge { skew: None };
    let mut verdicts = vec![
        history::tokens::check(story, knowledge),
        history::queue::check(story, knowledge),
        history::writes::check(story, knowledge),
        history::claims::check(story),
    ];
    if rules.exclusion {
        verdicts.push(history::exclusion::check(story, knowledge));
    }
    if rules.honoured {
        verdicts.extend([history::renewals::check(story, knowledge), history::kept::check(story, knowledge)]);
    }
    verdicts.into_iter().map(Verdict::from).collect()
}

/// A short history for the tests of the checkers.
#[cfg(test)]
pub(crate) mod planted {
    use leasehold::Token;

    use crate::history::{self, At, ClientId, Event, Line};

    /// The ttl of all leases below, in milliseconds; belief ends 100 earlier.
    pub(crate) const TTL: u64 = 1000;

    pub(crate) fn ms(at: u64) -> At {
        At(at * 1_000_000)
    }

    pub(crate) fn asked(at: u64, client: u32, resource: &str) -> Line<'static> {
        Line::new(ms(at), history::asked(ClientId(client), client, resource))
    }

    /// Granted, and last confirmed by something sent just then.
    pub(crate) fn granted(at: u64, client: u32, resource: &str, token: u64) -> Line<'static> {
        let (token, until, promised) = (Token::from_u64(token), ms(at + TTL - 100), ms(at + TTL));
        Line::new(ms(at), history::granted(ClientId(client), client, resource, token, until, promised))
    }

    pub(crate) fn confirmed(at: u64, client: u32, token: u64) -> Line<'static> {
        let (client, token) = (ClientId(client).name(), Token::from_u64(token));
        let (until, promised) = (ms(at + TTL - 100), Some(ms(at + TTL)));
        Line::new(ms(at), Event::Confirmed { client, token, until, promised })
    }

    pub(crate) fn giving_back(at: u64, client: u32, token: u64) -> Line<'static> {
        let (client, token) = (ClientId(client).name(), Token::from_u64(token));
        Line::new(ms(at), Event::GivingBack { client, token })
    }

    pub(crate) fn looked(asked: u64, at: u64, resource: &str, token: Option<u64>) -> Line<'static> {
        let (asked, resource, token) = (ms(asked), resource.to_owned().into(), token.map(Token::from_u64));
        Line::new(ms(at), Event::Looked { asked, resource, token })
    }

    pub(crate) fn all_healed(at: u64) -> Line<'static> {
        Line::new(ms(at), Event::AllHealed)
    }
}
