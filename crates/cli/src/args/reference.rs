//! The command reference has the help of every command, word for word.
//!
//! `LEASEHOLD_WRITE_REFERENCE=1 cargo test -p leasehold-cli --lib reference` writes the help into the page; what stands around it is written by hand.

use clap::Command;

use super::groups::{command, find, paths};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/cli.md");
const BEGIN: &str = "<!-- help: ";
const END: &str = "<!-- end of help -->";
/// Columns of a line on the page.
const WIDTH: usize = 110;

/// The help of a command, without the options that every command has.
fn help(root: &Command, path: &str) -> String {
    let own = if path == "leasehold" {
        root
    } else {
        find(root, path).unwrap_or_else(|| panic!("no command {path}"))
    };
    let of_all = path != "leasehold";
    let own = own.clone().disable_help_flag(true).term_width(WIDTH);
    let mut own = own.mut_args(|argument| {
        let hidden =
            argument.is_hide_set() || of_all && (argument.is_global_set() || argument.get_id() == "help");
        argument.hide(hidden)
    });
    let help = own.render_long_help().to_string();
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
        if let Some(path) = line.strip_prefix(BEGIN).and_then(|rest| rest.strip_suffix(" -->")) {
            whole.push_str(&format!("```text\n{}\n```\n{END}\n", help(&root, path)));
            lines.find(|line| *line == END).unwrap_or_else(|| panic!("the help of {path} has no end"));
        }
    }
    whole
}

#[test]
fn the_reference_has_the_help_of_every_command() {
    let page = std::fs::read_to_string(PAGE).unwrap();
    let whole = whole(&page);
    if std::env::var_os("LEASEHOLD_WRITE_REFERENCE").is_some() {
        std::fs::write(PAGE, &whole).unwrap();
    } else if let Some((line, (old, new))) =
        page.lines().zip(whole.lines()).enumerate().find(|(_, (old, new))| old != new)
    {
        panic!("line {} is {old:?} and should be {new:?}; see crates/cli/src/args/reference.rs", line + 1);
    }
    for path in paths(&command()) {
        assert!(whole.contains(&format!("\n## {path}\n\n{BEGIN}{path} -->\n")), "{path} has no section");
    }
}
