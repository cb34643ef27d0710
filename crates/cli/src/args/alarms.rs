//! The options of `alarms`.

use clap::{Args, Subcommand};
use leasehold::{Reason, ResourceName, Token};

use super::values;

pub(super) const EXAMPLES: &str = "\
Examples:
  leasehold alarms
  leasehold alarms clear backup --reason 'token was a typing error'

What to do:
  Find out where the token comes from. If a receiver has seen it, the state
  was set back: restore again with --above TOKEN. If no receiver has seen it,
  clear the alarm.";

/// `alarms`.
#[derive(Debug, Args)]
pub(crate) struct AlarmsArgs {
    #[command(subcommand)]
    pub(crate) command: Option<AlarmsCommand>,
}

/// What to do with an alarm.
#[derive(Debug, Subcommand)]
pub(crate) enum AlarmsCommand {
    /// Clear the alarm of NAME: the store grants it again
    ///
    /// Shows the token and asks for confirmation. Tokens of NAME continue where they are: a receiver that has seen the token of the alarm
    /// refuses new holders until theirs are greater.
    Clear(ClearArgs),
}

/// `alarms clear`.
#[derive(Debug, Args)]
pub(crate) struct ClearArgs {
    /// The name of the lease
    #[arg(value_parser = values::name)]
    pub(crate) name: ResourceName,
    /// Why; shown to watchers
    #[arg(long, value_name = "TEXT", value_parser = values::reason, allow_hyphen_values = true)]
    pub(crate) reason: Reason,
    /// Only the alarm of this token
    #[arg(long, value_parser = values::token, allow_hyphen_values = true)]
    pub(crate) token: Option<Token>,
    /// Do not ask for confirmation
    #[arg(long, short)]
    pub(crate) yes: bool,
}
