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

    /// A POST on a connection of its own. See [`addressed`].
    pub(crate) fn post(&self, path: &str, body: &Value) -> Reply {
        let (path, headers, body) = addressed(path, body);
        let headers: Vec<&str> = headers.iter().map(String::as_str).collect();
        self.connect().ask("POST", &path, &headers, body.as_bytes())
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
        let opened = self.post("/v1/sessions", &json!({ "label": label, "ttl_ms": 60_000 })).good();
        opened["session_key"].as_str().expect("an open gives a key").to_owned()
    }

    /// Acquires what is known to be free; gives back the token.
    #[track_caller]
    pub(crate) fn take(&self, key: &str, resource: &str) -> String {
        let body = json!({ "session_key": key, "resource": resource });
        let acquired = self.post("/v1/leases/acquire", &body).good();
        assert_eq!(acquired["outcome"], "granted", "{acquired}");
        acquired["leases"][0]["token"].as_str().expect("a grant has a token").to_owned()
    }

    #[track_caller]
    pub(crate) fn release(&self, key: &str, resource: &str, token: &str) {
        let body = json!({ "session_key": key, "resource": resource, "token": token });
        assert_eq!(self.post("/v1/leases/release", &body).good(), json!({}));
    }

    /// What a session has.
    #[track_caller]
    pub(crate) fn renew(&self, key: &str) -> Value {
        self.post("/v1/sessions/SESSION/renew", &json!({ "session_key": key })).good()
    }

    /// A resource as everybody sees it.
    #[track_caller]
    pub(crate) fn lease(&self, resource: &str) -> Value {
        self.get(&format!("/v1/leases/get?resource={resource}")).good()["lease"].clone()
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

/// Path, headers and body of a POST. A `session_key` in the body says for which session it is made: it goes into the header, and `SESSION` in the
/// path is its id.
pub(crate) fn addressed(path: &str, body: &Value) -> (String, Vec<String>, String) {
    let mut body = body.clone();
    let mut headers = vec!["Content-Type: application/json".to_owned()];
    let key = body.as_object_mut().and_then(|fields| fields.remove("session_key"));
    let key = key.as_ref().and_then(Value::as_str).unwrap_or_default();
    if !key.is_empty() {
        headers.push(format!("Leasehold-Session: {key}"));
    }
    (path.replace("SESSION", key.split('-').next().unwrap_or_default()), headers, body.to_string())
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
