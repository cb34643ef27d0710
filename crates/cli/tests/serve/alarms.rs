//! A directory that was set back: what its holders still know, and how an operator finds out and answers.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;

use serde_json::{Value, json};

use super::stage::{Serving, Stage, eventually, log};

/// What a directory is known by.
const LOCK: &str = "lock";

/// A request over HTTP: the status and the body of its answer.
fn ask(serving: &Serving, head: &str, body: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(&serving.address).unwrap();
    let length = body.len();
    let kind = "content-type: application/json";
    let rest = format!("host: here\r\nconnection: close\r\n{kind}\r\ncontent-length: {length}");
    write!(stream, "{head}\r\n{rest}\r\n\r\n{body}").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
}

fn post(serving: &Serving, path: &str, body: &Value) -> (u16, Value) {
    let mut body = body.clone();
    let key = body.as_object_mut().and_then(|fields| fields.remove("session_key"));
    let key = key.as_ref().and_then(Value::as_str).unwrap_or_default();
    let head = format!(
        "POST {} HTTP/1.1\r\nleasehold-session: {key}",
        path.replace("SESSION", key.split('-').next().unwrap_or_default())
    );
    let (status, body) = ask(serving, &head, &body.to_string());
    (status, serde_json::from_str(&body).unwrap())
}

fn good(serving: &Serving, path: &str, body: &Value) -> Value {
    let (status, answer) = post(serving, path, body);
    assert_eq!(status, 200, "{path}: {answer}");
    answer
}

fn alarms_in_metrics(serving: &Serving) -> String {
    let (_, text) = ask(serving, "GET /metrics HTTP/1.1", "");
    text.lines().find_map(|line| line.strip_prefix("leasehold_alarms ")).unwrap().to_owned()
}

/// Copies everything but the lock file: a directory with another one is refused as a copy.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &target),
            false if entry.file_name() == LOCK => {}
            false => drop(fs::copy(entry.path(), target).unwrap()),
        }
    }
}

/// Makes a directory what it was, under the same lock file: as a snapshot of a file system or of a machine does.
fn set_back(directory: &Path, earlier: &Path) {
    for entry in fs::read_dir(directory).unwrap() {
        let entry = entry.unwrap();
        match entry.file_type().unwrap().is_dir() {
            true => fs::remove_dir_all(entry.path()).unwrap(),
            false if entry.file_name() == LOCK => {}
            false => fs::remove_file(entry.path()).unwrap(),
        }
    }
    copy(earlier, directory);
}

/// A holder that has a token of a later life than that of the service which is given back.
struct SetBack {
    stage: Stage,
    serving: Serving,
    key: String,
    token: String,
}

impl SetBack {
    fn new() -> Self {
        let stage = Stage::new();
        let serving = stage.serve(&[]);
        let opened = good(&serving, "/v1/sessions", &json!({"label": "holder", "ttl_ms": 120_000}));
        let key = opened["session_key"].as_str().unwrap().to_owned();
        serving.stop();
        copy(&stage.path("data"), &stage.path("earlier"));
        // What is kept knows nothing of these grants.
        let serving = stage.serve(&[]);
        let mut token = String::new();
        for turn in 0..20 {
            let wanted = json!({"session_key": key, "resource": "job"});
            let granted = good(&serving, "/v1/leases/acquire", &wanted);
            token = granted["leases"][0]["token"].as_str().unwrap().to_owned();
            let held = json!({"session_key": key, "resource": "job", "token": token});
            if turn < 19 {
                good(&serving, "/v1/leases/release", &held);
            }
        }
        serving.stop();
        set_back(&stage.path("data"), &stage.path("earlier"));
        let serving = stage.serve(&[]);
        Self { stage, serving, key, token }
    }

    /// The holder gives back what it was granted, which this service knows nothing of.
    fn show(&self) {
        self.show_by(&self.key);
    }

    fn show_by(&self, key: &str) {
        let held = json!({"session_key": key, "resource": "job", "token": self.token});
        let (status, answer) = post(&self.serving, "/v1/leases/release", &held);
        assert_eq!((status, &answer["code"]), (409, &json!("token-ahead")), "{answer}");
    }

    /// Runs a command against the service.
    fn say(&self, arguments: &[&str]) -> super::stage::Said {
        let url = self.serving.url();
        let mut all = vec!["--store", url.as_str()];
        all.extend(arguments);
        self.stage.say(&all)
    }
}

