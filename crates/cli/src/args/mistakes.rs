//! Mistakes in the command line, said in the one voice of this program: `leasehold: WHAT; WHAT TO DO`.

use std::error::Error as _;
use std::ffi::OsString;
use std::io::Write;

use clap::Command;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use super::groups::command;
use crate::exit::Exit;

/// What people look for that goes by another name here, and what they want with it.
const OTHER_WORDS: [(&[&str], &str); 16] = [
    (
        &["lock", "acquire", "elect", "campaign", "exec", "flock"],
        "to hold a name while a command runs: leasehold run NAME CMD",
    ),
    (&["unlock", "resign", "free"], "to ask the holder of a name to release it: leasehold release NAME"),
    (&["leader", "holder", "owner", "show"], "to see who holds a name: leasehold get NAME"),
    (
        &["renew", "refresh", "keepalive", "keep-alive"],
        "every holder renews its own lease; to hold a name: leasehold hold NAME",
    ),
    (&["steal", "kill", "break"], "to end the lease of a dead holder: leasehold revoke NAME --reason TEXT"),
    (&["ls", "locks", "leases"], "to list the names that are held: leasehold list"),
    (&["members", "nodes"], "to see the nodes of a service: leasehold cluster status"),
    (&["server", "start", "daemon"], "to serve leases to many machines: leasehold serve"),
    (&["check"], "to see whether a token is current: leasehold get NAME --token TOKEN"),
    (&["sessions"], "to list the sessions: leasehold list --sessions"),
    (&["handover", "hand-over"], "to hand a lease to a waiting client: leasehold release NAME --to HOLDER"),
    (&["verify"], "to check a data directory or a backup: leasehold data verify DIR"),
    (&["restore"], "to make a data directory from a backup: leasehold data restore FILE --data DIR"),
    (&["recover"], "to continue with the one node that is left: leasehold data recover --data DIR"),
    (
        &["fence-check"],
        "to show the highest token of each receiver: leasehold fence check NAME --receiver URL",
    ),
    (&["fence-proxy", "proxy"], "to refuse stale tokens in front of a service: leasehold fence proxy --help"),
];

/// Says a mistake that the parser has found, or prints the help that was asked for. Gives the exit code.
pub(super) fn say(error: &clap::Error) -> Exit {
    if !error.use_stderr() {
        // A reader that is gone is no error of this program.
        let _ = error.print();
        return Exit::OK;
    }
    say_plainly(&words(error))
}

/// Says a mistake, and gives its exit code.
pub(super) fn say_plainly(why: &str) -> Exit {
    let _ = writeln!(std::io::stderr(), "leasehold: {}", why.trim_end());
    if is_run() { Exit::RUN_FAILED } else { Exit::MISUSE }
}

/// Whether `run` was asked for: its codes must not look like those of a command.
fn is_run() -> bool {
    let command = command();
    let matches = command.clone().ignore_errors(true).try_get_matches().ok();
    let named = matches.and_then(|matches| matches.subcommand_name().map(OsString::from));
    // The parser finds no command behind an option that it does not know.
    let first = || std::env::args_os().skip(1).find(|word| command.find_subcommand(word).is_some());
    named.or_else(first).is_some_and(|name| name == "run")
}

fn words(error: &clap::Error) -> String {
    match (error.kind(), error.source()) {
        // One line, and never the whole of a value that may be a hundred kilobytes long.
        (ErrorKind::ValueValidation, Some(why)) => of_value(error, &why.to_string()),
        (ErrorKind::InvalidSubcommand, _) => no_command(error),
        (ErrorKind::MissingRequiredArgument, _) => missing(error),
        // No command at all: the whole help.
        (ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand, _) => {
            format!("no command given\n\n{}", error.render())
        }
        _ => {
            let whole = error.render().to_string();
            whole.strip_prefix("error: ").unwrap_or(&whole).to_owned()
        }
    }
}

/// The option, its value, and what is wrong with it.
fn of_value(error: &clap::Error, why: &str) -> String {
    let argument = context(error, ContextKind::InvalidArg).unwrap_or_default();
    let argument = argument.split(' ').next().unwrap_or_default();
    let value = context(error, ContextKind::InvalidValue).unwrap_or_default();
    // Most reasons begin with the value.
    let joint = if !value.is_empty() && why.trim_start_matches('"').starts_with(&value) { "" } else { ":" };
    format!("{argument}{joint} {why}")
}

/// What is missing, and how the command is used.
fn missing(error: &clap::Error) -> String {
    let (names, are) = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::Strings(names)) if names.len() > 1 => (names.join(" and "), "are"),
        other => (other.map(ToString::to_string).unwrap_or_default(), "is"),
    };
    let usage = error.get(ContextKind::Usage).map(ToString::to_string).unwrap_or_default();
    format!("{names} {are} missing\n\n{usage}\n\nFor more information, try '--help'.")
}

