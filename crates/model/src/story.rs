//! A counterexample for people: one line per step, and behind it who believes what.

use std::fmt::Write as _;

use stateright::Path;

use crate::client::Answer;
use crate::protocol::{Action, Tail};
use crate::state::State;
use crate::table::{CLIENTS, Command};

/// Tells a path step by step.
pub fn tell(path: Path<State, Action>) -> String {
    let mut story = String::new();
    let mut action_before: Option<Action> = None;
    for (state, next) in path.into_vec() {
        let step = match &action_before {
            None => format!("clocks: nodes {:?}, clients {:?}", state.rates.nodes, state.rates.clients),
            Some(action) => words(action),
        };
        let beliefs: Vec<String> = (0..CLIENTS)
            .filter_map(|client| Some(format!("c{client} believes {}", state.belief(client)?)))
            .collect();
        let line = format!(
            "tick {}, log {:>2}  {step:<52} {}",
            state.now.0,
            state.table.last_at.0,
            beliefs.join(", ")
        );
        writeln!(story, "{}", line.trim_end()).expect("a string takes every line");
        action_before = next;
    }
    story
}

fn words(action: &Action) -> String {
    match action {
        Action::Tick => "time passes".into(),
        Action::Renew(client) => format!("{client} sends a renewal"),
        Action::Release(client) => format!("{client} sends a release"),
        Action::Restart(client) => format!("{client} restarts and sends an open"),
        Action::Hear(client, answer) => match answer {
            Answer::Opened => format!("{client} hears that its session is open"),
            Answer::Renewed(number) => format!("{client} hears that renewal {number} is confirmed"),
            Answer::Granted(token) => format!("{client} hears of its lease {token}"),
            Answer::Released(token) => format!("{client} hears that {token} is released"),
        },
        Action::Arrive(write) => format!("the write of {} with {} arrives", write.client, write.token),
        Action::TakeIn { node, request, again } => {
            let again = if *again { ", which will come again" } else { "" };
            format!("n{node} appends {}{again}", request_words(request))
        }
        Action::Expire(node) => format!("n{node} appends the expiry of the lease it finds overdue"),
        Action::Time(node) => format!("n{node} appends the time"),
        Action::Commit => "the first entry behind the committed is committed".into(),
        Action::Lead { node, tail: Tail::First(kept) } => format!("n{node} leads, {kept} of the tail kept"),
        Action::Lead { node, tail: Tail::Revived } => format!("n{node} leads, its own tail revived"),
        Action::Backup => "a backup is taken".into(),
        Action::Restore => "the backup is restored".into(),
    }
}

fn request_words(request: &Command) -> String {
    match request {
        Command::Open { session, sent } => format!("the open of {session} sent at {}", sent.0),
        Command::Acquire { session } => format!("the acquire of {session}"),
        Command::Renew { session, number, sent } => {
            format!("renewal {number} of {session} sent at {}", sent.0)
        }
        Command::Release { session, token } => format!("the release of {token} by {session}"),
        Command::Expire { token } => format!("the expiry of {token}"),
        Command::Time => "the time".into(),
    }
}
