//! Nodes of another life of a cluster: of the one that a state was restored or recovered from, or of the one that it went on in.
//!
//! Both grant, and neither can stop the other: a node cannot know which of the two its operator wants. So it says what it has heard.

use std::sync::atomic::Ordering;

use leasehold_wire::PeerHello;

use super::Shared;

/// What to do when the other one is of the older life.
const THEY_ARE_OLDER: &str = "a node of an OLDER life of this cluster is running: this one was restored or recovered after it. While both run, both \
     may grant the same names. Stop that node and all others of its life, and do not start them again with these directories";
/// What to do when this one is.
const THIS_IS_OLDER: &str = "this node is of an OLDER life of its cluster: the other one was restored or recovered after it. While both run, both may \
     grant the same names. Stop this node and all others of its life, and do not start them again with these directories";
/// What to do when the epochs do not tell.
const UNKNOWN: &str = "a node of another life of this cluster is running, and their epochs do not tell which is the older one. While both run, both \
     may grant the same names. Find out which of the two goes on (`leasehold cluster status` at each), and stop all nodes of the other";

/// Says so if a node that was not let in, or did not let this one in, is of another life.
pub(super) fn compare(shared: &Shared, theirs: &PeerHello) {
    let ours = shared.membership();
    let differ = theirs.incarnation.is_known()
        && ours.incarnation.is_known()
        && theirs.incarnation != ours.incarnation;
    let Some(words) = differ.then(|| judge(ours.epoch, theirs.epoch)).flatten() else { return };
    shared.other_life_contacts.fetch_add(1, Ordering::Relaxed);
    if shared.other_lives.say(theirs.from, leasehold_clock::read()).is_some() {
        let (node, address) = (&theirs.name, &theirs.address);
        let epoch_there = theirs.epoch.map_or_else(|| "unknown".to_owned(), |epoch| epoch.to_string());
        tracing::warn!(node, address, epoch_there, epoch_here = ours.epoch, "{words}");
    }
}

/// What is to be said. Two that were never restored are no lives of one cluster.
fn judge(ours: u16, theirs: Option<u16>) -> Option<&'static str> {
    match theirs {
        None | Some(0) if ours == 0 => None,
        Some(theirs) if theirs < ours => Some(THEY_ARE_OLDER),
        Some(theirs) if theirs > ours => Some(THIS_IS_OLDER),
        _ => Some(UNKNOWN),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smaller_epoch_is_the_older_life() {
        assert_eq!(judge(1, Some(0)), Some(THEY_ARE_OLDER));
        assert_eq!(judge(0, Some(1)), Some(THIS_IS_OLDER));
        assert_eq!((judge(1, Some(1)), judge(1, None)), (Some(UNKNOWN), Some(UNKNOWN)));
        assert_eq!((judge(0, Some(0)), judge(0, None)), (None, None));
    }
}
