//! Databases that are sealed and asked over TLS.

use std::time::Duration;

use leasehold_cli::guardian::clock::Point;
use leasehold_kit::{Receiver as _, mariadb, postgres};

use super::stage::{Said, Stage};

/// What `run` ends with if a receiver could not be sealed.
const NOT_SEALED: i32 = 119;

fn seal(stage: &Stage, url: &str) -> Said {
    stage.say(&["run", "job", "--ttl", "60s", "--quiet", "--seal-at", url, "--", "true"])
}

fn is_sealed(stage: &Stage, url: &str) {
    let said = seal(stage, url);
    assert_eq!(said.code, Some(0), "{url}: {said:?}");
    // On a busy machine it takes the directory more than a second to be served, which is said; of the receiver nothing is.
    let is_try = |line: &str| line.starts_with("leasehold: no connection to dir:");
    assert!(said.err.lines().all(is_try), "{url}: {said:?}");
    stage.good(&["fence", "check", "job", "--receiver", url]);
}

/// No time mends it, so nobody waits for it.
fn is_refused_at_once(stage: &Stage, url: &str, why: &str) {
    let begun = Point::now();
    let said = seal(stage, url);
    assert_eq!(said.code, Some(NOT_SEALED), "{url}: {}", said.err);
    assert!(Point::now().remaining(begun) < Duration::from_secs(20), "it was tried on: {}", said.err);
    assert!(said.err.contains(why), "{url}: {}", said.err);
    assert!(said.err.ends_with("; mend that, then ask for the lease again\n"), "{}", said.err);
}

#[test]
fn postgresql_is_spoken_to_over_tls_and_its_certificate_is_looked_at() {
    let (stage, server) = (Stage::new(), postgres::Server::start_with_tls().unwrap());
    server.sql(&stage.good(&["fence", "migration", "postgres"])).unwrap();
    let rules = server.process().directory().join("data/pg_hba.conf");
    std::fs::write(rules, "hostssl all all 127.0.0.1/32 trust\n").unwrap();
    server.sql("SELECT pg_reload_conf()").unwrap();
    let url =
        |host: &str, query: &str| format!("postgres://postgres@{host}:{}/postgres{query}", server.port());

    is_refused_at_once(&stage, &url("localhost", "?sslmode=disable"), "no encryption");
    is_sealed(&stage, &url("localhost", ""));
    is_sealed(&stage, &url("127.0.0.1", "?sslmode=require"));
    is_refused_at_once(&stage, &url("localhost", "?sslmode=verify-full"), "certificate");
    let trusting = format!("?sslmode=verify-full&sslrootcert={}", server.certificate().display());
    is_sealed(&stage, &url("localhost", &trusting));
    is_refused_at_once(&stage, &url("127.0.0.1", &trusting), "not valid for name");

    let plain = postgres::Server::start_fast().unwrap();
    let wanted = format!("{}?sslmode=require", plain.url());
    is_refused_at_once(&stage, &wanted, "server does not support TLS");
}

#[test]
fn mariadb_is_spoken_to_over_tls_and_its_certificate_is_looked_at() {
    let (stage, server) = (Stage::new(), mariadb::Server::start_with_tls().unwrap());
    server.sql(&stage.good(&["fence", "migration", "mysql"])).unwrap();
    server.sql("CREATE USER app REQUIRE SSL; GRANT ALL ON test.* TO app").unwrap();
    let url = |host: &str, query: &str| format!("mysql://app@{host}:{}/test{query}", server.port());

    is_refused_at_once(&stage, &url("localhost", "?ssl-mode=DISABLED"), "Access denied");
    is_sealed(&stage, &url("localhost", ""));
    is_sealed(&stage, &url("127.0.0.1", "?ssl-mode=REQUIRED"));
    is_refused_at_once(&stage, &url("localhost", "?ssl-mode=VERIFY_IDENTITY"), "certificate");
    let trusting = format!("?ssl-mode=VERIFY_IDENTITY&ssl-ca={}", server.certificate().display());
    is_sealed(&stage, &url("localhost", &trusting));
    is_refused_at_once(&stage, &url("127.0.0.1", &trusting), "not valid for name");

    let plain = mariadb::Server::start_fast().unwrap();
    let wanted = format!("{}?ssl-mode=REQUIRED", plain.url());
    is_refused_at_once(&stage, &wanted, "server does not support TLS");
}

#[test]
fn a_way_that_is_not_understood_is_not_taken() {
    let stage = Stage::new();
    for (url, why) in [
        ("postgres://app@db/shop?sslmode=allow", "sslmode is none of disable, prefer, require, verify-full"),
        (
            "postgres://app@db/shop?sslrootcert=/x",
            "sslrootcert changes nothing without sslmode=verify-full; add that",
        ),
        ("postgres://app@db/shop?sslmode=require&sslrootcert=/x", "sslrootcert changes nothing without"),
        ("postgres://app@db/shop?sslmode=verify-full&sslrootcert=/x.pem", "sslrootcert /x.pem: No such file"),
        ("postgres://app@db/shop?ssl=true", "only application_name, options, sslmode, sslrootcert and"),
        (
            "mysql://app@db/shop?ssl-mode=VERIFY_CA",
            "ssl-mode is none of DISABLED, PREFERRED, REQUIRED, VERIFY_IDENTITY",
        ),
        (
            "mysql://app@db/shop?ssl-ca=/x",
            "ssl-ca changes nothing without ssl-mode=VERIFY_IDENTITY; add that",
        ),
        // What other drivers take: this one would pass over it, and send everything in the clear.
        (
            "mysql://app@db/shop?tls=true",
            "only ssl-mode, ssl-ca and socket=PATH may stand behind the question mark, not \"tls\"",
        ),
    ] {
        let said = stage.say(&["fence", "check", "job", "--receiver", url]);
        assert_eq!(said.code, Some(2), "{said:?}");
        assert!(said.err.contains(why), "{url}: {}", said.err);
    }
}
