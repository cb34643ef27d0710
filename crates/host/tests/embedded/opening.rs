//! Who serves: one process, under a lock that nobody steals.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::time::Duration;

use leasehold_core::Millis;
use leasehold_host::{DirectoryError, EmbeddedOptions, ServeError, try_serve};
use leasehold_wal::OpenError;

use crate::caller::{Caller, token_of};
use crate::place::{contents, other_process, refusal, serve, wait_until};

const TTL: Millis = Millis::new(60_000);

fn is_taken(path: &Path) -> bool {
    try_serve(path, &EmbeddedOptions::default()).unwrap().is_none()
}

#[test]
fn the_socket_of_a_dead_server_is_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("socket");
    // What a server leaves behind that was killed: a name without a listener.
    drop(UnixListener::bind(&socket).unwrap());
    let _server = serve(directory.path());
    assert!(Caller::new(directory.path()).lease("job").is_none());
    let mode = std::fs::metadata(&socket).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "whoever may not open the lock file may not connect either");
}

#[test]
fn a_directory_whose_path_is_longer_than_a_socket_address_is_served() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("d".repeat(200)).join("e".repeat(200));
    let server = serve(&path);
    let mut caller = Caller::new(&path);
    let mut member = caller.member(1, TTL);
    let token = caller.take(&mut member, "job").token;
    assert!(server.stop().is_none());
    let _server = serve(&path);
    assert_eq!(token_of(&Caller::new(&path).lease("job").unwrap()), token);
}

#[test]
fn only_one_serves_in_this_process_and_in_others() {
    let directory = tempfile::tempdir().unwrap();
    let server = serve(directory.path());
    assert!(is_taken(directory.path()));
    assert_eq!(other_process(&[], directory.path()), "taken");
    assert!(server.is_serving());
    assert!(server.stop().is_none());
    assert_eq!(other_process(&[], directory.path()), "served");
}

/// Somebody else may lock another file of that name: the one without a link must stop, and until then nobody else serves.
#[test]
fn a_server_whose_lock_file_was_removed_stops_and_there_are_never_two() {
    let directory = tempfile::tempdir().unwrap();
    let server = serve(directory.path());
    let mut caller = Caller::new(directory.path());
    let mut member = caller.member(1, TTL);
    let token = caller.take(&mut member, "job").token;
    let lock = directory.path().join("lock");
    let inode = std::fs::metadata(&lock).unwrap().ino();
    std::fs::remove_file(&lock).unwrap();

    // The log names the inode of its lock file. That of a new one is another as long as the old one is open.
    if server.is_serving() {
        match refusal(directory.path()) {
            ServeError::Log { source: OpenError::CopiedDirectory { recorded, found, .. }, .. } => {
                assert_eq!(recorded, inode);
                assert_ne!(found, inode);
            }
            other => panic!("{other}"),
        }
    }
    wait_until("the server stops", Duration::from_secs(30), || !server.is_serving());
    while caller.receive().is_some() {}
    assert_eq!(server.stop().as_deref(), Some("its lock file was removed"));

    // With its lock file back under its name, whatever way, it would be the same directory. Under any other it is a copy.
    std::fs::remove_file(&lock).unwrap();
    match try_serve(directory.path(), &EmbeddedOptions::default()) {
        // The file system has given the same inode again: it is that directory, and nothing of it is lost.
        Ok(served) => {
            let _server = served.expect("nobody else serves");
            assert_eq!(std::fs::metadata(&lock).unwrap().ino(), inode);
            assert_eq!(token_of(&Caller::new(directory.path()).lease("job").unwrap()), token);
        }
        Err(ServeError::Log { source: OpenError::CopiedDirectory { recorded, .. }, .. }) => {
            assert_eq!(recorded, inode);
        }
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn a_server_whose_directory_was_moved_away_stops_and_goes_on_at_its_new_place() {
    let root = tempfile::tempdir().unwrap();
    let (old, new) = (root.path().join("old"), root.path().join("new"));
    let server = serve(&old);
    let mut caller = Caller::new(&old);
    let mut member = caller.member(1, TTL);
    let token = caller.take(&mut member, "job").token;
    std::fs::rename(&old, &new).unwrap();
    wait_until("the server stops", Duration::from_secs(30), || !server.is_serving());
    drop(server);
    let _server = serve(&new);
    assert_eq!(token_of(&Caller::new(&new).lease("job").unwrap()), token);
}

/// One that is moved away while a server has it open takes its files with it: nothing of the old log is written at the old path.
#[test]
fn a_directory_in_the_place_of_another_gets_none_of_its_files() {
    let root = tempfile::tempdir().unwrap();
    let (path, away) = (root.path().join("store"), root.path().join("away"));
    let server = serve(&path);
    let mut caller = Caller::new(&path);
    let mut member = caller.member(1, TTL);
    std::fs::rename(&path, &away).unwrap();
    std::fs::create_dir_all(path.join("log")).unwrap();
    // In one frame, so in one entry: more than the first segment holds, so that another must be made at once.
    let large = (0..8).map(|number| member.acquire_with(&format!("job-{number}"), vec![1; 60_000]));
    let requests = large.collect();
    caller.send(requests);
    wait_until("the server stops", Duration::from_secs(30), || !server.is_serving());
    drop(server);
    let names: Vec<_> = contents(&path).into_keys().collect();
    assert_eq!(names, [path.join("log")]);
}

#[test]
fn a_directory_that_must_exist_is_not_made() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("store");
    let options = EmbeddedOptions { must_exist: true, ..EmbeddedOptions::default() };
    let error = try_serve(&path, &options).unwrap_err();
    assert!(matches!(error, ServeError::Directory(DirectoryError::Io { .. })), "{error}");
    assert!(!path.exists());
    drop(serve(&path));
    assert!(try_serve(&path, &options).unwrap().is_some());
}
