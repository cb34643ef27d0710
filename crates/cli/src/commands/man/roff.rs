//! Parts of a manual page in the language of `man`.

use clap::{Arg, ArgAction, Command};

/// The section that shows how a command is written: its options with what they take, then what every command takes.
pub(super) fn synopsis(command: &Command) -> String {
    let name = command.get_bin_name().unwrap_or_else(|| command.get_name());
    let shown = |argument: &&Arg| {
        !argument.is_hide_set() && !["help", "version"].contains(&argument.get_id().as_str())
    };
    let arguments = || command.get_arguments().filter(shown);
    let own = arguments().filter(|argument| !argument.is_positional() && !argument.is_global_set());
    let global = arguments().filter(|argument| argument.is_global_set());
    let positional = command.get_positionals().filter(shown);
    let mut parts = vec![format!("\\fB{}\\fR", escaped(name))];
    parts.extend(own.chain(global).map(option));
    parts.extend(positional.map(position));
    if command.has_subcommands() {
        parts.push("\\fICOMMAND\\fR".to_owned());
    }
    format!(".SH SYNOPSIS\n{}\n", parts.join(" "))
}

fn option(argument: &Arg) -> String {
    let name = match (argument.get_long(), argument.get_short()) {
        (Some(long), _) => format!("--{long}"),
        (None, short) => short.map(|short| format!("-{short}")).unwrap_or_default(),
    };
    let mut text = format!("\\fB{}\\fR", escaped(&name));
    if argument.get_action().takes_values() {
        text.push_str(&format!(" \\fI{}\\fR", escaped(&value_name(argument))));
    }
    if !argument.is_required_set() {
        text = format!("[{text}]");
    }
    let again = if matches!(argument.get_action(), ArgAction::Append) { "..." } else { "" };
    text + again
}

fn position(argument: &Arg) -> String {
    let name = format!("\\fI{}\\fR", escaped(&value_name(argument)));
    match (argument.is_last_set(), argument.is_required_set()) {
        (true, _) => format!("\\-\\- {name}..."),
        (false, true) => name,
        (false, false) => format!("[{name}]"),
    }
}

fn value_name(argument: &Arg) -> String {
    match argument.get_value_names() {
        Some([name, ..]) => name.to_string(),
        _ => argument.get_id().as_str().to_uppercase(),
    }
}

/// The generator puts the same two lines before each section.
pub(super) fn one_preamble(page: &str) -> String {
    let is_preamble = |line: &&str| line.starts_with(".ie ") || line.starts_with(".el ");
    let first: String = page.lines().take_while(is_preamble).map(|line| format!("{line}\n")).collect();
    let rest: String =
        page.lines().filter(|line| !is_preamble(line)).map(|line| format!("{line}\n")).collect();
    first + &rest
}

/// The text below a help text: lines that end in a colon are headings, the lines behind them stand as they are.
pub(super) fn sections(text: &str) -> String {
    let mut page = String::new();
    let mut open = false;
    for line in text.lines() {
        let heading = line.strip_suffix(':').filter(|heading| !heading.starts_with(' '));
        match heading {
            Some(heading) => {
                let end = if open { ".fi\n" } else { "" };
                page.push_str(&format!("{end}.SH \"{}\"\n.nf\n", escaped(&heading.to_uppercase())));
                open = true;
            }
            None => page.push_str(&format!("{}\n", escaped(line.strip_prefix("  ").unwrap_or(line)))),
        }
    }
    if open {
        page.push_str(".fi\n");
    }
    page
}

/// Text that means nothing to `man`: dashes can be searched for and copied, and no line is taken for an order.
fn escaped(text: &str) -> String {
    let text = text.replace('\\', "\\e").replace('-', "\\-");
    if text.starts_with(['.', '\'']) { format!("\\&{text}") } else { text }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::args::Cli;

    fn of(name: &str) -> String {
        let mut command = Cli::command();
        command.build();
        synopsis(command.find_subcommand(name).unwrap())
            .replace("\\fB", "")
            .replace("\\fI", "")
            .replace("\\fR", "")
    }

    #[test]
    fn a_synopsis_shows_what_options_take() {
        let every = "[\\-\\-store URL] [\\-\\-json] [\\-\\-timeout LENGTH]";
        assert_eq!(
            of("watch"),
            format!(".SH SYNOPSIS\nleasehold watch [\\-\\-after REVISION] {every} [PREFIX]\n")
        );
        assert!(of("run").ends_with(" NAME CMD\n"), "{}", of("run"));
        assert!(of("revoke").contains(" \\-\\-reason TEXT "), "{}", of("revoke"));
        assert!(of("serve").contains(" [\\-\\-set KEY=VALUE]... "), "{}", of("serve"));
    }

    #[test]
    fn every_heading_below_a_help_text_is_a_section() {
        let page = sections("Examples:\n  a --b \\ c\n\nExit codes:\n  .x\n");
        assert_eq!(
            page,
            ".SH \"EXAMPLES\"\n.nf\na \\-\\-b \\e c\n\n.fi\n.SH \"EXIT CODES\"\n.nf\n\\&.x\n.fi\n"
        );
        assert_eq!(sections(""), "");
    }
}
