//! The disk: one write after the other, each synced before it is reported.
//!
//! A thread writes, so that the loop never waits for a disk that takes its time. A small write that is all there is to do is written by the loop
//! itself while the disk is quick: waking the thread, and being woken by it, takes longer than such a write. What would make that a bad bargain
//! is left to the thread: a disk that was slow lately, one that has no space, a snapshot, and whatever else is under way.

mod writer;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard};

use leasehold_node::{LogWrite, SavedSnapshot};
use leasehold_wal::Wal;

use crate::disk::FileDisk;
use crate::inbox::Inbox;
pub(super) use writer::SyncTimes;
use writer::{Ended, SPACE_INTERVAL, Writer};

/// What reaches the disk's thread.
enum ToDisk {
    Write(LogWrite),
    Snapshot {
        index: u64,
        term: u64,
        bytes: Vec<u8>,
    },
    /// The loop has written, and there is something to be made or looked for.
    Look,
}

/// A write with at most so many bytes of entries is small: it holds a few commands.
const SMALL_BYTES: usize = 1_024;
/// The loop's way to the disk. The thread ends when this is dropped.
pub(super) struct Disk {
    jobs: Sender<ToDisk>,
    writer: Arc<Mutex<Writer>>,
    /// Jobs that the thread has not done yet.
    queued: Arc<AtomicUsize>,
}

/// The thread's side.
pub(super) struct Jobs {
    jobs: Receiver<ToDisk>,
    writer: Arc<Mutex<Writer>>,
    queued: Arc<AtomicUsize>,
}

/// A disk that reports to a loop.
pub(super) fn disk(wal: Wal<FileDisk>, to_loop: Inbox, times: SyncTimes) -> (Disk, Jobs) {
    let (sender, jobs) = std::sync::mpsc::channel();
    let writer = Arc::new(Mutex::new(Writer::new(wal, to_loop, times)));
    let queued = Arc::new(AtomicUsize::new(0));
    let disk = Disk { jobs: sender, writer: Arc::clone(&writer), queued: Arc::clone(&queued) };
    (disk, Jobs { jobs, writer, queued })
}

impl Disk {
    /// Writes on the disk's thread.
    pub(super) fn write(&self, write: LogWrite) {
        self.hand_over(ToDisk::Write(write));
    }

    /// Saves a snapshot on the disk's thread.
    pub(super) fn save(&self, snapshot: SavedSnapshot) {
        let SavedSnapshot { index, term, bytes } = snapshot;
        self.hand_over(ToDisk::Snapshot { index, term, bytes });
    }

    /// Writes at once if that is quick, else on the disk's thread. For a loop that has nothing else to do: it waits for the sync. Says whether
    /// it is written.
    pub(super) fn write_at_once(&self, write: LogWrite) -> bool {
        let bytes: usize = write.entries.iter().map(|entry| entry.payload.len()).sum();
        if write.install.is_some() || bytes > SMALL_BYTES || self.queued.load(Ordering::Acquire) > 0 {
            self.write(write);
            return false;
        }
        // Somebody is at it, or has panicked at it and is about to be heard of.
        let Ok(mut writer) = self.writer.try_lock() else {
            self.write(write);
            return false;
        };
        if !writer.is_quick() {
            drop(writer);
            self.write(write);
            return false;
        }
        match writer.append_once(write) {
            Ok(None) => {
                let has_to_look = writer.has_to_look();
                drop(writer);
                if has_to_look {
                    self.hand_over(ToDisk::Look);
                }
                true
            }
            Ok(Some(again)) => {
                drop(writer);
                self.write(again);
                false
            }
            Err(ended) => {
                writer.tell_end(ended);
                false
            }
        }
    }

    fn hand_over(&self, job: ToDisk) {
        self.queued.fetch_add(1, Ordering::AcqRel);
        // A disk thread that is gone has said why; the loop is about to read it.
        let _ = self.jobs.send(job);
    }
}

impl Jobs {
    /// Does what it is told to, until nobody can tell it anything.
    pub(super) fn run(self) {
        if let (Err(ended), Ok(writer)) = (self.serve(), self.writer()) {
            writer.tell_end(ended);
        }
    }

    fn serve(&self) -> Result<(), Ended> {
        // What is kept aside is made before anybody waits.
        self.writer()?.begin()?;
        loop {
            let is_short = self.writer()?.is_short();
            let job = if is_short {
                match self.jobs.recv_timeout(SPACE_INTERVAL) {
                    Ok(job) => Some(job),
                    Err(RecvTimeoutError::Timeout) => None,
                    Err(RecvTimeoutError::Disconnected) => return Ok(()),
                }
            } else {
                let Ok(job) = self.jobs.recv() else { return Ok(()) };
                Some(job)
            };
            let is_queued = job.is_some();
            self.writer()?.carry_out(job)?;
            if is_queued {
                self.queued.fetch_sub(1, Ordering::AcqRel);
            }
        }
    }

