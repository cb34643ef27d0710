//! Every server as the tests of the fence use it: it starts, serves, dies, serves again with its data, and leaves nothing behind.
//!
//! What each took is printed: `cargo test -p leasehold-kit --test servers -- --nocapture`.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails, and unwrap says where")]

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{Ipv4Addr, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use leasehold_kit::{Receiver, mariadb, postgres, redis, s3};
#[cfg(feature = "jvm")]
use leasehold_kit::{cassandra, dynamodb, kafka};

/// Starts a server, lets `write` put something there, kills it, and lets `read` find what must be there after that.
fn live_twice<S: Receiver>(write: impl Fn(&S), read: impl Fn(&S)) {
    let began = now();
    let mut server = S::start().unwrap();
    let start = now() - began;
    write(&server);
    let memory = server.process().resident_bytes();
    let (port, version, url) = (server.port(), server.version().to_owned(), server.url());
    server.kill().unwrap();
    assert!(!listens(port), "{url} still listens after it was killed");
    let began = now();
    server.restart().unwrap();
    let restart = now() - began;
    assert_eq!((server.port(), server.version(), server.url()), (port, version.as_str(), url.clone()));
    read(&server);
    let (process, directory) = (server.process().id().unwrap(), server.process().directory().to_owned());
    drop(server);
    assert!(!listens(port), "{url} still listens after it was dropped");
    assert!(!directory.exists(), "{} is left behind", directory.display());
    assert!(!Path::new(&format!("/proc/{process}")).exists(), "process {process} is left behind");
    println!("{url} version {version}: start {start:.1?}, restart {restart:.1?}, {} MiB", memory >> 20);
}

fn now() -> Duration {
    Duration::from_nanos(leasehold_clock::read().boot)
}

fn listens(port: u16) -> bool {
    TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok()
}

#[test]
fn postgresql_keeps_what_it_acknowledged() {
    live_twice::<postgres::Server>(
        |server| {
            server.sql("create table t(x int); insert into t values (42)").unwrap();
        },
        |server| assert_eq!(server.sql("select x from t").unwrap(), "42\n"),
    );
}

#[test]
fn postgresql_is_killed_with_its_backends() {
    let mut server = postgres::Server::start_fast().unwrap();
    // A backend that computes does not see by itself that the server has died.
    let busy = "select count(*) from generate_series(1, 1000000000000)";
    let mut client =
        Command::new("psql").args([&server.url(), "-c", busy]).stderr(Stdio::null()).spawn().unwrap();
    let backend = format!("select pid from pg_stat_activity where query = '{busy}'");
    let found = || Some(server.sql(&backend).unwrap()).filter(|pid| !pid.is_empty());
    let pid = std::iter::repeat_with(found).flatten().next().unwrap();
    server.kill().unwrap();
    assert!(!client.wait().unwrap().success());
    // One that is dead and not yet collected has no words any more.
    let words = std::fs::read(Path::new("/proc").join(pid.trim()).join("cmdline")).unwrap_or_default();
    assert!(words.is_empty(), "backend {pid} still runs");
    server.restart().unwrap();
    assert_eq!(server.sql("select 1").unwrap(), "1\n");
}

/// Set for a process that starts a server and is killed.
const VICTIM: &str = "LEASEHOLD_TEST_SERVERS_VICTIM";

#[test]
fn a_killed_test_leaves_no_server_and_no_directory() {
    if std::env::var_os(VICTIM).is_some() {
        let server = postgres::Server::start_fast().unwrap();
        println!("\nvictim {} {}", server.process().id().unwrap(), server.process().directory().display());
        std::thread::sleep(Duration::from_secs(600));
    }
    let mut victim = Command::new(std::env::current_exe().unwrap());
    victim.args(["--exact", "--nocapture", "a_killed_test_leaves_no_server_and_no_directory"]);
    let mut victim = victim.env(VICTIM, "1").stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(victim.stdout.take().unwrap()).lines().map(Result::unwrap);
    let line = lines.find(|line| line.starts_with("victim ")).unwrap();
    let [_, process, directory] = line.split(' ').collect::<Vec<_>>().try_into().unwrap();
    let (process, directory) = (Path::new("/proc").join(process), Path::new(directory));
    assert!(process.exists() && directory.exists());
    victim.kill().unwrap();
    victim.wait().unwrap();
    let deadline = now() + Duration::from_secs(30);
    while process.exists() || directory.exists() {
        assert!(now() < deadline, "{} or {} is left behind", process.display(), directory.display());
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn mariadb_keeps_what_it_acknowledged() {
    live_twice::<mariadb::Server>(
        |server| {
            server.sql("create table t(x int) engine=innodb; insert into t values (42)").unwrap();
        },
        |server| assert_eq!(server.sql("select x from t").unwrap(), "42\n"),
    );
}

#[test]
fn redis_keeps_what_it_acknowledged() {
    live_twice::<redis::Server>(
        |server| assert_eq!(ask_redis(server, "SET x 42"), "+OK"),
        |server| assert_eq!(ask_redis(server, "INCR x"), ":43"),
    );
}

fn ask_redis(server: &redis::Server, words: &str) -> String {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, server.port())).unwrap();
    stream.write_all(format!("{words}\r\n").as_bytes()).unwrap();
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).unwrap();
    line.trim().to_owned()
}

#[test]
fn s3_serves_again_and_is_empty() {
    live_twice::<s3::Server>(
        |server| server.make_bucket("test").unwrap(),
        |server| server.make_bucket("test").unwrap(),
    );
}

#[test]
#[cfg(feature = "jvm")]
fn dynamodb_keeps_what_it_acknowledged() {
    let key = r#"{"x": {"S": "here"}}"#;
    live_twice::<dynamodb::Server>(
        |server| {
            let table = r#"{"TableName": "test", "BillingMode": "PAY_PER_REQUEST",
                "AttributeDefinitions": [{"AttributeName": "x", "AttributeType": "S"}],
                "KeySchema": [{"AttributeName": "x", "KeyType": "HASH"}]}"#;
            server.call("CreateTable", table).unwrap();
            server.call("PutItem", &format!(r#"{{"TableName": "test", "Item": {key}}}"#)).unwrap();
        },
        |server| {
            let found = server.call("GetItem", &format!(r#"{{"TableName": "test", "Key": {key}}}"#)).unwrap();
            assert!(found.contains("here"), "{found}");
        },
    );
}

#[test]
#[cfg(feature = "jvm")]
fn cassandra_keeps_what_it_acknowledged() {
    live_twice::<cassandra::Server>(
        |server| {
            let how = "{'class': 'SimpleStrategy', 'replication_factor': 1}";
            server.cql(&format!("CREATE KEYSPACE k WITH replication = {how}")).unwrap();
            server.cql("CREATE TABLE k.t (x text PRIMARY KEY, y text)").unwrap();
            let applied = server.cql("INSERT INTO k.t (x, y) VALUES ('a', 'here') IF NOT EXISTS").unwrap();
            assert_eq!(applied, Some(vec![1]));
        },
        |server| assert_eq!(server.cql("SELECT y FROM k.t").unwrap(), Some(b"here".to_vec())),
    );
}

#[test]
#[cfg(feature = "jvm")]
fn kafka_keeps_what_it_acknowledged() {
    live_twice::<kafka::Server>(
        |server| server.make_topic("t").unwrap(),
        |server| {
            let refused = server.make_topic("t").unwrap_err().to_string();
            assert_eq!(refused, "the topic is refused with error 36");
        },
    );
}
