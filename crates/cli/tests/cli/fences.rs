//! `fence check`, and sealing before a command is run: on a real database.

use leasehold_kit::{Receiver as _, postgres};
use serde_json::json;

use super::stage::Stage;

/// The tables and functions of the fence, as the library ships them.
const MIGRATION: &str = include_str!("../../../fence/src/postgres/migration.sql");

fn database() -> postgres::Server {
    let server = postgres::Server::start_fast().unwrap();
    server.sql(MIGRATION).unwrap();
    server
}

#[test]
fn a_command_runs_behind_a_seal_and_the_check_shows_where_receivers_stand() {
    let (stage, server) = (Stage::new(), database());
    let url = server.url();
    let highest = "SELECT token FROM leasehold_fence WHERE name = 'job'";
    // When the command starts, the database has its token already.
    let seen = "test \"$(psql --no-psqlrc -At -c \"$QUESTION\" \"$DATABASE\")\" = \"$LEASEHOLD_TOKEN\"";
    let command = format!("QUESTION=\"{highest}\" DATABASE={url}; {seen}");
    stage.good(&["run", "job", "--label", "worker", "--seal-at", &url, "--", "sh", "-c", &command]);

    let (_holder, token) = stage.hold("job", &["--seal-at", &url]);
    let json = stage.json(0, &["fence", "check", "job", "--receiver", &url]);
    assert_eq!(json["present"], json!({"token": token.to_string(), "holder": "holder"}));
    let receiver = &json["receivers"][0];
    assert_eq!((&receiver["standing"], &receiver["highest"]), (&json!("sealed"), &json!(token.to_string())));
    assert_eq!(receiver["holder"], "holder");
    assert_eq!(json["token_floor"], (token.to_string().parse::<u64>().unwrap() + 1).to_string());

    // A stale holder comes back, by whatever way: it is refused, and the next look says so.
    let stale = server.sql("SELECT leasehold_enter('job', 1, 'old')").unwrap_err().to_string();
    assert!(stale.contains("token 1 of job is stale"), "{stale}");
    let text = stage.good(&["fence", "check", "job", "--receiver", &url]);
    assert!(text.starts_with(&format!("job is held by holder, who writes with token {token}\n")), "{text}");
    assert!(text.contains("sealed by the present holder\n"), "{text}");
}

#[test]
fn the_command_alone_makes_the_tables_that_it_asks_for() {
    let (stage, server) = (Stage::new(), postgres::Server::start_fast().unwrap());
    let url = server.url();
    let said = stage.say(&["run", "job", "--seal-at", &url, "--", "true"]);
    assert_eq!(said.code, Some(119), "{said:?}");
    assert!(said.err.contains("`leasehold fence migration postgres` prints"), "{}", said.err);
    assert!(said.err.ends_with("; mend that, then ask for the lease again\n"), "{}", said.err);
    server.sql(&stage.good(&["fence", "migration", "postgres"])).unwrap();
    stage.good(&["run", "job", "--seal-at", &url, "--", "true"]);
    stage.good(&["fence", "check", "job", "--receiver", &url]);
    let missing =
        stage.say(&["run", "job", "--seal-at", &url.replace("/postgres", "/nowhere"), "--", "true"]);
    assert!(missing.err.contains("\"nowhere\" does not exist; mend that, then"), "{}", missing.err);
    assert_eq!(stage.say(&["fence", "migration"]).code, Some(2), "which database is not guessed");
}

#[test]
fn a_file_in_a_missing_directory_cannot_be_sealed() {
    let stage = Stage::new();
    let said = stage.say(&["run", "job", "--seal-at", "file:missing/report", "--", "true"]);
    assert_eq!(said.code, Some(119), "{said:?}");
    assert!(said.err.contains("receiver \"file:missing/report\": missing: "), "{}", said.err);
    assert!(said.err.contains("make that directory, or name a file in one that is there"), "{}", said.err);
    assert_eq!(stage.say(&["hold", "job", "--seal-at", "file:missing/report"]).code, Some(119));
    let said = stage.say(&["hold", "job", "--seal-at", "file:"]);
    assert_eq!(said.code, Some(2), "a URL that names no file is misuse: {said:?}");
}

#[test]
fn a_receiver_ahead_of_the_store_keeps_the_command_from_running() {
    let (stage, server) = (Stage::new(), database());
    let url = server.url();
    server.sql("SELECT leasehold_seal('job', 1000000, 'another store')").unwrap();
    // A store that has never heard of the name cannot say that its tokens pass.
    let json = stage.json(1, &["fence", "check", "job", "--receiver", &url]);
    assert_eq!(json["receivers"][0]["standing"], "not-compared");
    let said = stage.say(&["run", "job", "--seal-at", &url, "--", "touch", "ran"]);
    assert_eq!(said.code, Some(119), "{}", said.err);
    assert!(said.err.contains("could not be sealed") && said.err.contains("1000000"), "{}", said.err);
    let json = stage.json(1, &["fence", "check", "job", "--receiver", &url]);
    assert_eq!(json["receivers"][0]["standing"], "ahead");
    assert_eq!(json["token_floor"], "1000001");
    // The lease was given back at once.
    assert_eq!(stage.say(&["get", "job"]).code, Some(1));
}

#[test]
fn a_receiver_that_cannot_be_asked_is_named_and_the_others_are_shown() {
    let (stage, mut server) = (Stage::new(), database());
    let url = server.url();
    let (_holder, _) = stage.hold("job", &["--seal-at", &url]);
    server.kill().unwrap();
    let json = stage.json(1, &["--timeout", "2s", "fence", "check", "job", "--receiver", &url]);
    assert_eq!(json["receivers"][0]["standing"], "not-asked");
    let said = stage.say(&["fence", "check", "job", "--receiver", "postgres//typo"]);
    assert_eq!(said.code, Some(2));
    assert!(said.err.contains("receiver \"postgres//typo\": receivers are postgres://"), "{}", said.err);
}
