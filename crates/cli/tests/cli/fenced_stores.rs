//! `fence check`, and sealing before a command is run: on MariaDB, SQLite and an object store that speaks S3.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use leasehold::fence::{Error, Receiver, Stamp};
use leasehold_cli::guardian::clock::Point;
use leasehold_kit::{Receiver as _, mariadb, redis, s3};
use rustix::process::Signal;
use serde_json::{Value, json};

use super::stage::{Stage, said};

const GUIDE: &str = include_str!("../../../../docs/guides/fence-sql.md");
const BUCKET: &str = "fenced";
/// What `run` ends with if a receiver could not be sealed.
const NOT_SEALED: i32 = 119;
/// Stands in no output.
const PASSWORD: &str = "do-not-print";

/// What the command prints is what the guide shows, whatever the blanks are.
#[test]
fn the_command_prints_the_tables_of_the_guide() {
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    for of in ["mysql", "sqlite"] {
        assert_eq!(words(&Stage::new().good(&["fence", "migration", of])), words(tables(of)));
    }
}

/// The tables of the fence, as the guide has them for those who do not use the library.
fn tables(of: &str) -> &'static str {
    let (_, from) = GUIDE.split_once(&format!("<!-- tables: {of} -->")).unwrap();
    from.split("```").nth(1).and_then(|block| block.strip_prefix("sql\n")).unwrap()
}

fn mariadb() -> (mariadb::Server, String) {
    let server = mariadb::Server::start_fast().unwrap();
    let user = format!("CREATE USER app IDENTIFIED BY '{PASSWORD}'; GRANT ALL ON test.* TO app");
    server.sql(&format!("{} {user}", tables("mysql"))).unwrap();
    let url = format!("mysql://app:{PASSWORD}@127.0.0.1:{}/test", server.port());
    (server, url)
}

fn bucket() -> (s3::Server, String) {
    let server = s3::Server::start().unwrap();
    server.make_bucket(BUCKET).unwrap();
    let url = format!("s3://{BUCKET}/reports/nightly.json?endpoint={}", server.url());
    (server, url)
}

/// A database in a file, with the tables that the guide shows.
fn sqlite(directory: &Path) -> String {
    let path = directory.join("app.db");
    now(async {
        let options = sqlx::sqlite::SqliteConnectOptions::new().filename(&path).create_if_missing(true);
        let pool = sqlx::SqlitePool::connect_with(options).await.unwrap();
        sqlx::raw_sql(tables("sqlite")).execute(&pool).await.unwrap();
        pool.close().await;
    });
    format!("sqlite:{}", path.display())
}

fn now<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

/// What another program does there: the library's own adapters.
async fn adapter(url: &str) -> Arc<dyn Receiver> {
    match url.split_once(':').unwrap() {
        ("mysql", _) => {
            Arc::new(leasehold_fence::mysql::Fence::new(sqlx::MySqlPool::connect(url).await.unwrap()))
        }
        ("sqlite", path) => {
            let options = sqlx::sqlite::SqliteConnectOptions::new().filename(path);
            Arc::new(leasehold_fence::sqlite::Fence::new(sqlx::SqlitePool::connect_lazy_with(options)))
        }
        other => panic!("{other:?}"),
    }
}

fn stamp(token: u64, holder: &str) -> Stamp {
    Stamp::new("job", token).unwrap().held_by(holder).unwrap()
}

/// What `fence check` says of one receiver, which is all that it is asked about; and the floor.
fn looked_at(stage: &Stage, code: i32, url: &str) -> (Value, Value) {
    let mut json = stage.json(code, &["fence", "check", "job", "--receiver", url]);
    assert!(!json.to_string().contains(PASSWORD), "{json}");
    (json["receivers"][0].take(), json["token_floor"].take())
}

