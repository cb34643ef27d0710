//! DynamoDB: the fence is an item, and every write is one transaction with it.
//!
//! ```no_run
//! use aws_sdk_dynamodb::types::{AttributeValue, Put, TransactWriteItem};
//! use leasehold_fence::Authority;
//! use leasehold_fence_dynamodb::Fence;
//!
//! # async fn example(client: aws_sdk_dynamodb::Client, guard: impl Authority) -> Result<(), Box<dyn std::error::Error>> {
//! let fence = Fence::new(client, "reports");
//! let report = Put::builder().table_name("reports").item("pk", AttributeValue::S("today".into())).build()?;
//! fence.transact(&guard, vec![TransactWriteItem::builder().put(report).build()]).await?;
//! # Ok(()) }
//! ```
//!
//! **The atomic step.** [`Fence::transact`] is one `TransactWriteItems`: its first part updates the fence item on the condition that no
//! greater token is there, the others are the caller's. A `ConditionCheck` in the place of that update would compare and raise nothing, so
//! that a holder that has not written yet would be protected from nobody. [`Item`] is for a single item: it carries the token itself,
//! and one conditional write does both, for half of the price.
//!
//! **What it needs.** Nothing that could be set: DynamoDB serializes transactions and conditional writes of an item, and answers when
//! they are durable. The table needs a key of text (`pk`, or [`Fence::partition_key`]); the fence items are called
//! `leasehold-fence#NAME`. No time to live may be set on them: a fence that is deleted has forgotten its token.
//!
//! **What it does not cover.** Writes that go around the adapter. Reads. Replicas of a global table in other regions: there the last writer
//! wins, whatever its token is, so all writers of a name have to use one region. Refusals are not kept, because that would cost a write
//! for each; [`Seen::refusals`] is `None`.
//!
//! The SDK sends a request again when no answer comes, which a transaction survives (its request token makes it one) and a
//! plain conditional write does not: the first may have been taken, and the second refused for a token that came in between. So it is counted
//! how many requests were sent and not answered; with one of them open, nobody says *failed*, and nobody says *stale* for an [`Item`].
//!
//! This crate brings no HTTP client and no TLS: the client is the caller's, usually made by `aws-config`.

mod item;
mod sent;

use std::collections::HashMap;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::http::HttpResponse;
use aws_sdk_dynamodb::error::SdkError;
use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError;
use aws_sdk_dynamodb::operation::update_item::UpdateItemError;
use aws_sdk_dynamodb::types::{
    AttributeValue, CancellationReason, ReturnValuesOnConditionCheckFailure, TransactWriteItem, Update,
};
use leasehold_fence::{Answer, Authority, Counts, Error, Mark, Receiver, Seen, Stale, Stamp};

pub use item::Item;
use sent::{Ended, Sent, patiently};

/// What the key of a fence item begins with.
pub const KEY_PREFIX: &str = "leasehold-fence#";
/// How many items a caller may write at once: DynamoDB takes 100, and one is the fence.
pub const MOST_ITEMS: usize = 99;

/// Takes a token that is not below the one that is there. An item that is new has none.
const NOT_STALE: &str = "attribute_not_exists(#leasehold_token) OR #leasehold_token <= :leasehold_token";
/// Raises the token. The placeholders are such that no caller has them.
const RAISE: &str = "SET #leasehold_token = :leasehold_token, #leasehold_holder = :leasehold_holder";
/// Where a fence item has its token, and who brought it.
const TOKEN: &str = "token";
const HOLDER: &str = "holder";
const REASON_STALE: &str = "ConditionalCheckFailed";
const REASON_CONFLICT: &str = "TransactionConflict";

type Attributes = HashMap<String, AttributeValue>;

/// Fences in a table, one item for each name.
#[derive(Debug, Clone)]
pub struct Fence {
    client: Client,
    table: String,
    partition_key: String,
    sort_key: Option<String>,
    place: String,
    counts: Counts,
}

impl Fence {
    /// Fences in a table whose partition key is the text `pk`. The table has to exist; it may be the one that is protected.
    pub fn new(client: Client, table: impl Into<String>) -> Self {
        let table = table.into();
        let place = place(&client, &table);
        Self {
            client,
            table,
            partition_key: "pk".to_owned(),
            sort_key: None,
            place,
            counts: Counts::default(),
        }
    }

    /// The partition key has another name.
    #[must_use]
    pub fn partition_key(mut self, attribute: impl Into<String>) -> Self {
        self.partition_key = attribute.into();
        self
    }

