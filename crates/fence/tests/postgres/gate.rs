//! Under READ COMMITTED the gate alone decides, and a session that knows its token does not read the row: what could be wrong with that, each
//! made to happen.

use leasehold_fence::{Receiver as _, Stamp};
use leasehold_kit::{Receiver as _, postgres};
use sqlx::{Executor as _, PgConnection};

use crate::postgres::world::{NAME, World, beside, has, of, put, refused_for, run, soon, stamp, why_failed};

/// Where an entry of a mutated fence stands still: until nobody has this advisory lock.
const PAUSE: &str = "(SELECT pg_advisory_xact_lock_shared(4711)) IS NOT NULL";
const TAKES_GATE: &str = "CASE WHEN pg_try_advisory_xact_lock_shared(hashtextextended(name, @here@))";
const LOOKS: &str =
    "THEN pg_sequence_last_value(@raises@)::text = current_setting('leasehold.raises', true) END END)";

/// Writes under a stamp on one connection until the session knows its token.
async fn until_known(world: &World, connection: &mut PgConnection, stamp: &Stamp) {
    for _ in 0..2 {
        entered(world, connection, stamp).await.unwrap();
    }
    let known = "SELECT coalesce(current_setting('leasehold.known', true), '')";
    let known: String = sqlx::query_scalar(known).fetch_one(connection).await.unwrap();
    has(known, &format!(" {} {}\n", stamp.token(), stamp.name()));
}

/// A transaction of its own on a connection, which is ended whatever becomes of the entry.
async fn entered(
    world: &World,
    connection: &mut PgConnection,
    stamp: &Stamp,
) -> Result<(), leasehold_fence::Error> {
    let mut tx = sqlx::Connection::begin(connection).await.unwrap();
    world.fence.enter(&mut tx, stamp).await?;
    put(&mut tx, stamp, "entered").await.unwrap();
    tx.commit().await.unwrap();
    Ok(())
}

#[tokio::test]
async fn a_session_that_knows_its_token_is_refused_from_the_raise_on() {
    let world = World::new().await;
    world.fence.seal(&stamp(33)).await.unwrap();
    let mut session = world.pool.acquire().await.unwrap();
    until_known(&world, &mut session, &stamp(33)).await;
    // Another name, and a raise that is rolled back, take nothing from it.
    world.fence.seal(&of("another", 9)).await.unwrap();
    world.fence.seal(&of("another", 10)).await.unwrap();
    entered(&world, &mut session, &stamp(33)).await.unwrap();
    let mut raise = world.begin().await;
    world.fence.enter(&mut raise, &stamp(34)).await.unwrap();
    raise.rollback().await.unwrap();
    entered(&world, &mut session, &stamp(33)).await.unwrap();
    until_known(&world, &mut session, &stamp(33)).await;
    world.fence.seal(&stamp(34)).await.unwrap();
    assert_eq!(refused_for(entered(&world, &mut session, &stamp(33)).await), 34);
    until_known(&world, &mut session, &stamp(34)).await;
    assert_eq!(refused_for(entered(&world, &mut session, &stamp(33)).await), 34);
}

/// What made the entry dear with many writers: each that shared the row wrote to its page.
#[tokio::test]
async fn writers_of_one_token_leave_the_row_alone() {
    let world = World::new().await;
    world.fence.seal(&stamp(33)).await.unwrap();
    let mut open = Vec::new();
    for _ in 0..3 {
        let mut tx = world.begin().await;
        world.fence.enter(&mut tx, &stamp(33)).await.unwrap();
        open.push(tx);
    }
    let mark: String =
        sqlx::query_scalar("SELECT xmax::text FROM leasehold_fence").fetch_one(&world.pool).await.unwrap();
    assert_eq!(mark, "0");
    for tx in open {
        tx.commit().await.unwrap();
    }
}

