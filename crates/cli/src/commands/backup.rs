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

#[derive(Serialize)]
struct SavedJson {
    file: String,
    bytes: usize,
    revision: u64,
    epoch: u16,
    incarnation: String,
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
    let bytes = http::get_from_any(nodes, PATH, timeout).map_err(Trouble::Files)?;
    let saved = save_backup(&args.file, &bytes).map_err(|error| Trouble::Files(error.to_string()))?;
    let json = SavedJson {
        file: args.file.display().to_string(),
        bytes: bytes.len(),
        revision: saved.snapshot.index,
        epoch: saved.epoch,
        incarnation: saved.incarnation.to_string(),
    };
    let text =
        format!("{}: {} bytes, revision {}, epoch {}", json.file, json.bytes, json.revision, json.epoch);
    console.result(text, &json)?;
    Ok(Exit::OK)
}
