//! What wins, what is refused, and that the example and the reference say what the code does.

use super::*;
use crate::config::{LogFormat, Value};

const EXAMPLE: &str = include_str!("../../../../../config.example.toml");
const REFERENCE: &str = include_str!("../../../../../docs/reference/config.md");

fn pair(name: &str, value: &str) -> (String, String) {
    (name.to_owned(), value.to_owned())
}

fn flag(flag: &str, key: &str, value: &str) -> (String, String, String) {
    (flag.to_owned(), key.to_owned(), value.to_owned())
}

fn file(text: &str) -> Layers {
    Layers { file: Some((PathBuf::from("c.toml"), text.to_owned())), ..Layers::default() }
}

fn variable(name: &str, value: &str) -> Layers {
    Layers { variables: vec![pair(name, value)], ..Layers::default() }
}

fn resolve(layers: &Layers) -> Result<Effective, String> {
    layers.resolve(Some(Path::new("/data"))).map_err(|error| error.to_string())
}

#[test]
fn what_comes_later_wins_and_is_remembered() {
    let mut layers = file("name = \"of-file\"\nlisten = \"127.0.0.1:1\"\nmax_ttl_ms = 1000\n");
    layers.variables =
        vec![pair("LEASEHOLD_SERVE_LISTEN", "127.0.0.1:2"), pair("LEASEHOLD_SERVE_MAX_TTL_MS", "2000")];
    layers.flags = vec![flag("--max-ttl", "max_ttl_ms", "3000")];
    let effective = resolve(&layers).unwrap();
    let shown = |name: &str| {
        let (_, value, source) = effective.settings().find(|(key, ..)| key.name == name).unwrap();
        (value.to_string(), source.to_string())
    };
    assert_eq!(shown("data"), pair("\"/data\"", "default"));
    assert_eq!(shown("name"), pair("\"of-file\"", "c.toml:1"));
    assert_eq!(shown("listen"), pair("\"127.0.0.1:2\"", "LEASEHOLD_SERVE_LISTEN"));
    assert_eq!(shown("max_ttl_ms"), pair("3000", "--max-ttl"));
    assert_eq!(effective.source("max_ttl_ms"), &Source::Flag("--max-ttl".to_owned()));
}

#[test]
fn every_key_can_be_set_from_every_place_and_sets_itself_alone() {
    for key in &KEYS {
        let before = Config::new("/data");
        let other = match (key.name, key.get(&before)) {
            ("data", _) => "/elsewhere".to_owned(),
            ("listen", _) => "127.0.0.1:1".to_owned(),
            ("cluster.initial", _) => "leasehold=127.0.0.1:7420,other=127.0.0.1:2".to_owned(),
            ("cluster.advertise", _) => "host:1".to_owned(),
            ("log.format", _) => "json".to_owned(),
            ("log.level", _) => "debug".to_owned(),
            ("gap_patterns", _) => "jobs/*, leader".to_owned(),
            ("drift_ppm", _) => "500".to_owned(),
            ("shutdown_grace_ms" | "snapshot_entries" | "snapshot_bytes", Value::Number(number)) => {
                (number + 1).to_string()
            }
            (_, Value::Number(number)) => (number - 1).to_string(),
            (_, Value::Flag(flag)) => (!flag).to_string(),
            (_, Value::Text(_) | Value::List(_)) => "other".to_owned(),
        };
        let by_flag = Layers { flags: vec![flag("--set", key.name, &other)], ..Layers::default() };
        let by_flag = resolve(&by_flag).unwrap();
        let by_variable = resolve(&variable(&key.variable(), &other)).unwrap();
        assert_eq!(by_flag.config, by_variable.config, "{}", key.name);
        let value = key.read(&before, &other).unwrap();
        let (section, name) = key.name.rsplit_once('.').unwrap_or(("", key.name));
        let head = if section.is_empty() { String::new() } else { format!("[{section}]\n") };
        let by_file = resolve(&file(&format!("{head}{name} = {value}\n"))).unwrap();
        assert_eq!(by_flag.config, by_file.config, "{}", key.name);
        for known in &KEYS {
            let changed = known.get(&by_flag.config) != known.get(&before);
            assert_eq!(changed, known.name == key.name, "{} after {}", known.name, key.name);
        }
    }
}

#[test]
fn every_field_has_a_key() {
    use crate::config::{ClusterConfig, HttpConfig, LimitsConfig, LogConfig};
    // A field that is added does not compile here until it is counted, and is not counted until it has a key.
    let Config {
        name,
        data,
        listen,
        insecure,
        max_ttl,
        drift,
        shutdown_grace,
        snapshot_entries,
        snapshot_bytes,
        gap_patterns,
        http,
        limits,
        cluster,
        log,
    } = Config::new("/data");
    let HttpConfig { max_body_bytes, max_header_bytes, request_timeout, max_wait } = http;
    let LimitsConfig { max_connections, max_watches, max_watches_per_connection, write_timeout } = limits;
    let LogConfig { format, level } = log;
    let _own =
        (name, data, listen, insecure, max_ttl, drift, shutdown_grace, snapshot_entries, snapshot_bytes);
    let _watched = gap_patterns;
    let _http = (max_body_bytes, max_header_bytes, request_timeout, max_wait);
    let _limits = (max_connections, max_watches, max_watches_per_connection, write_timeout);
    let ClusterConfig { initial, join, advertise } = cluster;
    let _log = (format, level);
    let _cluster = (initial, join, advertise);
    assert_eq!(9 + 1 + 4 + 4 + 3 + 2, KEYS.len());
}

