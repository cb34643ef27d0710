//! The server is killed between the check and the write, and at the commit.

use std::ops::{Deref, DerefMut};
use std::time::Duration;

use leasehold_fence::{Outcome, Receiver};
use leasehold_kit::{Receiver as _, mariadb};
use tokio::sync::RwLockWriteGuard;

use super::{SERVER, database_on, highest, insert, stamp, tokens, write};

/// The server, for one test alone. If that fails the others find a server that runs.
struct Alone(RwLockWriteGuard<'static, mariadb::Server>);

impl Deref for Alone {
    type Target = mariadb::Server;

    fn deref(&self) -> &mariadb::Server {
        &self.0
    }
}

impl DerefMut for Alone {
    fn deref_mut(&mut self) -> &mut mariadb::Server {
        &mut self.0
    }
}

impl Drop for Alone {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.restart().unwrap();
        }
    }
}

/// Stops the server, and returns when all of its threads stand still.
fn pause(server: &mariadb::Server) -> u32 {
    server.pause().unwrap();
    let id = server.process().id().unwrap();
    let stands = |thread: std::fs::DirEntry| {
        let stat = std::fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
        stat.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with('T'))
    };
    let tasks = format!("/proc/{id}/task");
    while !std::fs::read_dir(&tasks).unwrap().all(|thread| stands(thread.unwrap())) {
        std::thread::sleep(Duration::from_millis(1));
    }
    id
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_between_check_and_write_nothing_is_half_done() {
    let mut server = Alone(SERVER.write().await);
    let (pool, fence) = database_on(&server.url(), 4).await;
    write(&fence, &stamp("a", 33), "before").await.unwrap();
    fence.seal(&stamp("a", 34)).await.unwrap();
    let stamp_of_35 = &stamp("a", 35);
    let error = {
        let server = &mut server;
        fence.transaction(stamp_of_35, async |tx| {
            insert(tx, stamp_of_35, "half").await?;
            server.kill()?;
            insert(tx, stamp_of_35, "other half").await?;
            Ok(())
        })
    };
    let error = error.await.unwrap_err();
    assert_eq!(error.outcome(), Outcome::Failed, "{error}");
    server.restart().unwrap();
    assert_eq!(tokens(&pool, "a").await, [33]);
    assert_eq!(fence.look("a").await.unwrap().highest.unwrap().token, 34, "35 was never committed");
    assert_eq!(highest(write(&fence, &stamp("a", 33), "stale").await), Some(34));
    write(&fence, stamp_of_35, "again").await.unwrap();
    assert_eq!(tokens(&pool, "a").await, [33, 35]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_at_the_commit_nobody_can_say() {
    let mut server = Alone(SERVER.write().await);
    let (pool, fence) = database_on(&server.url(), 4).await;
    fence.seal(&stamp("a", 33)).await.unwrap();
    let stamp_of_33 = &stamp("a", 33);
    // It stands still before the commit is sent, and dies with the commit in its ears.
    let paused = &*server;
    let write = fence.transaction(stamp_of_33, async |tx| {
        insert(tx, stamp_of_33, "x").await?;
        let id = pause(paused);
        std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(500));
            std::process::Command::new("kill").args(["-9", &id.to_string()]).status().unwrap();
        });
        Ok(())
    });
    let error = write.await.unwrap_err();
    assert_eq!(error.outcome(), Outcome::Unknown, "{error}");
    server.restart().unwrap();
    assert!(tokens(&pool, "a").await.len() <= 1);
    assert_eq!(fence.look("a").await.unwrap().highest.unwrap().token, 33);
}

#[tokio::test]
async fn an_accepted_write_and_its_token_survive_the_server() {
    let mut server = Alone(SERVER.write().await);
    let (pool, fence) = database_on(&server.url(), 2).await;
    for token in [1, 1, 2] {
        write(&fence, &stamp("a", token), "x").await.unwrap();
    }
    server.kill().unwrap();
    let error = write(&fence, &stamp("a", 2), "nobody there").await.unwrap_err();
    assert_eq!(error.outcome(), Outcome::Failed, "{error}");
    server.restart().unwrap();
    assert_eq!(tokens(&pool, "a").await, [1, 1, 2]);
    assert_eq!(highest(fence.seal(&stamp("a", 1)).await), Some(2));
}