/// Holds the name behind a seal, and looks: the receiver has the holder's token.
fn is_sealed_and_shown(stage: &Stage, url: &str, place: &str) -> u64 {
    let ran = stage.say(&["run", "job", "--seal-at", url, "--", "true"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let (unheld, _) = looked_at(stage, 0, url);
    assert_eq!(unheld["standing"], "idle");
    let (holder, token) = stage.hold("job", &["--seal-at", url]);
    let (receiver, floor) = looked_at(stage, 0, url);
    assert_eq!(receiver["receiver"], place);
    assert_eq!((&receiver["standing"], &receiver["highest"]), (&json!("sealed"), &json!(token)));
    assert_eq!(receiver["holder"], "holder");
    holder.signal(Signal::TERM);
    holder.end();
    let token: u64 = token.parse().unwrap();
    assert_eq!(floor, (token + 1).to_string());
    token
}

/// A receiver that has seen tokens of another store keeps the command from running.
fn is_kept_from_running(stage: &Stage, url: &str) {
    let said = stage.say(&["run", "job", "--seal-at", url, "--", "touch", "ran"]);
    assert_eq!(said.code, Some(NOT_SEALED), "{}", said.err);
    let store = stage.store();
    let raise = format!(
        "leasehold data recover --data {} --above 1000000 (add --holders-are-stopped",
        store.display()
    );
    assert!(said.err.contains("could not be sealed") && said.err.contains(&raise), "{}", said.err);
    assert!(!said.err.contains(PASSWORD), "{}", said.err);
    let (receiver, floor) = looked_at(stage, 1, url);
    assert_eq!((receiver["standing"].as_str(), floor.as_str()), (Some("ahead"), Some("1000001")));
}

fn sql_is_sealed_and_shown(stage: &Stage, url: &str, place: &str) {
    let token = is_sealed_and_shown(stage, url, place);
    now(async {
        let adapter = adapter(url).await;
        let refused = adapter.seal(&stamp(1, "old")).await.unwrap_err();
        assert!(matches!(refused, Error::Stale(_)), "{refused}");
    });
    let (receiver, _) = looked_at(stage, 0, url);
    let refusal = &receiver["refusals"][0];
    assert_eq!(
        (&refusal["token"], &refusal["highest"], &refusal["holder"]),
        (&json!("1"), &json!(token.to_string()), &json!("old"))
    );
    assert!(refusal["at"].as_str().is_some_and(|at| at.starts_with("20")), "{refusal}");
    let text = stage.good(&["fence", "check", "job", "--receiver", url]);
    assert!(
        text.contains(&format!("last refusals at {place}\n  token 1 of old, when {token} was")),
        "{text}"
    );

    now(async { adapter(url).await.seal(&stamp(1_000_000, "another store")).await.unwrap() });
    is_kept_from_running(stage, url);
}

#[test]
fn mariadb_is_sealed_before_a_command_and_shows_whom_it_refused() {
    let (stage, (server, url)) = (Stage::new(), mariadb());
    sql_is_sealed_and_shown(&stage, &url, &format!("mysql://127.0.0.1:{}/test", server.port()));
}

#[test]
fn a_file_of_sqlite_is_sealed_before_a_command_and_shows_whom_it_refused() {
    let stage = Stage::new();
    let url = sqlite(stage.dir.path());
    sql_is_sealed_and_shown(&stage, &url, &url);
}

#[test]
fn an_object_is_sealed_before_a_command_and_its_highest_token_is_shown() {
    let (stage, (_server, url)) = (Stage::new(), bucket());
    is_sealed_and_shown(&stage, &url, &url);
    // It keeps no refusals, and says so.
    let (receiver, _) = looked_at(&stage, 0, &url);
    assert_eq!(receiver.get("refusals"), Some(&Value::Null), "{receiver}");
    // Another store begins with the smallest token.
    let other = Stage::new();
    let said = other.say(&["run", "job", "--seal-at", &url, "--", "touch", "ran"]);
    assert_eq!(said.code, Some(NOT_SEALED), "{}", said.err);
    assert!(said.err.contains("could not be sealed") && !said.err.contains(PASSWORD), "{}", said.err);
    assert_eq!(looked_at(&other, 1, &url).0["standing"], "ahead");
}

/// They change neither what is sealed nor how it ends.
#[test]
fn settings_that_lose_a_fence_are_warned_of() {
    let (stage, cache) = (Stage::new(), redis::Server::start_fast().unwrap());
    let sealed = ["run", "job", "--seal-at", &cache.url(), "--", "true"];
    let ran = stage.say(&sealed);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let warned = format!("leasehold: warning about redis://127.0.0.1:{}/0: appendonly is no: ", cache.port());
    assert_eq!((ran.err.starts_with(&warned), ran.err.lines().count()), (true, 1), "{ran:?}");
    let (receiver, _) = looked_at(&stage, 0, &cache.url());
    assert_eq!(receiver["standing"], "idle");
    let warning = receiver["warnings"][0].as_str().unwrap_or_else(|| panic!("{receiver}"));
    assert!(
        warning.starts_with("appendonly is no: a server that is killed or restarted forgets"),
        "{warning}"
    );
    let text = stage.good(&["fence", "check", "job", "--receiver", &cache.url()]);
    assert!(
        text.contains(&format!(
            "\nwarnings about redis://127.0.0.1:{}/0\n  appendonly is no: ",
            cache.port()
        )),
        "{text}"
    );

    let keeps = redis::Server::start().unwrap();
    assert_eq!(looked_at(&stage, 0, &keeps.url()).0["warnings"], json!([]));

    let (database, url) = mariadb();
    database.sql("ALTER TABLE leasehold_fence ENGINE = MyISAM").unwrap();
    let (receiver, _) = looked_at(&stage, 0, &url);
    let warnings = receiver["warnings"].to_string();
    assert!(
        warnings.contains("the engine of table leasehold_fence is MyISAM: it does not lock rows")
            && warnings.contains("innodb_flush_log_at_trx_commit is 2"),
        "{receiver}"
    );
}

#[test]
fn who_does_not_answer_is_named_with_the_time_and_the_others_are_shown() {
    let stage = Stage::new();
    let ((database, mysql), (store, s3), sqlite) = (mariadb(), bucket(), sqlite(stage.dir.path()));
    database.pause().unwrap();
    store.pause().unwrap();
    let silent = ["--timeout", "1s", "fence", "check", "job", "-r", &mysql, "-r", &s3, "-r", &sqlite];
    let json = stage.json(1, &silent);
    for silent in &json["receivers"].as_array().unwrap()[..2] {
        assert_eq!(silent["standing"], "not-asked");
        assert_eq!(silent["error"], "no answer within 1s; wait longer with --timeout");
    }
    assert_eq!(json["receivers"][2]["standing"], "unused");
    let said = stage.say(&silent);
    let row = format!("mysql://127.0.0.1:{}/test", database.port());
    let row = said.out.lines().find(|line| line.starts_with(&row)).unwrap_or_else(|| panic!("{said:?}"));
    assert!(row.contains("cannot be asked: no answer within 1s"), "{row}");
    assert!(!said.out.contains(PASSWORD), "{}", said.out);
}

#[test]
fn what_is_not_there_is_said_with_what_to_do() {
    let stage = Stage::new();
    let ((database, mysql), (store, _)) = (mariadb(), bucket());
    database.sql("DROP TABLE leasehold_fence").unwrap();
    let missing = stage.dir.path().join("missing.db");
    let missing = format!("sqlite:{}", missing.display());
    let elsewhere = format!("s3://nowhere/x?endpoint={}", store.url());
    for (url, why) in [
        (&mysql, "table leasehold_fence is missing"),
        (&missing, "No such file or directory"),
        (&elsewhere, "there is no bucket \"nowhere\"; make it"),
        (&"s3://fenced/x?endpoint=http://127.0.0.1:1".to_owned(), "127.0.0.1:1"),
        (&"redis://127.0.0.1:1".to_owned(), "refused (os error 111); see that it runs"),
        (&"postgres://app@127.0.0.1:1/shop".to_owned(), "refused (os error 111); see that it runs"),
        (&store.url().replace("http:", "redis:"), "does not speak Redis; check the address"),
    ] {
        let (receiver, _) = looked_at(&stage, 1, url);
        assert_eq!(receiver["standing"], "not-asked");
        assert!(receiver["error"].as_str().is_some_and(|error| error.contains(why)), "{receiver}");
    }
    // Keys that nobody has set are looked for at the machine, and not found.
    let url = format!("s3://{BUCKET}/x?endpoint={}", store.url());
    let mut keyless = stage.command(&["--json", "fence", "check", "job", "--receiver", &url]);
    keyless.env_remove("AWS_ACCESS_KEY_ID").env_remove("AWS_SECRET_ACCESS_KEY");
    keyless.env("AWS_METADATA_ENDPOINT", "http://127.0.0.1:1");
    let keyless = said(&mut keyless);
    assert_eq!(keyless.code, Some(1), "{keyless:?}");
    assert!(keyless.out.contains("AWS_ACCESS_KEY_ID is not set"), "{keyless:?}");
}

#[test]
fn an_object_of_another_name_is_no_unused_one() {
    let (stage, (_server, url)) = (Stage::new(), bucket());
    stage.good(&["run", "other", "--seal-at", &url, "--", "true"]);
    let (receiver, _) = looked_at(&stage, 1, &url);
    assert_eq!(receiver["standing"], "not-asked");
    let why = "it is fenced under \"other\", not under \"job\"; one object has one fence name";
    assert!(receiver["error"].as_str().is_some_and(|error| error.starts_with(why)), "{receiver}");
}

#[test]
fn a_url_that_is_none_runs_nothing_and_shows_no_password() {
    let stage = Stage::new();
    for (url, why) in [
        ("mysql://app:do-not-print@db", "it names no database; write mysql://USER@HOST/DATABASE"),
        ("mysql:shop", "it does not begin with mysql://; write mysql://USER@HOST/DATABASE"),
        ("mysql://db:port/shop", "write mysql://USER@HOST/DATABASE, with %2C for a comma"),
        // A comma in a password cuts it in two.
        ("mysql://app:1,do-not-print@db/shop", "receiver \"mysql://app:1\""),
        ("mysql://app:do-not-print,2@db/shop", "receiver \"mysql://app:...\""),
        ("mysqls://db/x", "receivers are postgres://"),
        ("postgres://app:do-not-print@db", "it names no database; write postgres://USER@HOST/DATABASE"),
        ("postgres://app:do-not-print@db/", "it names no database; write postgres://USER@HOST/DATABASE"),
        ("postgres:///shop", "it names no host; write postgres://USER@HOST/DATABASE"),
        ("postgres://app@db/shop?sslmode=yes", "sslmode is none of disable, prefer, require, verify-full"),
        ("postgres://app@db/shop?password=do-not-print", "behind the question mark, not \"password\""),
        ("postgres://app@db:99999/shop", "port 99999 is above the maximum of 65535"),
        ("postgres://app:se?do-not-print@db/shop", "a question mark stands before the at sign; write %3F"),
        ("postgres://app:a@b?do-not-print@db/shop", "may stand behind the question mark, nothing else"),
        ("postgres://app:123456/do-not-print@db", "it names no database"),
        ("postgres://app@db/shop?host=/run/postgresql", "it names a host and a socket"),
        ("redis://cache:99999", "port 99999 is above the maximum of 65535"),
        ("https://proxy", "there is no TLS to a fence proxy here"),
        ("file:", "it names no file; write file:PATH"),
        ("file:/nodir/jobfile", "/nodir: No such file or directory (os error 2); make that directory"),
        ("sqlite:", "it names no file; write sqlite:PATH"),
        ("sqlite::memory:", "it is a database in memory, which no other process can see"),
        ("sqlite:/srv/app.db?mode=ro", "it has a query; write sqlite:PATH"),
        ("rediss://:do-not-print@cache", "there is no TLS for Redis here"),
        ("s3://bucket", "it names no object; write s3://BUCKET/PATH"),
        ("s3:///path", "it names no bucket; write s3://BUCKET/PATH"),
        ("s3://id:do-not-print@bucket/path", "keys do not belong into a URL"),
        (
            "s3://bucket/path?key=do-not-print",
            "only endpoint and region may stand behind the question mark, not \"key\"",
        ),
        (
            "s3://bucket/path?endpoint=10.0.0.7:9000",
            "the endpoint \"10.0.0.7:9000\" does not begin with http:// or https://",
        ),
        ("s3://bucket/path?endpoint=http://id:do-not-print@host", "keys do not belong into a URL"),
    ] {
        for command in [
            &["run", "job", "--seal-at", url, "--", "touch", "ran"][..],
            &["fence", "check", "job", "-r", url],
        ] {
            let said = stage.say(command);
            assert_eq!(said.code, Some(if command[0] == "run" { 125 } else { 2 }), "{said:?}");
            assert!(said.err.contains("receiver \"") && said.err.contains(why), "{url}: {}", said.err);
            assert!(!said.err.contains(PASSWORD), "{}", said.err);
        }
    }
    assert!(!stage.store().exists(), "nothing was opened");
}

/// Nobody waits for what somebody has to mend, and the words say so.
#[test]
fn what_time_does_not_change_ends_a_seal_at_once() {
    let stage = Stage::new();
    let ((database, mysql), (store, s3)) = (mariadb(), bucket());
    database.sql("DROP TABLE leasehold_fence").unwrap();
    stage.good(&["run", "other", "--seal-at", &s3, "--", "true"]);
    let [file, elsewhere] = [
        format!("sqlite:{}", stage.dir.path().join("missing.db").display()),
        format!("s3://nowhere/x?endpoint={}", store.url()),
    ];
    let database = mysql.replace("/test", "/nowhere");
    for (url, why) in [
        (&mysql, "table leasehold_fence is missing"),
        (&database, "nowhere"),
        (&file, "No such file or directory"),
        (&elsewhere, "there is no bucket \"nowhere\""),
        (&s3, "it is fenced under other, not under job"),
    ] {
        let begun = Point::now();
        let said = stage.say(&["run", "job", "--ttl", "60s", "--seal-at", url, "--", "touch", "ran"]);
        assert_eq!(said.code, Some(NOT_SEALED), "{}", said.err);
        assert!(Point::now().remaining(begun) < Duration::from_secs(20), "it was tried on: {}", said.err);
        assert!(said.err.contains(why), "{}", said.err);
        assert!(said.err.ends_with("; mend that, then ask for the lease again\n"), "{}", said.err);
        assert!(!said.err.contains(PASSWORD), "{}", said.err);
        assert_eq!(stage.say(&["get", "job"]).code, Some(1), "it was given back");
    }
    let said = stage.say(&["run", "job", "--ttl", "1s", "--seal-at", "redis://127.0.0.1:1", "--", "true"]);
    assert!(
        said.err.ends_with("; see that redis://127.0.0.1:1/0 answers, then ask for the lease again\n"),
        "{}",
        said.err
    );
}

#[test]
fn whoever_reads_of_a_receiver_from_a_variable_is_told_which() {
    let stage = Stage::new();
    for (variable, command) in [
        ("LEASEHOLD_SEAL_AT", &["run", "job", "--", "true"][..]),
        ("LEASEHOLD_SEAL_AT", &["hold", "job"]),
        ("LEASEHOLD_RECEIVERS", &["fence", "check", "job"]),
    ] {
        let said = said(stage.command(command).env(variable, "redis://cache,nonsense"));
        assert_eq!(said.code, Some(if command[0] == "run" { 125 } else { 2 }), "{said:?}");
        let begins = format!("leasehold: {variable}: receiver \"nonsense\": receivers are ");
        assert!(said.err.starts_with(&begins), "{}", said.err);
    }
    let missing = format!("sqlite:{}", stage.dir.path().join("missing.db").display());
    let unsealed = said(stage.command(&["run", "job", "--", "true"]).env("LEASEHOLD_SEAL_AT", &missing));
    assert_eq!(unsealed.code, Some(NOT_SEALED), "{unsealed:?}");
    let begins = format!("leasehold: LEASEHOLD_SEAL_AT: {missing} could not be sealed");
    assert!(unsealed.err.starts_with(&begins), "{}", unsealed.err);
    // What an option says is nobody's variable, and one that is empty is not set.
    let typed = said(stage.command(&["fence", "check", "job", "-r", "x"]).env("LEASEHOLD_RECEIVERS", "y"));
    assert!(typed.err.starts_with("leasehold: receiver \"x\": "), "{}", typed.err);
    let empty = said(stage.command(&["run", "job", "--", "true"]).env("LEASEHOLD_SEAL_AT", ""));
    assert_eq!((empty.code, empty.err.as_str()), (Some(0), ""));
    let empty = said(stage.command(&["fence", "check", "job"]).env("LEASEHOLD_RECEIVERS", ""));
    assert!(empty.code == Some(2) && empty.err.contains("--receiver <URL>"), "{empty:?}");
}

#[test]
fn slots_are_asked_for_one_by_one() {
    let stage = Stage::new();
    let url = sqlite(stage.dir.path());
    let (_holder, token) = stage.hold("pool", &["--slots", "2", "--seal-at", &url]);
    let check = |name: &str| stage.say(&["fence", "check", name, "--receiver", &url]);
    for (name, said) in [
        ("pool", "leasehold: pool has 2 slots; ask for pool#0 or pool#1\n"),
        ("pool#2", "leasehold: pool has no slot 2: it has 2, from pool#0 to pool#1\n"),
    ] {
        let refused = check(name);
        assert_eq!((refused.code, refused.err.as_str(), refused.out.as_str()), (Some(2), said, ""));
    }
    let refused = check("pool#x");
    assert!(refused.code == Some(2) && refused.err.contains("\"x\" is not a slot"), "{refused:?}");
    let held = check("pool#0");
    assert!(
        held.out.starts_with(&format!("pool#0 is held by holder, who writes with token {token}\n")),
        "{held:?}"
    );
    let free = check("pool#1");
    let head = format!("pool#1 is held by nobody; the last token of pool (any slot) was {token}\n");
    assert!(free.code == Some(0) && free.out.starts_with(&head), "{free:?}");
    stage.good(&["run", "job", "--", "true"]);
    assert_eq!(check("job#0").err, "leasehold: job has no slot 0, because it has no slots; ask for job\n");
}

#[test]
fn a_store_that_cannot_be_asked_is_no_good_end() {
    let stage = Stage::new();
    let url = sqlite(stage.dir.path());
    let (receiver, floor) = looked_at(&stage, 1, &url);
    assert_eq!((receiver["standing"].as_str(), receiver["highest"].as_str()), (Some("unused"), None));
    assert_eq!(floor, Value::Null);
}
