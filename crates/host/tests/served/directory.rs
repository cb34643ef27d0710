//! A directory is served or embedded for its whole life, and by one process at a time.

use leasehold_host::{DirectoryError, EmbeddedOptions, ServeError, ServedOptions, serve, try_serve};

use crate::person::{Person, served};

#[tokio::test]
async fn the_directory_of_a_service_is_not_used_embedded() {
    let directory = tempfile::tempdir().unwrap();
    let running = served(directory.path());
    let token = Person::open(running.caller()).await.take("job").await;
    drop(running);
    let error = try_serve(directory.path(), &EmbeddedOptions::default()).unwrap_err();
    assert!(matches!(error, ServeError::Directory(DirectoryError::Served { .. })), "{error}");
    assert!(error.to_string().contains(directory.path().to_str().unwrap()), "{error}");
    // It is as it was.
    let running = served(directory.path());
    assert!(Person::open(running.caller()).await.take("another").await > token);
}

#[test]
fn an_embedded_directory_is_not_served() {
    let directory = tempfile::tempdir().unwrap();
    drop(try_serve(directory.path(), &EmbeddedOptions::default()).unwrap());
    let error = serve(directory.path(), ServedOptions::default()).unwrap_err();
    assert!(matches!(error, ServeError::Directory(DirectoryError::Embedded { .. })), "{error}");
    assert!(try_serve(directory.path(), &EmbeddedOptions::default()).unwrap().is_some());
}

#[tokio::test]
async fn a_second_service_on_one_directory_is_refused_naming_the_process() {
    let directory = tempfile::tempdir().unwrap();
    let running = served(directory.path());
    let error = serve(directory.path(), ServedOptions::default()).unwrap_err();
    match &error {
        ServeError::InUse { pid, path } => {
            assert_eq!((*pid, path.as_path()), (std::process::id(), directory.path()));
        }
        other => panic!("{other}"),
    }
    assert!(error.to_string().contains(&format!("pid {}", std::process::id())), "{error}");
    Person::open(running.caller()).await.take("job").await;
    drop(running);
    drop(served(directory.path()));
}
