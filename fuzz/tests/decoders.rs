//! Every decoder, for a few seconds each, always from the same seed: `cargo xtask fuzz` takes fresh ones. A failure prints the input and how to try it again.

use std::path::Path;
use std::time::Duration;

use leasehold_args::fuzz::NAMES;
use leasehold_fuzz::{TARGETS, driver, target};

/// Fourteen targets take less than a minute.
const TIME: Duration = Duration::from_secs(3);

/// What is tried here is the same each time, as far as the time allows.
const SEED: u64 = 1;

fn try_for_a_while(name: &str) {
    let target = target(name).expect("a target has this name");
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR"));
    match driver::run(target, SEED, TIME, directory) {
        Ok(found) => {
            println!("{name}: {found}");
            assert!(!found.is_few(), "{name}: {found}");
            assert!(found.shapes > 1, "{name}: every input comes to the same");
        }
        Err(failure) => panic!("{failure}"),
    }
}

macro_rules! decoders {
    ($($test:ident: $name:literal,)*) => {
        $(#[test]
        fn $test() {
            try_for_a_while($name);
        })*

        #[test]
        fn every_target_is_tried() {
            assert_eq!(TARGETS.map(|target| target.name), [$($name),*]);
        }
    };
}

decoders! {
    log_records: "log-records",
    log_files: "log-files",
    log_entry: "log-entry",
    table: "table",
    snapshot: "snapshot",
    backup: "backup",
    client_frames: "client-frames",
    server_frames: "server-frames",
    peer_frames: "peer-frames",
    http_fields: "http-fields",
    http_door: "http-door",
    config: "config",
    store_url: "store-url",
    history: "history",
}

#[test]
fn the_list_of_names_is_that_of_the_targets() {
    assert_eq!(TARGETS.map(|target| (target.name, target.what)), NAMES);
}
