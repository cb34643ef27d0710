//! Room for what waits for its readers, of all connections together.
//!
//! Promises: a question that may have a large answer is asked only when there is room for one, and the answer counts until its last byte is
//! written or its connection is gone, whatever ends first; what is counted is given back when it is dropped, so nothing leaks. While there is no
//! room, a reader that takes nothing loses its connection, so nobody keeps others out for long by not reading.
//!
//! What it does not do: it delays and refuses no command, renewal or watch. What those are answered counts, and takes room from questions.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use leasehold_core::protocol::Failure;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{sleep, timeout};

/// Bytes that wait for readers at most, of all connections together, before pages are made for no more of them.
pub(crate) const MAX_WAITING_ANSWERS: usize = 64 * 1024 * 1024;
/// A page counts as so many bytes until it is made: as much as nearly all have with what they are made of.
const PAGE: usize = 2 * 1024 * 1024;
/// Pages under way at once, from the question to its bytes: each keeps the loop and those who make bytes of it for a few milliseconds, and renewals
/// wait behind all of them. One gives some two hundred pages a second.
const PAGES_AT_ONCE: usize = 1;
/// Questions that wait for their turn or for room: as many as may be under way in a node.
const MAX_LINE: usize = 4_096;
/// So long a question waits for its turn and for room before it is refused.
const LONGEST_LINE: Duration = Duration::from_secs(5);
/// While there is no room, a reader that takes nothing for so long loses its connection.
const LONGEST_STALL: Duration = Duration::from_millis(500);
/// A turn that has not brought an answer by then is given to another: the node waits for a leader, and makes no page.
pub(crate) const LONGEST_TURN: Duration = Duration::from_millis(250);
/// Answers other than pages are judged only above this: smaller ones are short work and little memory.
pub(crate) const SMALL: usize = 16 * 1024;
/// What one answer counts as at most: a backup of a large table must not keep everybody's pages waiting.
const MOST_COUNTED: usize = 8 * 1024 * 1024;
/// What is counted: bytes would not fit into the numbers of permits.
const GRAIN: usize = 1024;

/// The room. Clones share it.
#[derive(Debug, Clone)]
pub struct Room(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    limit: usize,
    free: Semaphore,
    turns: Arc<Semaphore>,
    line: AtomicUsize,
}

impl Default for Room {
    fn default() -> Self {
        Self::new(MAX_WAITING_ANSWERS)
    }
}

impl Room {
    fn new(limit: usize) -> Self {
        let (free, turns) = (Semaphore::new(limit / GRAIN), Arc::new(Semaphore::new(PAGES_AT_ONCE)));
        Self(Arc::new(Shared { limit, free, turns, line: AtomicUsize::new(0) }))
    }

    /// Room for a page, and the turn to make it. Waits for both, first come, first served.
    ///
    /// # Errors
    /// When too many wait, or it takes too long.
    pub async fn page(&self) -> Result<Page, Failure> {
        let _in_line = InLine::join(&self.0).ok_or_else(|| self.refusal())?;
        let waiting = async {
            let turn = Arc::clone(&self.0.turns).acquire_owned().await.expect("it is never closed");
            let units = PAGE.min(self.0.limit) / GRAIN;
            let permits = u32::try_from(units).expect("a page is small");
            self.0.free.acquire_many(permits).await.expect("it is never closed").forget();
            Page { held: Held { room: self.clone(), units }, turn: Some(turn) }
        };
        timeout(LONGEST_LINE, waiting).await.map_err(|_| self.refusal())
    }

    /// Counts what waits for a reader, whether there is room or not.
    pub fn count(&self, bytes: usize) -> Held {
        // What does not fit is not owed: full is full.
        let units = self.0.free.forget_permits(bytes.min(MOST_COUNTED).div_ceil(GRAIN));
        Held { room: self.clone(), units }
    }

    /// Counts an answer to a question, if it is small or there is room.
    ///
    /// # Errors
    /// When there is none.
    pub(crate) fn admit(&self, bytes: usize) -> Result<Page, Failure> {
        if bytes > SMALL && self.0.free.available_permits() < bytes / GRAIN {
            return Err(self.refusal());
        }
        Ok(Page { held: self.count(bytes), turn: None })
    }

    /// Whether somebody may have to wait for room.
    pub fn is_scarce(&self) -> bool {
        self.0.free.available_permits() < PAGE / GRAIN
    }

    /// Ends when a reader that has taken nothing since this was begun has had its time.
    pub async fn stall(&self) {
        while !self.pause().await {}
    }