    /// The table has a sort key, of text too. Fence items have the same text there.
    #[must_use]
    pub fn sort_key(mut self, attribute: impl Into<String>) -> Self {
        self.sort_key = Some(attribute.into());
        self
    }

    /// Counts seals and writes there.
    #[must_use]
    pub fn counted(mut self, counts: &Counts) -> Self {
        self.counts = counts.clone();
        self
    }

    /// Writes at most [`MOST_ITEMS`] items, all of them or none, unless the token is stale. Conflicts with other transactions are
    /// tried again a few times, and the authority is asked each time.
    ///
    /// # Errors
    /// [`Error::Failed`] also when a condition of the caller's items does not hold, or when one of them would write a fence item of
    /// this table, of whatever name; nothing is sent then. A condition on the fence of another name is let through.
    pub async fn transact(
        &self,
        authority: &impl Authority,
        items: Vec<TransactWriteItem>,
    ) -> Result<(), Error> {
        if items.len() > MOST_ITEMS {
            let words =
                format!("{} items are above the limit of {MOST_ITEMS}; write them in parts", items.len());
            return self.counts.write(&self.place, Err(Error::failed(&self.place, words)));
        }
        if let Some(fence) = items.iter().find_map(|item| self.fence_written_by(item)) {
            let words =
                format!("an item would write {fence:?}, which is a fence; leave it out, or seal to raise it");
            return self.counts.write(&self.place, Err(Error::failed(&self.place, words)));
        }
        let write = patiently(authority, |stamp| self.transact_once(stamp, items.clone()));
        self.counts.writing(&self.place, write).await
    }

    /// The fence item that a caller's item would write. Whoever lowered, replaced or deleted one would let in all who are late.
    fn fence_written_by<'a>(&self, item: &'a TransactWriteItem) -> Option<&'a str> {
        let put = item.put().map(|put| (put.table_name(), put.item()));
        let update = item.update().map(|update| (update.table_name(), update.key()));
        let delete = item.delete().map(|delete| (delete.table_name(), delete.key()));
        [put, update, delete].into_iter().flatten().find_map(|(table, attributes)| {
            let text = |attribute: &String| attributes.get(attribute)?.as_s().ok().map(String::as_str);
            let key = text(&self.partition_key)?;
            // Of a table with a sort key only one item of such a partition is the fence.
            let is_fence = self.sort_key.as_ref().is_none_or(|sort| text(sort) == Some(key));
            (is_fence && key.starts_with(KEY_PREFIX) && is_table(table, &self.table)).then_some(key)
        })
    }

    async fn transact_once(&self, stamp: Stamp, items: Vec<TransactWriteItem>) -> Result<(), Ended> {
        let sent = Sent::default();
        let fence =
            self.update_of(&stamp).map_err(|error| Ended::for_good(Error::failed(&self.place, error)))?;
        let fence = TransactWriteItem::builder().update(fence).build();
        let request = self.client.transact_write_items();
        let request = request.set_transact_items(Some([vec![fence], items].concat()));
        let Err(error) = request.customize().interceptor(sent.clone()).send().await else { return Ok(()) };
        let reasons = reasons(&error);
        if let Some(reason) = reasons.first().filter(|reason| reason.code() == Some(REASON_STALE)) {
            // No earlier request of this transaction was taken: then this one would have been told so. And none will be, because
            // the fence does not fall.
            return Err(Ended::for_good(refused(&self.place, &stamp, reason.item(), TOKEN)));
        }
        let conflict = reasons.iter().any(|reason| reason.code() == Some(REASON_CONFLICT));
        Err(sent.ended(&self.place, conflict, &error))
    }

    async fn seal_once(&self, stamp: Stamp) -> Result<(), Ended> {
        let sent = Sent::default();
        let request = self.client.update_item().table_name(&self.table).set_key(Some(self.key(stamp.name())));
        let request = request
            .update_expression(RAISE)
            .condition_expression(NOT_STALE)
            .set_expression_attribute_names(Some(names([TOKEN, HOLDER])))
            .set_expression_attribute_values(Some(values(&stamp)))
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
        let Err(error) = request.customize().interceptor(sent.clone()).send().await else { return Ok(()) };
        Err(match error.as_service_error() {
            // A seal that was sent twice may have been taken first and refused then. It has written nothing in either case.
            Some(UpdateItemError::ConditionalCheckFailedException(stale)) => {
                Ended::for_good(refused(&self.place, &stamp, stale.item(), TOKEN))
            }
            other => {
                let conflict = matches!(other, Some(UpdateItemError::TransactionConflictException(_)));
                sent.ended(&self.place, conflict, &error)
            }
        })
    }

    fn update_of(&self, stamp: &Stamp) -> Result<Update, aws_sdk_dynamodb::error::BuildError> {
        Update::builder()
            .table_name(&self.table)
            .set_key(Some(self.key(stamp.name())))
            .update_expression(RAISE)
            .condition_expression(NOT_STALE)
            .set_expression_attribute_names(Some(names([TOKEN, HOLDER])))
            .set_expression_attribute_values(Some(values(stamp)))
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
            .build()
    }

    fn key(&self, name: &str) -> Attributes {
        let key = AttributeValue::S(format!("{KEY_PREFIX}{name}"));
        let attributes = [Some(&self.partition_key), self.sort_key.as_ref()].into_iter().flatten();
        attributes.map(|attribute| (attribute.clone(), key.clone())).collect()
    }
}

