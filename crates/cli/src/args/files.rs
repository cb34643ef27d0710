//! The options of the commands about files: `backup`, `restore`, `recover` and `verify`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use leasehold::Token;

use super::values;

pub(super) const BACKUP_EXAMPLES: &str = "\
Examples:
  leasehold --store leasehold://10.0.0.5:7420 backup /backups/leases
  leasehold --store leasehold://10.0.0.5:7420 backup --stale /backups/last-words
  leasehold verify /backups/leases";

pub(super) const RESTORE_EXAMPLES: &str = "\
Examples:
  leasehold restore /backups/leases --data /var/lib/leasehold --first-restore
  leasehold restore older-backup --data new --above 281474976710672";

pub(super) const RECOVER_EXAMPLES: &str = "\
Examples:
  leasehold recover --data /var/lib/leasehold --only-survivor";

pub(super) const VERIFY_EXAMPLES: &str = "\
Examples:
  leasehold verify /var/lib/leasehold
  leasehold verify /backups/leases
  leasehold verify /var/lib/leasehold --cut          show what would be lost
  leasehold verify /var/lib/leasehold --cut --yes --only-survivor    give it up";

/// `backup`.
#[derive(Debug, Args)]
pub(crate) struct BackupArgs {
    /// The file to write; one that is there is replaced when the new one is whole
    pub(crate) file: PathBuf,
    /// Take what the node has, though it may be old: for a node whose cluster has lost its majority
    #[arg(long)]
    pub(crate) stale: bool,
}

/// What every new life of a state needs to know.
#[derive(Debug, Args)]
pub(crate) struct LifeArgs {
    /// Begin above the epoch of this token: the greatest one that is known
    #[arg(long, value_name = "TOKEN", value_parser = values::token, allow_hyphen_values = true)]
    pub(crate) above: Option<Token>,
    /// The longest ttl from now on, from 500ms to 1d [default: as before]
    #[arg(long, value_name = "LENGTH", value_parser = values::policy, allow_hyphen_values = true)]
    pub(crate) max_ttl: Option<Duration>,
    /// Nobody acts on a lease any more: grant at once
    #[arg(long)]
    pub(crate) holders_are_stopped: bool,
    /// What the node is called [default: as before; leasehold, of a backup with several members]
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// Where clients and other nodes reach it [default: as before; 127.0.0.1:7420, of a backup with several members]
    #[arg(long, value_name = "HOST:PORT")]
    pub(crate) listen_address: Option<String>,
}

/// `restore`.
#[derive(Debug, Args)]
pub(crate) struct RestoreArgs {
    /// The backup
    pub(crate) file: PathBuf,
    /// The directory to make; one that exists must be empty and no mount point
    #[arg(long, value_name = "DIR")]
    pub(crate) data: PathBuf,
    /// Since this backup was made, no backup of its store was restored and no node of it recovered
    #[arg(long, conflicts_with = "above")]
    pub(crate) first_restore: bool,
    #[command(flatten)]
    pub(crate) life: LifeArgs,
}

/// `recover`.
#[derive(Debug, Args)]
pub(crate) struct RecoverArgs {
    /// The directory of the node
    #[arg(long, value_name = "DIR")]
    pub(crate) data: PathBuf,
    /// No other node of its cluster was or will be recovered or started again, and no backup of it restored
    #[arg(long, conflicts_with = "above")]
    pub(crate) only_survivor: bool,
    #[command(flatten)]
    pub(crate) life: LifeArgs,
}

/// `verify`.
#[derive(Debug, Args)]
pub(crate) struct VerifyArgs {
    /// The directory, or a backup
    #[arg(value_name = "DIR|FILE")]
    pub(crate) path: PathBuf,
    /// Show what is lost behind the damage, and with --yes give it up
    #[arg(long)]
    pub(crate) cut: bool,
    /// Do it
    #[arg(long, short, requires = "cut")]
    pub(crate) yes: bool,
    /// With --cut: no other node of its cluster was or will be recovered or started again, and no backup of it restored
    #[arg(long, requires = "cut", conflicts_with = "above")]
    pub(crate) only_survivor: bool,
    #[command(flatten)]
    pub(crate) life: LifeArgs,
}