/// An entry stands still in the middle; then a seal comes, if it is let.
async fn sealed_meanwhile(mutations: &[(&str, &str)], is_known: bool) -> (bool, World) {
    let world = World::mutated(mutations).await;
    world.fence.seal(&stamp(33)).await.unwrap();
    let mut session = world.pool.acquire().await.unwrap();
    if is_known {
        until_known(&world, &mut session, &stamp(33)).await;
        run(&world.pool, "TRUNCATE entry").await;
    }
    let mut pause = world.begin().await;
    pause.execute("SELECT pg_advisory_xact_lock(4711)").await.unwrap();
    let fence = world.fence.clone();
    let old = beside(async move {
        let mut tx = sqlx::Connection::begin(&mut *session).await.unwrap();
        fence.enter(&mut tx, &stamp(33)).await?;
        put(&mut tx, &stamp(33), "old").await.unwrap();
        tx.commit().await.unwrap();
        Ok::<_, leasehold_fence::Error>(())
    });
    world.until_waiting(1).await;
    let fence = world.fence.clone();
    let new = beside(async move {
        fence.seal(&stamp(34)).await?;
        fence.transaction(&stamp(34), async |tx| Ok(put(tx, &stamp(34), "new").await?)).await
    });
    // Either the seal has the gate before the entry, or it waits behind it.
    let mut waits = false;
    while !new.is_finished() && !waits {
        let waiting = "SELECT count(*) > 1 FROM pg_locks l JOIN pg_stat_activity a USING (pid) \
                       WHERE NOT l.granted AND a.datname = current_database()";
        waits = sqlx::query_scalar(waiting).fetch_one(&world.pool).await.unwrap();
    }
    pause.rollback().await.unwrap();
    let is_let_in = match soon(old).await {
        Ok(()) => true,
        Err(error) => {
            assert_eq!(refused_for::<()>(Err(error)), 34);
            false
        }
    };
    soon(new).await.unwrap();
    (is_let_in, world)
}

#[tokio::test]
async fn an_entry_that_stands_still_behind_the_gate_comes_before_the_seal() {
    let paused = format!("THEN CASE WHEN {PAUSE} {LOOKS}").replacen("END END)", "END END END)", 1);
    let (is_let_in, world) = sealed_meanwhile(&[(LOOKS, &paused)], true).await;
    assert!(is_let_in);
    assert_eq!(world.entries().await, ["33 old", "34 new"]);
}

#[tokio::test]
async fn an_entry_that_stands_still_in_front_of_the_gate_comes_after_the_seal() {
    let paused = format!("CASE WHEN {PAUSE} THEN {TAKES_GATE}");
    let looks = LOOKS.replacen("END END)", "END END END)", 1);
    let (is_let_in, world) = sealed_meanwhile(&[(TAKES_GATE, &paused), (LOOKS, &looks)], true).await;
    assert!(!is_let_in);
    assert_eq!(world.entries().await, ["34 new"]);
}

/// The mistake that is easily made: to look first, and take the gate afterwards.
#[tokio::test]
async fn wrong_way_a_look_in_front_of_the_gate_lets_a_stale_token_in() {
    let look = "pg_sequence_last_value(@raises@)::text = current_setting('leasehold.raises', true)";
    let paused = format!("CASE WHEN {look} THEN CASE WHEN {PAUSE} THEN {TAKES_GATE}");
    let (is_let_in, world) =
        sealed_meanwhile(&[(TAKES_GATE, &paused), (LOOKS, "THEN true END END END END)")], true).await;
    assert!(is_let_in);
    assert_eq!(world.entries().await, ["34 new", "33 old"], "the stale write came last");
}

const FIRST_LOOK: &str = "    had := highest;\n";
const SECOND_LOOK: &str = "        -- Once more, because the first look was in front of the gate.\n        SELECT f.token, f.holder INTO \
                           highest, whose FROM @schema@.leasehold_fence f WHERE f.name = leasehold_enter_late.name;\n";

