//! The suite that every receiver passes, in every way to write; and with the guard taken out, which must not pass.

use std::sync::Arc;

use leasehold_fence::conformance::{self, Load, Report, Subject, Trouble, Violation, Writer, Written};
use leasehold_fence::postgres::Fence;
use leasehold_fence::{Error, Receiver, Stale, Stamp};
use sqlx::{PgPool, Transaction};

use crate::postgres::world::{NO_GATE, NO_ROW_LOCK, World, put};

#[derive(Debug, Clone, Copy)]
enum Way {
    /// `Fence::transaction`.
    Whole,
    /// `Fence::enter` in a transaction that was begun so.
    Enter(&'static str),
    /// The guard is taken out.
    Unguarded,
    /// The token is compared, and raised, and the write follows in a transaction of its own.
    CheckThenAct,
}

const REPEATABLE_READ: Way = Way::Enter("BEGIN ISOLATION LEVEL REPEATABLE READ");

struct Postgres {
    world: World,
    way: Way,
}

struct Hand {
    pool: PgPool,
    fence: Fence,
    way: Way,
}

impl Subject for Postgres {
    type Writer = Hand;

    fn receiver(&self) -> Arc<dyn Receiver> {
        Arc::new(self.world.fence.clone())
    }

    async fn writer(&self) -> Result<Hand, Trouble> {
        Ok(Hand { pool: self.world.pool.clone(), fence: self.world.fence.clone(), way: self.way })
    }

    async fn written(&self, name: &str) -> Result<Vec<Written>, Trouble> {
        let all = "SELECT token, value FROM entry WHERE name = $1 ORDER BY id";
        let all: Vec<(i64, String)> = sqlx::query_as(all).bind(name).fetch_all(&self.world.pool).await?;
        Ok(all.into_iter().map(|(token, value)| Written { token: token.cast_unsigned(), value }).collect())
    }
}

impl Writer for Hand {
    async fn write(&mut self, stamp: &Stamp, value: &str) -> Result<(), Error> {
        let failed = |error: sqlx::Error| Error::failed("test", error);
        match self.way {
            Way::Whole => self.fence.transaction(stamp, async |tx| Ok(put(tx, stamp, value).await?)).await,
            Way::Enter(begin) => {
                let mut tx = self.entered(begin, stamp).await?;
                put(&mut tx, stamp, value).await.map_err(failed)?;
                tx.commit().await.map_err(failed)
            }
            Way::Unguarded => {
                let mut tx = self.pool.begin().await.map_err(failed)?;
                put(&mut tx, stamp, value).await.map_err(failed)?;
                tx.commit().await.map_err(failed)
            }
            Way::CheckThenAct => {
                let (name, token) = (stamp.name().to_owned(), stamp.token());
                let highest = self.fence.look(&name).await?.highest.map_or(0, |mark| mark.token);
                if highest > token {
                    return Err(Stale { name, token, highest: Some(highest) }.into());
                }
                self.fence.seal(stamp).await?;
                let mut tx = self.pool.begin().await.map_err(failed)?;
                put(&mut tx, stamp, value).await.map_err(failed)?;
                tx.commit().await.map_err(failed)
            }
        }
    }
}

impl Hand {
    /// Above READ COMMITTED a raise that nobody sealed is told to try again, also because of somebody who committed elsewhere on this server
    /// after its snapshot. Nothing is written up to there, so trying again is all that it takes.
    async fn entered(
        &self,
        begin: &'static str,
        stamp: &Stamp,
    ) -> Result<Transaction<'static, sqlx::Postgres>, Error> {
        for _ in 0..100 {
            let mut tx = self.pool.begin_with(begin).await.map_err(|error| Error::failed("test", error))?;
            match self.fence.enter(&mut tx, stamp).await {
                Ok(()) => return Ok(tx),
                Err(error) if error.to_string().contains("that may have entered the fence") => {}
                Err(error) => return Err(error),
            }
        }
        panic!("{stamp} is never let in under {begin}");
    }
}

async fn tried(world: World, way: Way, load: Load) -> Result<Report, Violation> {
    conformance::run(&Postgres { world, way }, "conformance", load).await
}

/// The rule that is broken.
fn broken(result: Result<Report, Violation>) -> &'static str {
    match result {
        Err(Violation::Broken { rule, what }) => {
            println!("found: {rule}: {what}");
            rule
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_way_to_write_conforms() {
    for way in
        [Way::Whole, Way::Enter("BEGIN"), REPEATABLE_READ, Way::Enter("BEGIN ISOLATION LEVEL SERIALIZABLE")]
    {
        let report = tried(World::new().await, way, Load::default()).await.unwrap();
        println!("PostgreSQL, {way:?}: {report}");
        assert!(report.accepted > 50 && report.stale_tried > 50, "{way:?}: {report}");
        assert_eq!(report.unknown, 0, "{way:?}: {report}");
        if matches!(way, Way::Whole | Way::Enter("BEGIN")) {
            assert_eq!(report.failed, 0, "nothing fails under READ COMMITTED: {report}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_its_guard_it_does_not_conform() {
    let report = tried(World::new().await, Way::Unguarded, Load::default()).await;
    assert_eq!(broken(report), "tokens never fall");
}

#[tokio::test(flavor = "multi_thread")]
async fn checking_first_and_writing_afterwards_does_not_conform() {
    let load = Load { rounds: 40, ..Load::default() };
    let report = tried(World::new().await, Way::CheckThenAct, load).await;
    assert_eq!(broken(report), "tokens never fall");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_gate_it_does_not_conform() {
    let load = Load { rounds: 40, ..Load::default() };
    let report = tried(World::mutated(&NO_GATE).await, Way::Whole, load).await;
    assert_eq!(broken(report), "tokens never fall");
}

#[tokio::test(flavor = "multi_thread")]
async fn above_read_committed_the_lock_on_the_row_decides_and_the_gate_does_not() {
    let report = tried(World::mutated(&NO_GATE).await, REPEATABLE_READ, Load::default()).await.unwrap();
    println!("PostgreSQL, without the gate: {report}");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_lock_on_its_row_it_does_not_conform() {
    let world = World::mutated(&[&NO_GATE[..], &[NO_ROW_LOCK]].concat()).await;
    let load = Load { rounds: 40, ..Load::default() };
    assert_eq!(broken(tried(world, REPEATABLE_READ, load).await), "tokens never fall");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_its_exception_it_does_not_conform() {
    let world = World::mutated(&[("IF highest > leasehold_enter.token THEN", "IF false THEN")]).await;
    assert_eq!(broken(tried(world, Way::Whole, Load::default()).await), "tokens never fall");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upsert_that_lowers_does_not_conform() {
    let mutations = [
        ("                    WHERE f.token < excluded.token\n", "\n"),
        ("ELSE f.token > leasehold_enter.token END", "END"),
        ("    IF highest > leasehold_enter_late.token THEN\n        RETURN;\n    END IF;\n", ""),
    ];
    let world = World::mutated(&[&NO_GATE[..], &mutations].concat()).await;
    assert_eq!(broken(tried(world, Way::Whole, Load::default()).await), "tokens never fall");
}
