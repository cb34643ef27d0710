//! The commands about files: `backup` of a running service, and `data` of one that does not run.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use leasehold::Token;

use super::values;

pub(super) const BACKUP_EXAMPLES: &str = "\
Examples:
  leasehold --store leasehold://10.0.0.5:7420 backup /backups/leases
  leasehold --store leasehold://10.0.0.5:7420 backup --stale /backups/last-words
  leasehold data verify /backups/leases";

const RESTORE_EXAMPLES: &str = "\
Examples:
  leasehold data restore /backups/leases --data /var/lib/leasehold --first-restore
  leasehold data restore older-backup --data new --above 281474976710672";

const RECOVER_EXAMPLES: &str = "\
Examples:
  leasehold data recover --data /var/lib/leasehold --only-survivor";

const VERIFY_EXAMPLES: &str = "\
Examples:
  leasehold data verify /var/lib/leasehold
  leasehold data verify /backups/leases
  leasehold data verify /var/lib/leasehold --cut          show what would be lost
  leasehold data verify /var/lib/leasehold --cut --yes --only-survivor    drop it";

/// What to do with the data of a service that does not run.
#[derive(Debug, Subcommand)]
pub(crate) enum DataCommand {
    /// Check a data directory that is not in use, or a backup
    ///
    /// Reads everything, replays the log, and reports damage by file and byte. Exits 0 if all is good, 1 if anything is damaged.
    #[command(after_help = VERIFY_EXAMPLES)]
    Verify(VerifyArgs),
    /// Make a data directory from a backup
    ///
    /// Stop the old service first. The restored state has a new node, a greater epoch, so that every token is greater than all before, and
    /// no sessions or leases. It grants nothing until the leases of old holders have run out. Start it with `leasehold serve`.
    #[command(after_help = RESTORE_EXAMPLES)]
    Restore(RestoreArgs),
    /// Continue with one node of a cluster that has lost its majority
    ///
    /// As restore, from the node's own log and in its own directory; the old log is kept beside the new one. Entries that only other nodes
    /// had are lost.
    #[command(after_help = RECOVER_EXAMPLES)]
    Recover(RecoverArgs),
}

/// `backup`.
#[derive(Debug, Args)]
pub(crate) struct BackupArgs {
    /// The file to write; an existing file is replaced when the new one is complete
    pub(crate) file: PathBuf,
    /// Take the newest state that a node has, for a cluster that has lost its majority
    #[arg(long)]
    pub(crate) stale: bool,
}

/// What every new life of a state needs to know.
#[derive(Debug, Args)]
pub(crate) struct LifeArgs {
    /// Start above the epoch of this token, the greatest that any receiver has seen
    #[arg(long, value_name = "TOKEN", value_parser = values::token, allow_hyphen_values = true)]
    pub(crate) above: Option<Token>,
    /// The longest ttl from now on, 500ms to 1d [default: as before]
    #[arg(long, value_name = "LENGTH", value_parser = values::policy, allow_hyphen_values = true)]
    pub(crate) max_ttl: Option<Duration>,
    /// I confirm: old holders are stopped; skip the safety wait
    #[arg(long)]
    pub(crate) holders_are_stopped: bool,
    /// Name of the node [default: as before; leasehold if the backup has several members]
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// Address at which clients and other nodes reach it [default: as before; 127.0.0.1:7420 if the backup has several members]
    #[arg(long, value_name = "HOST:PORT")]
    pub(crate) listen_address: Option<String>,
}

/// `data restore`.
#[derive(Debug, Args)]
pub(crate) struct RestoreArgs {
    /// The backup
    pub(crate) file: PathBuf,
    /// The directory to make; an existing one must be empty and no mount point
    #[arg(long, value_name = "DIR")]
    pub(crate) data: PathBuf,
    /// I confirm: first restore since this backup was taken
    ///
    /// Since then no backup of this store was restored, neither this one nor another, and no node was recovered. If that is not so, or not
    /// known, use --above.
    #[arg(long, conflicts_with = "above")]
    pub(crate) first_restore: bool,
    #[command(flatten)]
    pub(crate) life: LifeArgs,
}

/// `data recover`.
#[derive(Debug, Args)]
pub(crate) struct RecoverArgs {
    /// The directory of the node
    #[arg(long, value_name = "DIR")]
    pub(crate) data: PathBuf,
    /// I confirm: no other node of this cluster is started or recovered again, and no backup was restored
    #[arg(long, conflicts_with = "above")]
    pub(crate) only_survivor: bool,
    #[command(flatten)]
    pub(crate) life: LifeArgs,
}

/// `data verify`.
#[derive(Debug, Args)]
pub(crate) struct VerifyArgs {
    /// The directory, or a backup
    #[arg(value_name = "DIR|FILE")]
    pub(crate) path: PathBuf,
    /// Show what is lost behind the damage; with --yes, drop it
    #[arg(long)]
    pub(crate) cut: bool,
    /// With --cut: drop what is behind the damage
    #[arg(long, short, requires = "cut")]
    pub(crate) yes: bool,
    /// With --cut, I confirm: no other node of this cluster is started or recovered again, and no backup was restored
    #[arg(long, requires = "cut", conflicts_with = "above")]
    pub(crate) only_survivor: bool,
    #[command(flatten)]
    pub(crate) life: LifeArgs,
}
