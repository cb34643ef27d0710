use super::*;
use crate::files::backup::{backup_file, save_backup};
use crate::files::tests::small_snapshot;
use crate::files::{restore, verify};
use leasehold_core::{Command, Entry, LogTime, System};
use leasehold_node::members::CLUSTER_VERSION;
use leasehold_node::payload::Payload;
use std::path::PathBuf;

fn only() -> Choices {
    Choices { is_only_one: true, ..Choices::default() }
}

/// A directory that was served before.
fn served(root: &Path) -> PathBuf {
    let (file, directory) = (root.join("backup"), root.join("data"));
    save_backup(&file, &backup_file(small_snapshot())).unwrap();
    restore(&file, &directory, &only()).unwrap();
    directory
}

#[test]
fn a_recovered_directory_has_another_id_and_a_greater_epoch_and_keeps_the_old_log() {
    let root = tempfile::tempdir().unwrap();
    let directory = served(root.path());
    let before = identity::member_id(&directory, true).unwrap();
    let begun = recover(&directory, Extent::Whole, &only()).unwrap();
    assert_eq!(begun.epoch, 2);
    let member = begun.member.unwrap();
    assert_ne!(member.id, before);
    assert_eq!(identity::member_id(&directory, true).unwrap(), member.id);
    assert!(begun.kept.unwrap().join("segment-00000000000000000001.log").exists());
    let found = verify(&directory).unwrap();
    assert!(found.problems.is_empty(), "{:?}", found.problems);
    assert_eq!(found.members, [member]);
    assert_eq!(recover(&directory, Extent::Whole, &only()).unwrap().epoch, 3);
}

#[test]
fn whoever_does_not_say_that_nobody_else_survived_is_refused() {
    let root = tempfile::tempdir().unwrap();
    let directory = served(root.path());
    let refused = recover(&directory, Extent::Whole, &Choices::default()).unwrap_err();
    assert!(matches!(refused, FilesError::EpochUnknown { .. }), "{refused}");
    assert!(!directory.join(NOTE).exists());
}

#[test]
fn a_directory_that_is_served_is_left_alone() {
    let root = tempfile::tempdir().unwrap();
    let directory = served(root.path());
    let _server = Locked::try_lock(&directory, Kind::Served, true).unwrap().unwrap();
    let refused = recover(&directory, Extent::Whole, &only()).unwrap_err();
    assert!(matches!(refused, FilesError::InUse { .. }), "{refused}");
}

#[test]
fn a_note_of_an_earlier_recovery_counts_even_if_its_log_was_put_away() {
    let root = tempfile::tempdir().unwrap();
    let directory = served(root.path());
    let begun = recover(&directory, Extent::Whole, &only()).unwrap();
    std::fs::remove_dir_all(directory.join(LOG)).unwrap();
    std::fs::rename(begun.kept.unwrap(), directory.join(LOG)).unwrap();
    assert_eq!(recover(&directory, Extent::Whole, &only()).unwrap().epoch, begun.epoch + 1);
}

/// Two nodes of one cluster, recovered one after the other by somebody who is wrong twice.
#[test]
fn directories_that_lie_beside_each_other_never_get_the_same_epoch() {
    let root = tempfile::tempdir().unwrap();
    let one = served(root.path());
    let two = root.path().join("other");
    std::fs::create_dir(&two).unwrap();
    for name in ["log", "node", "lock"] {
        let copied = std::process::Command::new("cp").arg("-r").arg(one.join(name)).arg(&two).status();
        assert!(copied.unwrap().success());
    }
    let epochs = [&one, &two].map(|directory| recover(directory, Extent::UpToDamage, &only()).unwrap().epoch);
    assert_eq!(epochs, [2, 3]);
}

/// Every state that a crash can leave, made by hand: the files of a recovery that was stopped before each of its steps.
#[test]
fn a_change_that_was_decided_is_carried_through_from_every_point() {
    for step in 0..5 {
        let root = tempfile::tempdir().unwrap();
        let directory = served(root.path());
        let new = recovered_aside(&directory, step);
        let id = identity::member_id(&directory, true).unwrap();
        let found = verify(&directory).unwrap();
        assert!(found.problems.is_empty(), "step {step}: {:?}", found.problems);
        if step == 0 {
            assert_ne!(id, new, "nothing was decided");
            assert_eq!(found.epoch, Some(1));
        } else {
            assert_eq!(id, new, "step {step}");
            assert_eq!(found.epoch, Some(2), "step {step}");
            assert!(directory.join("kept").exists() && !directory.join(NEW_LOG).exists());
        }
        assert!(!directory.join(MARKER).exists());
    }
}

