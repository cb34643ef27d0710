//! A service to talk to, and short words for what is said often.

use std::net::SocketAddr;
use std::time::Duration;

use leasehold_server::config::Config;
use leasehold_server::{Service, start};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::client::{Connection, Reply};

/// Between two looks at something that takes a while.
const LOOK: Duration = Duration::from_millis(5);
/// Looks before it is given up: half a minute.
const LOOKS: usize = 6_000;

/// A service that runs until this is dropped.
pub(crate) struct Stage {
    service: Option<Service>,
    pub(crate) address: SocketAddr,
    _directory: TempDir,
}

impl Stage {
    pub(crate) fn new() -> Self {
        Self::with(|_| {})
    }

    /// With a configuration that differs from the defaults.
    pub(crate) fn with(change: impl FnOnce(&mut Config)) -> Self {
        let directory = TempDir::new().expect("a temporary directory");
        let mut config = Config::new(directory.path().join("data"));
        config.listen = SocketAddr::from(([127, 0, 0, 1], 0));
        change(&mut config);
        let service = start(&config).expect("the service starts");
        Self { address: service.address(), service: Some(service), _directory: directory }
    }

    /// Asks it to end, as the first SIGTERM does.
    pub(crate) fn drain(&self) {
        self.service.as_ref().expect("it runs until this is dropped").drain();
    }

    pub(crate) fn connect(&self) -> Connection {
        Connection::new(self.address)
    }

    /// A POST on a connection of its own.
    pub(crate) fn post(&self, path: &str, body: &Value) -> Reply {
        self.post_text(path, &body.to_string())
    }

    pub(crate) fn post_text(&self, path: &str, body: &str) -> Reply {
        self.connect().ask("POST", path, &["Content-Type: application/json"], body.as_bytes())
    }

    /// A GET on a connection of its own.
    pub(crate) fn get(&self, target: &str) -> Reply {
        self.connect().ask("GET", target, &[], b"")
    }

    /// Opens a session that lives as long as the test; gives back its key.
    pub(crate) fn open(&self, label: &str) -> String {
        let opened = self.post("/v1/session/open", &json!({ "label": label, "ttl_ms": 60_000 })).good();
        opened["session_key"].as_str().expect("an open gives a key").to_owned()
    }

    /// Acquires what is known to be free; gives back the token.
    #[track_caller]
    pub(crate) fn take(&self, key: &str, resource: &str) -> String {
        let body = json!({ "session_key": key, "resource": resource });
        let acquired = self.post("/v1/lease/acquire", &body).good();
        assert_eq!(acquired["outcome"], "granted", "{acquired}");
        acquired["leases"][0]["token"].as_str().expect("a grant has a token").to_owned()
    }

    #[track_caller]
    pub(crate) fn release(&self, key: &str, resource: &str, token: &str) {
        let body = json!({ "session_key": key, "resource": resource, "token": token });
        assert_eq!(self.post("/v1/lease/release", &body).good(), json!({}));
    }

    /// What a session has.
    #[track_caller]
    pub(crate) fn renew(&self, key: &str) -> Value {
        self.post("/v1/session/renew", &json!({ "session_key": key })).good()
    }

    /// A resource as everybody sees it.
    #[track_caller]
    pub(crate) fn lease(&self, resource: &str) -> Value {
        self.post("/v1/lease/get", &json!({ "resource": resource })).good()["lease"].clone()
    }

    /// Waits until so many wait for a resource.
    #[track_caller]
    pub(crate) fn until_waiting(&self, resource: &str, waiting: u64) {
        self.until(&format!("{waiting} wait for {resource}"), || {
            self.lease(resource)["waiting"].as_u64() == Some(waiting)
        });
    }

    /// Waits until something is so.
    #[track_caller]
    pub(crate) fn until(&self, what: &str, mut holds: impl FnMut() -> bool) {
        for _ in 0..LOOKS {
            if holds() {
                return;
            }
            std::thread::sleep(LOOK);
        }
        panic!("never: {what}");
    }

    /// Waits for the end of a service that was asked to end.
    pub(crate) fn wait(mut self) -> Result<(), String> {
        self.service.take().expect("it runs until this is dropped").wait()
    }
}

impl Drop for Stage {
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
