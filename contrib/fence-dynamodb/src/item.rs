//! A single item that carries its own token.

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::operation::update_item::UpdateItemError;
use aws_sdk_dynamodb::operation::update_item::builders::UpdateItemFluentBuilder;
use aws_sdk_dynamodb::types::{AttributeValue, ReturnValuesOnConditionCheckFailure};
use leasehold_fence::{Answer, Authority, Counts, Error, Receiver, Seen, Stamp};

use super::sent::{Ended, Sent, patiently};
use super::{Attributes, NOT_STALE, RAISE, look, names, number, place, refused, values};

/// Where an item carries its token, and who brought it.
const TOKEN: &str = "leasehold_token";
const HOLDER: &str = "leasehold_holder";

/// One item that is protected under one fence name: token and content are written by one conditional write.
///
/// ```no_run
/// use aws_sdk_dynamodb::types::AttributeValue;
/// use leasehold_fence::Authority;
/// use leasehold_fence_dynamodb::Item;
///
/// # async fn example(client: aws_sdk_dynamodb::Client, guard: impl Authority) -> Result<(), leasehold_fence::Error> {
/// let key = [("pk".to_owned(), AttributeValue::S("today".into()))];
/// let report = Item::new(client.clone(), "reports", "reports/nightly", key);
/// let write = client.update_item().update_expression("SET body = :body");
/// report.update(&guard, write.expression_attribute_values(":body", AttributeValue::S("dry".into()))).await?;
/// # Ok(()) }
/// ```
///
/// The token lies in the item's attribute `leasehold_token`. Whoever deletes or replaces the item deletes the fence with it; mark it as
/// deleted instead. A seal of an item that does not exist makes one that has the key and the token and nothing else.
#[derive(Debug, Clone)]
pub struct Item {
    client: Client,
    table: String,
    name: String,
    key: Attributes,
    place: String,
    counts: Counts,
}

impl Item {
    /// The item with this key, protected under this fence name.
    pub fn new(
        client: Client,
        table: impl Into<String>,
        name: impl Into<String>,
        key: impl IntoIterator<Item = (String, AttributeValue)>,
    ) -> Self {
        let table = table.into();
        let place = place(&client, &table);
        let (name, key) = (name.into(), key.into_iter().collect());
        Self { client, table, name, key, place, counts: Counts::default() }
    }

    /// Counts seals and writes there.
    #[must_use]
    pub fn counted(mut self, counts: &Counts) -> Self {
        self.counts = counts.clone();
        self
    }

    /// Makes this update, unless the token is stale. Table and key are set here. If the expression has a `SET`, it begins with it.
    /// A condition of the caller's holds as well.
    ///
    /// # Errors
    /// [`Error::Failed`] also when the caller's condition does not hold. It is *unknown* more often than with a transaction: see
    /// the [module](super).
    pub async fn update(
        &self,
        authority: &impl Authority,
        update: UpdateItemFluentBuilder,
    ) -> Result<(), Error> {
        let write = patiently(authority, |stamp| self.update_once(stamp, update.clone(), true));
        self.counts.writing(&self.place, write).await
    }

    /// Makes an update, or only raises the token: then it `writes` nothing.
    async fn update_once(
        &self,
        stamp: Stamp,
        update: UpdateItemFluentBuilder,
        writes: bool,
    ) -> Result<(), Ended> {
        // Tokens of different names cannot be compared.
        if stamp.name() != self.name {
            let words = format!("the item is protected under {}, and not under {}", self.name, stamp.name());
            return Err(Ended::for_good(Error::failed(&self.place, words)));
        }
        let expression = match update.get_update_expression().as_deref().map(str::trim_start) {
            None | Some("") => RAISE.to_owned(),
            Some(theirs) => match theirs.get(..4).filter(|word| word.eq_ignore_ascii_case("set ")) {
                Some(_) => format!("{RAISE}, {}", &theirs[4..]),
                None => format!("{RAISE} {theirs}"),
            },
        };
        let theirs = update.get_condition_expression().clone();
        let condition = match &theirs {
            Some(theirs) => format!("({NOT_STALE}) AND ({theirs})"),
            None => NOT_STALE.to_owned(),
        };
        let update = names([TOKEN, HOLDER]).into_iter().fold(update, |update, (placeholder, attribute)| {
            update.expression_attribute_names(placeholder, attribute)
        });
        let update = values(&stamp).into_iter().fold(update, |update, (placeholder, value)| {
            update.expression_attribute_values(placeholder, value)
        });
        let update = update
            .table_name(&self.table)
            .set_key(Some(self.key.clone()))
            .update_expression(expression)
            .condition_expression(condition)
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
        let sent = Sent::default();
        let Err(error) = update.customize().interceptor(sent.clone()).send().await else { return Ok(()) };
        Err(match error.as_service_error() {
            // With a request that was not answered it may have been taken first, and refused then. A seal writes nothing in either case.
            Some(UpdateItemError::ConditionalCheckFailedException(refusal))
                if (!writes || sent.open() == 0)
                    && (theirs.is_none() || is_above(refusal.item(), stamp.token())) =>
            {
                Ended::for_good(refused(&self.place, &stamp, refusal.item(), TOKEN))
            }
            other => {
                let conflict = matches!(other, Some(UpdateItemError::TransactionConflictException(_)));
                sent.ended(&self.place, conflict, &error)
            }
        })
    }
}

/// Whether it was the token that did not meet the condition, where there are two.
fn is_above(item: Option<&Attributes>, token: u64) -> bool {
    item.and_then(|item| item.get(TOKEN)).and_then(number).is_some_and(|highest| highest > token)
}

impl Receiver for Item {
    fn place(&self) -> &str {
        &self.place
    }

    fn seal<'a>(&'a self, stamp: &'a Stamp) -> Answer<'a, ()> {
        Box::pin(async move {
            let seal = |stamp| self.update_once(stamp, self.client.update_item(), false);
            self.counts.sealing(&self.place, patiently(stamp, seal)).await
        })
    }

    fn look<'a>(&'a self, name: &'a str) -> Answer<'a, Seen> {
        Box::pin(async move {
            if name != self.name {
                return Ok(Seen::default());
            }
            let highest =
                look(&self.client, &self.place, &self.table, self.key.clone(), [TOKEN, HOLDER]).await?;
            Ok(Seen { highest, refusals: None })
        })
    }
}
