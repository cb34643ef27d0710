//! Several processes on one file; one is killed between the check and the write. The other process is this program again, which
//! runs `the_other_process` alone and is told by a variable what to do.

use std::io::{BufRead as _, BufReader, Lines};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use leasehold_fence::Receiver;
use leasehold_fence::sqlite::Fence;
use sqlx::sqlite::SqliteJournalMode;

use super::{file, highest, insert, open, stamp, tokens, write};

const FILE: &str = "LEASEHOLD_TEST_SQLITE_DIRECTORY";
const ORDER: &str = "LEASEHOLD_TEST_SQLITE_ORDER";

struct Other {
    process: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Other {
    fn start(directory: &Path, order: &str) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "sqlite::processes::the_other_process", "--nocapture"]);
        command.env(FILE, directory).env(ORDER, order).stdout(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        Self { process, lines }
    }

    fn wait_for(&mut self, word: &str) -> String {
        let mut lines = self.lines.by_ref().map(Result::unwrap);
        lines.find(|line| line.starts_with(word)).unwrap_or_else(|| panic!("it did not say {word}"))
    }

    /// SIGKILL.
    fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[tokio::test]
async fn the_other_process() {
    let (Ok(directory), Ok(order)) = (std::env::var(FILE), std::env::var(ORDER)) else { return };
    let fence = Fence::new(open(Path::new(&directory), |options| options).await);
    let old = &stamp("a", 33);
    match order.as_str() {
        "stay inside" => {
            let newest = &stamp("a", 35);
            let inside = fence.transaction(newest, async |tx| {
                insert(tx, newest, "half").await?;
                println!("\ninside");
                std::future::pending::<()>().await;
                Ok(())
            });
            inside.await.unwrap();
        }
        "write until refused" => {
            // A bound, so that a fence that refuses nobody fails the test and does not hang it.
            for count in 0..3000 {
                match write(&fence, old, "old").await {
                    Ok(()) if count == 20 => println!("\nwriting"),
                    Ok(()) => {}
                    Err(error) => {
                        println!("\nrefused after {count}: {error}");
                        return;
                    }
                }
            }
        }
        other => panic!("unknown order {other}"),
    }
}

#[tokio::test]
async fn a_process_killed_between_check_and_write_leaves_nothing_half_done() {
    for journal in [SqliteJournalMode::Wal, SqliteJournalMode::Delete] {
        let file = file(journal).await;
        write(&file.fence, &stamp("a", 33), "before").await.unwrap();
        file.fence.seal(&stamp("a", 34)).await.unwrap();
        let mut other = Other::start(file.directory.path(), "stay inside");
        other.wait_for("inside");
        other.kill();
        // Its lock is gone with it, and so is what it had not committed.
        assert_eq!(tokens(&file.pool, "a").await, [33]);
        assert_eq!(file.fence.look("a").await.unwrap().highest.unwrap().token, 34, "35 was never committed");
        assert_eq!(highest(write(&file.fence, &stamp("a", 33), "stale").await), Some(34));
        write(&file.fence, &stamp("a", 35), "again").await.unwrap();
        assert_eq!(tokens(&file.pool, "a").await, [33, 35]);
    }
}

#[tokio::test]
async fn a_seal_in_one_process_refuses_the_next_write_of_another() {
    for journal in [SqliteJournalMode::Wal, SqliteJournalMode::Delete] {
        let file = file(journal).await;
        let mut other = Other::start(file.directory.path(), "write until refused");
        other.wait_for("writing");
        file.fence.seal(&stamp("a", 34)).await.unwrap();
        let at_the_seal = tokens(&file.pool, "a").await.len();
        let said = other.wait_for("refused");
        assert!(said.contains("token 33 of a is stale: the receiver has seen 34"), "{said}");
        assert!(other.process.wait().unwrap().success());
        let after = tokens(&file.pool, "a").await;
        assert_eq!(after.len(), at_the_seal, "nothing was written after the seal");
        assert!(
            said.starts_with(&format!("refused after {at_the_seal}:")),
            "{said} but {at_the_seal} stand there"
        );
        let refusals = file.fence.look("a").await.unwrap().refusals.unwrap();
        assert_eq!((refusals.len(), refusals[0].token), (1, 33));
    }
}

/// What was accepted is there when the process that wrote it is killed, and so is its token.
#[tokio::test]
async fn what_was_accepted_survives_the_process() {
    let file = file(SqliteJournalMode::Wal).await;
    let mut other = Other::start(file.directory.path(), "write until refused");
    other.wait_for("writing");
    other.kill();
    let written = tokens(&file.pool, "a").await;
    assert!(written.len() > 20 && written.iter().all(|token| *token == 33), "{written:?}");
    assert_eq!(highest(write(&file.fence, &stamp("a", 32), "stale").await), Some(33));
}