    /// Waits for as long as a reader may take nothing. Says whether there is no room now.
    pub async fn pause(&self) -> bool {
        sleep(LONGEST_STALL).await;
        self.is_scarce()
    }

    fn refusal(&self) -> Failure {
        Failure::TooMuchUnread { limit: self.0.limit }
    }
}

/// A place in the line, as long as it lives.
struct InLine<'a>(&'a Shared);

impl<'a> InLine<'a> {
    fn join(shared: &'a Shared) -> Option<Self> {
        let joined = Self(shared);
        (shared.line.fetch_add(1, Ordering::Relaxed) < MAX_LINE).then_some(joined)
    }
}

impl Drop for InLine<'_> {
    fn drop(&mut self) {
        self.0.line.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What waits for a reader. Dropping it makes room.
#[derive(Debug)]
pub struct Held {
    room: Room,
    units: usize,
}

impl Held {
    /// Counts from now on as so many bytes.
    pub fn resize(&mut self, bytes: usize) {
        let units = bytes.min(MOST_COUNTED).div_ceil(GRAIN);
        match self.units.checked_sub(units) {
            Some(less) => {
                self.room.0.free.add_permits(less);
                self.units = units;
            }
            None => self.units += self.room.0.free.forget_permits(units - self.units),
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.room.0.free.add_permits(self.units);
    }
}

/// Room for a page, and the turn to make it.
#[derive(Debug)]
pub struct Page {
    held: Held,
    turn: Option<OwnedSemaphorePermit>,
}

impl Page {
    /// The page is made: others may make theirs. It counts as what it has, if that is known.
    #[must_use]
    pub fn made(mut self, bytes: Option<usize>) -> Held {
        if let Some(bytes) = bytes {
            self.held.resize(bytes);
        }
        self.held
    }

    /// Others may make theirs meanwhile.
    pub(crate) fn pass_turn(&mut self) {
        self.turn = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn free(room: &Room) -> usize {
        room.0.free.available_permits() * GRAIN
    }

    #[tokio::test(start_paused = true)]
    async fn pages_wait_for_room_in_their_order_and_are_refused_by_name_when_there_is_none() {
        let room = Room::new(3 * PAGE);
        let mut held = Vec::new();
        for _ in 0..3 {
            held.push(room.page().await.unwrap().made(Some(PAGE)));
        }
        assert!(room.is_scarce());
        let refused = room.page().await.unwrap_err();
        assert_eq!(refused, Failure::TooMuchUnread { limit: 3 * PAGE });
        let waiting = room.page();
        tokio::pin!(waiting);
        assert!(timeout(LONGEST_LINE / 2, &mut waiting).await.is_err());
        held.pop();
        let page = waiting.await.expect("there is room again");
        drop((page, held));
        assert_eq!((free(&room), room.is_scarce()), (3 * PAGE, false));
    }

    #[tokio::test(start_paused = true)]
    async fn whatever_ends_a_page_its_room_and_its_turn_are_given_back() {
        let room = Room::new(2 * PAGE);
        let (others, one) = (room.count(PAGE), room.page().await.unwrap());
        // Given up while it waits for its turn, and then while it waits for room.
        assert!(timeout(Duration::from_millis(1), room.page()).await.is_err());
        let held = one.made(Some(PAGE));
        assert!(timeout(Duration::from_millis(1), room.page()).await.is_err());
        drop(held);
        assert!(timeout(Duration::from_millis(1), room.page()).await.is_ok());
        drop(others);
        assert_eq!((free(&room), room.0.turns.available_permits()), (2 * PAGE, PAGES_AT_ONCE));
        assert_eq!(room.0.line.load(Ordering::Relaxed), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn what_must_be_said_is_counted_without_room_and_nothing_is_owed_for_it() {
        let room = Room::new(PAGE);
        let mut much = room.count(5 * PAGE);
        assert!(room.is_scarce());
        assert!(room.admit(SMALL).is_ok(), "small answers are not refused");
        assert_eq!(room.admit(SMALL + GRAIN).unwrap_err(), Failure::TooMuchUnread { limit: PAGE });
        much.resize(PAGE / 2);
        assert_eq!(free(&room), PAGE / 2);
        much.resize(PAGE);
        drop(much);
        assert_eq!(free(&room), PAGE);
    }

    #[tokio::test(start_paused = true)]
    async fn a_reader_that_takes_nothing_has_its_time_only_while_there_is_no_room() {
        let room = Room::new(PAGE);
        assert!(timeout(100 * LONGEST_STALL, room.stall()).await.is_err());
        let _much = room.count(PAGE);
        assert!(timeout(2 * LONGEST_STALL, room.stall()).await.is_ok());
    }
}
