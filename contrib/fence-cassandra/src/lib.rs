//! Cassandra: the fence is in the partition that it protects, and every write is one lightweight transaction.
//!
//! ```no_run
//! use std::sync::Arc;
//!
//! use leasehold_fence::Authority;
//! use leasehold_fence_cassandra::{Fence, Write};
//!
//! // CREATE TABLE shop.report (name text, day text, body text,
//! //     leasehold_token bigint STATIC, leasehold_holder text STATIC, leasehold_write bigint STATIC, PRIMARY KEY (name, day));
//! # async fn example(session: Arc<scylla::client::session::Session>, guard: impl Authority) -> Result<(), Box<dyn std::error::Error>> {
//! let fence = Fence::new(session, "shop.report", "name").await?;
//! let name = guard.stamp()?.name().to_owned();
//! let insert = "INSERT INTO shop.report (name, day, body) VALUES (?, ?, ?)";
//! fence.write(&guard, &Write::of(insert, (name, "today", "dry"))).await?;
//! # Ok(()) }
//! ```
//!
//! **The atomic step.** [`Fence::write`] is one conditional batch: an update of the fence columns `IF leasehold_token <= ?`, and the caller's
//! statements. Such a batch lies in one partition, so **what is protected under a fence name lies in the partition of that name**: the
//! partition key is one column of text, and its value is the fence name. Cassandra refuses a batch that touches another one.
//!
//! **What it needs.** The three columns above: static ones, or plain ones in a table without clustering columns. They are agreed on
//! with `SERIAL`, over all data centres, and committed with `QUORUM`. The driver sends nothing twice. A null token is not `<=` anything, so the
//! first write of a name is conditional on null. The fence does not expire with the table's rows.
//!
//! **What it does not cover.** Other partitions. Writes that go around the adapter, lightweight or not: a plain write has the time of its
//! client, and one from a clock that is ahead hides what comes after it. A plain `DELETE` of the whole partition deletes the fence with
//! it; in a fenced write it does not. Refusals are not kept; [`Seen::refusals`] is `None`.
//!
//! A transaction that times out may still be made later. It is *unknown*, unless a read with `SERIAL` proves how it ended: every write
//! leaves a number of its own in `leasehold_write`, and one that is found there was made. A seal is proved by its token.

mod ended;

use std::sync::Arc;
use std::time::Duration;

use leasehold_fence::{Answer, Authority, Counts, Error, Mark, Receiver, Seen, Stale, Stamp};
use scylla::client::session::Session;
use scylla::errors::ExecutionError;
use scylla::policies::retry::{FallthroughRetryPolicy, RetryPolicy};
use scylla::response::query_result::QueryResult;
use scylla::serialize::row::SerializeRow;
use scylla::statement::batch::{Batch, BatchStatement, BatchType};
use scylla::statement::prepared::PreparedStatement;
use scylla::statement::{Consistency, SerialConsistency, Statement};
use scylla::value::{CqlValue, Row};

use ended::nothing_was_sent;

/// How often a write is tried when the fence appears or vanishes under it: one try meets no fence, the next one has it.
const TRIES: u32 = 4;

/// After a lost connection there is none for a moment. Then it is looked again, for less than a second altogether.
const LOOK_AGAIN: [Duration; 4] = [
    Duration::from_millis(50),
    Duration::from_millis(100),
    Duration::from_millis(200),
    Duration::from_millis(400),
];

/// Statements that are made together, or not at all.
#[derive(Default)]
pub struct Write {
    statements: Vec<BatchStatement>,
    values: Vec<Box<dyn SerializeRow + Send + Sync>>,
}

impl Write {
    /// One statement, prepared or not, with its values.
    pub fn of(
        statement: impl Into<BatchStatement>,
        values: impl SerializeRow + Send + Sync + 'static,
    ) -> Self {
        Self::default().and(statement, values)
    }

    /// One more statement, prepared or not, with its values.
    #[must_use]
    pub fn and(
        mut self,
        statement: impl Into<BatchStatement>,
        values: impl SerializeRow + Send + Sync + 'static,
    ) -> Self {
        self.statements.push(statement.into());
        self.values.push(Box::new(values));
        self
    }
}

impl std::fmt::Debug for Write {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Write of {} statements", self.statements.len())
    }
}