fn no_command(error: &clap::Error) -> String {
    let word = context(error, ContextKind::InvalidSubcommand).unwrap_or_default();
    let usage = error.get(ContextKind::Usage).map(ToString::to_string).unwrap_or_default();
    let top = command();
    let group = usage.split(' ').find_map(|word| top.find_subcommand(word)).unwrap_or(&top);
    let is_other = |words: &[&str]| group.get_name() == top.get_name() && words.contains(&word.as_str());
    // What ends the lease of another is not to be typed by guesswork.
    let near = group.get_subcommands().filter(|near| !near.is_hide_set() && near.get_name() != "revoke");
    let mut near = near.map(Command::get_name).filter(|near| is_one_slip(&word, near));
    let next = match (OTHER_WORDS.iter().find(|(words, _)| is_other(words)), near.next()) {
        (Some((_, next)), _) => (*next).to_owned(),
        (None, Some(near)) => format!("there is {near:?}"),
        (None, None) => format!("see {} --help", group.get_bin_name().unwrap_or("leasehold")),
    };
    let word: String = word.chars().take(40).collect();
    format!("no command {word:?}; {next}")
}

/// Whether one letter is missing, too many or another, or two have changed places.
fn is_one_slip(typed: &str, name: &str) -> bool {
    let (typed, name): (Vec<char>, Vec<char>) = (typed.chars().collect(), name.chars().collect());
    let begin = typed.iter().zip(&name).take_while(|(a, b)| a == b).count();
    let (typed, name) = (&typed[begin..], &name[begin..]);
    let end = typed.iter().rev().zip(name.iter().rev()).take_while(|(a, b)| a == b).count();
    match (&typed[..typed.len() - end], &name[..name.len() - end]) {
        ([a, b], [c, d]) => (a, b) == (d, c),
        (typed, name) => typed.len() < 2 && name.len() < 2,
    }
}

fn context(error: &clap::Error, kind: ContextKind) -> Option<String> {
    match error.get(kind)? {
        ContextValue::String(text) => Some(text.clone()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(arguments: &[&str]) -> String {
        let error = command().try_get_matches_from([&["leasehold"], arguments].concat()).unwrap_err();
        words(&error)
    }

    #[test]
    fn words_of_other_systems_lead_to_the_command_that_does_it() {
        assert_eq!(
            said(&["lock", "a", "true"]),
            "no command \"lock\"; to hold a name while a command runs: leasehold run NAME CMD"
        );
        for word in ["acquire", "elect", "unlock", "leader", "renew", "restore", "check", "fence-check"] {
            assert!(said(&[word]).contains(": leasehold "), "{}", said(&[word]));
        }
        assert_eq!(said(&["hisotry"]), "no command \"hisotry\"; there is \"history\"");
        assert_eq!(said(&["rnu"]), "no command \"rnu\"; there is \"run\"");
        for word in ["qqqq", "man", "nosuch", "revok", "check-histor"] {
            assert_eq!(said(&[word]), format!("no command {word:?}; see leasehold --help"));
        }
        assert_eq!(said(&["data", "nosuch"]), "no command \"nosuch\"; see leasehold data --help");
        assert_eq!(
            said(&["--json", "cluster", "leader"]),
            "no command \"leader\"; see leasehold cluster --help"
        );
        assert_eq!(said(&["cluster", "prmote"]), "no command \"prmote\"; there is \"promote\"");
    }

    #[test]
    fn what_is_advised_is_there() {
        let command = command();
        for (words, next) in OTHER_WORDS {
            let advised = next.split("leasehold ").nth(1).unwrap();
            let name = advised.split(' ').next().unwrap();
            assert!(command.find_subcommand(name).is_some(), "{next}");
            for word in words {
                assert!(command.find_subcommand(word).is_none(), "{word} is a command");
            }
        }
    }

    #[test]
    fn a_value_is_named_with_its_option_and_its_limit() {
        assert_eq!(
            said(&["run", "a", "--wait", "48h", "true"]),
            "--wait 48h is above the maximum of 24h; choose a shorter one"
        );
        assert_eq!(
            said(&["run", "a", "-w", "10", "true"]),
            "--wait \"10\" is not a length of time; write it like 10s, 500ms or 2m"
        );
        assert!(said(&["get", "a#b"]).starts_with("<NAME>: "), "{}", said(&["get", "a#b"]));
    }

    #[test]
    fn what_is_missing_is_named_with_the_usage() {
        assert!(said(&["run"]).starts_with("<NAME> and <CMD>... are missing\n"), "{}", said(&["run"]));
        let said = said(&["run", "a"]);
        assert!(said.starts_with("<CMD>... is missing\n\nUsage: leasehold run "), "{said}");
    }

    #[test]
    fn the_parser_speaks_with_our_voice_and_keeps_its_hint() {
        let said = said(&["get", "a", "--nonsense"]);
        assert!(said.starts_with("unexpected argument '--nonsense' found\n"), "{said}");
        assert!(said.contains("Usage: leasehold get"), "{said}");
    }
}