    /// Nothing if the loop has panicked at it: what it left half done is for the next process to find.
    fn writer(&self) -> Result<MutexGuard<'_, Writer>, Ended> {
        self.writer.lock().map_err(|_| None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::ToLoop;
    use crate::inbox::{Arrivals, inbox};
    use leasehold_node::{Input, LogEntry};
    use leasehold_wal::{Identity, Options};
    use std::time::Duration;
    use writer::{QUICK, QUICK_WRITES};

    struct Bench {
        disk: Disk,
        jobs: Jobs,
        arrivals: Arrivals,
        _directory: tempfile::TempDir,
    }

    /// A disk without its thread: what is written is written by whoever asks.
    fn bench() -> Bench {
        let directory = tempfile::tempdir().unwrap();
        let files = FileDisk::open(directory.path()).unwrap();
        let (wal, _) = Wal::open(files, Identity { lock_inode: 1 }, Options::default()).unwrap();
        let (to_loop, arrivals) = inbox();
        let (disk, jobs) = disk(wal, to_loop, SyncTimes::new());
        Bench { disk, jobs, arrivals, _directory: directory }
    }

    fn write(number: u64, bytes: usize) -> LogWrite {
        let entry = LogEntry { index: number, term: 1, kind: 0, payload: vec![7; bytes] };
        LogWrite { number, install: None, vote: None, entries: vec![entry] }
    }

    impl Bench {
        fn took(&self, length: Duration, times: u32) {
            let mut writer = self.jobs.writer().unwrap_or_else(|_| panic!("nobody has panicked at it"));
            (0..times).for_each(|_| writer.note(length));
        }

        fn written(&mut self) -> Vec<u64> {
            std::iter::from_fn(|| self.arrivals.try_recv())
                .filter_map(|message| match message {
                    ToLoop::Node(Input::Written { number }) => Some(number),
                    _ => None,
                })
                .collect()
        }

        fn queued(&self) -> usize {
            self.disk.queued.load(Ordering::Relaxed)
        }
    }

    #[test]
    fn a_small_write_is_written_by_the_loop_once_the_disk_was_quick_often_enough() {
        let mut bench = bench();
        bench.took(QUICK / 2, QUICK_WRITES - 1);
        assert!(!bench.disk.write_at_once(write(1, 100)), "it is left to the thread");
        assert_eq!((bench.written(), bench.queued()), (vec![], 1), "not yet");
        let mut bench = self::bench();
        bench.took(QUICK / 2, QUICK_WRITES);
        assert!(bench.disk.write_at_once(write(1, 100)), "it is written");
        bench.took(QUICK / 2, QUICK_WRITES);
        assert!(bench.disk.write_at_once(write(2, 100)), "it is written");
        assert_eq!((bench.written(), bench.queued()), (vec![1, 2], 0));
    }

    #[test]
    fn a_slow_write_leaves_the_next_ones_to_the_thread() {
        let mut bench = bench();
        bench.took(QUICK / 2, 10 * QUICK_WRITES);
        bench.took(QUICK, 1);
        bench.took(QUICK / 2, QUICK_WRITES - 1);
        bench.disk.write_at_once(write(1, 100));
        assert_eq!((bench.written(), bench.queued()), (vec![], 1));
    }

    #[test]
    fn nothing_overtakes_what_the_thread_has_to_do() {
        let mut bench = bench();
        bench.took(QUICK / 2, QUICK_WRITES);
        bench.disk.write(write(1, 100));
        bench.disk.write_at_once(write(2, 100));
        assert_eq!((bench.written(), bench.queued()), (vec![], 2));
        let Bench { disk, jobs, mut arrivals, _directory } = bench;
        drop(disk);
        jobs.run();
        let numbers = std::iter::from_fn(|| arrivals.try_recv()).filter_map(|message| match message {
            ToLoop::Node(Input::Written { number }) => Some(number),
            ToLoop::Failed(why) => panic!("{why}"),
            _ => None,
        });
        assert_eq!(numbers.collect::<Vec<_>>(), [1, 2]);
    }

    #[test]
    fn a_large_write_is_the_threads_and_so_is_everything_while_it_has_the_log() {
        let mut bench = bench();
        bench.took(QUICK / 2, QUICK_WRITES);
        bench.disk.write_at_once(write(1, SMALL_BYTES + 1));
        assert_eq!((bench.written(), bench.queued()), (vec![], 1));
        let mut bench = self::bench();
        bench.took(QUICK / 2, QUICK_WRITES);
        let writer = Arc::clone(&bench.disk.writer);
        let kept = writer.lock().unwrap();
        bench.disk.write_at_once(write(1, 100));
        drop(kept);
        assert_eq!((bench.written(), bench.queued()), (vec![], 1));
    }

    #[test]
    fn the_thread_is_told_to_make_the_next_segment_before_it_is_needed() {
        let mut bench = bench();
        bench.took(QUICK / 2, QUICK_WRITES);
        let mut number = 0;
        while bench.queued() == 0 {
            number += 1;
            assert!(number < 1_000_000, "a segment has an end");
            bench.took(QUICK / 2, QUICK_WRITES);
            bench.disk.write_at_once(write(number, SMALL_BYTES));
        }
        assert_eq!(bench.written().len() as u64, number, "it was written all the same");
        assert!(bench.jobs.writer().is_ok_and(|writer| writer.has_to_look()));
    }
}
