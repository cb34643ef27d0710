//! The contract: conformance, mistakes that it has to find, names, counts, refusals.

use std::sync::Arc;
use std::time::Duration;

use leasehold_fence::conformance::{Load, Subject, Trouble, Violation, Writer, Written, run};
use leasehold_fence::mysql::Fence;
use leasehold_fence::{Authority, Counts, Error, NoAuthority, Outcome, Receiver, Stale, Stamp};
use sqlx::{Executor as _, MySqlPool};

use super::{database, highest, insert, stamp, tokens, write};

/// How a writer of the suite writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum How {
    Transaction,
    Enter,
    NoCheck,
    CheckThenAct,
    PlainSelect,
}

struct Database {
    pool: MySqlPool,
    fence: Fence,
    how: How,
}

struct ByHand {
    pool: MySqlPool,
    fence: Fence,
    how: How,
}

impl Subject for Database {
    type Writer = ByHand;

    fn receiver(&self) -> Arc<dyn Receiver> {
        Arc::new(self.fence.clone())
    }

    async fn writer(&self) -> Result<ByHand, Trouble> {
        Ok(ByHand { pool: self.pool.clone(), fence: self.fence.clone(), how: self.how })
    }

    async fn written(&self, name: &str) -> Result<Vec<Written>, Trouble> {
        let rows: Vec<(i64, String)> =
            sqlx::query_as("SELECT token, value FROM written WHERE name = ? ORDER BY id")
                .bind(name.as_bytes())
                .fetch_all(&self.pool)
                .await?;
        Ok(rows.into_iter().map(|(token, value)| Written { token: token.cast_unsigned(), value }).collect())
    }
}

impl Writer for ByHand {
    async fn write(&mut self, stamp: &Stamp, value: &str) -> Result<(), Error> {
        match self.how {
            How::Transaction => write(&self.fence, stamp, value).await,
            How::Enter => {
                let mut tx = self.pool.begin().await.map_err(|error| Error::failed("begin", error))?;
                self.fence.enter(&mut tx, stamp).await?;
                insert(&mut tx, stamp, value).await.map_err(|error| Error::failed("insert", error))?;
                tx.commit().await.map_err(|error| Error::unknown("commit", error))
            }
            mistake => match self.with_a(mistake, stamp, value).await {
                Ok(None) => Ok(()),
                Ok(Some(stale)) => Err(stale.into()),
                Err(error) => Err(Error::failed("test", error)),
            },
        }
    }
}

impl ByHand {
    async fn with_a(&self, mistake: How, stamp: &Stamp, value: &str) -> Result<Option<Stale>, sqlx::Error> {
        let mut tx = self.pool.begin().await?;
        let checked = match mistake {
            How::PlainSelect => "SELECT token FROM leasehold_fence WHERE name = ?",
            _ => "SELECT token FROM leasehold_fence WHERE name = ? FOR UPDATE",
        };
        if mistake != How::NoCheck {
            let highest: Option<i64> =
                sqlx::query_scalar(checked).bind(stamp.name().as_bytes()).fetch_optional(&mut *tx).await?;
            if let Some(highest) = highest.filter(|highest| *highest > stamp.signed_token()) {
                let (name, token) = (stamp.name().to_owned(), stamp.token());
                return Ok(Some(Stale { name, token, highest: Some(highest.cast_unsigned()) }));
            }
            if mistake == How::PlainSelect {
                pause(stamp).await;
            }
            let raise = "INSERT INTO leasehold_fence (name, token) VALUES (?, ?)
                ON DUPLICATE KEY UPDATE token = GREATEST(token, VALUES(token))";
            sqlx::query(raise)
                .bind(stamp.name().as_bytes())
                .bind(stamp.signed_token())
                .execute(&mut *tx)
                .await?;
        }
        if mistake == How::CheckThenAct {
            tx.commit().await?;
            pause(stamp).await;
            tx = self.pool.begin().await?;
        }
        insert(&mut tx, stamp, value).await?;
        tx.commit().await?;
        Ok(None)
    }
}

/// A pause between looking and acting, for every other holder.
async fn pause(stamp: &Stamp) {
    if stamp.token().is_multiple_of(2) {
        tokio::time::sleep(Duration::from_millis(30)).await;
    }
}

