//! Directories that are not served: the error says why, and nothing in them is changed.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use leasehold_core::Millis;
use leasehold_host::{DirectoryError, ServeError};
use leasehold_wal::OpenError;

use crate::caller::Caller;
use crate::place::{Mount, contents, first_segment, other_process, refusal, run, serve};

/// A directory that was served, with a lease in it.
fn used() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let server = serve(directory.path());
    let mut caller = Caller::new(directory.path());
    let mut member = caller.member(1, Millis::new(60_000));
    caller.take(&mut member, "job");
    assert!(server.stop().is_none());
    directory
}

/// Why a directory is not served, after making sure that the attempt left it as it was.
fn untouched_refusal(path: &Path) -> ServeError {
    let before = contents(path);
    let error = refusal(path);
    assert_eq!(contents(path), before, "{error}, but something was changed");
    error
}

#[test]
fn a_copied_directory_is_refused_naming_both_inodes() {
    let original = used();
    let root = tempfile::tempdir().unwrap();
    let copy = root.path().join("copy");
    run("cp", &["-r", &original.path().display().to_string(), &copy.display().to_string()]);
    let inode = |path: &Path| std::fs::metadata(path.join("lock")).unwrap().ino();
    let error = untouched_refusal(&copy);
    let text = error.to_string();
    for inode in [inode(original.path()), inode(&copy)] {
        assert!(text.contains(&inode.to_string()), "{text} does not name {inode}");
    }
    assert!(matches!(error, ServeError::Log { source: OpenError::CopiedDirectory { .. }, .. }), "{text}");
    drop(serve(original.path()));
}

#[test]
fn a_newer_layout_is_refused() {
    let directory = used();
    let lock = directory.path().join("lock");
    let text = std::fs::read_to_string(&lock).unwrap();
    std::fs::write(&lock, text.replacen("leasehold     1", "leasehold     2", 1)).unwrap();
    let error = untouched_refusal(directory.path());
    assert!(
        matches!(error, ServeError::Directory(DirectoryError::NewerFormat { found: 2, known: 1, .. })),
        "{error}"
    );
    std::fs::write(&lock, text).unwrap();
    drop(serve(directory.path()));
}

#[test]
fn a_newer_version_of_a_segment_is_refused() {
    let directory = used();
    let segment = first_segment(directory.path());
    let good = std::fs::read(&segment).unwrap();
    let mut newer = good.clone();
    newer[8..10].copy_from_slice(&2_u16.to_le_bytes());
    let crc = crc32c(0x4c48_0b10, &newer[4..512]);
    newer[..4].copy_from_slice(&crc.to_le_bytes());
    std::fs::write(&segment, newer).unwrap();
    let error = untouched_refusal(directory.path());
    assert!(
        matches!(error, ServeError::Log { source: OpenError::NewerVersion { version: 2, .. }, .. }),
        "{error}"
    );
    std::fs::write(&segment, good).unwrap();
    drop(serve(directory.path()));
}

/// The checksum of blocks, bit by bit.
fn crc32c(seed: u32, bytes: &[u8]) -> u32 {
    let step = |crc: u32| if crc & 1 == 1 { crc >> 1 ^ 0x82F6_3B78 } else { crc >> 1 };
    !bytes.iter().fold(!seed, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), |crc, _| step(crc)))
}

#[test]
fn a_directory_that_lost_its_log_is_not_taken_for_a_new_one() {
    let directory = used();
    std::fs::remove_dir_all(directory.path().join("log")).unwrap();
    let error = untouched_refusal(directory.path());
    assert!(matches!(error, ServeError::Log { source: OpenError::Missing, .. }), "{error}");
    // Neither if only the files are gone.
    std::fs::create_dir(directory.path().join("log")).unwrap();
    let error = untouched_refusal(directory.path());
    assert!(matches!(error, ServeError::Log { source: OpenError::Missing, .. }), "{error}");
}

#[test]
fn a_damaged_log_is_refused_with_file_and_place() {
    let directory = used();
    let segment = first_segment(directory.path());
    let mut bytes = std::fs::read(&segment).unwrap();
    bytes[600] ^= 1;
    std::fs::write(&segment, bytes).unwrap();
    let error = untouched_refusal(directory.path());
    let text = error.to_string();
    assert!(matches!(error, ServeError::Log { source: OpenError::Damage(_), .. }), "{text}");
    assert!(text.contains("segment-") && text.contains("512"), "{text}");
}

#[test]
fn a_file_is_not_a_directory() {
    let root = tempfile::tempdir().unwrap();
    let file = root.path().join("file");
    std::fs::write(&file, "text").unwrap();
    for path in [file.clone(), file.join("below")] {
        let error = refusal(&path);
        assert!(matches!(error, ServeError::Directory(DirectoryError::Io { .. })), "{error}");
        assert!(error.to_string().contains("file"), "{error}");
    }
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "text");
}

#[test]
fn a_lock_file_that_is_not_ours_is_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("lock"), "the lock of something else").unwrap();
    let error = untouched_refusal(directory.path());
    assert!(matches!(error, ServeError::Directory(DirectoryError::NotOurs { .. })), "{error}");
}

#[test]
fn somebody_without_rights_is_refused() {
    let directory = used();
    std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o700)).unwrap();
    let nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];
    let before = contents(directory.path());
    let said = other_process(&nobody, directory.path());
    assert!(said.starts_with("refused: ") && said.contains("ermission denied"), "{said}");
    // Neither may somebody look whom only the directory lets in.
    std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let said = other_process(&nobody, directory.path());
    assert!(said.starts_with("refused: ") && said.contains("ermission denied"), "{said}");
    assert_eq!(contents(directory.path()), before);
}

#[test]
fn a_file_system_that_cannot_be_written_is_refused() {
    let mount = Mount::new("tmpfs", "size=4m");
    let path = mount.path().join("store");
    drop(serve(&path));
    mount.remount("ro");
    let error = untouched_refusal(&path);
    assert!(error.to_string().contains("ead-only"), "{error}");
    let error = refusal(&mount.path().join("another"));
    assert!(error.to_string().contains("ead-only"), "{error}");
    mount.remount("rw");
    drop(serve(&path));
}

/// Where locks or syncs may not mean what they must, nothing is made, not even a directory.
#[test]
fn a_file_system_that_is_not_known_is_refused_by_its_type() {
    const RAMFS: u64 = 0x8584_58f6;
    let mount = Mount::new("ramfs", "mode=700");
    for path in [mount.path().to_owned(), mount.path().join("store"), mount.path().join("a").join("b")] {
        match refusal(&path) {
            ServeError::Directory(error @ DirectoryError::FileSystem { kind, .. }) => {
                assert_eq!(kind, RAMFS);
                assert!(error.to_string().contains("0x858458f6"), "{error}");
            }
            other => panic!("{other}"),
        }
    }
    assert!(contents(mount.path()).is_empty());
    let error = refusal(Path::new("/proc/leasehold"));
    assert!(error.to_string().contains("0x9fa0"), "{error}");
}
