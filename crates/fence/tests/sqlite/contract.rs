//! The contract: conformance, mistakes that it has to find, names, counts, refusals, settings.

use std::sync::Arc;
use std::time::Duration;

use leasehold_fence::conformance::{Load, Report, Subject, Trouble, Violation, Writer, Written, run};
use leasehold_fence::sqlite::Fence;
use leasehold_fence::{Authority, Counts, Error, NoAuthority, Outcome, Receiver, Stale, Stamp};
use sqlx::sqlite::{SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{Executor as _, SqlitePool};

use super::{file, highest, insert, open, stamp, tokens, wal, write};

#[tokio::test]
async fn the_table_takes_no_token_below_one_whoever_writes_it() {
    let file = wal().await;
    for token in [0, -1] {
        let row = format!("INSERT INTO leasehold_fence (name, token) VALUES ('job', {token})");
        let error = file.pool.execute(row.as_str()).await.unwrap_err().to_string();
        assert!(error.contains("CHECK constraint failed"), "{token}: {error}");
    }
}

/// How a writer of the suite writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum How {
    Transaction,
    Enter,
    NoCheck,
    CheckThenAct,
}

#[derive(Clone)]
struct Subjected {
    pool: SqlitePool,
    fence: Fence,
    how: How,
}

impl Subject for Subjected {
    type Writer = Self;

    fn receiver(&self) -> Arc<dyn Receiver> {
        Arc::new(self.fence.clone())
    }

    async fn writer(&self) -> Result<Self, Trouble> {
        Ok(self.clone())
    }

    async fn written(&self, name: &str) -> Result<Vec<Written>, Trouble> {
        let asked = sqlx::query_as("SELECT token, value FROM written WHERE name = ? ORDER BY id").bind(name);
        let rows: Vec<(i64, String)> = asked.fetch_all(&self.pool).await?;
        Ok(rows.into_iter().map(|(token, value)| Written { token: token.cast_unsigned(), value }).collect())
    }
}

impl Writer for Subjected {
    async fn write(&mut self, stamp: &Stamp, value: &str) -> Result<(), Error> {
        let failed = |error| Error::failed("test", error);
        match self.how {
            How::Transaction => write(&self.fence, stamp, value).await,
            How::Enter => {
                let mut tx = self.pool.begin().await.map_err(failed)?;
                self.fence.enter(&mut tx, stamp).await?;
                insert(&mut tx, stamp, value).await.map_err(failed)?;
                tx.commit().await.map_err(failed)
            }
            mistake => match self.with_a(mistake, stamp, value).await.map_err(failed)? {
                None => Ok(()),
                Some(stale) => Err(stale.into()),
            },
        }
    }
}

impl Subjected {
    async fn with_a(&self, mistake: How, stamp: &Stamp, value: &str) -> Result<Option<Stale>, sqlx::Error> {
        let mut conn = self.pool.acquire().await?;
        if mistake == How::CheckThenAct {
            let raise = "INSERT INTO leasehold_fence (name, token) VALUES (?, ?) ON CONFLICT (name) DO UPDATE
                SET token = max(token, excluded.token) RETURNING token";
            let raise = sqlx::query_scalar::<_, i64>(raise).bind(stamp.name()).bind(stamp.signed_token());
            let highest = raise.fetch_one(&mut *conn).await?.cast_unsigned();
            if highest > stamp.token() {
                let (name, token) = (stamp.name().to_owned(), stamp.token());
                return Ok(Some(Stale { name, token, highest: Some(highest) }));
            }
            // A pause between looking and acting, for every other holder.
            if stamp.token().is_multiple_of(2) {
                tokio::time::sleep(Duration::from_millis(30)).await;
            }
        }
        insert(&mut conn, stamp, value).await?;
        Ok(None)
    }
}

