//! Invoices, and the payments that were made for them. A payment is money that has left: the table has no rule that there is one for each
//! invoice, as no bank has.

use anyhow::Result;
use sqlx::{PgPool, Row as _};

/// An invoice that nobody has paid yet.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Invoice {
    pub(crate) id: i32,
    pub(crate) cents: i64,
}

/// An invoice that was paid more than once, and by whom with which token.
#[derive(Debug, Clone)]
pub(crate) struct Twice {
    pub(crate) invoice: i32,
    pub(crate) payments: Vec<(String, i64)>,
}

/// Makes both tables anew, with so many invoices.
pub(crate) async fn open_anew(pool: &PgPool, invoices: i32) -> Result<()> {
    let tables = "DROP TABLE IF EXISTS payment, invoice;
         CREATE TABLE invoice (id int PRIMARY KEY, cents bigint NOT NULL, paid boolean NOT NULL DEFAULT false);
         CREATE TABLE payment (id bigserial PRIMARY KEY, invoice int NOT NULL, cents bigint NOT NULL, payer text NOT NULL,
                               token bigint NOT NULL);";
    sqlx::raw_sql(tables).execute(pool).await?;
    sqlx::query("INSERT INTO invoice (id, cents) SELECT id, 1000 * id FROM generate_series(1, $1) AS id")
        .bind(invoices)
        .execute(pool)
        .await?;
    Ok(())
}

/// What is to be paid, in order.
pub(crate) async fn unpaid(pool: &PgPool) -> Result<Vec<Invoice>> {
    let rows =
        sqlx::query("SELECT id, cents FROM invoice WHERE NOT paid ORDER BY id").fetch_all(pool).await?;
    rows.iter().map(|row| Ok(Invoice { id: row.try_get(0)?, cents: row.try_get(1)? })).collect()
}

/// One payment as one piece of SQL: it leaves the worker as one message, so that all of it is on its way at once.
pub(crate) fn payment(invoice: Invoice, payer: &str, token: u64) -> String {
    let Invoice { id, cents } = invoice;
    // The payer is a word of this program's own, without a quote in it.
    format!(
        "INSERT INTO payment (invoice, cents, payer, token) VALUES ({id}, {cents}, '{payer}', {token}); \
         UPDATE invoice SET paid = true WHERE id = {id}"
    )
}

/// How many payments were made, and what was paid more than once.
pub(crate) async fn audit(pool: &PgPool) -> Result<(i64, Vec<Twice>)> {
    let payments = sqlx::query("SELECT count(*) FROM payment").fetch_one(pool).await?.try_get(0)?;
    let rows = sqlx::query(
        "SELECT invoice, payer, token FROM payment WHERE invoice IN
             (SELECT invoice FROM payment GROUP BY invoice HAVING count(*) > 1) ORDER BY invoice, id",
    )
    .fetch_all(pool)
    .await?;
    let mut twice: Vec<Twice> = Vec::new();
    for row in rows {
        let (invoice, payment) = (row.try_get(0)?, (row.try_get(1)?, row.try_get(2)?));
        match twice.last_mut().filter(|last| last.invoice == invoice) {
            Some(last) => last.payments.push(payment),
            None => twice.push(Twice { invoice, payments: vec![payment] }),
        }
    }
    Ok((payments, twice))
}
