//! The options of `check-history`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::values;

pub(super) const EXAMPLES: &str = "\
Examples:
  leasehold run backup --history one.jsonl -- ./backup.sh
  leasehold check-history one.jsonl
  cat *.jsonl | leasehold check-history -            those of several programs
  leasehold check-history all.jsonl --skew 5ms       of several machines";

/// `check-history`.
#[derive(Debug, Args)]
pub(crate) struct CheckHistoryArgs {
    /// The history, one JSON object a line; - is standard input
    pub(crate) file: PathBuf,
    /// Others, which are refused with a hint: several histories are judged as one
    #[arg(hide = true)]
    pub(crate) more: Vec<PathBuf>,
    /// Clocks of different names show different times at one moment, but differ by this at most [default: they are not compared]
    #[arg(long, value_name = "LENGTH", value_parser = values::length, allow_hyphen_values = true)]
    pub(crate) skew: Option<Duration>,
    /// Show every violation, and not only the first five of each check
    #[arg(long)]
    pub(crate) all: bool,
}
