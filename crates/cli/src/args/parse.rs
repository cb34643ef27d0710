//! Reads the command line of this process.

use std::time::Duration;

use clap::builder::Resettable;
use clap::parser::ValueSource;
use clap::{ArgMatches, Command as Parser, CommandFactory, FromArgMatches};

use super::groups::{finished, uses_store};
use super::{Cli, Command, FenceCommand, fence, mistakes, run};
use crate::exit::Exit;

/// Reads it. What cannot be understood is said, and becomes an exit code.
pub(crate) fn parse() -> Result<Cli, Exit> {
    let matches = finished(without_empty_variables(Cli::command())).try_get_matches();
    let matches = matches.map_err(|error| mistakes::say(&without_variable(error)))?;
    if let Some(why) = names_needless_store(&matches) {
        return Err(mistakes::say_plainly(&why));
    }
    let mut cli = Cli::from_arg_matches(&matches).map_err(|error| mistakes::say(&error))?;
    cli.note_variables(&matches);
    // No time at all would be told as such: "no connection for 0ns".
    cli.global.timeout = cli.global.timeout.max(Duration::from_millis(1));
    Ok(cli)
}

/// Options that name receivers: of which command, as which argument, and the variable that is read if none is given.
const RECEIVERS: [(&[&str], &str, &str); 3] = [
    (&["run"], "seal_at", run::SEAL_AT),
    (&["hold"], "seal_at", run::SEAL_AT),
    (&["fence", "check"], "receivers", fence::RECEIVERS),
];

/// A variable that is set to nothing is not set: so is one that a script has left empty.
fn without_empty_variables(command: Parser) -> Parser {
    let empty = |variable: &str| std::env::var_os(variable).is_some_and(|value| value.is_empty());
    let receivers = RECEIVERS.into_iter().filter(|(_, _, variable)| empty(variable));
    receivers.fold(command, |command, (path, argument, _)| without_variable_of(command, path, argument))
}

fn without_variable_of(command: Parser, path: &[&str], argument: &str) -> Parser {
    match path.split_first() {
        Some((word, below)) => {
            command.mut_subcommand(*word, |command| without_variable_of(command, below, argument))
        }
        None => command.mut_arg(argument, |argument| argument.env(Resettable::Reset)),
    }
}

impl Cli {
    /// Notes which receivers come from a variable: the reader of an error about one has not typed it.
    fn note_variables(&mut self, matches: &ArgMatches) {
        let variable = RECEIVERS.into_iter().find_map(|(path, argument, variable)| {
            let own = path.iter().try_fold(matches, |matches, word| matches.subcommand_matches(word))?;
            (own.value_source(argument)? == ValueSource::EnvVariable).then_some(variable)
        });
        match &mut self.command {
            Command::Run(args) => args.acquire.variable = variable,
            Command::Hold(args) => args.acquire.variable = variable,
            Command::Fence(FenceCommand::Check(args)) => args.variable = variable,
            _ => {}
        }
    }
}

/// The same mistake as if no store were named by a variable: the parser shows everything that was given in its usage line, also for commands
/// that have no store.
fn without_variable(error: clap::Error) -> clap::Error {
    // A help text names the variable, and is no mistake.
    if !error.use_stderr() {
        return error;
    }
    let command = Cli::command().mut_arg("store", |store| store.env(Resettable::Reset));
    finished(without_empty_variables(command)).try_get_matches().err().unwrap_or(error)
}

/// What is said when a command that uses no store is given one on the command line: it would do its work elsewhere than its user thinks. A
/// variable that is set for other commands does no harm.
fn names_needless_store(matches: &ArgMatches) -> Option<String> {
    let (mut path, mut own) = (Vec::new(), matches);
    while let Some((word, below)) = own.subcommand() {
        path.push(word);
        own = below;
    }
    let path = path.join(" ");
    if uses_store(&path) || own.value_source("store") != Some(ValueSource::CommandLine) {
        return None;
    }
    Some(match path.as_str() {
        "serve" => {
            "serve takes no --store; name its directory with --data, and its address with --listen".to_owned()
        }
        _ => format!("{path} uses no store; leave --store out"),
    })
}
