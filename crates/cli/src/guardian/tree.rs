//! The descendants of a process, read from /proc, and signals to them.
//!
//! Promises not to signal a stranger: a process is first pinned by a pidfd, then checked to be a child of the
//! one it was found under, and only then signalled through the pidfd, so a number that was reused in between
//! is never hit. Does not promise to see a process that is being forked while it looks: a caller that
//! must reach all of them looks again until the kernel says that it has no child left.

use std::collections::{HashMap, HashSet, VecDeque};
use std::fs;
use std::os::fd::OwnedFd;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// What /proc says about one process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stat {
    /// `R`, `S`, `T`, `Z` and so on.
    pub state: u8,
    /// Its parent, if it has one in this pid namespace.
    pub parent: Option<Pid>,
    /// Its process group.
    pub group: Option<Pid>,
}

impl Stat {
    /// Reads it; `None` when there is no such process.
    pub fn read(pid: Pid) -> Option<Self> {
        parse(&fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?)
    }

    /// Whether it is stopped by a signal.
    pub fn is_stopped(&self) -> bool {
        self.state == b'T'
    }

    /// Whether a debugger holds it: it runs when that says so.
    pub fn is_traced(&self) -> bool {
        self.state == b't'
    }

    /// Whether it is dead, reaped or not.
    pub fn is_dead(&self) -> bool {
        matches!(self.state, b'Z' | b'X')
    }
}

/// The direct children of `parent`, dead ones that are not reaped included.
pub fn children(parent: Pid) -> Vec<Pid> {
    children_of()(parent)
}

/// Finds the children of one process after the other, each once.
fn children_of() -> impl FnMut(Pid) -> Vec<Pid> {
    let mut by_scan = if has_children_files() { None } else { Some(parents_of_all()) };
    move |parent| match &mut by_scan {
        Some(by_scan) => by_scan.remove(&parent).unwrap_or_default(),
        None => listed_children(parent),
    }
}

/// Sends `signal` to every living descendant of `root` for which `wanted` says so, parents before their children. `root` itself is
/// spared. Says how many heard it.
pub fn signal_descendants(root: Pid, signal: Signal, mut wanted: impl FnMut(Pid, &Stat) -> bool) -> usize {
    let mut heard = 0;
    each_descendant(root, |_, pid, pinned, stat| {
        // One that cannot be signalled is gone already, or belongs to another user now: neither can be helped.
        if !stat.is_dead() && wanted(pid, stat) && pidfd_send_signal(pinned, signal).is_ok() {
            heard += 1;
        }
    });
    heard
}

/// The same, children before their parents: for a tree that stands still, because who appears meanwhile is not told.
pub fn signal_from_below(root: Pid, signal: Signal, mut wanted: impl FnMut(Pid, &Stat) -> bool) {
    let mut found = Vec::new();
    each_descendant(root, |parent, pid, _, _| found.push((parent, pid)));
    for (parent, pid) in found.into_iter().rev() {
        let Some((pinned, stat)) = pin(root, parent, pid) else { continue };
        if !stat.is_dead() && wanted(pid, &stat) {
            let _ = pidfd_send_signal(&pinned, signal);
        }
    }
}

/// Looks at every descendant of `root`, parents before their children: its parent, itself, pinned, and what is known of it.
fn each_descendant(root: Pid, mut look: impl FnMut(Pid, Pid, &OwnedFd, &Stat)) {
    let mut children = children_of();
    let mut seen = HashSet::from([root]);
    let mut found: VecDeque<(Pid, Pid)> = children(root).into_iter().map(|child| (root, child)).collect();
    while let Some((parent, pid)) = found.pop_front() {
        if !seen.insert(pid) {
            continue;
        }
        let Some((pinned, stat)) = pin(root, parent, pid) else { continue };
        // Listed before the signal: what it leaves behind falls to the root and is found next time at the latest.
        found.extend(children(pid).into_iter().map(|child| (pid, child)));
        look(parent, pid, &pinned, &stat);
    }
}

