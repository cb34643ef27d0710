//! The checkers walk histories in order and keep little; here they are compared with definitions that look at every pair.

use std::time::Duration;

use leasehold_history::check::{self, Knowledge, Verdict};
use leasehold_history::{At, End, Grant, Story, read};
use proptest::prelude::*;

/// A lease in the life of a client: all lengths in milliseconds.
#[derive(Debug, Clone)]
struct Turn {
    client: u8,
    pause: u64,
    /// When it is queued, and how much of its ttl is over then.
    waits: Option<(u64, u64)>,
    asks_for: u64,
    resource: u8,
    slot: Option<u8>,
    token: u64,
    shared: bool,
    ttl: u64,
    renewals: Vec<u64>,
    held: u64,
    end: Option<&'static str>,
    /// How long after that it is confirmed once more.
    back: Option<u64>,
}

fn turn() -> impl Strategy<Value = Turn> {
    let asking = (0..4_u8, 0..300_u64, proptest::option::of((1..40_u64, 0..400_u64)), 1..60_u64);
    let slot = proptest::option::weighted(0.3, 0..2_u8);
    let lease = (0..2_u8, slot, 1..40_u64, proptest::bool::weighted(0.2), 50..400_u64);
    let ends = prop_oneof![
        4 => Just(Some("giving-back")),
        1 => Just(Some("lost")),
        1 => Just(Some("revoked")),
        1 => Just(Some("restored")),
        1 => Just(None),
    ];
    let back = proptest::option::weighted(0.1, 1..50_u64);
    let holding = (proptest::collection::vec(10..300_u64, 0..3), 0..200_u64, ends, back);
    (asking, lease, holding).prop_map(|(asking, lease, holding)| {
        let ((client, pause, waits, asks_for), (resource, slot, token, shared, ttl)) = (asking, lease);
        let (renewals, held, end, back) = holding;
        Turn { client, pause, waits, asks_for, resource, slot, token, shared, ttl, renewals, held, end, back }
    })
}