async fn suite(how: How) -> Result<leasehold_fence::conformance::Report, Violation> {
    let (pool, fence, _alive) = database(12).await;
    run(&Database { pool, fence, how }, "suite", Load::default()).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transaction_passes_the_suite() {
    let report = suite(How::Transaction).await.unwrap();
    println!("conformance of mysql, transaction: {report}");
    assert_eq!((report.races, report.failed, report.unknown), (8, 0, 0));
    assert!(report.stale_tried > 50, "{report}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn entering_passes_the_suite() {
    let report = suite(How::Enter).await.unwrap();
    println!("conformance of mysql, enter: {report}");
    assert_eq!((report.races, report.failed, report.unknown), (8, 0, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_suite_finds_a_write_without_its_check() {
    for how in [How::NoCheck, How::CheckThenAct, How::PlainSelect] {
        match suite(how).await {
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
    let (pool, fence, _alive) = database(4).await;
    let long = "x".repeat(544);
    let names = ["a", "A", "a ", "a  ", "á", "a\u{301}", " a", "ß", "ss", &long, &long[..543]];
    for (nth, name) in names.into_iter().enumerate() {
        // Each has a smaller token than the one before: any two that were one name would refuse the second.
        write(&fence, &stamp(name, 1000 - nth as u64), "x").await.unwrap();
    }
    for (nth, name) in names.into_iter().enumerate() {
        let token = 1000 - nth as u64;
        assert_eq!(fence.look(name).await.unwrap().highest.unwrap().token, token, "{name:?}");
        assert_eq!(tokens(&pool, name).await, [token]);
    }
}

#[tokio::test]
async fn tokens_above_doubles_differ_and_the_greatest_is_kept() {
    let (_, fence, _alive) = database(2).await;
    let beyond = (1 << 53) + 1;
    write(&fence, &stamp("a", beyond), "x").await.unwrap();
    assert_eq!(highest(write(&fence, &stamp("a", beyond - 1), "x").await), Some(beyond));
    fence.seal(&stamp("a", i64::MAX as u64)).await.unwrap();
    assert_eq!(highest(write(&fence, &stamp("a", beyond), "x").await), Some(i64::MAX as u64));
}

struct Lapsed;

impl Authority for Lapsed {
    fn stamp(&self) -> Result<Stamp, NoAuthority> {
        Err(NoAuthority { name: "a".to_owned(), why: "the lease is over".to_owned() })
    }
}

#[tokio::test]
async fn every_end_is_counted_once() {
    let (pool, fence, _alive) = database(4).await;
    let counts = Counts::default();
    let fence = fence.counted(&counts);
    let place = fence.place().to_owned();
    fence.seal(&stamp("a", 5)).await.unwrap();
    fence.seal(&stamp("a", 5)).await.unwrap();
    fence.seal(&stamp("a", 4)).await.unwrap_err();
    write(&fence, &stamp("a", 5), "x").await.unwrap();
    write(&fence, &stamp("a", 4), "x").await.unwrap_err();
    let lapsed = fence.transaction(&Lapsed, async |_| Ok(())).await.unwrap_err();
    assert_eq!(lapsed.to_string(), "may not act on a: the lease is over; nothing was sent");
    let failed =
        fence.transaction(&stamp("a", 5), async |_| Err::<(), _>("no paper".into())).await.unwrap_err();
    assert!(failed.to_string().ends_with("nothing was written: no paper"), "{failed}");
    let mut tx = pool.begin().await.unwrap();
    fence.enter(&mut tx, &stamp("a", 6)).await.unwrap();
    tx.rollback().await.unwrap();
    let mut tx = pool.begin().await.unwrap();
    fence.enter(&mut tx, &stamp("a", 3)).await.unwrap_err();
    tx.rollback().await.unwrap();

    let ends = [Outcome::Lapsed, Outcome::Accepted, Outcome::Stale, Outcome::Failed, Outcome::Unknown];
    assert_eq!(ends.map(|end| counts.seals(&place, end)), [0, 2, 1, 0, 0]);
    assert_eq!(ends.map(|end| counts.writes(&place, end)), [1, 2, 2, 1, 0]);
}

#[tokio::test]
async fn the_last_refusals_are_kept_and_shown_with_who_and_when() {
    let (pool, fence, _alive) = database(2).await;
    assert_eq!(fence.look("a").await.unwrap().highest, None);
    fence.seal(&stamp("a", 100)).await.unwrap();
    for token in 1..=20 {
        match token % 3 {
            0 => drop(fence.seal(&stamp("a", token)).await.unwrap_err()),
            1 => drop(write(&fence, &stamp("a", token), "x").await.unwrap_err()),
            _ => {
                let mut tx = pool.begin().await.unwrap();
                fence.enter(&mut tx, &stamp("a", token)).await.unwrap_err();
            }
        }
    }
    write(&fence, &stamp("b", 1), "x").await.unwrap();
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
    let rows: i64 =
        sqlx::query_scalar("SELECT COUNT(*) FROM leasehold_refusal").fetch_one(&pool).await.unwrap();
    assert_eq!(rows, 16);
    assert_eq!(fence.look("b").await.unwrap().refusals, Some(Vec::new()));
}

#[tokio::test]
async fn a_table_that_would_protect_nothing_is_refused_by_name() {
    let (pool, fence, _alive) = database(2).await;
    fence.migrate().await.unwrap();
    pool.execute("ALTER TABLE leasehold_fence ENGINE = MyISAM").await.unwrap();
    for error in [
        fence.migrate().await.unwrap_err(),
        Fence::new(pool.clone()).seal(&stamp("a", 1)).await.unwrap_err(),
        write(&Fence::new(pool.clone()), &stamp("a", 1), "x").await.unwrap_err(),
    ] {
        let said = error.to_string();
        assert_eq!(error.outcome(), Outcome::Failed);
        assert!(
            said.contains("leasehold_fence has engine MyISAM") && said.contains("ENGINE = InnoDB"),
            "{said}"
        );
    }
    pool.execute("ALTER TABLE leasehold_fence ENGINE = InnoDB, MODIFY name VARCHAR(500)").await.unwrap();
    let said = fence.migrate().await.unwrap_err().to_string();
    assert!(said.contains("column name of table leasehold_fence is varchar(500), not varbinary"), "{said}");
    pool.execute("DROP TABLE leasehold_fence").await.unwrap();
    let said = write(&fence, &stamp("a", 1), "x").await.unwrap_err().to_string();
    assert!(said.contains("leasehold_fence is missing; call Fence::migrate"), "{said}");
    assert_eq!(tokens(&pool, "a").await, [] as [u64; 0]);
}

#[tokio::test]
async fn a_row_that_was_removed_is_made_again() {
    let (pool, fence, _alive) = database(2).await;
    write(&fence, &stamp("a", 7), "x").await.unwrap();
    pool.execute("DELETE FROM leasehold_fence").await.unwrap();
    let said = write(&fence, &stamp("a", 7), "x").await.unwrap_err().to_string();
    assert!(said.contains("the fence row of a was removed"), "{said}");
    write(&fence, &stamp("a", 7), "x").await.unwrap();
    assert_eq!(tokens(&pool, "a").await, [7, 7]);
}

#[tokio::test]
async fn the_place_has_no_password() {
    let options = "mysql://app:secret@db.example:3307/shop".parse().unwrap();
    let pool = sqlx::mysql::MySqlPoolOptions::new().connect_lazy_with(options);
    assert_eq!(Fence::new(pool).place(), "mysql://db.example:3307/shop");
}

#[tokio::test]
async fn an_engine_without_transactions_and_a_lazy_log_are_hazards() {
    let (pool, fence, _alive) = database(2).await;
    let settings = async || -> Vec<String> {
        let found = fence.hazards().await.unwrap();
        found.iter().map(ToString::to_string).filter(|words| !words.starts_with("innodb_flush")).collect()
    };
    assert_eq!(settings().await, [] as [&str; 0]);
    pool.execute("ALTER TABLE leasehold_fence ENGINE = MyISAM").await.unwrap();
    let found = settings().await;
    assert!(
        found.len() == 1
            && found[0].starts_with("the engine of table leasehold_fence is MyISAM: it does not lock rows")
            && found[0].ends_with("set it to InnoDB, with ALTER TABLE leasehold_fence ENGINE = InnoDB"),
        "{found:?}"
    );
    // A server of its own: this one is a setting of all databases.
    let lazy = leasehold_kit::mariadb::Server::start_fast().unwrap();
    let (_, fence) = super::database_on(&leasehold_kit::Receiver::url(&lazy), 2).await;
    let found = fence.hazards().await.unwrap();
    assert_eq!(
        found.iter().map(ToString::to_string).collect::<Vec<_>>(),
        [
            "innodb_flush_log_at_trx_commit is 2: a power cut takes back the last second of raises and writes; set it to 1"
        ]
    );
}
