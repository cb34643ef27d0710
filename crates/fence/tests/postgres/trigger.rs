//! Writes that forget the token, on tables that have the trigger.

use leasehold_fence::Receiver as _;
use sqlx::{Executor as _, PgConnection};

use crate::postgres::world::{World, has, of, run, stamp, why_failed};

const WRITES: [&str; 5] = [
    "INSERT INTO report VALUES (2, 'b')",
    "UPDATE report SET body = 'b'",
    "DELETE FROM report",
    "TRUNCATE report",
    "WITH gone AS (DELETE FROM report RETURNING id) SELECT count(*) FROM gone",
];

async fn fenced_table(world: &World, trigger: &str) {
    run(
        &world.pool,
        "CREATE TABLE report (id int PRIMARY KEY, body text); INSERT INTO report VALUES (1, 'a')",
    )
    .await;
    run(&world.pool, trigger).await;
}

const FOR_EACH_STATEMENT: &str = "CREATE TRIGGER fenced BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON report \
                                  FOR EACH STATEMENT EXECUTE FUNCTION leasehold_require('reports/nightly')";

/// The code and words with which a statement is refused.
async fn refusal(connection: &mut PgConnection, statement: &str) -> (String, String) {
    let error = connection.execute(statement).await.expect_err(statement);
    let said = error.as_database_error().unwrap();
    (said.code().unwrap().into_owned(), said.message().to_owned())
}

#[tokio::test]
async fn every_kind_of_write_needs_an_entry() {
    let world = World::new().await;
    fenced_table(&world, FOR_EACH_STATEMENT).await;
    let mut connection = world.pool.acquire().await.unwrap();
    for write in WRITES {
        let (code, said) = refusal(&mut connection, write).await;
        assert_eq!(code, "LH002", "{write}: {said}");
        has(&said, "of report without a token: this transaction has not entered the fence reports/nightly");
        world.fence.transaction(&stamp(33), async |tx| Ok(tx.execute(write).await.map(drop)?)).await.unwrap();
    }
}

#[tokio::test]
async fn it_may_be_for_each_row() {
    let world = World::new().await;
    let trigger = "CREATE TRIGGER fenced BEFORE INSERT OR UPDATE OR DELETE ON report \
                   FOR EACH ROW EXECUTE FUNCTION leasehold_require('reports/nightly')";
    fenced_table(&world, trigger).await;
    let mut connection = world.pool.acquire().await.unwrap();
    for write in &WRITES[..3] {
        assert_eq!(refusal(&mut connection, write).await.0, "LH002", "{write}");
    }
    world
        .fence
        .transaction(&stamp(33), async |tx| {
            tx.execute("INSERT INTO report VALUES (2, 'b')").await?;
            tx.execute("UPDATE report SET body = body || 'c'").await?;
            tx.execute("DELETE FROM report WHERE id = 1").await?;
            Ok(())
        })
        .await
        .unwrap();
    let left: Vec<(i32, String)> =
        sqlx::query_as("SELECT id, body FROM report").fetch_all(&world.pool).await.unwrap();
    assert_eq!(left, [(2, "bc".to_owned())]);
}

#[tokio::test]
async fn an_entry_under_another_name_or_in_another_transaction_is_none() {
    let world = World::new().await;
    fenced_table(&world, FOR_EACH_STATEMENT).await;
    let other = of("reports/nightl", 33);
    let said = world.fence.transaction(&other, async |tx| Ok(tx.execute(WRITES[0]).await.map(drop)?)).await;
    has(why_failed(said), "has not entered the fence reports/nightly");

    // Each statement is a transaction of its own here, so the entry is over before the write.
    let mut connection = world.pool.acquire().await.unwrap();
    connection.execute("SELECT leasehold_enter('reports/nightly', 33)").await.unwrap();
    let left = "SELECT coalesce(current_setting('leasehold.stamp', true), '')";
    assert_eq!(sqlx::query_scalar::<_, String>(left).fetch_one(&mut *connection).await.unwrap(), "");
    assert_eq!(refusal(&mut connection, WRITES[0]).await.0, "LH002");

    // A setting that was left behind in the session names another transaction.
    connection
        .execute("SELECT set_config('leasehold.stamp', E'1\\nreports/nightly\\n', false)")
        .await
        .unwrap();
    assert_eq!(refusal(&mut connection, WRITES[0]).await.0, "LH002");
}

