//! Holds what `gaps` and `history` tell against what the holders did, by their own records of the boot clock.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::Value;

use crate::place::{millis, now, number};
use crate::plain::Act;
use crate::scene::{Done, NAME, Scene};

/// A holder acts so often, and one more time may fall to a read of a clock.
const GRAIN_MS: u64 = 15;
/// A third of a ttl, as the library has it unless it is told otherwise.
const RENEWALS_PER_TTL: u64 = 3;
/// Shorter outages are in no log, one for each change of leader.
const OUTAGE_MS: u64 = 10;
/// What is held is told as of the last entry, and while a session lives that is as old as this at most.
const STEP_MS: u64 = 1_000;
/// What the greater length may exceed a stopwatch by, beside a renewal interval.
const ROOM_MS: u64 = 200;

/// One gap, or one silence that `gaps` does not tell.
#[derive(Debug)]
pub(crate) struct Row {
    stopwatch_ms: Option<u64>,
    at_least_ms: u64,
    at_most_ms: u64,
    said: String,
    pub(crate) wrong: Option<String>,
}

struct Judge<'a> {
    scene: &'a Scene,
    done: &'a [Done],
}

pub(crate) fn judge(scene: &Scene) -> Vec<Row> {
    let told = scene.json(&["gaps", NAME, "--min", "1ms", "--json"]);
    let done = scene.done();
    let judge = Judge { scene, done: &done };
    let mut acts: Vec<Act> = done.iter().flat_map(|done| done.acts.clone()).collect();
    acts.sort_unstable_by_key(|act| act.at);
    let gaps = told["names"][0]["gaps"].as_array().cloned().unwrap_or_default();
    let mut gaps: BTreeMap<(u64, u64), Value> =
        gaps.into_iter().rev().filter_map(|gap| Some((sides(&gap)?, gap))).collect();
    let mut rows = Vec::new();
    // On a busy machine a holder is silent for a moment now and then: what is told of it is its longest silence.
    let mut longest: BTreeMap<u64, u64> = BTreeMap::new();
    for pair in acts.windows(2).filter(|pair| pair[0].token == pair[1].token) {
        let silent = longest.entry(pair[0].token).or_default();
        *silent = (*silent).max(pair[1].at - pair[0].at);
    }
    for pair in acts.windows(2) {
        let (before, after) = (pair[0], pair[1]);
        let (silent, passed_on) = (millis(after.at - before.at), before.token != after.token);
        let late = scene.lateness.between(before.at, after.at);
        if before.token > after.token {
            rows.push(Row::failed("two acted at once"));
        }
        if !passed_on && (silent <= ROOM_MS || longest[&before.token] > after.at - before.at) {
            continue;
        }
        match gaps.remove(&(before.token, after.token)) {
            Some(gap) => rows.push(judge.row(&gap, before, after)),
            // One that stood still for less than its ttl held the name all the time.
            None => {
                let most = if passed_on { 2 * GRAIN_MS } else { scene.ttl_ms + ROOM_MS };
                let wrong = (silent > most + late).then(|| "no gap is told".to_owned());
                let said = format!("(no gap from token {} to {})", before.token, after.token);
                rows.push(Row { stopwatch_ms: Some(silent), at_least_ms: 0, at_most_ms: 0, said, wrong });
            }
        }
    }
    for ((before, after), gap) in gaps {
        let acted = |token: u64| acts.iter().any(|act| act.token == token);
        // A holder that could not renew for a moment acted on, or hardly stopped: no more is told than that.
        let told = gap[if before == after { "at_least_ms" } else { "length_ms" }].as_u64();
        if acted(before) && acted(after) && told > Some(2 * GRAIN_MS + ROOM_MS) {
            rows.push(Row::failed(&format!("nobody was silent from token {before} to {after}: {gap}")));
        }
    }
    rows.extend(judge.history().into_iter().map(|why| Row::failed(&why)));
    if rows.is_empty() {
        rows.push(Row::failed("no gap was staged"));
    }
    rows
}