impl Receiver for Fence {
    fn place(&self) -> &str {
        &self.place
    }

    fn seal<'a>(&'a self, stamp: &'a Stamp) -> Answer<'a, ()> {
        Box::pin(async move {
            let seal = patiently(stamp, |stamp| self.seal_once(stamp));
            self.counts.sealing(&self.place, seal).await
        })
    }

    fn look<'a>(&'a self, name: &'a str) -> Answer<'a, Seen> {
        Box::pin(async move {
            let highest =
                look(&self.client, &self.place, &self.table, self.key(name), [TOKEN, HOLDER]).await?;
            Ok(Seen { highest, refusals: None })
        })
    }
}

/// Where it is: a table belongs to a region.
fn place(client: &Client, table: &str) -> String {
    match client.config().region() {
        Some(region) => format!("dynamodb:{region}/{table}"),
        None => format!("dynamodb:{table}"),
    }
}

/// Whether both name one table: each by its name, or by an ARN that ends with it. Those of two accounts or regions are taken for one too, since a name
/// does not say which is meant.
fn is_table(one: &str, other: &str) -> bool {
    let [one, other] = [one, other].map(|table| table.rsplit_once(":table/").map_or(table, |(_, name)| name));
    one == other
}

fn names([token, holder]: [&str; 2]) -> HashMap<String, String> {
    let names = [("#leasehold_token", token), ("#leasehold_holder", holder)];
    names.map(|(placeholder, attribute)| (placeholder.to_owned(), attribute.to_owned())).into()
}

fn values(stamp: &Stamp) -> Attributes {
    let token = AttributeValue::N(stamp.token().to_string());
    // A holder without a name has the empty one, because a `REMOVE` could not be put before a caller's own.
    let holder = AttributeValue::S(stamp.holder().unwrap_or_default().to_owned());
    [(":leasehold_token".to_owned(), token), (":leasehold_holder".to_owned(), holder)].into()
}

fn reasons(error: &SdkError<TransactWriteItemsError, HttpResponse>) -> &[CancellationReason] {
    match error.as_service_error() {
        Some(TransactWriteItemsError::TransactionCanceledException(cancelled)) => {
            cancelled.cancellation_reasons()
        }
        _ => &[],
    }
}

/// A refusal, from the item that did not meet the condition.
fn refused(place: &str, stamp: &Stamp, item: Option<&Attributes>, token: &str) -> Error {
    let highest = match item.and_then(|item| item.get(token)).map(number) {
        // A value that is no number is below no token and above none. Nobody gets past it, the newest holder neither.
        Some(None) => {
            let words =
                format!("attribute {token} of the fence {} is no token; put a number there", stamp.name());
            return Error::failed(place, words);
        }
        other => other.flatten(),
    };
    Stale::of(stamp, highest).into()
}

fn number(value: &AttributeValue) -> Option<u64> {
    value.as_n().ok()?.parse().ok()
}

async fn look(
    client: &Client,
    place: &str,
    table: &str,
    key: Attributes,
    [token, holder]: [&str; 2],
) -> Result<Option<Mark>, Error> {
    let request = client.get_item().table_name(table).set_key(Some(key)).consistent_read(true);
    let found = request.send().await.map_err(|error| Error::failed(place, sent::words(&error)))?;
    let Some(item) = found.item else { return Ok(None) };
    let holder = item.get(holder).and_then(|holder| holder.as_s().ok());
    let holder = holder.filter(|holder| !holder.is_empty()).cloned();
    Ok(item.get(token).and_then(number).map(|token| Mark { token, holder }))
}
