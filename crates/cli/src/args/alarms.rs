//! The options of `alarms`.

use clap::{Args, Subcommand};
use leasehold::{Reason, ResourceName, Token};

use super::values;

pub(super) const EXAMPLES: &str = "\
Examples:
  leasehold alarms
  leasehold alarms clear backup --reason 'the token was made up'

What to do:
  Find out where the token comes from. If a receiver has seen it, the state
  was set back: restore again with --above TOKEN. If it was made up, or the
  receiver was reset, clear the alarm.";

/// `alarms`.
#[derive(Debug, Args)]
pub(crate) struct AlarmsArgs {
    #[command(subcommand)]
    pub(crate) command: Option<AlarmsCommand>,
}

/// What to do with an alarm.
#[derive(Debug, Subcommand)]
pub(crate) enum AlarmsCommand {
    /// Answer the alarm of NAME: it is granted again
    ///
    /// Shows the token first and asks. Tokens of NAME go on where they are, so a receiver that knows the token shown refuses new
    /// holders until theirs are greater.
    Clear(ClearArgs),
}

/// `alarms clear`.
#[derive(Debug, Args)]
pub(crate) struct ClearArgs {
    /// The resource
    #[arg(value_parser = values::name)]
    pub(crate) name: ResourceName,
    /// What was found, for watchers
    #[arg(long, value_name = "TEXT", value_parser = values::reason, allow_hyphen_values = true)]
    pub(crate) reason: Reason,
    /// Only the alarm of this token
    #[arg(long, value_parser = values::token, allow_hyphen_values = true)]
    pub(crate) token: Option<Token>,
    /// Do not ask
    #[arg(long, short)]
    pub(crate) yes: bool,
}