async fn suite(how: How, journal: SqliteJournalMode) -> Result<Report, Violation> {
    let file = file(journal).await;
    run(&Subjected { pool: file.pool, fence: file.fence, how }, "suite", Load::default()).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn transactions_pass_the_suite_in_both_journal_modes() {
    for journal in [SqliteJournalMode::Wal, SqliteJournalMode::Delete] {
        let report = suite(How::Transaction, journal).await.unwrap();
        println!("conformance of sqlite, {journal:?}: {report}");
        assert_eq!((report.races, report.failed, report.unknown), (8, 0, 0));
        assert!(report.stale_tried > 50, "{report}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn entering_a_deferred_transaction_first_passes_the_suite() {
    let report = suite(How::Enter, SqliteJournalMode::Wal).await.unwrap();
    println!("conformance of sqlite, enter: {report}");
    assert_eq!((report.races, report.unknown), (8, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_suite_finds_a_write_without_its_check() {
    for how in [How::NoCheck, How::CheckThenAct] {
        match suite(how, SqliteJournalMode::Wal).await {
            Err(Violation::Broken { rule, what }) => {
                println!("planted {how:?}: {rule}: {what}");
                assert_eq!(rule, "tokens never fall", "{how:?}: {what}");
            }
            other => panic!("{how:?}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn names_are_compared_byte_for_byte() {
    let file = wal().await;
    let names = ["a", "A", "a ", "a  ", "á", "a\u{301}", " a", "1", "01", "1.0"];
    for (nth, name) in names.into_iter().enumerate() {
        // Each has a smaller token than the one before: any two that were one name would refuse the second.
        write(&file.fence, &stamp(name, 1000 - nth as u64), "x").await.unwrap();
    }
    for (nth, name) in names.into_iter().enumerate() {
        let token = 1000 - nth as u64;
        assert_eq!(file.fence.look(name).await.unwrap().highest.unwrap().token, token, "{name:?}");
    }
}

#[tokio::test]
async fn tokens_above_doubles_differ_and_the_greatest_is_kept() {
    let file = wal().await;
    let beyond = (1 << 53) + 1;
    write(&file.fence, &stamp("a", beyond), "x").await.unwrap();
    assert_eq!(highest(write(&file.fence, &stamp("a", beyond - 1), "x").await), Some(beyond));
    file.fence.seal(&stamp("a", i64::MAX as u64)).await.unwrap();
    assert_eq!(highest(write(&file.fence, &stamp("a", beyond), "x").await), Some(i64::MAX as u64));
}

struct Lapsed;

impl Authority for Lapsed {
    fn stamp(&self) -> Result<Stamp, NoAuthority> {
        Err(NoAuthority { name: "a".to_owned(), why: "the lease is over".to_owned() })
    }
}

#[tokio::test]
async fn every_end_is_counted_once() {
    let file = wal().await;
    let counts = Counts::default();
    let fence = file.fence.clone().counted(&counts);
    let place = fence.place().to_owned();
    fence.seal(&stamp("a", 5)).await.unwrap();
    fence.seal(&stamp("a", 4)).await.unwrap_err();
    write(&fence, &stamp("a", 5), "x").await.unwrap();
    write(&fence, &stamp("a", 4), "x").await.unwrap_err();
    fence.transaction(&Lapsed, async |_| Ok(())).await.unwrap_err();
    fence.enter(&mut file.pool.acquire().await.unwrap(), &Lapsed).await.unwrap_err();
    let failed =
        fence.transaction(&stamp("a", 5), async |_| Err::<(), _>("no paper".into())).await.unwrap_err();
    assert!(failed.to_string().ends_with("nothing was written: no paper"), "{failed}");
    let fifth = stamp("a", 5);
    let never = fence.transaction(&fifth, async |_| {
        std::future::pending::<()>().await;
        Ok(())
    });
    tokio::time::timeout(Duration::from_millis(50), never).await.unwrap_err();
    let ends = [Outcome::Lapsed, Outcome::Accepted, Outcome::Stale, Outcome::Failed, Outcome::Unknown];
    assert_eq!(ends.map(|end| counts.seals(&place, end)), [0, 1, 1, 0, 0]);
    assert_eq!(ends.map(|end| counts.writes(&place, end)), [2, 1, 1, 2, 0]);
}

#[tokio::test]
async fn the_last_refusals_are_kept_and_shown_with_who_and_when() {
    let file = wal().await;
    let fence = &file.fence;
    assert_eq!(fence.look("a").await.unwrap().highest, None);
    fence.seal(&stamp("a", 100)).await.unwrap();
    for token in 1..=20 {
        if token % 2 == 0 {
            fence.seal(&stamp("a", token)).await.unwrap_err();
        } else {
            write(fence, &stamp("a", token), "x").await.unwrap_err();
        }
    }
    let seen = fence.look("a").await.unwrap();
    let mark = seen.highest.unwrap();
    assert_eq!((mark.token, mark.holder.as_deref()), (100, Some("holder-100")));
    let refusals = seen.refusals.unwrap();
    let kept: Vec<u64> = refusals.iter().map(|refused| refused.token).collect();
    assert_eq!(kept, (5..=20).rev().collect::<Vec<_>>());
    assert_eq!((refusals[0].highest, refusals[0].holder.as_deref()), (100, Some("holder-20")));
    let at = refusals[0].at.as_deref().unwrap();
    assert!(
        at.starts_with("20") && at.ends_with('Z') && at.len() == "2026-01-01T00:00:00.000Z".len(),
        "{at}"
    );
}

#[tokio::test]
async fn settings_that_forget_are_refused_by_name_and_write_nothing() {
    let file = wal().await;
    write(&file.fence, &stamp("a", 1), "x").await.unwrap();
    for (level, word) in [(SqliteSynchronous::Normal, "NORMAL"), (SqliteSynchronous::Off, "OFF")] {
        let pool = open(file.directory.path(), |options| options.synchronous(level)).await;
        let fence = Fence::new(pool.clone());
        let error = write(&fence, &stamp("a", 2), "x").await.unwrap_err();
        assert_eq!(error.outcome(), Outcome::Failed);
        assert!(error.to_string().contains(&format!("synchronous is {word},")), "{error}");
        fence.migrate().await.unwrap_err();
        fence.seal(&stamp("a", 2)).await.unwrap_err();
        let mut tx = pool.begin().await.unwrap();
        fence.enter(&mut tx, &stamp("a", 2)).await.unwrap_err();
        tx.rollback().await.unwrap();
        assert_eq!(fence.look("a").await.unwrap().highest.unwrap().token, 1);
        write(&fence.volatile(), &stamp("a", 1), "x").await.unwrap();
    }
    for level in [SqliteSynchronous::Full, SqliteSynchronous::Extra] {
        let pool = open(file.directory.path(), |options| options.synchronous(level)).await;
        write(&Fence::new(pool), &stamp("a", 1), "x").await.unwrap();
    }
    assert_eq!(tokens(&file.pool, "a").await, [1; 5]);
    let other = super::file(SqliteJournalMode::Delete).await;
    for (mode, word) in [(SqliteJournalMode::Memory, "memory"), (SqliteJournalMode::Off, "off")] {
        let pool = open(other.directory.path(), |options| options.journal_mode(mode)).await;
        let error = write(&Fence::new(pool), &stamp("a", 2), "x").await.unwrap_err();
        assert!(error.to_string().contains(&format!("journal_mode is {word},")), "{error}");
    }
}

#[tokio::test]
async fn a_database_in_memory_is_for_those_who_say_so() {
    let pool = SqlitePoolOptions::new().max_connections(1).connect("sqlite::memory:").await.unwrap();
    let said = Fence::new(pool.clone()).migrate().await.unwrap_err().to_string();
    assert!(said.contains("say Fence::volatile for a database in memory"), "{said}");
    let fence = Fence::new(pool).volatile();
    fence.migrate().await.unwrap();
    fence.seal(&stamp("a", 2)).await.unwrap();
    assert_eq!(highest(fence.seal(&stamp("a", 1)).await), Some(2));
}

#[tokio::test]
async fn a_missing_table_is_named_with_what_to_do() {
    let file = wal().await;
    file.pool.execute("DROP TABLE leasehold_fence").await.unwrap();
    let error = write(&file.fence, &stamp("a", 1), "x").await.unwrap_err();
    assert!(error.to_string().contains("leasehold_fence is missing; call Fence::migrate"), "{error}");
    assert!(file.fence.place().starts_with("sqlite:/") && file.fence.place().ends_with("/data.db"));
}
