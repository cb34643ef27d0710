//! `man`: the manual, from the same words as the help texts.
//!
//! Options and descriptions are laid out by the generator. The synopsis is made here, because a reader wants to see which options take
//! what, and so are the sections behind the options: each heading of the text below a help text is one.

mod roff;

use std::io::Write;
use std::path::Path;

use clap::{Command, CommandFactory};
use clap_mangen::Man;

use crate::args::{Cli, ManArgs};
use crate::exit::Exit;
use crate::trouble::Trouble;

pub(super) fn run(args: &ManArgs) -> Result<Exit, Trouble> {
    let mut command = Cli::command().disable_help_subcommand(true);
    command.build();
    match &args.out {
        Some(directory) => pages(&command, directory)?,
        None => {
            // Into memory first: a reader that is gone ends this quietly.
            let page = page(&command)?;
            std::io::stdout().write_all(&page).map_err(Trouble::Output)?;
        }
    }
    Ok(Exit::OK)
}

/// A page for every command, named as `man` looks for them: leasehold-run.1.
fn pages(command: &Command, directory: &Path) -> Result<(), Trouble> {
    std::fs::create_dir_all(directory).map_err(Trouble::Output)?;
    let shown = command.get_subcommands().filter(|command| !command.is_hide_set());
    for command in shown.chain([command]) {
        let file = directory.join(Man::new(command.clone()).get_filename());
        std::fs::write(file, page(command)?).map_err(Trouble::Output)?;
    }
    Ok(())
}

fn page(command: &Command) -> Result<Vec<u8>, Trouble> {
    let release = concat!("leasehold ", env!("CARGO_PKG_VERSION"));
    let man = Man::new(command.clone()).source(release).manual("Leasehold");
    let mut page = Vec::new();
    let written = man
        .render_title(&mut page)
        .and_then(|()| man.render_name_section(&mut page))
        .and_then(|()| page.write_all(roff::synopsis(command).as_bytes()))
        .and_then(|()| man.render_description_section(&mut page))
        .and_then(|()| man.render_options_section(&mut page))
        .and_then(|()| match command.has_subcommands() {
            true => man.render_subcommands_section(&mut page),
            false => Ok(()),
        });
    written.map_err(Trouble::Output)?;
    let mut page = roff::one_preamble(&String::from_utf8_lossy(&page)).into_bytes();
    let below = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    page.extend(roff::sections(&below).into_bytes());
    Ok(page)
}
