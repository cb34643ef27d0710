//! A service to talk to, and short words for what is said often.

use std::net::SocketAddr;

use leasehold_core::Refusal;
use leasehold_core::protocol::Failure;
use leasehold_server::config::Config;
use leasehold_server::{Service, start};
use leasehold_wire::Wire;
use leasehold_wire::messages as pb;
use prost::Message;
use tempfile::TempDir;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Status};

use super::generated::leasehold_client::LeaseholdClient;

pub(crate) type Client = LeaseholdClient<Channel>;

/// A service that runs until this is dropped.
pub(crate) struct Running {
    service: Option<Service>,
    address: SocketAddr,
    _directory: TempDir,
}

impl Running {
    pub(crate) fn start() -> Self {
        Self::with(|_| {})
    }

    /// With a configuration that differs from the defaults.
    pub(crate) fn with(change: impl FnOnce(&mut Config)) -> Self {
        let directory = TempDir::new().expect("a temporary directory");
        let mut config = Config::new(directory.path().join("data"));
        config.listen = SocketAddr::from(([127, 0, 0, 1], 0));
        change(&mut config);
        // On a thread of its own: it waits, and the test's thread drives a runtime.
        let started = std::thread::spawn(move || start(&config)).join().expect("starting does not panic");
        let service = started.expect("the service starts");
        Self { address: service.address(), service: Some(service), _directory: directory }
    }

    pub(crate) const fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) async fn channel(&self) -> Channel {
        let endpoint = Endpoint::from_shared(format!("http://{}", self.address)).expect("an address");
        endpoint.connect().await.expect("the service listens")
    }

    pub(crate) async fn client(&self) -> Client {
        LeaseholdClient::new(self.channel().await)
    }

    /// Asks it to end, as the first SIGTERM does.
    pub(crate) fn drain(&self) {
        self.service.as_ref().expect("it runs until this is dropped").drain();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(service) = self.service.take() {
            service.stop();
            let ended = service.wait();
            if !std::thread::panicking() {
                ended.expect("it ends because it was asked to");
            }
        }
    }
}

/// Opens a session and gives back its key.
pub(crate) async fn open(client: &mut Client, label: &str) -> String {
    let request = pb::OpenSessionRequest { label: label.into(), ttl_ms: Some(60_000), ..Default::default() };
    client.open_session(request).await.expect("a session opens").into_inner().session_key
}

/// Asks for one resource, without waiting.
pub(crate) fn acquire(key: &str, resource: &str) -> pb::AcquireRequest {
    pb::AcquireRequest {
        session_key: key.into(),
        requests: vec![pb::ResourceRequest { resource: resource.into(), mode: None }],
        ..Default::default()
    }
}

/// Asks for one resource and gives back its token.
pub(crate) async fn held(client: &mut Client, key: &str, resource: &str) -> u64 {
    let answer = client.acquire(acquire(key, resource)).await.expect("it is free").into_inner();
    granted(answer.outcome)[0].token
}

/// The leases of an acquire that was granted.
pub(crate) fn granted(outcome: Option<pb::acquire_response::Outcome>) -> Vec<pb::Grant> {
    match outcome {
        Some(pb::acquire_response::Outcome::Granted(grants)) => grants.grants,
        other => panic!("not granted: {other:?}"),
    }
}

pub(crate) fn release(key: &str, resource: &str, token: u64) -> pb::ReleaseRequest {
    pb::ReleaseRequest {
        session_key: key.into(),
        resource: resource.into(),
        token,
        drained: false,
        ..Default::default()
    }
}

/// What a session has.
pub(crate) async fn renew(client: &mut Client, key: &str) -> pb::RenewSessionResponse {
    let request = pb::RenewSessionRequest { session_key: key.into() };
    client.renew_session(request).await.expect("the session lives").into_inner()
}

/// A word in the metadata of a status.
pub(crate) fn word<'a>(status: &'a Status, key: &str) -> &'a str {
    status.metadata().get(key).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

/// Asserts what a status says in all three ways.
#[track_caller]
pub(crate) fn assert_status(status: &Status, code: Code, name: &str, kind: &str) {
    let found = (status.code(), word(status, "leasehold-code"), word(status, "leasehold-kind"));
    assert_eq!(found, (code, name, kind), "{status:?}");
    assert!(!status.message().is_empty());
}

/// The refusal that a status carries.
#[track_caller]
pub(crate) fn refusal(status: &Status) -> Refusal {
    let bytes = status.metadata().get_bin("leasehold-refusal-bin").expect("a refusal is there");
    let message = pb::Refusal::decode(bytes.to_bytes().expect("it is bytes")).expect("it is a refusal");
    Refusal::from_wire(message).expect("it is one that is known")
}

/// The failure that a status carries.
#[track_caller]
pub(crate) fn failure(status: &Status) -> Failure {
    let bytes = status.metadata().get_bin("leasehold-failure-bin").expect("a failure is there");
    let message = pb::Failure::decode(bytes.to_bytes().expect("it is bytes")).expect("it is a failure");
    Failure::from_wire(message).expect("it is one that is known")
}