/// A session that knows nothing looks in front of the gate to learn what it is to ask for, and behind it to decide.
#[tokio::test]
async fn an_entry_that_knows_nothing_looks_again_behind_the_gate() {
    let paused = (
        FIRST_LOOK,
        "    had := highest;\n    IF token = 33 THEN PERFORM pg_advisory_xact_lock_shared(4711); END IF;\n",
    );
    let (is_let_in, world) = sealed_meanwhile(&[paused], false).await;
    assert!(!is_let_in);
    assert_eq!(world.entries().await, ["34 new"]);
}

#[tokio::test]
async fn wrong_way_without_the_second_look_a_stale_token_is_let_in() {
    let paused = (
        FIRST_LOOK,
        "    had := highest;\n    IF token = 33 THEN PERFORM pg_advisory_xact_lock_shared(4711); END IF;\n",
    );
    let (is_let_in, world) = sealed_meanwhile(&[paused, (SECOND_LOOK, "")], false).await;
    assert!(is_let_in);
    assert_eq!(world.entries().await, ["34 new", "33 old"], "the stale write came last");
}

/// Functions of an older migration that know no gate are the same to those who enter as somebody who changes the row by hand.
#[tokio::test]
async fn a_change_by_hand_waits_for_those_who_entered_and_is_noticed_by_those_who_know() {
    let world = World::new().await;
    for change in [
        "UPDATE leasehold_fence SET token = token + 1",
        "UPDATE leasehold_fence SET name = 'another' WHERE name = 'reports/nightly'",
        "DELETE FROM leasehold_fence",
        "INSERT INTO leasehold_fence VALUES ('reports/nightly', 40) ON CONFLICT (name) DO UPDATE SET token = 40",
    ] {
        run(&world.pool, "TRUNCATE leasehold_fence").await;
        world.fence.seal(&stamp(33)).await.unwrap();
        let mut session = world.pool.acquire().await.unwrap();
        until_known(&world, &mut session, &stamp(33)).await;
        let mut old = sqlx::Connection::begin(&mut *session).await.unwrap();
        world.fence.enter(&mut old, &stamp(33)).await.unwrap();
        let pool = world.pool.clone();
        let by_hand = beside(async move { run(&pool, change).await });
        world.until_waiting(1).await;
        old.commit().await.unwrap();
        soon(by_hand).await;
        let expected = world.highest(NAME).await;
        let again = entered(&world, &mut session, &stamp(33)).await;
        match expected {
            Some(highest) => assert_eq!(refused_for(again), highest.cast_unsigned(), "{change}"),
            None => again.unwrap(),
        }
    }
}

#[tokio::test]
async fn a_table_that_was_emptied_is_noticed_by_those_who_know() {
    let world = World::new().await;
    world.fence.seal(&stamp(33)).await.unwrap();
    let mut session = world.pool.acquire().await.unwrap();
    until_known(&world, &mut session, &stamp(33)).await;
    run(&world.pool, "TRUNCATE leasehold_fence").await;
    entered(&world, &mut session, &stamp(33)).await.unwrap();
    assert_eq!(world.highest(NAME).await, Some(33), "it has made the row again");
}

#[tokio::test]
async fn wrong_way_a_change_that_does_not_take_the_gate_passes_those_who_entered() {
    let world = World::mutated(&[NO_GATE_BY_HAND]).await;
    world.fence.seal(&stamp(33)).await.unwrap();
    let mut old = world.begin().await;
    world.fence.enter(&mut old, &stamp(33)).await.unwrap();
    run(&world.pool, "UPDATE leasehold_fence SET token = 34").await;
    put(&mut old, &stamp(33), "old").await.unwrap();
    old.commit().await.unwrap();
    assert_eq!(
        (world.highest(NAME).await, world.entries().await),
        (Some(34), vec!["33 old".to_owned()]),
        "a smaller token was written after a greater one was there"
    );
}

const NO_GATE_BY_HAND: (&str, &str) =
    ("PERFORM pg_advisory_xact_lock(hashtextextended(OLD.name, @here@));", "NULL;");