#[tokio::test]
async fn an_entry_that_was_rolled_back_to_a_savepoint_is_none() {
    let world = World::new().await;
    fenced_table(&world, FOR_EACH_STATEMENT).await;
    let mut tx = world.begin().await;
    tx.execute("SAVEPOINT before").await.unwrap();
    world.fence.enter(&mut tx, &stamp(33)).await.unwrap();
    tx.execute("ROLLBACK TO before").await.unwrap();
    assert_eq!(refusal(&mut tx, WRITES[0]).await.0, "LH002");
    drop(tx);

    // A refusal that is caught does not help either.
    world.fence.seal(&stamp(34)).await.unwrap();
    let mut tx = world.begin().await;
    tx.execute("SAVEPOINT before").await.unwrap();
    world.fence.enter(&mut tx, &stamp(33)).await.unwrap_err();
    tx.execute("ROLLBACK TO before").await.unwrap();
    assert_eq!(refusal(&mut tx, WRITES[0]).await.0, "LH002");
}

#[tokio::test]
async fn one_transaction_may_enter_several() {
    let world = World::new().await;
    fenced_table(&world, FOR_EACH_STATEMENT).await;
    let mut tx = world.begin().await;
    for name in ["a", "reports/nightly", "z", "a"] {
        world.fence.enter(&mut tx, &of(name, 33)).await.unwrap();
    }
    tx.execute(WRITES[0]).await.unwrap();
    let entered = "SELECT leasehold_entered('a') AND leasehold_entered('z') AND NOT leasehold_entered('b')";
    assert!(sqlx::query_scalar::<_, bool>(entered).fetch_one(&mut *tx).await.unwrap());
    tx.commit().await.unwrap();
}

#[tokio::test]
async fn a_column_may_tell_which_fence() {
    let world = World::new().await;
    run(
        &world.pool,
        "CREATE TABLE invoice (id int PRIMARY KEY, tenant int); \
         CREATE TRIGGER fenced AFTER INSERT OR UPDATE OR DELETE ON invoice \
             FOR EACH ROW EXECUTE FUNCTION leasehold_require_column('tenant', 'tenants/'); \
         CREATE TRIGGER fenced_truncate BEFORE TRUNCATE ON invoice \
             FOR EACH STATEMENT EXECUTE FUNCTION leasehold_require_column('tenant', 'tenants/')",
    )
    .await;
    let seven = async |write: &'static str| {
        let fence = &world.fence;
        fence.transaction(&of("tenants/7", 33), async |tx| Ok(tx.execute(write).await.map(drop)?)).await
    };
    seven("INSERT INTO invoice VALUES (1, 7), (2, 7)").await.unwrap();
    for (write, missing) in [
        ("INSERT INTO invoice VALUES (3, 8)", "the fence tenants/8"),
        ("INSERT INTO invoice VALUES (3, NULL)", "the fence of a row whose tenant is null"),
        ("UPDATE invoice SET tenant = 8 WHERE id = 1", "the fence tenants/8"),
        ("TRUNCATE invoice", "takes rows of every fence"),
    ] {
        has(why_failed(seven(write).await), missing);
    }
    let mut tx = world.begin().await;
    world.fence.enter(&mut tx, &of("tenants/8", 33)).await.unwrap();
    assert_eq!(refusal(&mut tx, "DELETE FROM invoice").await.0, "LH002");
    drop(tx);
    let mut tx = world.begin().await;
    world.fence.enter(&mut tx, &of("tenants/7", 33)).await.unwrap();
    world.fence.enter(&mut tx, &of("tenants/8", 33)).await.unwrap();
    tx.execute("UPDATE invoice SET tenant = 8 WHERE id = 1").await.unwrap();
    tx.execute("DELETE FROM invoice WHERE id = 2").await.unwrap();
    tx.commit().await.unwrap();
}

#[tokio::test]
async fn a_partitioned_table_has_it_for_each_row() {
    let world = World::new().await;
    let table = "CREATE TABLE part (id int) PARTITION BY RANGE (id); \
                 CREATE TABLE part_1 PARTITION OF part FOR VALUES FROM (0) TO (10); \
                 CREATE TRIGGER fenced BEFORE INSERT ON part FOR EACH ROW EXECUTE FUNCTION leasehold_require('p')";
    run(&world.pool, table).await;
    let mut connection = world.pool.acquire().await.unwrap();
    assert_eq!(refusal(&mut connection, "INSERT INTO part_1 VALUES (1)").await.0, "LH002");
}

/// Triggers fire by name: `zz` comes behind `fenced`, and what it makes of the row is what is written.
const MOVES: &str = "CREATE TABLE invoice (id int, tenant int); \
                     CREATE FUNCTION moves() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.tenant := 8; RETURN NEW; END $$; \
                     CREATE TRIGGER zz BEFORE INSERT OR UPDATE ON invoice FOR EACH ROW EXECUTE FUNCTION moves()";

