//! `data recover`: a node whose cluster has lost its majority goes on alone.

use leasehold_host::Extent;

use crate::args::RecoverArgs;
use crate::commands::restore::{choices, say, trouble};
use crate::console::Console;
use crate::exit::Exit;
use crate::trouble::Trouble;

pub(super) fn run(console: &Console, args: &RecoverArgs) -> Result<Exit, Trouble> {
    let choices = choices(&args.life, args.only_survivor);
    let begun = leasehold_host::recover(&args.data, Extent::Whole, &choices).map_err(trouble)?;
    say(console, &format!("recovered {}", args.data.display()), &begun)
}
