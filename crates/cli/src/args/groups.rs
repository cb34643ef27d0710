//! The commands in groups, as `leasehold --help` lists them, and which of them use no store.
//!
//! The parser knows neither: headings of commands, nor an option of every command that some do not have. Both are made here from the parser's
//! own description, so that no command can be missing.

use clap::{Command, CommandFactory};

use super::Cli;

/// Headings, and under each the commands in the order of use. Of `fence` and `data` each subcommand has a line of its own.
const GROUPS: [(&str, &[&str]); 5] = [
    ("Every day", &["run", "hold", "get", "list", "watch", "release", "revoke"]),
    ("Explain", &["history", "gaps", "plan", "probe", "bench"]),
    ("Fences", &["fence check", "fence proxy", "fence migration"]),
    ("Service", &["serve", "status", "cluster", "alarms", "backup"]),
    ("Offline", &["data verify", "data restore", "data recover"]),
];

/// Commands that use no store: they take neither `--store` nor the `--timeout` that goes with it.
const WITHOUT_STORE: [&str; 10] = [
    "plan",
    "fence proxy",
    "fence migration",
    "serve",
    "data",
    "data verify",
    "data restore",
    "data recover",
    "check-history",
    "completions",
];

/// The parser of the whole command line.
pub(crate) fn command() -> Command {
    finished(Cli::command())
}

/// What is made of the parser's description once nothing is changed in it any more.
pub(super) fn finished(mut command: Command) -> Command {
    // Only now the options of every command stand in each of them.
    command.build();
    let list = list(&command);
    let command = hide_store("", command);
    command.help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{list}Options:\n{{options}}{{after-help}}"
    ))
}

/// Whether the command with this path of words uses a store.
pub(super) fn uses_store(path: &str) -> bool {
    !WITHOUT_STORE.contains(&path)
}

fn hide_store(path: &str, command: Command) -> Command {
    let command = match uses_store(path) {
        true => command,
        // An option of the same name that is the command's own is no option of every command.
        false => command.mut_args(|argument| {
            let of_a_store = ["store", "timeout"].contains(&argument.get_id().as_str());
            let hidden = of_a_store && argument.is_global_set();
            argument.hide(hidden)
        }),
    };
    command.mut_subcommands(|command| hide_store(&joined(path, command.get_name()), command))
}

/// Every group with its commands and what they do.
fn list(command: &Command) -> String {
    let width = GROUPS.iter().flat_map(|(_, paths)| *paths).map(|path| path.len()).max().unwrap_or(0);
    let mut list = String::new();
    for (heading, paths) in GROUPS {
        list.push_str(&format!("{heading}:\n"));
        for path in paths {
            let about = find(command, path).and_then(Command::get_about).map(ToString::to_string);
            list.push_str(&format!("  {path:width$}  {}\n", about.unwrap_or_default()));
        }
        list.push('\n');
    }
    list
}

/// The command with this path of words.
pub(super) fn find<'a>(command: &'a Command, path: &str) -> Option<&'a Command> {
    path.split(' ').try_fold(command, |command, word| command.find_subcommand(word))
}

/// The paths of all commands that do something by themselves, hidden ones too.
#[cfg(test)]
pub(super) fn paths(command: &Command) -> Vec<String> {
    let below = |top: &Command| -> Vec<String> {
        let name = top.get_name();
        match ["fence", "data"].contains(&name) {
            true => shown(top).map(|own| joined(name, own.get_name())).collect(),
            false => vec![name.to_owned()],
        }
    };
    command.get_subcommands().filter(|top| top.get_name() != "help").flat_map(below).collect()
}

#[cfg(test)]
fn shown(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|command| !command.is_hide_set() && command.get_name() != "help")
}

fn joined(path: &str, word: &str) -> String {
    if path.is_empty() { word.to_owned() } else { format!("{path} {word}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_stands_in_one_group() {
        let listed: Vec<&str> = GROUPS.iter().flat_map(|(_, paths)| *paths).copied().collect();
        let command = command();
        let mut expected = Vec::new();
        for top in shown(&command) {
            let name = top.get_name().to_owned();
            match listed.contains(&name.as_str()) {
                true => expected.push(name),
                false => expected.extend(shown(top).map(|below| joined(&name, below.get_name()))),
            }
        }
        let mut sorted = listed.clone();
        sorted.sort_unstable();
        expected.sort_unstable();
        assert_eq!(sorted, expected);
    }

    #[test]
    fn the_help_lists_every_command_under_its_heading_with_what_it_does() {
        let help = command().render_help().to_string();
        for (heading, paths) in GROUPS {
            assert!(help.contains(&format!("\n{heading}:\n  {} ", paths[0])), "{heading}: {help}");
        }
        for path in GROUPS.iter().flat_map(|(_, paths)| *paths) {
            let line = help.lines().find(|line| line.starts_with(&format!("  {path} "))).expect(path);
            assert!(line.len() > path.len() + 20, "{line:?} says nothing");
        }
    }

    #[test]
    fn a_store_stands_in_the_help_of_those_commands_that_use_one() {
        let mut command = command();
        for path in ["run", "get", "fence check", "cluster status", "alarms clear", "probe"] {
            let help = find(&command, path).unwrap().clone().render_long_help().to_string();
            assert!(help.contains("--store <URL>") && help.contains("--timeout <LENGTH>"), "{help}");
        }
        for path in WITHOUT_STORE {
            let mut own = find(&command, path).unwrap_or_else(|| panic!("no command {path}")).clone();
            let help = own.render_long_help().to_string();
            assert!(!help.contains("--store <URL>"), "{help}");
            assert_eq!(help.contains("--timeout <LENGTH>"), path == "fence proxy", "{help}");
            assert!(help.contains("--json"), "{help}");
        }
        assert!(command.render_help().to_string().contains("--store <URL>"));
    }
}