/// A table whose partitions are protected, each under its own name.
#[derive(Debug, Clone)]
pub struct Fence {
    session: Arc<Session>,
    /// Raises a token that is there.
    raise: PreparedStatement,
    /// Puts the first token.
    first: PreparedStatement,
    look: PreparedStatement,
    place: String,
    counts: Counts,
}

impl Fence {
    /// The table, with its keyspace, and the name of its partition key. Both are put into statements as they are; they are not for
    /// words of strangers.
    ///
    /// # Errors
    /// When the table or one of its fence columns is missing.
    pub async fn new(session: Arc<Session>, table: &str, key: &str) -> Result<Self, Error> {
        let place = format!("cassandra:{table}");
        let update = format!(
            "UPDATE {table} USING TTL 0 SET leasehold_token = ?, leasehold_holder = ?, leasehold_write = ? WHERE {key} = ? IF leasehold_token"
        );
        let look = format!(
            "SELECT leasehold_token, leasehold_holder, leasehold_write FROM {table} WHERE {key} = ? LIMIT 1"
        );
        let [raise, first, look] = [format!("{update} <= ?"), format!("{update} = ?"), look]
            .map(|text| prepared(&session, text, &place));
        let (raise, first, mut look) = (raise.await?, first.await?, look.await?);
        look.set_consistency(Consistency::Serial);
        Ok(Self { session, raise, first, look, place, counts: Counts::default() })
    }

    /// Counts seals and writes there.
    #[must_use]
    pub fn counted(mut self, counts: &Counts) -> Self {
        self.counts = counts.clone();
        self
    }

    /// Makes the statements, all or none, unless the token is stale. They are for the partition of the fence name.
    ///
    /// # Errors
    /// [`Error::Failed`] also when a condition of the caller's statements does not hold, or they touch another partition.
    pub async fn write(&self, authority: &impl Authority, write: &Write) -> Result<(), Error> {
        let making = async move {
            let stamp = authority.stamp()?;
            self.make(&stamp, write, false).await
        };
        self.counts.writing(&self.place, making).await
    }

    async fn make(&self, stamp: &Stamp, write: &Write, seals: bool) -> Result<(), Error> {
        let id = own_number().map_err(|error| Error::failed(&self.place, error))?;
        let mut is_first = false;
        for _ in 0..TRIES {
            let made = match self.send(stamp, id, write, is_first).await {
                Ok(result) => self.read(result)?,
                Err(error) if nothing_was_sent(&error) => return Err(Error::failed(&self.place, error)),
                Err(error) => return self.resolve(stamp, id, seals, error).await,
            };
            match (made.applied, made.token) {
                (true, _) => return Ok(()),
                (false, Some(highest)) if highest > stamp.token() => {
                    return Err(Stale::of(stamp, Some(highest)).into());
                }
                (false, None) if !is_first => is_first = true,
                (false, Some(_)) if is_first => is_first = false,
                (false, _) => {
                    return Err(Error::failed(&self.place, "a condition of the statements does not hold"));
                }
            }
        }
        let words = format!("the fence came and went {TRIES} times; something else writes to its columns");
        Err(Error::failed(&self.place, words))
    }

    async fn send(
        &self,
        stamp: &Stamp,
        id: i64,
        write: &Write,
        is_first: bool,
    ) -> Result<QueryResult, ExecutionError> {
        let mut batch = Batch::new(BatchType::Unlogged);
        batch.set_consistency(Consistency::Quorum);
        batch.set_serial_consistency(Some(SerialConsistency::Serial));
        batch.set_is_idempotent(false);
        batch.set_retry_policy(Some(once()));
        batch.append_statement(if is_first { self.first.clone() } else { self.raise.clone() });
        let (token, none) = (stamp.signed_token(), None::<i64>);
        let condition = if is_first { none } else { Some(token) };
        let fence = (token, stamp.holder(), id, stamp.name(), condition);
        let mut values: Vec<&(dyn SerializeRow + Send + Sync)> = vec![&fence];
        for (statement, their) in write.statements.iter().zip(&write.values) {
            batch.append_statement(statement.clone());
            values.push(&**their);
        }
        self.session.batch(&batch, values).await
    }