/// Does the first steps of a recovery.
fn recovered_aside(directory: &Path, steps: u32) -> MemberId {
    let (locked, _) = lock(directory).unwrap();
    let mut disk = FileDisk::open(&directory.join(LOG)).unwrap();
    let state = State::of_log(&salvage(&mut disk).0).unwrap();
    let member = heir(&only(), None, MemberId(77)).unwrap();
    let epoch =
        notes_of(directory, Kind::Served).unwrap().hand_out(directory, state.table.epoch(), None).unwrap();
    let wait = leasehold_core::Millis::ZERO;
    let (snapshot, _) = state.begin(&Heir::Served(member.clone()), epoch, wait, None).unwrap();
    let new_log = directory.join(NEW_LOG);
    make_empty(&new_log).unwrap();
    write_log(&new_log, directory, locked.inode().unwrap(), &snapshot).unwrap();
    let marker = sealed_line(&format!("{WORD} {VERSION} kept {}", member.id));
    if steps >= 1 {
        write_whole(&directory.join(MARKER), marker.as_bytes()).unwrap();
    }
    if steps >= 2 {
        std::fs::rename(directory.join(LOG), directory.join("kept")).unwrap();
    }
    if steps >= 3 {
        std::fs::rename(&new_log, directory.join(LOG)).unwrap();
    }
    if steps >= 4 {
        identity::write_member_id(directory, member.id).unwrap();
    }
    member.id
}

#[test]
fn damage_is_refused_unless_it_is_to_be_cut() {
    let root = tempfile::tempdir().unwrap();
    let directory = served(root.path());
    let segment = directory.join(LOG).join("segment-00000000000000000001.log");
    let mut bytes = std::fs::read(&segment).unwrap();
    // Behind what is written, so that the snapshot is still recorded.
    bytes[100 * 512] = 1;
    std::fs::write(&segment, &bytes).unwrap();
    let found = verify(&directory).unwrap();
    assert!(found.problems.iter().any(|problem| problem.offset == Some(100 * 512)), "{:?}", found.problems);
    let refused = recover(&directory, Extent::Whole, &only()).unwrap_err();
    assert!(matches!(refused, FilesError::Log { .. }), "{refused}");
    // It has one member, as far as can be seen; what is behind the damage may say otherwise.
    let refused = recover(&directory, Extent::UpToDamage, &Choices::default()).unwrap_err();
    assert!(matches!(refused, FilesError::NotAlone { members: 1, .. }), "{refused}");
    let begun = recover(&directory, Extent::UpToDamage, &only()).unwrap();
    assert_eq!(begun.epoch, 2);
    assert!(verify(&directory).unwrap().problems.is_empty());
}

/// A later release has raised what may stand in the log: what follows cannot be read here, and is no damage.
#[test]
fn a_log_in_which_a_later_version_was_raised_is_named_and_not_given_up() {
    let root = tempfile::tempdir().unwrap();
    let directory = served(root.path());
    let mut disk = FileDisk::open(&directory.join(LOG)).unwrap();
    let (mut log, _) = salvage(&mut disk);
    let (meta, _) = log.snapshot.as_ref().unwrap();
    let (mut index, term) = (meta.index, meta.term);
    let mut push = |payload: Vec<u8>| {
        index = leasehold_wal::Index(index.0 + 1);
        log.entries.push(leasehold_wal::Entry { index, term, kind: 0, payload });
    };
    let raised = Command::System(System::ClusterVersion { version: CLUSTER_VERSION + 1 });
    let entry = Entry { at: LogTime::new(9_000), commands: vec![raised] };
    push(Payload { entry, anchor: None, outcomes: None }.encode());
    push(vec![2, 255, 255, 255]);
    let unread = State::of_log(&log).unwrap_err().of(&directory);
    let is_named = matches!(&unread, FilesError::Newer { found, known, .. } if (*found, *known) == (CLUSTER_VERSION + 1, CLUSTER_VERSION));
    assert!(is_named, "{unread}");
}