impl Judge<'_> {
    fn of(&self, token: u64) -> Option<&Done> {
        self.done.iter().find(|done| done.grant.is_some_and(|grant| grant.token == token))
    }

    fn row(&self, gap: &Value, before: Act, after: Act) -> Row {
        let number = |key: &str| gap[key].as_u64().unwrap_or_else(|| panic!("{key} in {gap}"));
        let (at_least, at_most) = (number("at_least_ms"), number("length_ms"));
        let stopwatch = millis(after.at - before.at);
        let interval = self.scene.ttl_ms / RENEWALS_PER_TTL;
        let late = self.scene.lateness.between(before.at - interval * 1_000_000, after.at);
        // A holder that was kept from the store acted on until its deadline, and the store cannot know it.
        let ttl = self.scene.ttl_ms * 1_000_000;
        let cut_off = self.scene.cut_off.borrow();
        let cut_off = cut_off.iter().find(|at| **at <= before.at && before.at - **at < ttl);
        let alone = cut_off.map_or(0, |at| millis(before.at - at));
        let said = gap["message"].as_str().unwrap_or_default().to_owned();
        let wrong = if at_least > stopwatch + GRAIN_MS {
            Some("the lesser is too long".to_owned())
        } else if at_most + GRAIN_MS + late < stopwatch {
            Some(format!("the greater is too short, {late} ms late"))
        } else if at_most > stopwatch + interval + ROOM_MS + alone + late {
            Some(format!("the greater is too long, {alone} ms alone and {late} ms late"))
        } else {
            self.names(gap, before.token, after.token, &said)
        };
        Row { stopwatch_ms: Some(stopwatch), at_least_ms: at_least, at_most_ms: at_most, said, wrong }
    }

    /// What is wrong with whom it names.
    fn names(&self, gap: &Value, before: u64, after: u64, said: &str) -> Option<String> {
        for (side, token) in [("before", before), ("after", after)] {
            let label = &self.of(token).expect("who acted was granted it").label;
            if gap[side]["label"] != label.as_str() || !said.contains(&format!("{label} (token {token})")) {
                return Some(format!("{label} with token {token} is not named {side} it: {gap}"));
            }
        }
        let ending = self.of(before)?.ending;
        let told = gap["before"]["ending"]["ended"].as_str().unwrap_or("nothing");
        let right = before == after || ending.is_empty() || ending.contains(&told);
        (!right).then(|| format!("it ended as {told}, and {ending:?} was staged"))
    }

    /// What is wrong with the past: each lease begins when its holder knew of it, and ends when it can have acted no more, at the earliest.
    fn history(&self) -> Vec<String> {
        let asked = now();
        let told = self.scene.json(&["history", NAME, "--json"]);
        let answered = now();
        let all = |key: &str| told[key].as_array().cloned().unwrap_or_default();
        let mut wrong = Vec::new();
        for lease in all("holders").into_iter().chain(all("history")) {
            let token = lease["token"].as_str().map(number).expect("a lease has a token");
            let Some(done) = self.of(token) else {
                wrong.push(format!("nobody was granted {lease}"));
                continue;
            };
            if lease["label"] != done.label.as_str() {
                wrong.push(format!("token {token} was granted to {}: {lease}", done.label));
            }
            let (held, ago) = (lease["held_for_ms"].as_u64().unwrap(), lease["ended_ago_ms"].as_u64());
            let (from, to) = (held + ago.unwrap_or(0), ago.unwrap_or(0));
            let granted = done.grant.expect("it was found by its grant").at;
            let late = self.scene.lateness.between(granted - ROOM_MS * 1_000_000, answered);
            let range = |at: u64| (millis(asked - at), millis(answered - at) + ROOM_MS + late);
            let (least, most) = range(granted);
            let step = if ago.is_none() { STEP_MS } else { 0 };
            if from + GRAIN_MS + OUTAGE_MS + step + late < least || from > most {
                wrong.push(format!(
                    "history: token {token} began {from} ms ago, and was granted {least} ms ago"
                ));
            }
            let last = done.acts.last().map_or(granted, |act| act.at);
            let (_, most) = range(last);
            if to > most && lease["ended"] != "revoked" {
                wrong.push(format!("history: token {token} ended {to} ms ago, and acted {most} ms ago"));
            }
        }
        wrong
    }
}

impl Row {
    pub(crate) fn failed(why: &str) -> Self {
        let wrong = Some(why.to_owned());
        Self { stopwatch_ms: None, at_least_ms: 0, at_most_ms: 0, said: String::new(), wrong }
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stopwatch = self.stopwatch_ms.map_or("-".to_owned(), |millis| millis.to_string());
        let wrong = self.wrong.as_deref().map_or(String::new(), |why| format!("WRONG: {why}"));
        write!(f, "{stopwatch} | {} | {} | {} | {wrong}", self.at_least_ms, self.at_most_ms, self.said)
    }
}

/// The tokens on both sides of a gap that is over.
fn sides(gap: &Value) -> Option<(u64, u64)> {
    let token = |side: &str| gap[side]["token"].as_str().map(number);
    gap["ended_ago_ms"].as_u64()?;
    Some((token("before")?, token("after")?))
}