    /// What the answer to a conditional batch says. It was executed, so one that cannot be read proves nothing.
    fn read(&self, result: QueryResult) -> Result<Made, Error> {
        let rows = result.into_rows_result().map_err(|error| Error::unknown(&self.place, error))?;
        let place = |name| rows.column_specs().get_by_name(name).map(|(nth, _)| nth);
        let (applied, token) = (place("[applied]"), place("leasehold_token"));
        let row = rows.first_row::<Row>().map_err(|error| Error::unknown(&self.place, error))?;
        let value = |nth: Option<usize>| nth.and_then(|nth| row.columns.get(nth)?.as_ref());
        let Some(applied) = value(applied).and_then(CqlValue::as_boolean) else {
            return Err(Error::unknown(&self.place, "the answer does not say whether it was applied"));
        };
        let token = value(token).and_then(CqlValue::as_bigint).map(i64::cast_unsigned);
        Ok(Made { applied, token })
    }

    /// Tries to prove how it ended, with a read that first ends whatever is under way in the partition.
    async fn resolve(&self, stamp: &Stamp, id: i64, seals: bool, error: ExecutionError) -> Result<(), Error> {
        let unknown = || Error::unknown(&self.place, error);
        let mut row = self.row(stamp.name()).await;
        for pause in LOOK_AGAIN {
            if row.is_ok() {
                break;
            }
            tokio::time::sleep(pause).await;
            row = self.row(stamp.name()).await;
        }
        let Ok(Some((found, _, written))) = row else { return Err(unknown()) };
        if written == Some(id) {
            return Ok(());
        }
        match found.map(i64::cast_unsigned) {
            Some(highest) if seals && highest == stamp.token() => Ok(()),
            // Whether it was raised before or not: it is refused from now on, and a seal has written nothing.
            Some(highest) if seals && highest > stamp.token() => Err(Stale::of(stamp, Some(highest)).into()),
            _ => Err(unknown()),
        }
    }

    async fn row(&self, name: &str) -> Result<Option<FenceRow>, Error> {
        let result = self.session.execute_unpaged(&self.look, (name,)).await;
        let rows = result.map_err(|error| Error::failed(&self.place, error))?.into_rows_result();
        let rows = rows.map_err(|error| Error::failed(&self.place, error))?;
        rows.maybe_first_row().map_err(|error| Error::failed(&self.place, error))
    }
}

/// Token, holder, and the number of the last write.
type FenceRow = (Option<i64>, Option<String>, Option<i64>);

struct Made {
    applied: bool,
    token: Option<u64>,
}

/// A number that no other write has. The system draws it, for each write: whatever a process has drawn once and counts on from, as the keys of the
/// hashers of the standard library, a forked child has too, and would find the parent's write in the place of its own.
fn own_number() -> Result<i64, getrandom::Error> {
    getrandom::u64().map(u64::cast_signed)
}

/// Whoever sends twice does not know which of the two was refused.
fn once() -> Arc<dyn RetryPolicy> {
    Arc::new(FallthroughRetryPolicy::new())
}

async fn prepared(session: &Session, text: String, place: &str) -> Result<PreparedStatement, Error> {
    let mut statement = session.prepare(Statement::new(text)).await.map_err(|error| {
        let columns = "leasehold_token bigint, leasehold_holder text, leasehold_write bigint";
        Error::failed(place, format!("the table needs the columns {columns}: {error}"))
    })?;
    statement.set_consistency(Consistency::Quorum);
    statement.set_serial_consistency(Some(SerialConsistency::Serial));
    statement.set_is_idempotent(false);
    statement.set_retry_policy(Some(once()));
    Ok(statement)
}

impl Receiver for Fence {
    fn place(&self) -> &str {
        &self.place
    }

    fn seal<'a>(&'a self, stamp: &'a Stamp) -> Answer<'a, ()> {
        Box::pin(async move {
            let nothing = Write::default();
            self.counts.sealing(&self.place, self.make(stamp, &nothing, true)).await
        })
    }

    fn look<'a>(&'a self, name: &'a str) -> Answer<'a, Seen> {
        Box::pin(async move {
            let (token, holder, _) = self.row(name).await?.unwrap_or_default();
            let highest = token.map(|token| Mark { token: token.cast_unsigned(), holder });
            Ok(Seen { highest, refusals: None })
        })
    }
}
