//! The options of `check-history`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::values;

pub(super) const EXAMPLES: &str = "\
Examples:
  leasehold run backup --history one.jsonl ./backup.sh
  leasehold check-history one.jsonl
  cat *.jsonl | leasehold check-history -            of several programs
  leasehold check-history all.jsonl --skew 5ms       of several machines";

/// `check-history`.
#[derive(Debug, Args)]
pub(crate) struct CheckHistoryArgs {
    /// The history, one JSON object a line; - is standard input
    pub(crate) file: PathBuf,
    /// Further files, which are refused with a hint
    #[arg(hide = true)]
    pub(crate) more: Vec<PathBuf>,
    /// Compare clocks of different machines, which differ by LENGTH at most [default: do not compare]
    #[arg(long, value_name = "LENGTH", value_parser = values::length, allow_hyphen_values = true)]
    pub(crate) skew: Option<Duration>,
    /// Show every violation, not only the first five of each check
    #[arg(long)]
    pub(crate) all: bool,
}
