//! Checkers: pure functions over a history, one invariant in each file, each tried on a planted violation.
//!
//! A checker never guesses: where a history leaves open in which order two things happened, or whether a call took effect, it
//! takes the order in which nothing is wrong. So a violation that is reported is one.

pub mod exclusion;
pub mod fence;
pub mod healing;
pub mod kept;
pub mod queue;
pub mod renewals;
pub mod story;
pub mod tokens;

use std::time::Duration;

use crate::history::Line;

/// What a checker found.
#[derive(Debug, Clone, PartialEq, Eq)]
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

/// Which rules hold in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// The shortest ttl of the run.
    pub ttl: Duration,
    /// Clocks of the service keep their bound, and no state is set back: leases are honoured for their whole ttl.
    pub honoured: bool,
    /// Clocks keep their bound and are not stopped: windows of belief never overlap.
    pub exclusion: bool,
    /// Within this time of the healing every client is served.
    pub healing: Option<Duration>,
}

/// All checkers that apply.
pub fn all(lines: &[Line], rules: Rules) -> Vec<Verdict> {
    let story = story::Story::of(lines);
    let mut verdicts = vec![tokens::check(&story), queue::check(&story, rules.ttl), fence::check(&story)];
    if rules.exclusion {
        verdicts.push(exclusion::check(&story));
    }
    if rules.honoured {
        verdicts.extend([renewals::check(&story), kept::check(&story)]);
    }
    if let Some(bound) = rules.healing {
        verdicts.push(healing::check(&story, bound));
    }
    verdicts
}

/// A short history for the tests of the checkers.
#[cfg(test)]
pub(crate) mod planted {
    use leasehold::Token;

    use crate::history::{At, Call, ClientId, Line, What};

    /// The ttl of all leases below, in milliseconds; belief ends 100 earlier.
    pub(crate) const TTL: u64 = 1000;

    pub(crate) fn ms(at: u64) -> At {
        At(at * 1_000_000)
    }

    pub(crate) fn asked(at: u64, client: u32, resource: &str) -> Line {
        let what = What::Asked { client: ClientId(client), call: Call(client), resource: resource.into() };
        Line { at: ms(at), what }
    }

    pub(crate) fn queued(at: u64, client: u32) -> Line {
        Line { at: ms(at), what: What::Queued { client: ClientId(client), call: Call(client) } }
    }

    /// Granted, and last confirmed by something sent just then.
    pub(crate) fn granted(at: u64, client: u32, resource: &str, token: u64) -> Line {
        let what = What::Granted {
            client: ClientId(client),
            call: Call(client),
            resource: resource.into(),
            token: Token::from_u64(token),
            until: ms(at + TTL - 100),
            promised: ms(at + TTL),
        };
        Line { at: ms(at), what }
    }

    pub(crate) fn confirmed(at: u64, client: u32, token: u64) -> Line {
        let what = What::Confirmed {
            client: ClientId(client),
            token: Token::from_u64(token),
            until: ms(at + TTL - 100),
            promised: ms(at + TTL),
        };
        Line { at: ms(at), what }
    }

    pub(crate) fn giving_back(at: u64, client: u32, token: u64) -> Line {
        let what = What::GivingBack { client: ClientId(client), token: Token::from_u64(token) };
        Line { at: ms(at), what }
    }

    pub(crate) fn wrote(
        asked: u64,
        at: u64,
        client: u32,
        resource: &str,
        token: u64,
        accepted: bool,
    ) -> Line {
        let (client, token) = (ClientId(client), Token::from_u64(token));
        let refused = (!accepted).then(|| "not-current: planted".to_owned());
        let what = What::Wrote { client, resource: resource.into(), token, asked: ms(asked), refused };
        Line { at: ms(at), what }
    }

    pub(crate) fn lost(at: u64, client: u32, token: u64, revoked: bool) -> Line {
        let (client, token) = (ClientId(client), Token::from_u64(token));
        Line { at: ms(at), what: What::Lost { client, token, why: "planted".into(), revoked } }
    }

    pub(crate) fn looked(asked: u64, at: u64, resource: &str, token: Option<u64>) -> Line {
        let token = token.map(Token::from_u64);
        Line { at: ms(at), what: What::Looked { asked: ms(asked), resource: resource.into(), token } }
    }

    pub(crate) fn all_healed(at: u64) -> Line {
        Line { at: ms(at), what: What::AllHealed }
    }
}
