//! Numbers of a running service in the text format of Prometheus. There is no global state: each service has its own.
//!
//! What the node, the table and the disk count is asked for at every scrape, so a scrape costs one look by the loop. What the doors
//! count (requests, their time, connections) is counted here.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use leasehold_core::protocol::{ClusterView, Query, ReadAnswer, Request, Response};
use leasehold_host::{Asking, Caller, Inspection};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric, text};
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::metrics::{MetricType, TypedMetric};
use prometheus_client::registry::{Registry, Unit};

use crate::config::ServiceName;
use crate::running::Counts;

mod cluster;
mod gaps;
mod table;

/// What a scrape is answered as.
pub(crate) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Seconds of a request: from a read that needs no disk to a wait of minutes.
const REQUEST_SECONDS: [f64; 14] =
    [0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1.0, 10.0, 60.0];

/// How long a scrape waits for the leader's word on the others.
const CLUSTER_TIME: Duration = Duration::from_millis(250);

type Written = Result<(), fmt::Error>;

/// Which requests.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    door: &'static str,
    operation: &'static str,
    code: &'static str,
}

/// Which operation.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OperationLabels {
    door: &'static str,
    operation: &'static str,
}

/// The numbers of one service.
pub(crate) struct Metrics {
    name: ServiceName,
    caller: Caller,
    asking: Asking,
    counts: Arc<Counts>,
    requests: Family<RequestLabels, Counter>,
    seconds: Family<OperationLabels, Histogram>,
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}

impl Metrics {
    pub(crate) fn new(name: ServiceName, caller: Caller, asking: Asking, counts: Arc<Counts>) -> Self {
        Self {
            name,
            caller,
            asking,
            counts,
            requests: Family::default(),
            seconds: Family::new_with_constructor(|| Histogram::new(REQUEST_SECONDS)),
        }
    }

    /// Counts one request of a door (`http`, `grpc`): what it asked for, and the code of its error or `ok`. All three come from
    /// closed lists: nothing that a client chooses becomes a label.
    pub(crate) fn count(
        &self,
        door: &'static str,
        operation: &'static str,
        code: &'static str,
        took: Duration,
    ) {
        self.requests.get_or_create(&RequestLabels { door, operation, code }).inc();
        self.seconds.get_or_create(&OperationLabels { door, operation }).observe(took.as_secs_f64());
    }

    /// Everything, as text.
    pub(crate) async fn render(&self) -> String {
        let mut registry = Registry::with_prefix("leasehold");
        let requests = "Requests over HTTP and gRPC by operation and code";
        registry.register("requests", requests, self.requests.clone());
        let seconds = "Time from a whole request to its answer, waits in a queue included";
        registry.register_with_unit("request", seconds, Unit::Seconds, self.seconds.clone());
        registry.register_collector(Box::new(Doors(Arc::clone(&self.counts))));
        if let Some(inspection) = self.caller.inspect().await {
            let view = if inspection.serving { self.cluster().await } else { None };
            let contacts = self.asking.other_life_contacts();
            registry.register_collector(Box::new(cluster::Cluster::new(&inspection, contacts, view)));
            registry.register_collector(Box::new(Node(inspection)));
        }
        let mut process = Registry::default();
        let labels = vec![("name", self.name.to_string()), ("version", env!("CARGO_PKG_VERSION").to_owned())];
        process.register("leasehold", "What this service is called, and its release", Info::new(labels));
        process.register_collector(Box::new(table::Process));
        let mut text = String::new();
        // Writing into a string does not fail.
        let _ = text::encode_registry(&mut text, &registry);
        let _ = text::encode(&mut text, &process);
        text
    }

    /// How the nodes stand, which the leader alone knows. A scrape does not wait for one that has lost its majority.
    async fn cluster(&self) -> Option<ClusterView> {
        let asked = self.caller.call(Request::Read(Query::Cluster));
        match tokio::time::timeout(CLUSTER_TIME, asked).await {
            Ok(Response::Read { answer: ReadAnswer::Cluster(view), .. }) => Some(view),
            _ => None,
        }
    }
}

/// Connections and watches.
#[derive(Debug)]
struct Doors(Arc<Counts>);

impl Collector for Doors {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Written {
        let kinds = [("stream", &self.0.streams), ("http", &self.0.http)];
        let help = "Connections that are open, by what they speak";
        let open = kinds.map(|(kind, count)| ([("kind", kind)], whole(count.load(Ordering::Relaxed))));
        family(&mut encoder, "connections", help, None, open)?;
        let help = "Watches over HTTP and gRPC that are open";
        gauge(&mut encoder, "watches", help, self.0.watches.load(Ordering::Relaxed))
    }
}

/// What the node, the table and the disk have counted.
#[derive(Debug)]
struct Node(Inspection);

impl Collector for Node {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Written {
        table::encode(&self.0, &mut encoder)
    }
}

fn gauge(to: &mut DescriptorEncoder<'_>, name: &str, help: &str, value: impl TryInto<i64>) -> Written {
    whole(value).encode(to.encode_descriptor(name, help, None, MetricType::Gauge)?)
}

fn counter(to: &mut DescriptorEncoder<'_>, name: &str, help: &str, value: u64) -> Written {
    ConstCounter::new(value).encode(to.encode_descriptor(name, help, None, MetricType::Counter)?)
}

/// One metric for each of its labels.
fn family<L: EncodeLabelSet, M: EncodeMetric + TypedMetric>(
    to: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    unit: Option<&Unit>,
    metrics: impl IntoIterator<Item = (L, M)>,
) -> Written {
    let mut family = to.encode_descriptor(name, help, unit, M::TYPE)?;
    for (labels, metric) in metrics {
        metric.encode(family.encode_family(&labels)?)?;
    }
    Ok(())
}

/// A gauge of a whole number, which may be one that Prometheus cannot hold.
fn whole(value: impl TryInto<i64>) -> ConstGauge<i64> {
    ConstGauge::new(value.try_into().unwrap_or(i64::MAX))
}