#[test]
fn a_directory_that_was_set_back_is_noticed_by_its_holders_tokens_and_answered_by_an_operator() {
    let back = SetBack::new();
    assert_eq!(alarms_in_metrics(&back.serving), "0");
    let mut watch = back.stage.start(&back.serving, &["watch"]);
    assert!(watch.error_line().starts_with("leasehold: watching after revision "));
    back.show();
    let token = &back.token;
    let raised = watch.line();
    assert!(
        raised.ends_with(&format!(" job token {token} alarm: shown by holder, and never granted here")),
        "{raised}"
    );
    assert_eq!(alarms_in_metrics(&back.serving), "1");
    let mut waiter = back.stage.start(&back.serving, &["hold", "job", "--label", "waiter"]);
    eventually("it waits", || back.say(&["get", "job"]).out.contains("waiting: 1").then_some(()));
    // Whoever asks for another name is served.
    assert_eq!(back.say(&["run", "other", "--no-wait", "--", "true"]).code, Some(0));
    let got = back.say(&["get", "job"]);
    assert!(got.out.contains("holder: nobody\n") && got.out.contains("waiting: 1\n"), "{got:?}");
    assert!(got.out.contains(&format!("alarm: token {token} was shown by holder ")), "{got:?}");
    let listed = back.say(&["alarms"]);
    assert!(listed.out.contains(&format!("\njob  {token}  holder  ")), "{listed:?}");
    let cleared = back.say(&["alarms", "clear", "job", "--reason", "the fence was reset", "--yes"]);
    assert_eq!(cleared.code, Some(0), "{cleared:?}");
    assert!(waiter.line().starts_with("granted job token "));
    assert_eq!(alarms_in_metrics(&back.serving), "0");
    let lines: Vec<String> = (0..4).map(|_| watch.line()).collect();
    let told = |end: &str| {
        lines.iter().any(|line| {
            line.contains(&format!(" job token {token} alarm cleared by ")) && line.ends_with(end)
        })
    };
    assert!(told(": the fence was reset"), "{lines:?}");
    drop(waiter);
    let log = log(&back.serving.stop());
    let told = |level: &str, part: &str| {
        let fits = |line: &&Value| line["level"] == level && line["message"].as_str().unwrap().contains(part);
        let lines: Vec<&Value> = log.iter().filter(fits).collect();
        assert_eq!(lines.len(), 1, "{part}: {lines:?}");
        assert_eq!((&lines[0]["resource"], lines[0]["token"].to_string()), (&json!("job"), token.clone()));
    };
    told("WARN", "ALARM");
    told("INFO", "alarm was cleared");
}

/// A state that was set back does not know the sessions that held: whoever may acquire the name finds it.
#[test]
fn a_directory_that_was_set_back_is_noticed_by_a_session_that_it_never_knew() {
    let back = SetBack::new();
    let open = json!({"label": "newcomer", "ttl_ms": 120_000});
    let opened = good(&back.serving, "/v1/sessions", &open);
    let key = opened["session_key"].as_str().unwrap();
    back.show_by(key);
    assert_eq!(alarms_in_metrics(&back.serving), "1");
    let listed = back.say(&["alarms"]);
    assert!(listed.out.contains(&format!("\njob  {}  newcomer  ", back.token)), "{listed:?}");
    assert_ne!(back.say(&["run", "job", "--no-wait", "--", "true"]).code, Some(0), "nobody is granted it");
    assert_eq!(back.say(&["run", "other", "--no-wait", "--", "true"]).code, Some(0));
}

#[test]
fn a_life_above_the_token_answers_the_alarm() {
    let back = SetBack::new();
    back.show();
    let SetBack { stage, serving, token, .. } = back;
    serving.stop();
    let data = stage.path("data");
    let data = data.to_str().unwrap();
    stage.good(&["data", "recover", "--data", data, "--above", &token, "--holders-are-stopped"]);
    let serving = stage.serve(&[]);
    let url = serving.url();
    assert_eq!(stage.good(&["--store", &url, "alarms"]), "NAME  TOKEN SHOWN  BY  SINCE\n");
    let greater =
        stage.good(&["--store", &url, "run", "job", "--no-wait", "--", "sh", "-c", "echo $LEASEHOLD_TOKEN"]);
    assert!(greater.trim().parse::<u64>().unwrap() > token.parse().unwrap(), "{greater} and {token}");
    serving.stop();
}
