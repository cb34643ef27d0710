//! The whole interface as one text: every call of a script with its answer, byte for byte, in the order in which fields are written.
//!
//! Lines that begin with `>` are the script; what follows each is the answer. Keys, tokens, ids, revisions and lengths of time are replaced by names,
//! and a call may use the name of a key, token or session that an earlier answer gave. `LEASEHOLD_GOLDEN=write` writes the file anew; its diff is the review.

use std::fmt::Write as _;

use super::stage::Stage;

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/http/golden.txt");
/// Answers are broken at a comma after so many characters.
const WIDTH: usize = 150;

/// Fields whose values get a name that later calls can use.
const NAMED: [(&str, &str); 11] = [
    ("session_key", "KEY"),
    ("session", "SESSION"),
    ("to", "SESSION"),
    ("successor", "SESSION"),
    ("token", "TOKEN"),
    ("fence_token", "TOKEN"),
    ("taken_by", "TOKEN"),
    ("newest", "TOKEN"),
    ("address", "ADDRESS"),
    ("advertised", "ADDRESS"),
    ("found", "ADDRESS"),
];
/// Fields that differ from run to run.
const BLANKED: [&str; 27] = [
    "revision",
    "committed",
    "applied",
    "matched",
    "term",
    "request_id",
    "incarnation",
    "id",
    "leader_id",
    "pid",
    "version",
    "remaining_ms",
    "held_for_ms",
    "renewed_ago_ms",
    "age_ms",
    "waiting_for_ms",
    "began_ago_ms",
    "ended_ago_ms",
    "length_ms",
    "at_least_ms",
    "known_for_ms",
    "held_back_ms",
    "log_time_ms",
    "log_time_cut_ms",
    "ready_after_ms",
    "oldest",
    "instance",
];

#[derive(Default)]
struct Names(Vec<(String, String)>);

impl Names {
    /// The name of a value, the same for the same value.
    fn of(&mut self, kind: &str, value: &str) -> String {
        let known = self.0.iter().find(|(name, known)| name.starts_with(kind) && known == value);
        if let Some((name, _)) = known {
            return name.clone();
        }
        let count = self.0.iter().filter(|(name, _)| name.starts_with(kind)).count();
        let name = format!("{kind}{}", count + 1);
        self.0.push((name.clone(), value.to_owned()));
        name
    }

    /// A line of the script with values instead of names.
    fn filled(&self, line: &str) -> String {
        // The longest first: KEY1 is the beginning of KEY10.
        let mut names: Vec<_> = self.0.iter().collect();
        names.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
        names.into_iter().fold(line.to_owned(), |line, (name, value)| line.replace(name, value))
    }

    /// An answer with names instead of values.
    fn blanked(&mut self, json: &str) -> String {
        let mut text = String::new();
        let mut rest = json;
        while let Some((before, field, value, behind)) = next_scalar(rest) {
            let named = NAMED.iter().find(|(name, _)| *name == field);
            let plain = value.trim_matches('"');
            let shown = match named {
                Some((_, kind)) if value.starts_with('"') && plain != "0" => {
                    format!("\"{}\"", self.of(kind, plain))
                }
                _ if BLANKED.contains(&field) && value != "null" => "_".to_owned(),
                _ => value.to_owned(),
            };
            text.push_str(before);
            text.push_str(&shown);
            rest = behind;
        }
        text.push_str(rest);
        // Sentences name the token or the session last.
        for (name, value) in &self.0 {
            let word = if name.starts_with("TOKEN") { "token" } else { "session" };
            if name.starts_with("TOKEN") || name.starts_with("SESSION") {
                for end in ["\"", " ", ","] {
                    text = text.replace(&format!("{word} {value}{end}"), &format!("{word} {name}{end}"));
                }
            }
        }
        text
    }
}

/// The next `"field":value` with a value that is no object and no list: what is before the value, the field, the value, and what follows.
fn next_scalar(json: &str) -> Option<(&str, &str, &str, &str)> {
    let mut from = 0;
    while let Some(found) = json[from..].find("\":") {
        let (quote, start) = (from + found, from + found + 2);
        let field = json[..quote].rsplit('"').next()?;
        let end = match json.as_bytes().get(start)? {
            b'{' | b'[' => {
                from = start;
                continue;
            }
            b'"' => {
                let mut escaped = false;
                let close = json[start + 1..].find(|c| {
                    !std::mem::take(&mut escaped)
                        && (c == '"' || {
                            escaped = c == '\\';
                            false
                        })
                })?;
                start + close + 2
            }
            _ => start + json[start..].find([',', '}', ']'])?,
        };
        return Some((&json[..start], field, &json[start..end], &json[end..]));
    }
    None
}

fn wrapped(json: &str) -> String {
    let mut text = String::new();
    let mut width = 0;
    for part in json.split_inclusive(',') {
        if width > 0 && width + part.len() > WIDTH {
            text.push_str("\n ");
            width = 1;
        }
        text.push_str(part);
        width += part.len();
    }
    text
}

/// Plays one line: `METHOD TARGET [Header: value] [BODY]`.
fn play(stage: &Stage, names: &mut Names, line: &str) -> String {
    let filled = names.filled(line);
    let (method, rest) = filled.split_once(' ').expect("a method and a target");
    let (target, rest) = rest.split_once(' ').unwrap_or((rest, ""));
    let (header, body) = match rest.split_once(']') {
        Some((header, body)) if header.starts_with('[') && header.contains(": ") => {
            (&header[1..], body.trim_start())
        }
        _ => ("", rest),
    };
    let mut headers = vec!["Content-Type: application/json"];
    headers.extend((!header.is_empty()).then_some(header));
    let reply = stage.connect().ask(method, target, &headers, body.as_bytes());
    let mut told = reply.status.to_string();
    for name in ["content-type", "retry-after", "allow"] {
        if let Some(value) = reply.header(name) {
            write!(told, " {name}: {value}").expect("a string takes everything");
        }
    }
    let body = String::from_utf8(reply.body).expect("answers are text");
    format!("{told}\n{}\n", wrapped(&names.blanked(body.trim_end())))
}

#[test]
fn every_call_is_answered_as_recorded() {
    let recorded = std::fs::read_to_string(FILE).expect("the file is there");
    let stage = Stage::new();
    let mut names = Names::default();
    let mut played = String::new();
    for line in recorded.lines().take_while(|line| line.starts_with('#')) {
        writeln!(played, "{line}").expect("a string takes everything");
    }
    for line in recorded.lines().filter_map(|line| line.strip_prefix("> ")) {
        if let Some(what) = line.strip_prefix("until ") {
            // `until TARGET has TEXT`: for what takes a moment.
            let (target, text) = what.split_once(" has ").expect("until TARGET has TEXT");
            let target = names.filled(target);
            stage.until(what, || String::from_utf8_lossy(&stage.get(&target).body).contains(text));
            writeln!(played, "\n> {line}").expect("a string takes everything");
            continue;
        }
        write!(played, "\n> {line}\n{}", play(&stage, &mut names, line)).expect("a string takes everything");
    }
    if std::env::var_os("LEASEHOLD_GOLDEN").is_some_and(|word| word == "write") {
        std::fs::write(FILE, &played).expect("the file can be written");
    }
    assert!(played == recorded, "differs from {FILE}; LEASEHOLD_GOLDEN=write writes it anew:\n{played}");
}
