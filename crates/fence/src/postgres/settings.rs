//! What decides whether a database keeps a fence, and notices changes of it: a setting of the server, the kind of the table, and its trigger.
//!
//! Nothing is refused for them. They may change at any time, and a fence that may be lost in a crash is better than none.

use sqlx::postgres::PgConnection;

use super::text;
use crate::receiver::Hazard;

/// What could make this database forget a fence, or not notice that it was changed.
pub(super) async fn hazards(connection: &mut PgConnection, schema: &str) -> Result<Vec<Hazard>, sqlx::Error> {
    let table = text::literal(&format!("{schema}leasehold_fence"));
    let asked = format!(
        "SELECT current_setting('fsync'), c.relpersistence::text, t.tgenabled::text \
         FROM pg_class c LEFT JOIN pg_trigger t ON t.tgrelid = c.oid AND t.tgname = 'leasehold_by_hand' \
         WHERE c.oid = {table}::regclass"
    );
    let (fsync, kind, trigger): (String, String, Option<String>) =
        sqlx::query_as(&asked).fetch_one(connection).await?;
    let mut found = Vec::new();
    if fsync != "on" {
        found.push(Hazard::Setting {
            setting: "fsync",
            found: fsync,
            so: "a machine that loses its power may forget raises that were acknowledged",
            wanted: "on",
        });
    }
    if kind != "p" {
        found.push(Hazard::Setting {
            setting: "table leasehold_fence",
            found: "unlogged".to_owned(),
            so: "a server that crashes empties it, and takes stale writes until the next seal",
            wanted: "logged, with ALTER TABLE leasehold_fence SET LOGGED",
        });
    }
    let trigger = match trigger.as_deref() {
        Some("A") => return Ok(found),
        Some("D") => "switched off",
        Some(_) => "not fired for changes that a replica applies",
        None => "missing",
    };
    found.push(Hazard::Setting {
        setting: "trigger leasehold_by_hand",
        found: trigger.to_owned(),
        so: "a row that is changed by hand is not noticed by those who have entered before",
        wanted: "always, by running the migration again",
    });
    Ok(found)
}
