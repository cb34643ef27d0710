//! Reads a directory and decides what is in it, without changing anything.

use leasehold_core::planted::{Bug, planted};

use crate::block::{BLOCK_BYTES, SegmentNumber, is_zero};
use crate::disk::Disk;
use crate::error::{Damage, OpenError, while_opening};
use crate::log::{Identity, blocks_in};
use crate::record::{Entry, Index, Item, SnapshotKind};
use crate::segment::{Chain, Contents, Name, Reader, parse_name, segment_name, snapshot_name};
use crate::snapshot::load_snapshot;
use crate::state::{Bounds, State};

/// Everything the batches read so far say.
#[derive(Debug)]
pub(crate) struct Replay {
    pub(crate) state: State,
    /// Live entries, without gaps.
    pub(crate) entries: Vec<Entry>,
    pub(crate) segments: Vec<(SegmentNumber, u64, Contents)>,
    pub(crate) lock_inode: Option<u64>,
    identity: Option<Identity>,
    /// The successor named by the last batch, if that was a close.
    closed: Option<SegmentNumber>,
    begun: bool,
}

/// What a directory holds.
#[derive(Debug)]
pub(crate) enum Found {
    /// Nothing that was ever answered for. The names are leftovers.
    New {
        leftovers: Vec<String>,
    },
    Log(Box<Tail>),
}

/// The end of a log, where writing goes on.
#[derive(Debug)]
pub(crate) struct Tail {
    pub(crate) segment: SegmentNumber,
    pub(crate) bytes: Vec<u8>,
    pub(crate) contents: Contents,
    pub(crate) blocks: u32,
    /// A segment without head behind it, with its blocks: none if it cannot be a whole one.
    pub(crate) headless: Option<(SegmentNumber, u32)>,
    /// Whether the headless one has been entered: it must not be removed.
    pub(crate) closed: bool,
    pub(crate) snapshot: Option<Vec<u8>>,
    /// Files of an interrupted removal, oldest first.
    pub(crate) leftovers: Vec<String>,
}

impl Replay {
    pub(crate) fn new(identity: Option<Identity>) -> Self {
        Self {
            state: State::new(),
            entries: Vec::new(),
            segments: Vec::new(),
            lock_inode: None,
            identity,
            closed: None,
            begun: false,
        }
    }

    /// Reads the directory; after an error, `self` holds what was good before it.
    pub(crate) fn scan<D: Disk>(&mut self, disk: &mut D) -> Result<Found, OpenError> {
        let names = disk.list().map_err(while_opening("listing", "the directory"))?;
        let (mut segments, mut snapshots, mut leftovers) = (Vec::new(), Vec::new(), Vec::new());
        for name in names {
            match parse_name(&name) {
                Name::Segment(number) => segments.push(number),
                Name::Snapshot(number) => snapshots.push(number),
                Name::Aside => leftovers.push(name),
                Name::Other => {}
            }
        }
        segments.sort_unstable();
        snapshots.sort_unstable();

        let headless = match segments.last() {
            Some(&highest) => headless_length(disk, highest)?.map(|len| (highest, len)),
            None => None,
        };
        if headless.is_some() {
            segments.pop();
        }
        let Some(&last) = segments.last() else {
            if let Some(&snapshot) = snapshots.first() {
                return damage(snapshot_name(snapshot), 0, "a snapshot without a log".to_owned());
            }
            return match headless {
                Some((number, _)) if number != SegmentNumber::FIRST => missing(SegmentNumber(number.0 - 1)),
                _ => {
                    leftovers.extend(headless.map(|(number, _)| segment_name(number)));
                    Ok(Found::New { leftovers })
                }
            };
        };
        if headless.is_some_and(|(number, _)| number != last.next()) {
            return missing(last.next());
        }

        let first_at =
            (1..segments.len()).rev().find(|&i| segments[i] != segments[i - 1].next()).unwrap_or(0);
        let mut chain = None;
        let mut tail = None;
        for &number in &segments[first_at..] {
            let bytes = read_all(disk, &segment_name(number))?;
            let contents = self.segment(number, &bytes, number == last, chain)?;
            chain = Some(contents.chain);
            tail = Some((bytes, contents));
        }
        let (bytes, contents) = tail.expect("the run of segments has at least the last one");
        let Some(blocks) = blocks_in(bytes.len() as u64) else {
            return damage(segment_name(last), bytes.len() as u64, "shorter than any segment".to_owned());
        };
        let headless = headless.map(|(number, len)| (number, blocks_in(len).unwrap_or(0)));
        if self.closed.is_some() && headless.is_none_or(|(_, blocks)| blocks == 0) {
            return missing(last.next());
        }
        let snapshot = self.finish(disk, segments[first_at])?;

        let keep_from = self.state.keep_from;
        leftovers.extend(
            segments.iter().filter(|number| **number < keep_from).map(|number| segment_name(*number)),
        );
        let counts = self.state.snapshot.map(|meta| meta.file);
        leftovers.extend(
            snapshots.iter().filter(|number| Some(**number) != counts).map(|number| snapshot_name(*number)),
        );
        let closed = self.closed.is_some();
        Ok(Found::Log(Box::new(Tail {
            segment: last,
            bytes,
            contents,
            blocks,
            headless,
            closed,
            snapshot,
            leftovers,
        })))
    }

