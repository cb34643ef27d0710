//! Whether all nodes have come to the same: the backups of all of them, of the same entry, are equal to the last byte behind the list
//! of voters, and that list has the same voters. Their order in it means nothing, and raft keeps it as it came about on each node.
//!
//! A backup has the table, the members and the hash over all outcomes so far, so nodes whose backups are equal have applied the
//! same log to the same end. It is compared when clients are gone: then nothing is proposed any more, and all come to one entry.

use std::path::Path;
use std::time::Duration;

use anyhow::{Result, bail, ensure};

use crate::cluster::{Cluster, until};
use crate::numbers;

/// How long one node may take to give a backup.
const PATIENCE: Duration = Duration::from_secs(5);
/// Where the head of a backup has its last entry and its term, and where the body begins; the format is part of the reference.
const ENTRY: std::ops::Range<usize> = 32..48;
const BODY: usize = 64;

/// The backup of one node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replica {
    /// Whose.
    pub name: String,
    /// The file.
    pub bytes: Vec<u8>,
}

impl Replica {
    fn entry(&self) -> &[u8] {
        self.bytes.get(ENTRY).unwrap_or_default()
    }

    fn revision(&self) -> u64 {
        let bytes = self.entry().first_chunk::<8>().copied().unwrap_or_default();
        u64::from_le_bytes(bytes)
    }
}

/// What came of a comparison.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Comparison {
    /// How many nodes were compared.
    pub compared: usize,
    /// In what they differ.
    pub violations: Vec<String>,
    /// How many differ from the first in the order of their voters.
    pub orders: usize,
}

/// Waits until all nodes that are not idle are at one entry and compares them. Backups that differ are kept in `keep`.
pub fn compare(cluster: &Cluster, patience: Duration, keep: &Path) -> Comparison {
    let replicas = until(patience, Duration::from_millis(100), || {
        let replicas = collect(cluster)?;
        let places = replicas.iter().map(|one| format!("{} at {}", one.name, one.revision()));
        ensure!(
            replicas.iter().all(|replica| replica.entry() == replicas[0].entry()),
            "nodes do not come to one entry: {}",
            places.collect::<Vec<_>>().join(", ")
        );
        Ok(replicas)
    });
    let replicas = match replicas {
        Ok(replicas) => replicas,
        Err(error) => return Comparison { compared: 0, violations: vec![format!("{error:#}")], orders: 0 },
    };
    let violations = differences(&replicas);
    if !violations.is_empty() {
        for replica in &replicas {
            // They are for a look afterwards; the verdict does not need them.
            let _ = std::fs::write(keep.join(format!("{}.backup", replica.name)), &replica.bytes);
        }
    }
    let orders = replicas.iter().filter(|other| other.bytes != replicas[0].bytes).count();
    Comparison { compared: replicas.len(), violations, orders }
}

fn collect(cluster: &Cluster) -> Result<Vec<Replica>> {
    let nodes = cluster.nodes.iter().filter(|node| !node.idle);
    let replicas = nodes.map(|node| {
        let (status, bytes) = numbers::get(&node.address, "/v1/backup", PATIENCE)?;
        if status != 200 || bytes.len() < BODY {
            bail!("{} gives no backup: status {status}, {} bytes", node.name, bytes.len());
        }
        Ok(Replica { name: node.name.clone(), bytes })
    });
    let replicas: Vec<Replica> = replicas.collect::<Result<_>>()?;
    if replicas.is_empty() {
        bail!("no node is to be compared");
    }
    Ok(replicas)
}

/// In what replicas of one entry differ.
fn differences(replicas: &[Replica]) -> Vec<String> {
    let first = &replicas[0];
    let mut found = Vec::new();
    for other in &replicas[1..] {
        let (Some((voters, rest)), Some((other_voters, other_rest))) = (split(first), split(other)) else {
            found.push(format!("the backup of {} or of {} is not understood", first.name, other.name));
            continue;
        };
        let place = rest.iter().zip(other_rest).position(|(one, other)| one != other);
        let place =
            place.or_else(|| (rest.len() != other_rest.len()).then(|| rest.len().min(other_rest.len())));
        let at =
            format!("at entry {} the states of {} and {} differ", first.revision(), first.name, other.name);
        if voters != other_voters {
            found.push(format!("{at} in who decides: {voters:?} and {other_voters:?}"));
        }
        if let Some(place) = place {
            found.push(format!("{at} from byte {place} behind the voters on"));
        }
    }
    found
}

/// Who decides, each list in order, and everything behind it. The body begins with its version; then come four lists of ids (voters,
/// learners, outgoing voters, next learners), each with its length before it, all as numbers of seven bits a byte.
fn split(replica: &Replica) -> Option<([Vec<u64>; 4], &[u8])> {
    let body = replica.bytes.get(BODY + 1..)?;
    let (mut lists, rest): ([Vec<u64>; 4], _) = postcard::take_from_bytes(body).ok()?;
    lists.iter_mut().for_each(|ids| ids.sort_unstable());
    Some((lists, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Voters below 128 and one byte behind them.
    fn replica(name: &str, voters: [u8; 2], last: u8) -> Replica {
        let mut bytes = vec![0; BODY];
        bytes[32] = 7;
        bytes.extend([3, 2, voters[0], voters[1], 0, 0, 0, last]);
        Replica { name: name.to_owned(), bytes }
    }

    #[test]
    fn one_byte_that_differs_is_found() {
        assert_eq!(differences(&[replica("n1", [1, 2], 1), replica("n2", [1, 2], 1)]), Vec::<String>::new());
        let found =
            differences(&[replica("n1", [1, 2], 1), replica("n2", [1, 2], 1), replica("n3", [1, 2], 2)]);
        assert_eq!(found.len(), 1);
        assert!(found[0].contains("entry 7") && found[0].contains("n3"), "{found:?}");
    }

    #[test]
    fn other_voters_are_found_and_another_order_is_none() {
        assert_eq!(differences(&[replica("n1", [1, 2], 1), replica("n2", [2, 1], 1)]), Vec::<String>::new());
        assert_eq!(differences(&[replica("n1", [1, 2], 1), replica("n2", [1, 3], 1)]).len(), 1);
    }

    #[test]
    fn a_backup_that_ends_early_or_goes_on_is_found() {
        let (whole, mut short, mut long) =
            (replica("n1", [1, 2], 1), replica("n2", [1, 2], 1), replica("n3", [1, 2], 1));
        short.bytes.truncate(BODY + 3);
        long.bytes.push(0);
        assert_eq!(differences(&[whole.clone(), short]).len(), 1);
        assert_eq!(differences(&[whole, long]).len(), 1);
    }
}