#[test]
fn an_unknown_key_is_refused_with_its_place_and_the_nearest() {
    let refusal = |layers: &Layers| resolve(layers).unwrap_err();
    assert_eq!(
        refusal(&file("\n[http]\nmax_bdy_bytes = 1\n")),
        "c.toml:3: there is no key http.max_bdy_bytes; did you mean http.max_body_bytes?"
    );
    assert_eq!(
        refusal(&file("max_connections = 100\n")),
        "c.toml:1: there is no key max_connections; did you mean limits.max_connections?"
    );
    assert_eq!(
        refusal(&file("[colours]\nbackground = 1\n")),
        "c.toml:1: there is no section [colours]; `leasehold serve --print-config` shows them all"
    );
    assert_eq!(
        refusal(&file("[htpp]\nmax_body_bytes = 1\n")),
        "c.toml:1: there is no section [htpp]; did you mean [http]?"
    );
    assert_eq!(refusal(&file("nmae = \"a\"\n")), "c.toml:1: there is no key nmae; did you mean name?");
    assert_eq!(
        refusal(&variable("LEASEHOLD_SERVE_LISTN", "x")),
        "there is no variable LEASEHOLD_SERVE_LISTN; did you mean LEASEHOLD_SERVE_LISTEN?"
    );
    assert_eq!(
        refusal(&variable("LEASEHOLD_SERVE_CONFG", "x")),
        "there is no variable LEASEHOLD_SERVE_CONFG; did you mean LEASEHOLD_SERVE_CONFIG?"
    );
    let by_flag = Layers { flags: vec![flag("--set", "log.levl", "x")], ..Layers::default() };
    assert_eq!(refusal(&by_flag), "--set: there is no key log.levl; did you mean log.level?");
    // Those of others are none of our business, and the file's own is read by whoever opens it.
    resolve(&variable("LEASEHOLD_STORE", "x")).unwrap();
    resolve(&variable(FILE_VARIABLE, "x")).unwrap();
}

#[test]
fn a_value_that_cannot_be_is_refused_with_what_it_could_be() {
    for (text, refusal) in [
        ("max_ttl_ms = 499", "max_ttl_ms: 499 is outside 500 to 86400000"),
        ("max_ttl_ms = 86400001", "max_ttl_ms: 86400001 is outside 500 to 86400000"),
        ("max_ttl_ms = \"5m\"", "max_ttl_ms: \"5m\" is not a whole number"),
        ("drift_ppm = 500000", "drift_ppm: 500000 is outside 0 to 499999"),
        ("http.max_body_bytes = 131072", "http.max_body_bytes: 131072 is outside 135168 to 4194304"),
        ("limits.max_watches = 0", "limits.max_watches: 0 is outside 1 to 1000000"),
        ("log.format = \"xml\"", "log.format: \"xml\" is none of auto, human and json"),
        ("log.level = \"\"", "log.level: the level is empty; write off for silence"),
        ("data = \"\"", "data: the path is empty; name a directory"),
        (
            "data = \"~/x\"",
            "data: \"~/x\" begins with ~, which a shell replaces and a configuration does not; write the whole path",
        ),
        ("[name]\na = 1", "name: a section is neither text, number nor flag"),
        (
            "gap_patterns = \"jobs/*\"",
            "gap_patterns: \"jobs/*\" is not a list of texts, such as [\"jobs/*\", \"leader\"]",
        ),
        (
            "gap_patterns = [\"a*b\"]",
            "gap_patterns: pattern \"a*b\" is not a name and not a beginning of names with * behind it, such as jobs/*",
        ),
        ("name = [\"a\"]", "name: [\"a\"] is not text in quotes"),
        ("insecure = 1", "insecure: 1 is neither true nor false"),
        ("name = 7", "name: 7 is not text in quotes"),
        (
            "listen = \"localhost\"",
            "listen: \"localhost\" is not an address with a port; write it like 127.0.0.1:7420, [::1]:7420 or localhost:7420",
        ),
    ] {
        assert_eq!(resolve(&file(text)).unwrap_err(), format!("c.toml:1: {refusal}"));
    }
    assert_eq!(
        resolve(&variable("LEASEHOLD_SERVE_INSECURE", "yes")).unwrap_err(),
        "LEASEHOLD_SERVE_INSECURE: \"yes\" is neither true nor false"
    );
    assert_eq!(
        resolve(&variable("LEASEHOLD_SERVE_DRIFT_PPM", "-1")).unwrap_err(),
        "LEASEHOLD_SERVE_DRIFT_PPM: \"-1\" is not a whole number"
    );
}

