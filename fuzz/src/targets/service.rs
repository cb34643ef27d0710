//! A service that runs, and its HTTP door. Whatever is asked, it must answer, and in the form that every answer has.
//!
//! The first byte of an input chooses the path, the second how it is asked; the rest is the body, or the query. `SESSION` stands for the
//! key of a session that exists.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use leasehold_api::code::{CODES, Kind};
use leasehold_server::config::Config;
use leasehold_server::{Service, start};
use serde_json::Value;
use tempfile::TempDir;

use crate::Shape;

/// Paths that are asked. Not among them: `/v1/cluster/add`, since the service would dial whatever address an input names.
const PATHS: [&str; 23] = [
    "/v1/sessions",
    "/v1/sessions/SESSION/renew",
    "/v1/sessions/SESSION/close",
    "/v1/leases/acquire",
    "/v1/leases/release",
    "/v1/leases/set-value",
    "/v1/leases/cancel",
    "/v1/leases/get",
    "/v1/leases",
    "/v1/leases/check",
    "/v1/leases/history",
    "/v1/leases/revoke",
    "/v1/alarms",
    "/v1/alarms/clear",
    "/v1/leases/ask-release",
    "/v1/registers/write",
    "/v1/registers/get",
    "/v1/status",
    "/v1/watch",
    "/v1/cluster/status",
    "/v1/cluster/local",
    "/v1/cluster/promote",
    "/v1/cluster/remove",
];
/// An answer that does not come within this time never comes.
const PATIENCE: Duration = Duration::from_secs(15);
/// For calls that may wait for something: that they are kept waiting is an answer too.
const SHORT_PATIENCE: Duration = Duration::from_millis(30);
/// The longest query: with the rest of the head it stays below the limit of what the service reads.
const MAX_QUERY: usize = 4 * 1024;
const NONCE: &str = "000102030405060708090a0b0c0d0e0f";
const KEY_WORD: &str = "SESSION";

struct Stage {
    _service: Service,
    _directory: TempDir,
    address: SocketAddr,
    connection: Option<BufReader<TcpStream>>,
    key: String,
}

static STAGE: OnceLock<Mutex<Stage>> = OnceLock::new();

