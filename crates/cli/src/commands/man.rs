//! `man`: the manual, from the same words as the help texts.

use std::io::Write;
use std::path::Path;

use clap::CommandFactory;

use crate::args::{Cli, ManArgs};
use crate::exit::Exit;
use crate::trouble::Trouble;

pub(super) fn run(args: &ManArgs) -> Result<Exit, Trouble> {
    match &args.out {
        Some(directory) => pages(directory)?,
        None => {
            // Into memory first: a reader that is gone ends this quietly.
            let mut page = Vec::new();
            clap_mangen::Man::new(Cli::command()).render(&mut page).map_err(Trouble::Output)?;
            std::io::stdout().write_all(&page).map_err(Trouble::Output)?;
        }
    }
    Ok(Exit::OK)
}

/// A page for every command, named as `man` looks for them: leasehold-run.1.
fn pages(directory: &Path) -> Result<(), Trouble> {
    std::fs::create_dir_all(directory)
        .and_then(|()| clap_mangen::generate_to(Cli::command(), directory))
        .map_err(Trouble::Output)
}