#[test]
fn what_does_not_fit_together_is_told_with_the_places_it_came_from() {
    let mut layers = file("snapshot_bytes = 200000\n");
    assert!(resolve(&layers).unwrap_err().starts_with(
        "snapshot_bytes of 200000 (c.toml:1) is below http.max_body_bytes of 262144 (default), so that"
    ));
    layers.flags = vec![flag("--set http.max_body_bytes", "http.max_body_bytes", "200001")];
    assert!(resolve(&layers).unwrap_err().contains("of 200001 (--set http.max_body_bytes), so that"));
}

#[test]
fn what_a_directory_keeps_is_put_in_and_told_to_whoever_chose_otherwise() {
    let by_flag = Layers { flags: vec![flag("--max-ttl", "max_ttl_ms", "60000")], ..Layers::default() };
    let mut effective = resolve(&by_flag).unwrap();
    let warnings = effective.keep(Millis::new(300_000), Drift::from_ppm(500).unwrap());
    // The drift was nobody's choice, and whoever reads the log sees where it came from.
    assert_eq!(
        warnings,
        ["max_ttl_ms of 60000 (--max-ttl) does not apply: /data was made with 300000 and keeps it"]
    );
    assert_eq!((effective.config.max_ttl.get(), effective.config.drift.ppm()), (300_000, 500));
    assert_eq!(effective.source("max_ttl_ms"), &Source::Directory);
    assert_eq!(effective.source("drift_ppm"), &Source::Directory);
    assert!(effective.keep(Millis::new(300_000), Drift::from_ppm(500).unwrap()).is_empty());
}

#[test]
fn the_bounds_of_numbers_are_those_in_their_words() {
    let mut seen = 0;
    for key in &KEYS {
        let mut config = Config::new("/data");
        if !matches!(key.get(&config), Value::Number(_)) {
            continue;
        }
        let (least, most) = key.bounds.split(':').next().unwrap().split_once(" to ").unwrap();
        let (least, most): (u64, u64) = (least.parse().unwrap(), most.parse().unwrap());
        let mut fits = |number: u64| key.set(&mut config, Value::Number(number)).is_ok();
        assert!(fits(least) && fits(most) && !fits(most + 1), "{}", key.name);
        assert!(least == 0 || !fits(least - 1), "{}", key.name);
        seen += 1;
    }
    assert_eq!(seen, 13);
}

#[test]
fn a_directory_must_be_named_where_there_is_no_home() {
    let refusal = Layers::default().resolve(None).unwrap_err().to_string();
    assert!(refusal.contains("--data"), "{refusal}");
    assert!(file("data = \"/x\"").resolve(None).is_ok());
}

#[test]
fn the_printed_configuration_reads_the_same() {
    let layers = file(
        "data = \"/odd \\\"path\\\\\"\ngap_patterns = [\"a,b\", \"jobs/*\"]\n[log]\nformat = \"json\"\nlevel = \"info,a=debug\"\n",
    );
    let effective = resolve(&layers).unwrap();
    let again = resolve(&file(&effective.to_toml())).unwrap();
    assert_eq!(again.config, effective.config);
    assert_eq!(again.config.log.format, LogFormat::Json);
    // Everything in it was said, even what is the default.
    assert!(again.settings().all(|(_, _, source)| matches!(source, Source::File { .. })));
}

#[test]
fn the_example_has_every_key_with_its_default_and_a_comment() {
    let effective = resolve(&file(EXAMPLE)).unwrap();
    let defaults = Config::new("/data");
    for (key, value, source) in effective.settings() {
        let Source::File { line, .. } = source else { panic!("{} is not in the example", key.name) };
        if key.name == "data" {
            assert!(effective.config.data.is_absolute());
        } else {
            assert_eq!(value, key.get(&defaults), "{}", key.name);
        }
        let above = EXAMPLE.lines().nth(line - 2).unwrap_or_default();
        assert!(above.starts_with("# "), "{} has no comment above it", key.name);
    }
}

#[test]
fn the_reference_has_a_row_for_every_key_and_no_other() {
    let defaults = Config::new("/data");
    let rows: Vec<Vec<&str>> = REFERENCE
        .lines()
        .skip_while(|line| *line != "## Keys")
        .take_while(|line| *line != "## What must fit together")
        .filter(|line| line.starts_with("| `"))
        .map(|line| line.trim_matches('|').split(" | ").map(str::trim).collect())
        .collect();
    let named: Vec<&str> = rows.iter().map(|row| row[0].trim_matches('`')).collect();
    assert_eq!(named, KEYS.map(|key| key.name), "the rows are the keys in their order");
    for (row, key) in rows.iter().zip(&KEYS) {
        assert_eq!(row[2], key.bounds, "{}", key.name);
        let default = key.get(&defaults).to_string();
        let shown = row[1].trim_matches('`');
        assert!(key.name == "data" || shown == default, "{} is {default} and not {shown}", key.name);
    }
}