    fn segment(
        &mut self,
        number: SegmentNumber,
        bytes: &[u8],
        is_last: bool,
        chain: Option<Chain>,
    ) -> Result<Contents, OpenError> {
        let file = segment_name(number);
        let reader = Reader { file: &file, bytes, number, is_last };
        let mut at_head = true;
        let contents = reader.read(chain, |item, offset| {
            let is_head = matches!(item, Item::Head(_));
            if is_head != at_head || is_head != (offset == 0) {
                return damage(file.clone(), offset, "a head in the middle, or none at the start".to_owned());
            }
            at_head = false;
            self.item(item, number, &file, offset, bytes.len() as u64)
        })?;
        if at_head {
            return damage(file, 0, "no good head".to_owned());
        }
        if !is_last && self.closed != Some(number.next()) {
            let offset = u64::from(contents.end) * BLOCK_BYTES as u64;
            return damage(file, offset, "not closed, with a later segment behind it".to_owned());
        }
        self.segments.push((number, bytes.len() as u64, contents));
        Ok(contents)
    }

    fn item(
        &mut self,
        item: Item,
        segment: SegmentNumber,
        file: &str,
        offset: u64,
        file_len: u64,
    ) -> Result<(), OpenError> {
        let wrong = |what: String| damage(file.to_owned(), offset, what);
        // Everything below it is removed when the log is opened, and the segment that says so must not be.
        let keeps_nothing =
            |keep_from: SegmentNumber| format!("segments from {keep_from} on are kept, and not this one");
        let out_of = |bounds: Bounds| format!("an index outside {} to {}", bounds.lowest, bounds.highest);
        if self.closed.is_some() && !matches!(item, Item::Head(_)) {
            return wrong("a batch after the close".to_owned());
        }
        match item {
            Item::Head(head) => {
                if let Some(identity) =
                    self.identity.filter(|identity| identity.lock_inode != head.lock_inode)
                {
                    return Err(OpenError::CopiedDirectory {
                        file: file.to_owned(),
                        recorded: head.lock_inode,
                        found: identity.lock_inode,
                    });
                }
                if u64::from(head.blocks) * BLOCK_BYTES as u64 != file_len {
                    let what =
                        format!("the file has {file_len} bytes, but its head names {} blocks", head.blocks);
                    return wrong(what);
                }
                if head.keep_from > segment {
                    return wrong(keeps_nothing(head.keep_from));
                }
                if head.next_index <= head.snapshot.map_or(Index(0), |meta| meta.index) {
                    return wrong("a head whose next entry is in its snapshot".to_owned());
                }
                if !self.begun {
                    self.state = State::from_head(&head);
                } else if !self.state.agrees_with(&head) {
                    return wrong("a head that does not repeat what came before".to_owned());
                }
                (self.begun, self.closed, self.lock_inode) = (true, None, Some(head.lock_inode));
            }
            Item::HardState(hard_state) => self.state.hard_state = hard_state,
            Item::Entry(entry) => {
                if let Err(bounds) = self.state.add_entry(entry.index, segment) {
                    return wrong(out_of(bounds));
                }
                while self.entries.last().is_some_and(|last| last.index >= entry.index) {
                    self.entries.pop();
                }
                self.entries.push(entry);
            }
            Item::Snapshot { meta, keep_from } => {
                if keep_from > segment {
                    return wrong(keeps_nothing(keep_from));
                }
                if let Err(bounds) = self.state.add_snapshot(meta, keep_from) {
                    return wrong(out_of(bounds));
                }
                match meta.kind {
                    SnapshotKind::Installed if !planted(Bug::InstalledKeepsEntries) => {
                        self.entries.clear();
                    }
                    _ => {
                        let covered = self.entries.partition_point(|entry| entry.index <= meta.index);
                        self.entries.drain(..covered);
                    }
                }
            }
            Item::Close { next } => self.closed = Some(next),
        }
        Ok(())
    }

