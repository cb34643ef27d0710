//! What earlier code wrote is read, from the first that was kept on: `fixtures/` has a directory and a backup for each version of the log.

use std::fs;
use std::path::{Path, PathBuf};

use leasehold_core::table::COUNTS_GAPS;
use leasehold_core::{Command, Ending, Entry, LeaseTable, LogTime, RegisterKey, ResourceName, System};
use leasehold_wal::{Identity, Options, Wal};

use super::backup::read_backup;
use super::life::State;
use super::verify;
use crate::FileDisk;

/// The inode that the lock file had.
const LOCK_INODE: u64 = 10_002_445;
/// A segment has zeroes behind what is written, which are not kept.
const SEGMENT_BYTES: u64 = 256 << 10;

fn kept(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/log-3").join(name)
}

/// The log as it was.
fn log(root: &Path) -> FileDisk {
    for entry in fs::read_dir(kept("")).unwrap() {
        let from = entry.unwrap().path();
        let end = from.extension().and_then(|end| end.to_str());
        if matches!(end, Some("log" | "snap")) {
            let to = root.join(from.file_name().unwrap());
            fs::copy(&from, &to).unwrap();
            if end == Some("log") {
                fs::File::options().write(true).open(&to).unwrap().set_len(SEGMENT_BYTES).unwrap();
            }
        }
    }
    FileDisk::open(root).unwrap()
}

fn name(text: &str) -> ResourceName {
    ResourceName::new(text).unwrap()
}

/// `web-1` held `leader` and fell silent, `web-2` holds it, `web-3` waits.
fn is_what_was_written(table: &mut LeaseTable) {
    assert_eq!(table.version(), COUNTS_GAPS);
    let leader = table.lease(&name("leader")).unwrap();
    let labels = |labels: Vec<&str>| labels.join(" ");
    assert_eq!(labels(leader.holders.iter().map(|holder| holder.label.as_str()).collect()), "web-2");
    assert_eq!(leader.holders[0].token.get(), 5);
    assert_eq!(labels(leader.queue.iter().map(|waiter| waiter.label.as_str()).collect()), "web-3");
    let (value, token) = table.register(&name("leader"), &RegisterKey::new("checkpoint").unwrap()).unwrap();
    assert_eq!((value.as_bytes(), token.get()), (&b"42"[..], 5));
    let past = |of: &str| -> Vec<(u64, String, Ending)> {
        let past = table.history(&name(of));
        past.iter().map(|past| (past.token.get(), past.label.to_string(), past.how.clone())).collect()
    };
    assert_eq!(past("leader"), [(4, "web-1".to_owned(), Ending::Expired)]);
    assert_eq!(past("batch"), [(6, "web-3".to_owned(), Ending::Released)]);
    assert_eq!(table.lease(&name("pool")).unwrap().holders[0].slot, Some(0));
    let gaps = table.gaps(&name("leader"), None, table.last_at()).unwrap().gaps;
    let [gap] = &gaps[..] else { panic!("{gaps:?}") };
    assert_eq!((gap.before.token.get(), gap.after.as_ref().unwrap().token.get()), (4, 5));
    assert_eq!((gap.length().get(), gap.at_least().get(), gap.leeway), (1_005, 0, None), "it had one length");
    table.check_invariants().unwrap();

    // And it goes on: in the next version its snapshots are others, and what was in it stays.
    let raised = Command::System(System::ClusterVersion { version: COUNTS_GAPS + 1 });
    let at = LogTime::new(table.last_at().get() + 1);
    table.apply(&Entry { at, commands: vec![raised] });
    let read = LeaseTable::decode(&table.encode()).unwrap();
    assert_eq!(read.encode(), table.encode());
    assert_eq!(read.gaps(&name("leader"), None, at), table.gaps(&name("leader"), None, at));
}

#[test]
fn a_directory_of_log_version_3_opens_with_all_that_is_in_it() {
    let root = tempfile::tempdir().unwrap();
    let identity = Identity { lock_inode: LOCK_INODE };
    let (_, recovered) = Wal::open(log(root.path()), identity, Options::default()).unwrap();
    assert!(recovered.snapshot.is_some() && recovered.entries.len() > 30, "{}", recovered.entries.len());
    is_what_was_written(&mut State::of_log(&recovered).unwrap().table);
}

#[test]
fn a_backup_of_log_version_3_is_read() {
    let found = verify(&kept("backup")).unwrap();
    assert!(found.problems.is_empty(), "{:?}", found.problems);
    let backup = read_backup(&kept("backup")).unwrap();
    is_what_was_written(&mut State::of_snapshot(&backup.snapshot).unwrap().table);
}
