//! The command reference has the help of every command, word for word.
//!
//! `LEASEHOLD_WRITE_REFERENCE=1 cargo test -p leasehold-cli --lib reference` writes the help into the page; what stands around it is written by hand.

use clap::{Arg, Command};

use super::groups::{command, find, paths};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/cli.md");
/// Stands before the block of a command.
const MARK: &str = "<!--help:";
const FENCE: &str = "```";
/// Columns of a line on the page.
const WIDTH: usize = 110;
/// Commands that share options with another one, where the page has them.
const SHARED: [(&str, &str); 3] =
    [("hold", "run"), ("data verify", "data restore"), ("data recover", "data restore")];

/// The help of a command, without its examples and without options that stand elsewhere on the page.
fn help(root: &Command, path: &str) -> String {
    let found = |path| find(root, path).unwrap_or_else(|| panic!("no command {path}"));
    let (own, is_root) = if path == "leasehold" { (root, true) } else { (found(path), false) };
    let other = SHARED.iter().find(|(of, _)| *of == path).map(|(_, other)| found(other));
    let elsewhere = |argument: &Arg| {
        let same =
            |there: &Arg| there.get_id() == argument.get_id() && there.get_help() == argument.get_help();
        !is_root && argument.is_global_set()
            || argument.get_id() == "help"
            || other.is_some_and(|other| other.get_arguments().any(same))
    };
    // The page shows what the short help leaves to the long one.
    let page = |argument: Arg| {
        let hidden = argument.is_hide_set() || elsewhere(&argument);
        argument.hide(hidden).hide_short_help(false)
    };
    let own = own.clone().after_help("").term_width(WIDTH).mut_args(page);
    let mut own = own.mut_subcommands(|below| {
        let hidden = below.is_hide_set() || below.get_name() == "help";
        below.hide(hidden).mut_args(page)
    });
    let help = own.render_help().to_string();
    // Options of every command are explained below on the page.
    let help = if is_root { help.split("\nOptions:").next().unwrap_or_default() } else { &help };
    let lines: Vec<&str> = help.lines().map(str::trim_end).collect();
    lines.join("\n").trim_end().to_owned()
}

/// The page with every block of help as it is now.
fn whole(page: &str) -> String {
    let root = command();
    let mut whole = String::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        whole.push_str(line);
        whole.push('\n');
        if let Some(mark) = line.strip_prefix(MARK).and_then(|rest| rest.strip_suffix("-->")) {
            whole.push_str(&format!("{FENCE}text\n{}\n{FENCE}\n", help(&root, &path(&root, mark))));
            let is_there = lines.next().is_some_and(|line| line.starts_with(FENCE));
            assert!(is_there && lines.any(|line| line == FENCE), "behind {line} stands no block");
        }
    }
    whole
}

/// The words of a command whose mark has hyphens between them.
fn path(root: &Command, mark: &str) -> String {
    paths(root).into_iter().find(|path| path.replace(' ', "-") == mark).unwrap_or_else(|| mark.to_owned())
}

#[test]
fn the_reference_has_the_help_of_every_command() {
    let page = std::fs::read_to_string(PAGE).expect("the page is there");
    let whole = whole(&page);
    if std::env::var_os("LEASEHOLD_WRITE_REFERENCE").is_some() {
        std::fs::write(PAGE, &whole).expect("the page can be written");
    } else if let Some((line, (old, new))) =
        page.lines().zip(whole.lines()).enumerate().find(|(_, (old, new))| old != new)
    {
        panic!("line {} is {old:?} and should be {new:?}; see crates/cli/src/args/reference.rs", line + 1);
    }
    for path in paths(&command()) {
        let section = format!("\n## {path}\n\n{MARK}{}-->\n", path.replace(' ', "-"));
        assert!(whole.contains(&section), "{path} has no section");
    }
}
