//! A table on a real server, and ways to write to it.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::{BehaviorVersion, Config, Credentials, Region};
use aws_sdk_dynamodb::types::{
    AttributeDefinition, AttributeValue, BillingMode, KeySchemaElement, KeyType, ScalarAttributeType,
    TransactWriteItem, Update,
};
use leasehold_fence::conformance::{Subject, Trouble, Writer, Written};
use leasehold_fence::{Error, Receiver, Stamp};
use leasehold_fence_dynamodb::{Fence, Item};

use leasehold_kit::Receiver as _;
use leasehold_kit::dynamodb::Server;

use super::http::Http;

/// The server of all tests that do not kill it.
pub(crate) fn shared_port() -> u16 {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(|| Server::start().unwrap()).port()
}

/// A table and a client for it.
#[derive(Debug, Clone)]
pub(crate) struct World {
    pub(crate) client: Client,
    pub(crate) http: Http,
    pub(crate) table: String,
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::on(shared_port()).await
    }

    pub(crate) async fn on(port: u16) -> Self {
        static TABLES: AtomicU32 = AtomicU32::new(0);
        let table = format!("table-{}", TABLES.fetch_add(1, Ordering::Relaxed));
        let http = Http::default();
        let config = Config::builder()
            .behavior_version(BehaviorVersion::v2026_01_12())
            .credentials_provider(Credentials::new("test", "test", None, None, "test"))
            .endpoint_url(format!("http://127.0.0.1:{port}"))
            .region(Region::new("eu-north-1"))
            .http_client(http.clone());
        let client = Client::from_conf(config.build());
        let key = KeySchemaElement::builder().attribute_name("pk").key_type(KeyType::Hash).build().unwrap();
        let text = AttributeDefinition::builder()
            .attribute_name("pk")
            .attribute_type(ScalarAttributeType::S)
            .build()
            .unwrap();
        let make = client.create_table().table_name(&table).key_schema(key).attribute_definitions(text);
        make.billing_mode(BillingMode::PayPerRequest).send().await.unwrap();
        Self { client, http, table }
    }

    pub(crate) fn fence(&self) -> Fence {
        Fence::new(self.client.clone(), &self.table)
    }

    pub(crate) fn item(&self, name: &str) -> Item {
        Item::new(self.client.clone(), &self.table, name, key(&format!("log#{name}")))
    }

    /// What adds a line to the log of a fence name.
    pub(crate) fn add(&self, stamp: &Stamp, value: &str) -> TransactWriteItem {
        let add = Update::builder()
            .table_name(&self.table)
            .set_key(Some(key(&format!("log#{}", stamp.name())).into()))
            .update_expression(ADD)
            .expression_attribute_values(":none", AttributeValue::L(Vec::new()))
            .expression_attribute_values(":line", line(stamp, value));
        TransactWriteItem::builder().update(add.build().unwrap()).build()
    }

    /// The same write without a fence.
    pub(crate) async fn add_anyway(&self, stamp: &Stamp, value: &str) {
        let add = self.client.update_item().table_name(&self.table);
        let add = add.set_key(Some(key(&format!("log#{}", stamp.name())).into())).update_expression(ADD);
        let add = add.expression_attribute_values(":none", AttributeValue::L(Vec::new()));
        add.expression_attribute_values(":line", line(stamp, value)).send().await.unwrap();
    }

    pub(crate) async fn add_fenced(&self, stamp: &Stamp, value: &str) -> Result<(), Error> {
        self.fence().transact(stamp, vec![self.add(stamp, value)]).await
    }

    pub(crate) async fn add_to_item(&self, stamp: &Stamp, value: &str) -> Result<(), Error> {
        let add = self.client.update_item().update_expression(ADD);
        let add = add.expression_attribute_values(":none", AttributeValue::L(Vec::new()));
        self.item(stamp.name())
            .update(stamp, add.expression_attribute_values(":line", line(stamp, value)))
            .await
    }

    /// The log of a fence name.
    pub(crate) async fn log(&self, name: &str) -> Vec<Written> {
        let get = self.client.get_item().table_name(&self.table).consistent_read(true);
        let found = get.set_key(Some(key(&format!("log#{name}")).into())).send().await.unwrap();
        let lines = found.item.and_then(|item| item.get("written").cloned());
        let lines = lines.map_or_else(Vec::new, |lines| lines.as_l().unwrap().clone());
        let lines = lines.iter().map(|line| line.as_s().unwrap().split_once(' ').unwrap());
        lines.map(|(token, value)| Written { token: token.parse().unwrap(), value: value.into() }).collect()
    }

    pub(crate) async fn tokens(&self, name: &str) -> Vec<u64> {
        self.log(name).await.into_iter().map(|written| written.token).collect()
    }
}

const ADD: &str = "SET written = list_append(if_not_exists(written, :none), :line)";

fn line(stamp: &Stamp, value: &str) -> AttributeValue {
    AttributeValue::L(vec![AttributeValue::S(format!("{} {value}", stamp.token()))])
}

pub(crate) fn key(pk: &str) -> [(String, AttributeValue); 1] {
    [("pk".to_owned(), AttributeValue::S(pk.to_owned()))]
}

pub(crate) fn stamp(name: &str, token: u64) -> Stamp {
    Stamp::new(name, token).unwrap().held_by(format!("holder-{token}")).unwrap()
}

/// Which way is tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    Transaction,
    Item,
    /// The check is taken out.
    NoCheck,
}

#[derive(Debug, Clone)]
pub(crate) struct Tried {
    pub(crate) world: World,
    pub(crate) way: Way,
}

impl Writer for Tried {
    async fn write(&mut self, stamp: &Stamp, value: &str) -> Result<(), Error> {
        match self.way {
            Way::Transaction => self.world.add_fenced(stamp, value).await,
            Way::Item => self.world.add_to_item(stamp, value).await,
            Way::NoCheck => {
                self.world.add_anyway(stamp, value).await;
                Ok(())
            }
        }
    }
}

/// An item knows one name; the suite seals many.
#[derive(Debug)]
struct Items(World);

impl Receiver for Items {
    fn place(&self) -> &'static str {
        "items"
    }

    fn seal<'a>(&'a self, stamp: &'a Stamp) -> leasehold_fence::Answer<'a, ()> {
        Box::pin(async move { self.0.item(stamp.name()).seal(stamp).await })
    }

    fn look<'a>(&'a self, name: &'a str) -> leasehold_fence::Answer<'a, leasehold_fence::Seen> {
        Box::pin(async move { self.0.item(name).look(name).await })
    }
}

impl Subject for Tried {
    type Writer = Self;

    fn receiver(&self) -> Arc<dyn Receiver> {
        match self.way {
            Way::Transaction | Way::NoCheck => Arc::new(self.world.fence()),
            Way::Item => Arc::new(Items(self.world.clone())),
        }
    }

    async fn writer(&self) -> Result<Self, Trouble> {
        Ok(self.clone())
    }

    async fn written(&self, name: &str) -> Result<Vec<Written>, Trouble> {
        Ok(self.world.log(name).await)
    }
}
