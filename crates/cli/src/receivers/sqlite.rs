//! A file of SQLite.

use std::path::PathBuf;
use std::sync::Arc;

use leasehold::fence::{Answer, Error as FenceError, Receiver, Seen, Stamp};
use leasehold_fence::sqlite::Fence;
use sqlx::SqlitePool;
use sqlx::sqlite::SqliteConnectOptions;

const HOW: &str = "write sqlite:PATH";

/// A fence in a file that somebody else makes: the driver says of one that is missing only that it cannot be opened.
#[derive(Debug)]
struct InFile {
    path: PathBuf,
    fence: Fence,
}

pub(super) fn open(rest: &str) -> Result<Arc<dyn Receiver>, String> {
    // As other programs write it, where everything behind two slashes is the path.
    let path = rest.strip_prefix("//").unwrap_or(rest);
    if path.is_empty() {
        return Err(format!("it names no file; {HOW}"));
    }
    if path.contains(":memory:") {
        return Err(format!("it is a database in memory, which no other process can see; {HOW}"));
    }
    if path.contains('?') {
        return Err(format!("it has a query; {HOW} alone"));
    }
    let pool = SqlitePool::connect_lazy_with(SqliteConnectOptions::new().filename(path));
    Ok(Arc::new(InFile { path: path.into(), fence: Fence::new(pool) }))
}

impl InFile {
    fn must_be_there(&self) -> Result<(), FenceError> {
        let why = match std::fs::metadata(&self.path) {
            Ok(found) if found.is_file() => return Ok(()),
            Ok(_) => "it is no file; name the file of the database".to_owned(),
            Err(error) => format!("{error}; name the file that the program which writes to it has made"),
        };
        Err(FenceError::lasting(self.place(), why))
    }
}

impl Receiver for InFile {
    fn place(&self) -> &str {
        self.fence.place()
    }

    fn seal<'a>(&'a self, stamp: &'a Stamp) -> Answer<'a, ()> {
        Box::pin(async move {
            self.must_be_there()?;
            self.fence.seal(stamp).await
        })
    }

    fn look<'a>(&'a self, name: &'a str) -> Answer<'a, Seen> {
        Box::pin(async move {
            self.must_be_there()?;
            self.fence.look(name).await
        })
    }
}
