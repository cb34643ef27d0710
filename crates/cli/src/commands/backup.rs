//! `backup`: the state of a running service, as a file.

use leasehold::{Error, Unreachable};
use leasehold_host::save_backup;
use serde::Serialize;

use super::nodes::{Looks, Nodes};
use crate::args::BackupArgs;
use crate::console::Console;
use crate::exit::Exit;
use crate::place::Place;
use crate::trouble::Trouble;

const PATH: &str = "/v1/backup";
const PATH_STALE: &str = "/v1/backup?age=any";

/// A node whose state was not taken.
#[derive(Serialize)]
struct Other {
    asked: String,
    epoch: Option<u16>,
    revision: Option<u64>,
    why: Option<String>,
}

/// Where a state comes from that may be stale, and how the others stood.
#[derive(Serialize)]
struct Taken {
    from: String,
    others: Vec<Other>,
}

pub(super) async fn run(console: &Console, place: &Place, args: &BackupArgs) -> Result<Exit, Trouble> {
    if !place.url().starts_with("leasehold://") {
        return Err(Trouble::Misuse(format!(
            "{} is a directory of this machine, and backups are of services: name one with --store leasehold://HOST:PORT",
            place.url()
        )));
    }
    let nodes = Nodes::of(place)?;
    let (state, taken) = match args.stale {
        true => stale(&nodes).await.map(|(state, taken)| (state, Some(taken)))?,
        false => (nodes.get(PATH).await.map_err(not_current)?, None),
    };
    let saved = save_backup(&args.file, &state).map_err(|error| Trouble::Files(error.to_string()))?;
    let (file, bytes) = (args.file.display().to_string(), state.len());
    let (revision, epoch, incarnation) = (saved.snapshot.index, saved.epoch, saved.incarnation.to_string());
    let mut text = format!("{file}: {bytes} bytes, revision {revision}, epoch {epoch}");
    text.extend(taken.as_ref().map(|taken| in_words(revision, taken)));
    let stale = args.stale;
    let json = object! { file, bytes, revision, epoch, incarnation, stale, #[serde(flatten)] taken };
    console.result(text, &json)
}

/// Nobody gives a backup that is surely whole: says how to get one that may not be.
fn not_current(trouble: Trouble) -> Trouble {
    let leaderless = matches!(&trouble, Trouble::Store(Error::Unreachable(Unreachable::NoLeader { .. })));
    let old = trouble.code().0 == "unavailable";
    if leaderless || old {
        Trouble::answered("unavailable", format!("{trouble}; --stale takes what a node has, however old"))
    } else {
        trouble
    }
}

/// What the node has that is furthest in the latest life. The next one is asked if it does not give it.
async fn stale(nodes: &Nodes) -> Result<(Vec<u8>, Taken), Trouble> {
    let looks = nodes.look_further().await;
    let mut furthest = looks.best_first();
    furthest.sort_by_key(|(_, local)| std::cmp::Reverse(local.applied.0));
    let (mut last, mut tried) = (None, Vec::new());
    for (address, _) in furthest {
        match nodes.get_from(address, PATH_STALE).await {
            Ok(state) => {
                let others = others(&looks, address, &tried);
                return Ok((state, Taken { from: address.to_owned(), others }));
            }
            Err(trouble) => {
                tried.push((address, trouble.to_string()));
                last = Some(trouble);
            }
        }
    }
    Err(last.unwrap_or_else(|| {
        let why = looks.troubles();
        let none = "none of these nodes has a state to give";
        Trouble::answered(
            "unavailable",
            if why.is_empty() { none.to_owned() } else { format!("{none}: {why}") },
        )
    }))
}

fn others(looks: &Looks, from: &str, tried: &[(&str, String)]) -> Vec<Other> {
    let rest = looks.0.iter().filter(|look| look.asked != from);
    rest.map(|look| {
        let known = look.found.as_ref().ok();
        let gave_nothing = tried.iter().find(|(address, _)| *address == look.asked);
        Other {
            asked: look.asked.clone(),
            epoch: known.map(|local| local.epoch),
            revision: known.map(|local| local.applied.0),
            why: look.found.as_ref().err().cloned().or(gave_nothing.map(|(_, why)| why.clone())),
        }
    })
    .collect()
}

fn in_words(revision: u64, Taken { from, others }: &Taken) -> String {
    let mut text = format!(
        "\nit may be STALE: what the service has decided after revision {revision} is not in it\ntaken from {from}, the furthest node that answers"
    );
    for other in others {
        let how = match (other.epoch, other.revision, &other.why) {
            (_, _, Some(why)) => format!("gave nothing: {why}"),
            (Some(epoch), Some(revision), None) => format!("has revision {revision}, epoch {epoch}"),
            _ => "gave nothing".to_owned(),
        };
        text.push_str(&format!("\n{} {how}", other.asked));
    }
    text
}