#[tokio::test]
async fn wrong_way_a_raise_that_does_not_move_the_sequence_is_not_noticed_by_those_who_know() {
    let world = World::mutated(&[("    PERFORM nextval(@raises@);\n", "")]).await;
    world.fence.seal(&stamp(33)).await.unwrap();
    let mut session = world.pool.acquire().await.unwrap();
    until_known(&world, &mut session, &stamp(33)).await;
    world.fence.seal(&stamp(34)).await.unwrap();
    entered(&world, &mut session, &stamp(33)).await.unwrap();
    assert_eq!(world.highest(NAME).await, Some(34), "a stale token was let in");
}

/// Those who know their token look only whether the sequence has moved.
#[tokio::test]
async fn a_raise_is_noticed_also_where_triggers_are_switched_off() {
    let world = World::new().await;
    world.fence.seal(&stamp(33)).await.unwrap();
    let mut session = world.pool.acquire().await.unwrap();
    until_known(&world, &mut session, &stamp(33)).await;
    run(&world.pool, "ALTER TABLE leasehold_fence DISABLE TRIGGER ALL").await;
    world.fence.seal(&stamp(34)).await.unwrap();
    assert_eq!(refused_for(entered(&world, &mut session, &stamp(33)).await), 34);
}

/// Raises in a session, prepares, and lets somebody else roll it back: what the session knows must not come from there.
async fn raise_rolled_back_elsewhere(server: &postgres::Server, mutations: &[(&str, &str)]) -> Option<i64> {
    let world = World::at(server.url().parse().unwrap()).await;
    run(&world.pool, "DROP TABLE IF EXISTS leasehold_fence, leasehold_refusal CASCADE").await;
    run(&world.pool, "DROP SEQUENCE IF EXISTS leasehold_raises").await;
    let mut migration = leasehold_fence::migration::POSTGRES.to_owned();
    for (part, instead) in mutations {
        assert!(migration.contains(part), "{part:?} is not in the migration any more");
        migration = migration.replace(part, instead);
    }
    run(&world.pool, &migration).await;
    world.fence.seal(&stamp(33)).await.unwrap();
    let mut session = world.pool.acquire().await.unwrap();
    // Twice: the second entry finds the token of the first in the row, and it is not committed.
    let prepare = "BEGIN; SELECT leasehold_enter('reports/nightly', 34); SELECT leasehold_enter('reports/nightly', 34); \
                   PREPARE TRANSACTION 'raise'";
    sqlx::raw_sql(prepare).execute(&mut *session).await.unwrap();
    run(&world.pool, "ROLLBACK PREPARED 'raise'").await;
    assert_eq!(world.highest(NAME).await, Some(33));
    entered(&world, &mut session, &stamp(34)).await.unwrap();
    world.highest(NAME).await
}

#[tokio::test]
async fn a_raise_that_was_prepared_and_rolled_back_is_known_to_nobody() {
    let mut server = postgres::Server::start().unwrap();
    server.sql("ALTER SYSTEM SET max_prepared_transactions = 2").unwrap();
    server.restart().unwrap();
    assert_eq!(raise_rolled_back_elsewhere(&server, &[]).await, Some(34), "it was raised again");
    let careless = (" AND pg_current_xact_id_if_assigned() IS NULL THEN", " THEN");
    let wrong_way = raise_rolled_back_elsewhere(&server, &[careless]).await;
    assert_eq!(wrong_way, Some(33), "34 was let in, and 33 would be after it");
}

/// The note of a session from before does not fit a fence that was made anew.
#[tokio::test]
async fn a_fence_that_was_dropped_and_made_again_is_not_known() {
    let world = World::new().await;
    world.fence.seal(&stamp(33)).await.unwrap();
    let mut session = world.pool.acquire().await.unwrap();
    until_known(&world, &mut session, &stamp(33)).await;
    run(&world.pool, "DROP TABLE leasehold_fence CASCADE; DROP SEQUENCE leasehold_raises").await;
    world.fence.migrate().await.unwrap();
    world.fence.seal(&stamp(34)).await.unwrap();
    assert_eq!(refused_for(entered(&world, &mut session, &stamp(33)).await), 34);
}