/// Lines with the time of each. Even clients may have another clock than odd ones.
fn lines(turns: &[Turn], clocks: bool) -> Vec<(u64, String)> {
    let mut now = [0_u64; 4];
    let mut lines = Vec::new();
    for turn in turns {
        let clock = if clocks { turn.client % 2 } else { 0 };
        let mut say = |at: u64, what: &str, rest: String| {
            let who = format!(r#""client":{},"clock":{clock}"#, turn.client);
            lines.push((at, format!(r#"{{"at_ns":{},"what":"{what}",{who}{rest}}}"#, at * 1_000_000)));
        };
        let at = &mut now[usize::from(turn.client)];
        let (resource, token) = (format!(r#","resource":"r{}""#, turn.resource), turn.token);
        let slot = turn.slot.map_or(String::new(), |slot| format!("#{slot}"));
        let granted = format!(r#","resource":"r{}{slot}""#, turn.resource);
        let held = |at: u64| {
            let promised = (at + turn.ttl) * 1_000_000;
            let until = promised.saturating_sub(turn.ttl * 100_000);
            format!(r#","token":"{token}","until_ns":{until},"promised_ns":{promised}"#)
        };
        *at += turn.pause;
        say(*at, "asked", resource.clone());
        if let Some((waits, over)) = turn.waits {
            *at += waits;
            let promised = (*at + turn.ttl).saturating_sub(over) * 1_000_000;
            say(*at, "queued", format!(r#","promised_ns":{promised}"#));
        }
        *at += turn.asks_for;
        say(*at, "granted", format!(r#"{granted}{},"shared":{}"#, held(*at), turn.shared));
        for renewal in &turn.renewals {
            *at += renewal;
            say(*at, "confirmed", held(*at));
        }
        *at += turn.held;
        let of_token = format!(r#","token":"{token}""#);
        match turn.end {
            Some(how @ ("revoked" | "restored")) => say(*at, "lost", format!(r#"{of_token},"{how}":true"#)),
            Some(end) => say(*at, end, of_token),
            None => {}
        }
        if let Some(back) = turn.back {
            *at += back;
            say(*at, "confirmed", held(*at));
        }
        *at += 1;
    }
    lines
}

fn story(lines: &[(u64, String)]) -> Story {
    let text: Vec<&str> = lines.iter().map(|(_, text)| text.as_str()).collect();
    let mut story = Story::default();
    read(text.join("\n").as_bytes(), |number, line| story.take(number, line))
        .expect("a history that can be read");
    story
}

const SKEW: Duration = Duration::from_millis(20);

/// Whether one came before another for certain.
fn before(one: (&Grant, At), other: (&Grant, At)) -> bool {
    let slack = if one.0.clock == other.0.clock { Duration::ZERO } else { SKEW };
    one.1.plus(slack) < other.1
}

fn pairs(story: &Story) -> impl Iterator<Item = (&Grant, &Grant)> {
    let all = &story.grants;
    all.iter().enumerate().flat_map(move |(place, one)| {
        let others = all.iter().enumerate().filter(move |(other, _)| *other != place);
        others.map(move |(_, other)| (one, other))
    })
}

/// By their names, and not by what the story made of them.
fn rivals(story: &Story, one: &Grant, other: &Grant) -> bool {
    let [first, second] = [one, other].map(|grant| story.resource(grant.resource));
    let is_part = |whole: &str, part: &str| part.split('#').next() == Some(whole);
    (first == second || is_part(first, second) || is_part(second, first)) && !(one.shared && other.shared)
}

fn overlap(one: &Grant, other: &Grant) -> bool {
    one.windows().any(|first| {
        other.windows().any(|second| {
            before((one, first.from), (other, second.until))
                && before((other, second.from), (one, first.until))
        })
    })
}

fn both_owed(one: &Grant, other: &Grant) -> bool {
    before((one, one.granted().at), (other, other.owed()))
        && before((other, other.granted().at), (one, one.owed()))
}

fn falls(one: &Grant, other: &Grant) -> bool {
    let asked = other.asked().map(|asked| asked.at);
    let later = asked.is_some_and(|asked| before((one, one.granted().at), (other, asked)));
    one.token == other.token || (later && one.token > other.token)
}

fn passed(one: &Grant, other: &Grant) -> bool {
    let (Some(queued), Some(asked)) = (one.queued(), other.asked()) else { return false };
    let alive = one.granted().at < one.queued_until();
    let first = before((one, queued.at), (other, asked.at));
    one.family == other.family && alive && first && one.token > other.token
}

fn is_violated(verdicts: &[Verdict], name: &str) -> bool {
    verdicts.iter().any(|verdict| verdict.check.name == name && !verdict.is_good())
}

/// What is expected of each checker that compares grants.
fn expected(story: &Story) -> [(&'static str, bool); 5] {
    let any = |wrong: fn(&Grant, &Grant) -> bool| pairs(story).any(|(one, other)| wrong(one, other));
    let any_rivals = |wrong: fn(&Grant, &Grant) -> bool| {
        pairs(story).any(|(one, other)| rivals(story, one, other) && wrong(one, other))
    };
    let lost = |grant: &Grant| {
        grant.end().is_some_and(|(how, end)| how == End::Lost && end.at < grant.promised().at)
    };
    [
        ("exclusion", any_rivals(overlap)),
        ("renewals", any_rivals(both_owed)),
        ("token-order", any(falls)),
        ("queue", any(passed)),
        ("kept", story.grants.iter().any(lost)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_checker_finds_what_the_definition_finds(turns in proptest::collection::vec(turn(), 1..7)) {
        let story = story(&lines(&turns, false));
        let verdicts = check::all(&story, Knowledge::default());
        for (name, wrong) in expected(&story) {
            prop_assert_eq!(is_violated(&verdicts, name), wrong, "{}: {:?}", name, verdicts);
        }
    }

    /// Of two clocks nobody is accused of what may not have been, and nobody hides behind another.
    #[test]
    fn of_two_clocks_a_checker_finds_what_is_certain(turns in proptest::collection::vec(turn(), 1..7)) {
        let story = story(&lines(&turns, true));
        let verdicts = check::all(&story, Knowledge { skew: Some(SKEW) });
        for (name, wrong) in expected(&story) {
            prop_assert_eq!(is_violated(&verdicts, name), wrong, "{}: {:?}", name, verdicts);
        }
    }

    /// Files of several programs may be put behind each other, or be merged by time.
    #[test]
    fn the_order_of_clients_in_a_file_does_not_matter(turns in proptest::collection::vec(turn(), 1..7)) {
        let mut by_time = lines(&turns, false);
        let behind_each_other = by_time.clone();
        by_time.sort_by_key(|(at, _)| *at);
        let found = |lines: &[(u64, String)]| {
            let verdicts = check::all(&story(lines), Knowledge::default());
            verdicts.into_iter().map(|verdict| (verdict.check.name, verdict.judged, verdict.found)).collect::<Vec<_>>()
        };
        prop_assert_eq!(found(&by_time), found(&behind_each_other));
    }

    /// Whatever stands in a file is a history or a mistake in words, and no panic.
    #[test]
    fn any_bytes_are_judged_or_refused(
        turns in proptest::collection::vec(turn(), 1..4),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
    ) {
        let text: Vec<String> = lines(&turns, true).into_iter().map(|(_, text)| text).collect();
        let mut bytes = text.join("\n").into_bytes();
        for (place, byte) in changes {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        let mut story = Story::default();
        let told = read(&bytes[..], |number, line| story.take(number, line));
        check::all(&story, Knowledge { skew: Some(SKEW) });
        if let Err(error) = told {
            prop_assert!(error.to_string().starts_with("line "), "{}", error);
        }
    }
}