#[tokio::test]
async fn a_trigger_that_changes_the_row_afterwards_does_not_get_round_the_column() {
    let world = World::new().await;
    run(&world.pool, MOVES).await;
    let insert =
        async |tx: &mut PgConnection| Ok(tx.execute("INSERT INTO invoice VALUES (1, 7)").await.map(drop)?);
    run(
        &world.pool,
        "CREATE TRIGGER fenced BEFORE INSERT OR UPDATE OR DELETE ON invoice \
         FOR EACH ROW EXECUTE FUNCTION leasehold_require_column('tenant', 'tenants/')",
    )
    .await;
    let said = why_failed(world.fence.transaction(&of("tenants/7", 33), insert).await);
    has(
        said,
        "trigger fenced of invoice is BEFORE, and another trigger may change tenant behind it; make it AFTER",
    );
    run(&world.pool, "DROP TRIGGER fenced ON invoice").await;
    run(&world.pool, "SELECT leasehold_protect_rows('invoice', 'tenant', 'tenants/')").await;
    let said = why_failed(world.fence.transaction(&of("tenants/7", 33), insert).await);
    has(said, "has not entered the fence tenants/8");
    world.fence.transaction(&of("tenants/8", 33), insert).await.unwrap();
}

#[tokio::test]
async fn a_protected_table_is_protected_in_its_partitions_and_children_too() {
    let world = World::new().await;
    let tables = "CREATE TABLE part (id int, tenant int) PARTITION BY RANGE (id); \
                  CREATE TABLE part_1 PARTITION OF part FOR VALUES FROM (0) TO (10) PARTITION BY RANGE (id); \
                  CREATE TABLE part_1_1 PARTITION OF part_1 FOR VALUES FROM (0) TO (10); \
                  CREATE TABLE above (id int, tenant int); CREATE TABLE child () INHERITS (above); \
                  INSERT INTO part VALUES (1, 7); INSERT INTO child VALUES (1, 7)";
    run(&world.pool, tables).await;
    for (protect, name) in [
        ("leasehold_protect('part', 'p'), leasehold_protect('above', 'p')", "p"),
        ("leasehold_protect_rows('part', 'tenant'), leasehold_protect_rows('above', 'tenant')", "7"),
    ] {
        // Twice is once.
        run(&world.pool, &format!("SELECT {protect}; SELECT {protect}")).await;
        let mut connection = world.pool.acquire().await.unwrap();
        for table in ["part", "part_1", "part_1_1", "above", "child"] {
            let (insert, entered) = (format!("INSERT INTO {table} VALUES (1, 7)"), of(name, 33));
            let write =
                world.fence.transaction(&entered, async |tx| Ok(tx.execute(&*insert).await.map(drop)?));
            write.await.unwrap();
            for write in [&insert, &format!("TRUNCATE {table}"), &format!("DELETE FROM {table}")] {
                assert_eq!(refusal(&mut connection, write).await.0, "LH002", "{write} {protect}");
            }
        }
        let truncated = world
            .fence
            .transaction(&of(name, 33), async |tx| Ok(tx.execute("TRUNCATE part_1").await.map(drop)?))
            .await;
        match name {
            "p" => truncated.unwrap(),
            _ => has(why_failed(truncated), "truncate of part_1 takes rows of every fence"),
        }
    }
    // A partition that comes later has the triggers for rows by itself, and the one for TRUNCATE when it is asked for again.
    run(&world.pool, "CREATE TABLE part_2 PARTITION OF part FOR VALUES FROM (10) TO (20)").await;
    let mut connection = world.pool.acquire().await.unwrap();
    assert_eq!(refusal(&mut connection, "INSERT INTO part_2 VALUES (11, 7)").await.0, "LH002");
    run(&world.pool, "SELECT leasehold_protect_rows('part', 'tenant')").await;
    assert_eq!(refusal(&mut connection, "TRUNCATE part_2").await.0, "LH002");
}

/// An UPDATE that moves a row to another partition deletes it here and inserts it there: both fences are asked for.
#[tokio::test]
async fn a_row_that_moves_to_another_partition_needs_both_fences() {
    let world = World::new().await;
    let tables = "CREATE TABLE part (tenant int) PARTITION BY LIST (tenant); \
                  CREATE TABLE part_7 PARTITION OF part FOR VALUES IN (7); CREATE TABLE part_8 PARTITION OF part FOR VALUES IN (8); \
                  INSERT INTO part VALUES (7); SELECT leasehold_protect_rows('part', 'tenant', 'tenants/')";
    run(&world.pool, tables).await;
    for (entered, missing) in [("tenants/7", "tenants/8"), ("tenants/8", "tenants/7")] {
        let moves =
            async |tx: &mut PgConnection| Ok(tx.execute("UPDATE part SET tenant = 8").await.map(drop)?);
        let said = why_failed(world.fence.transaction(&of(entered, 33), moves).await);
        has(said, &format!("has not entered the fence {missing}"));
    }
}