pub(super) fn seeds() -> Vec<Vec<u8>> {
    let seeds = [
        ("/v1/sessions", 0, r#"{"label":"w","ttl_ms":10000,"grace_ms":1,"hard_ms":2,"delay_ms":3}"#),
        ("/v1/sessions/SESSION/renew", 0, r#"{}"#),
        ("/v1/sessions", 1, "after=3&limit=10"),
        ("/v1/leases/acquire", 0, r#"{"resource":"a","value":"v"}"#),
        ("/v1/leases/acquire", 0, r#"{"resources":[{"resource":"p","mode":"slots","slots":3}],"wait_ms":1}"#),
        ("/v1/leases/release", 0, r#"{"resource":"a","token":"2","drained":true}"#),
        ("/v1/leases/set-value", 0, r#"{"resource":"a","token":"2","value_hex":"00ff"}"#),
        ("/v1/leases/cancel", 0, r#"{"acquire":"1"}"#),
        ("/v1/leases/get", 1, "resource=a"),
        ("/v1/leases", 1, "prefix=a&after=b&limit=7"),
        ("/v1/leases/check", 1, "resource=a&token=2"),
        ("/v1/leases/history", 1, "resource=a"),
        ("/v1/leases/revoke", 0, r#"{"resource":"a","token":"2","reason":"r","by":"me","now":true}"#),
        ("/v1/alarms/clear", 0, r#"{"resource":"a","token":"9","reason":"r"}"#),
        ("/v1/leases/ask-release", 0, r#"{"resource":"a","by":"me"}"#),
        ("/v1/registers/write", 0, r#"{"resource":"a","token":"2","key":"k","value":"v","with_lease":true}"#),
        ("/v1/registers/get", 1, "resource=a&key=k"),
        ("/v1/watch", 1, "prefix=a&after=1"),
        ("/v1/cluster/remove", 0, r#"{"name":"n1"}"#),
        ("/v1/status", 1, ""),
    ];
    let seed = |(path, how, rest): (&str, u8, &str)| {
        let path = PATHS.iter().position(|known| *known == path).expect("the path of a seed is asked");
        let path = u8::try_from(path).expect("there are few paths");
        [&[path, how][..], rest.as_bytes()].concat()
    };
    seeds.into_iter().map(seed).collect()
}

pub(super) fn check(input: &[u8]) -> Shape {
    let [path, how, rest @ ..] = input else { return Shape::of(&()) };
    let path = PATHS[usize::from(*path) % PATHS.len()];
    let stage = STAGE.get_or_init(|| Mutex::new(Stage::new()));
    let mut stage = stage.lock().unwrap_or_else(PoisonError::into_inner);
    let rest = with_key(rest, &stage.key);
    let at = path.replace(KEY_WORD, stage.key.split('-').next().unwrap_or_default());
    let request = if how % 2 == 0 { post(&at, &stage.key, &rest) } else { get(&at, &rest) };
    match stage.ask(&request, path) {
        None => Shape::of(&("kept waiting", path)),
        Some((status, body)) => {
            let outcome = judge(status, &body);
            if outcome == "session-ended" || path == "/v1/sessions/SESSION/close" {
                stage.open();
            }
            Shape::of(&format_args!("{path} {} {outcome}", how % 2))
        }
    }
}

/// What the answer says: one of the known codes, or that all is well.
fn judge(status: u16, body: &[u8]) -> String {
    let shown = String::from_utf8_lossy(body);
    let json: Value = match serde_json::from_slice(body) {
        Ok(json) => json,
        Err(_) if body.is_empty() && status == 200 => return "a stream".to_owned(),
        Err(error) => panic!("an answer of status {status} is no JSON: {error}: {shown}"),
    };
    if status == 200 {
        return "fine".to_owned();
    }
    let text = |name: &str| json[name].as_str().unwrap_or_else(|| panic!("no {name} in {shown}"));
    let code = text("code");
    let known = CODES.iter().find(|known| known.name == code);
    let known = known.unwrap_or_else(|| panic!("a code that is not in the list: {shown}"));
    assert_eq!(known.http, status, "{code} has another status");
    assert!(Kind::ALL.iter().any(|kind| kind.as_str() == text("kind")), "a kind that is not one: {shown}");
    assert!(!text("detail").is_empty(), "a fault without words: {shown}");
    code.to_owned()
}

fn with_key(rest: &[u8], key: &str) -> Vec<u8> {
    match rest.windows(KEY_WORD.len()).position(|window| window == KEY_WORD.as_bytes()) {
        Some(at) => [&rest[..at], key.as_bytes(), &rest[at + KEY_WORD.len()..]].concat(),
        None => rest.to_vec(),
    }
}

fn post(path: &str, key: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nLeasehold-Session: {key}\r\nContent-Length: {length}\r\n\r\n"
    );
    [head.as_bytes(), body].concat()
}

fn get(path: &str, query: &[u8]) -> Vec<u8> {
    let plain = |byte: u8| byte.is_ascii_graphic() && !b"#\"<>`{}\\^|".contains(&byte);
    let mut encoded = String::new();
    for byte in query {
        if plain(*byte) {
            encoded.push(char::from(*byte));
        } else {
            encoded.push_str(&format!("%{byte:02x}"));
        }
        if encoded.len() >= MAX_QUERY {
            break;
        }
    }
    format!("GET {path}?{encoded} HTTP/1.1\r\nHost: x\r\n\r\n").into_bytes()
}

impl Stage {
    fn new() -> Self {
        let memory = PathBuf::from("/dev/shm");
        let made = if memory.is_dir() { TempDir::new_in(memory) } else { TempDir::new() };
        let directory = made.expect("a directory for the service");
        let mut config = Config::new(directory.path().join("data"));
        config.listen = SocketAddr::from(([127, 0, 0, 1], 0));
        let service = start(&config).expect("the service starts");
        let (address, key) = (service.address(), String::new());
        let mut stage = Self { address, connection: None, key, _service: service, _directory: directory };
        stage.open();
        stage
    }

    /// Opens the session that inputs speak of, or finds it again.
    fn open(&mut self) {
        let body = format!("{{\"ttl_ms\":300000,\"nonce\":\"{NONCE}\"}}");
        let request = post("/v1/sessions", "", body.as_bytes());
        let (status, body) = self.ask(&request, "/v1/sessions").expect("an open is answered");
        let answer: Value = serde_json::from_slice(&body).expect("an answer is JSON");
        assert_eq!(status, 200, "a session cannot be opened: {answer}");
        let key = answer["session_key"].as_str();
        self.key = key.expect("a session has a key").to_owned();
    }

    /// Status and body; nothing if the call is kept waiting, as some may be. Of a stream only the status.
    fn ask(&mut self, request: &[u8], path: &str) -> Option<(u16, Vec<u8>)> {
        let may_wait = path == "/v1/leases/acquire";
        let mut connection = self.connection.take().unwrap_or_else(|| self.connect());
        let stream = connection.get_mut();
        let patience = if may_wait { SHORT_PATIENCE } else { PATIENCE };
        stream.set_read_timeout(Some(patience)).expect("a socket has a timeout");
        stream.write_all(request).expect("the service reads what it is sent");
        match answer(&mut connection) {
            Ok((status, body, goes_on)) => {
                self.connection = goes_on.then_some(connection);
                Some((status, body))
            }
            Err(error) if may_wait && matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                None
            }
            Err(error) => panic!("{path} is not answered: {error}"),
        }
    }

    fn connect(&self) -> BufReader<TcpStream> {
        let stream = TcpStream::connect(self.address).expect("the service accepts");
        stream.set_nodelay(true).expect("a socket can be told not to wait");
        BufReader::new(stream)
    }
}

/// Status, body, and whether another request may be sent.
fn answer(connection: &mut BufReader<TcpStream>) -> std::io::Result<(u16, Vec<u8>, bool)> {
    let mut line = String::new();
    connection.read_line(&mut line)?;
    let status = line.split(' ').nth(1).and_then(|status| status.parse().ok());
    let status: u16 =
        status.ok_or_else(|| std::io::Error::other(format!("{line:?} is no line of status")))?;
    let (mut length, mut goes_on) = (None, true);
    loop {
        line.clear();
        connection.read_line(&mut line)?;
        let (name, value) = line.trim_end().split_once(':').unwrap_or_default();
        match name.to_ascii_lowercase().as_str() {
            "" => break,
            "content-length" => length = value.trim().parse::<usize>().ok(),
            "connection" => goes_on &= value.trim() != "close",
            _ => {}
        }
    }
    let Some(length) = length else { return Ok((status, Vec::new(), false)) };
    let mut body = vec![0; length];
    connection.read_exact(&mut body)?;
    Ok((status, body, goes_on))
}