/// A name of two lines would be found among two names that are known.
#[tokio::test]
async fn a_name_that_is_none_is_not_found_among_those_that_are_known() {
    let world = World::new().await;
    let mut session = world.pool.acquire().await.unwrap();
    for name in ["a", "b"] {
        world.fence.seal(&of(name, 7)).await.unwrap();
    }
    for name in ["a", "b"] {
        until_known(&world, &mut session, &of(name, 7)).await;
    }
    let known: String = sqlx::query_scalar("SELECT current_setting('leasehold.known')")
        .fetch_one(&mut *session)
        .await
        .unwrap();
    let lines: Vec<_> = known.trim().lines().collect();
    assert_eq!(lines.len(), 2, "{known}");
    let both = format!("a\n{}", lines[1]);
    let entered = sqlx::query("SELECT leasehold_enter($1, 7)").bind(both).execute(&mut *session).await;
    has(entered.unwrap_err(), "leasehold_fence_name_check");
}

/// An upgrade: transactions of functions that knew no trigger are waited for, once. Later runs wait for nobody.
#[tokio::test]
async fn the_migration_waits_for_open_raises_of_before_and_only_then() {
    let world = World::new().await;
    world.fence.seal(&stamp(33)).await.unwrap();
    run(
        &world.pool,
        "DROP TRIGGER leasehold_by_hand ON leasehold_fence; DROP TRIGGER leasehold_by_hand_truncate ON leasehold_fence",
    )
    .await;
    let mut before = world.begin().await;
    before.execute("UPDATE leasehold_fence SET token = 34").await.unwrap();
    let fence = world.fence.clone();
    let migration = beside(async move { fence.migrate().await });
    world.until_waiting(1).await;
    before.commit().await.unwrap();
    soon(migration).await.unwrap();
    assert_eq!(refused_for(world.write(&stamp(33), "late").await), 34);

    let mut raise = world.begin().await;
    world.fence.enter(&mut raise, &stamp(35)).await.unwrap();
    let fence = world.fence.clone();
    soon(beside(async move { fence.migrate().await })).await.unwrap();
    raise.commit().await.unwrap();
    assert_eq!(world.highest(NAME).await, Some(35));
}

/// Two who lower a token and raise it again may be in each other's way; then it is said, and one of them is let in.
#[tokio::test]
async fn a_token_that_was_lowered_by_hand_is_raised_again() {
    let world = World::new().await;
    world.fence.seal(&stamp(33)).await.unwrap();
    let mut session = world.pool.acquire().await.unwrap();
    until_known(&world, &mut session, &stamp(33)).await;
    run(&world.pool, "UPDATE leasehold_fence SET token = 20").await;
    entered(&world, &mut session, &stamp(33)).await.unwrap();
    assert_eq!(world.highest(NAME).await, Some(33));
}

/// Above READ COMMITTED nothing is known: the row is locked, and an old snapshot is found out.
#[tokio::test]
async fn what_a_session_knows_is_not_used_above_read_committed() {
    let world = World::new().await;
    world.fence.seal(&stamp(33)).await.unwrap();
    let mut session = world.pool.acquire().await.unwrap();
    until_known(&world, &mut session, &stamp(33)).await;
    session.execute("BEGIN ISOLATION LEVEL REPEATABLE READ").await.unwrap();
    session.execute("SELECT * FROM entry").await.unwrap();
    world.fence.seal(&stamp(34)).await.unwrap();
    let said = session.execute("SELECT leasehold_enter('reports/nightly', 33)").await.unwrap_err();
    has(said, "could not serialize access");
    session.execute("ROLLBACK").await.unwrap();
    let hasty = world.fence.clone().with_write_patience(std::time::Duration::from_millis(100));
    let mut raise = world.begin().await;
    world.fence.enter(&mut raise, &stamp(35)).await.unwrap();
    has(why_failed(hasty.begin(&stamp(34)).await), "is kept by an open transaction");
}
