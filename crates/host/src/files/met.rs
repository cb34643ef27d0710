//! Whom a blank node has met: nodes of the cluster that it was added to, kept until it has their log.
//!
//! A node that is added and stops before it has anything on disk knows nobody when it starts again. If it was removed meanwhile, nobody dials it
//! either, and it would wait for ever. So it dials those it has met, and hears how it stands. What cannot be read here is
//! nothing to go by, and no harm: this is a hint.

use std::path::Path;

use leasehold_core::protocol::{MemberId, check_address};

use super::FilesError;
use super::whole::{open_line, sealed_line, write_whole};

const FILE: &str = "met";
const WORD: &str = "leasehold-met";
const VERSION: &str = "1";
/// A cluster has no more members; the newest are kept.
const MOST: usize = leasehold_core::cluster::MAX_MEMBERS;

/// The nodes that were met, oldest first.
pub(crate) fn met_before(directory: &Path) -> Vec<(MemberId, String)> {
    let text = std::fs::read_to_string(directory.join(FILE)).unwrap_or_default();
    text.split_inclusive('\n').filter_map(read).collect()
}

/// Keeps a node that was met.
///
/// # Errors
/// When it cannot be written.
pub(crate) fn keep_met(directory: &Path, id: MemberId, address: &str) -> Result<(), FilesError> {
    let mut met = met_before(directory);
    if met.iter().any(|(known, place)| *known == id && place == address) {
        return Ok(());
    }
    met.retain(|(known, _)| *known != id);
    met.push((id, address.to_owned()));
    let newest = met.len().saturating_sub(MOST);
    let lines: String = met[newest..].iter().map(|(id, address)| line(*id, address)).collect();
    write_whole(&directory.join(FILE), lines.as_bytes())
}

fn line(id: MemberId, address: &str) -> String {
    sealed_line(&format!("{WORD} {VERSION} {id} {address}"))
}

fn read(line: &str) -> Option<(MemberId, String)> {
    let words = open_line(line)?;
    let [WORD, VERSION, id, address] = words[..] else { return None };
    let id = u64::from_str_radix(id, 16).ok().filter(|id| *id != 0)?;
    check_address(address).ok()?;
    Some((MemberId(id), address.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_was_met_is_known_again_at_the_last_address() {
        let directory = tempfile::tempdir().unwrap();
        let at = directory.path();
        assert_eq!(met_before(at), []);
        keep_met(at, MemberId(7), "h:1").unwrap();
        keep_met(at, MemberId(8), "h:2").unwrap();
        keep_met(at, MemberId(7), "h:3").unwrap();
        keep_met(at, MemberId(7), "h:3").unwrap();
        assert_eq!(met_before(at), [(MemberId(8), "h:2".to_owned()), (MemberId(7), "h:3".to_owned())]);
        for id in 100..200 {
            keep_met(at, MemberId(id), "h:4").unwrap();
        }
        assert_eq!(met_before(at).len(), MOST);
    }

    #[test]
    fn what_is_damaged_is_left_out() {
        let directory = tempfile::tempdir().unwrap();
        let good = line(MemberId(7), "h:1");
        for at in 0..good.len() {
            let mut bad = good.clone().into_bytes();
            bad[at] ^= 1;
            std::fs::write(directory.path().join(FILE), bad).unwrap();
            assert_eq!(met_before(directory.path()), [], "byte {at}");
        }
    }
}