    /// Checks what can be checked only at the end: nothing that counts is missing.
    fn finish<D: Disk>(
        &mut self,
        disk: &mut D,
        first_read: SegmentNumber,
    ) -> Result<Option<Vec<u8>>, OpenError> {
        if first_read > self.state.keep_from {
            return missing(self.state.keep_from);
        }
        let lowest = self.state.entry_bounds().lowest;
        let first = self.entries.first().map_or(self.state.next_index, |entry| entry.index);
        if first != lowest {
            let what = format!("entries {lowest} to {first} are missing");
            return damage(segment_name(first_read), 0, what);
        }
        self.state.snapshot.map(|meta| load_snapshot(disk, &meta)).transpose()
    }
}

/// The length of a segment that is all zero; a segment that begins with zeros and goes on otherwise is damage.
fn headless_length<D: Disk>(disk: &mut D, number: SegmentNumber) -> Result<Option<u64>, OpenError> {
    let name = segment_name(number);
    let len = disk.len(&name).map_err(while_opening("measuring", &name))?;
    let mut first = vec![0; usize::try_from(len).map_or(BLOCK_BYTES, |len| len.min(BLOCK_BYTES))];
    disk.read_at(&name, 0, &mut first).map_err(while_opening("reading", &name))?;
    if !is_zero(&first) {
        return Ok(None);
    }
    let bytes = read_all(disk, &name)?;
    match bytes.chunks(BLOCK_BYTES).position(|block| !is_zero(block)) {
        None => Ok(Some(len)),
        Some(_) => damage(name, 0, "no head, but blocks behind it".to_owned()),
    }
}

fn read_all<D: Disk>(disk: &mut D, name: &str) -> Result<Vec<u8>, OpenError> {
    let len = disk.len(name).map_err(while_opening("measuring", name))?;
    let Ok(size) = usize::try_from(len) else {
        return damage(name.to_owned(), 0, format!("{len} bytes are more than memory can hold"));
    };
    let mut bytes = vec![0; size];
    disk.read_at(name, 0, &mut bytes).map_err(while_opening("reading", name))?;
    Ok(bytes)
}

fn missing<T>(number: SegmentNumber) -> Result<T, OpenError> {
    damage(segment_name(number), 0, "the file is missing, or shorter than any segment".to_owned())
}

fn damage<T>(file: String, offset: u64, what: String) -> Result<T, OpenError> {
    Err(Damage { file, offset, what }.into())
}