/// Holds on to a process, so that its number cannot become another's, if it is the child it was found as.
fn pin(root: Pid, parent: Pid, pid: Pid) -> Option<(OwnedFd, Stat)> {
    let pinned = pidfd_open(pid, PidfdFlags::empty()).ok()?;
    let stat = Stat::read(pid)?;
    // One that lost its parent since it was listed has fallen to the root, a subreaper.
    (stat.parent == Some(parent) || stat.parent == Some(root)).then_some((pinned, stat))
}

/// Whether the kernel lists children per thread (CONFIG_PROC_CHILDREN). Without it every process is looked at.
fn has_children_files() -> bool {
    fs::exists("/proc/thread-self/children").unwrap_or(false)
}

fn listed_children(parent: Pid) -> Vec<Pid> {
    let Ok(threads) = fs::read_dir(format!("/proc/{}/task", parent.as_raw_nonzero())) else {
        return Vec::new();
    };
    let mut children = Vec::new();
    for thread in threads.flatten() {
        if let Ok(list) = fs::read_to_string(thread.path().join("children")) {
            children
                .extend(list.split_ascii_whitespace().filter_map(|word| Pid::from_raw(word.parse().ok()?)));
        }
    }
    children
}

fn parents_of_all() -> HashMap<Pid, Vec<Pid>> {
    let mut children: HashMap<Pid, Vec<Pid>> = HashMap::new();
    let Ok(entries) = fs::read_dir("/proc") else { return children };
    for entry in entries.flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| Pid::from_raw(name.parse().ok()?)) else {
            continue;
        };
        if let Some(parent) = Stat::read(pid).and_then(|stat| stat.parent) {
            children.entry(parent).or_default().push(pid);
        }
    }
    children
}

fn parse(line: &str) -> Option<Stat> {
    // The name in parentheses may itself contain spaces and parentheses; the last one closes it.
    let (_, fields) = line.rsplit_once(") ")?;
    let mut fields = fields.split_ascii_whitespace();
    let state = *fields.next()?.as_bytes().first()?;
    // A process that is just being reaped shows -1 where it had a group.
    let mut pid = || -> Option<Option<Pid>> {
        let number: i32 = fields.next()?.parse().ok()?;
        Some(Pid::from_raw(number.max(0)))
    };
    Some(Stat { state, parent: pid()?, group: pid()? })
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use rustix::process::getpid;

    use super::*;

    fn pid(raw: i32) -> Option<Pid> {
        Pid::from_raw(raw)
    }

    #[test]
    fn a_name_with_parentheses_does_not_confuse_the_parser() {
        let stat = parse("42 (a) S 1 (b)) T 7 9 9 0 -1").unwrap();
        assert_eq!(stat, Stat { state: b'T', parent: pid(7), group: pid(9) });
        assert!(parse("42 (cut").is_none());
    }

    #[test]
    fn a_process_that_is_just_being_reaped_has_no_group() {
        assert_eq!(parse("42 (a) X 0 -1 -1 0").unwrap(), Stat { state: b'X', parent: None, group: None });
    }

    #[test]
    fn a_child_is_found_by_its_file_and_by_looking_at_all() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let raw = i32::try_from(child.id()).unwrap();
        assert!(listed_children(getpid()).contains(&pid(raw).unwrap()));
        assert!(parents_of_all()[&getpid()].contains(&pid(raw).unwrap()));
        drop(child.stdin.take());
        child.wait().unwrap();
        assert!(!children(getpid()).contains(&pid(raw).unwrap()));
    }

    #[test]
    fn the_signal_reaches_a_grandchild_in_another_session() {
        let mut child =
            Command::new("sh").args(["-c", "setsid sleep 60 & wait"]).stdin(Stdio::null()).spawn().unwrap();
        let root = Pid::from_child(&child);
        let grandchild = loop {
            if let Some(found) = children(root).first() {
                break *found;
            }
            std::thread::yield_now();
        };
        signal_descendants(root, Signal::KILL, |_, _| true);
        // The shell is the root and is spared; it ends by itself because its child did.
        child.wait().unwrap();
        assert!(Stat::read(grandchild).is_none());
    }
}
