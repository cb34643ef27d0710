//! `backup`: the state of a running service, as a file.

mod http;

use std::time::Duration;

use leasehold_server::save_backup;
use serde::Serialize;

use crate::args::BackupArgs;
use crate::console::Console;
use crate::exit::Exit;
use crate::place::Place;
use crate::trouble::Trouble;

const PATH: &str = "/v1/backup";
const PATH_STALE: &str = "/v1/backup?age=any";

#[derive(Serialize)]
struct SavedJson {
    file: String,
    bytes: usize,
    revision: u64,
    epoch: u16,
    incarnation: String,
    stale: bool,
}

pub(super) fn run(
    console: &Console,
    place: &Place,
    args: &BackupArgs,
    timeout: Duration,
) -> Result<Exit, Trouble> {
    let Some(nodes) = place.url().strip_prefix("leasehold://") else {
        return Err(Trouble::Misuse(format!(
            "{} is a directory of this machine, and backups are of services: name one with --store leasehold://HOST:PORT",
            place.url()
        )));
    };
    let path = if args.stale { PATH_STALE } else { PATH };
    let bytes = http::get_from_any(nodes, path, timeout).map_err(|why| {
        let hint = "; --stale takes what a node has, however old";
        Trouble::Files(format!("{why}{}", if why.contains("might be old") { hint } else { "" }))
    })?;
    let saved = save_backup(&args.file, &bytes).map_err(|error| Trouble::Files(error.to_string()))?;
    let json = SavedJson {
        file: args.file.display().to_string(),
        bytes: bytes.len(),
        revision: saved.snapshot.index,
        epoch: saved.epoch,
        incarnation: saved.incarnation.to_string(),
        stale: args.stale,
    };
    let mut text =
        format!("{}: {} bytes, revision {}, epoch {}", json.file, json.bytes, json.revision, json.epoch);
    if args.stale {
        text.push_str(&format!(
            "\nit may be STALE: what the service has decided after revision {} is not in it",
            json.revision
        ));
    }
    console.result(text, &json)?;
    Ok(Exit::OK)
}
