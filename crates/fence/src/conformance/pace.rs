//! When the holders of a race begin, and when they come back.
//!
//! Promises: in a staggered race a holder begins when the one before it has had some answers, and each holder but the last pauses in the
//! middle until the one behind it has had its first. So the later half of its writes is stale if the receiver let the next one in, however
//! slow the way to the receiver is: the pace is counted in answers, not in time.
//!
//! What it deliberately does not do: it keeps nobody from writing at the moment of the raise. Before the pause all write at once, and
//! in every other pair of races there is no pause at all.

use tokio::sync::watch;

use super::Load;

/// Different staggers, so that a raise meets writers at different points.
const STAGGERS: u64 = 3;

/// The pace of one race.
#[derive(Debug)]
pub(super) struct Pace {
    /// How many answers to writes each holder has had. Seals do not count: a holder that is overtaken behind its seal has written nothing.
    answers: Vec<watch::Sender<u64>>,
    /// So many answers of one holder let the next begin; nothing if all begin at once and nobody pauses.
    stagger: Option<u64>,
    /// Each writer pauses before this one of its writes.
    half: u64,
    writes: u64,
}

impl Pace {
    pub(super) fn new(round: u64, load: Load) -> Self {
        let half = load.writes / 2;
        // Pairs, because every other race begins with seals. Before its pause each of two writers has so many answers.
        let stagger = (round / 2).is_multiple_of(2).then(|| (1 + round / 4 % STAGGERS).min(half));
        let answers = (0..load.holders).map(|_| watch::Sender::new(0)).collect();
        Self { answers, stagger, half, writes: load.writes }
    }

    /// How many stale writes are certainly tried if every first write of a holder is accepted.
    pub(super) fn stale_writes(&self) -> u64 {
        let who_pause = (self.answers.len() as u64).saturating_sub(1);
        self.stagger.map_or(0, |_| who_pause * 2 * (self.writes - self.half))
    }

    /// Waits until it is this holder's turn to begin.
    pub(super) async fn begin(&self, holder: usize) {
        match (self.stagger, holder.checked_sub(1)) {
            (Some(stagger), Some(before)) => self.has_had(before, stagger).await,
            (Some(_), None) => {}
            // A moment of its own for each, as far as there is one without a clock.
            (None, _) => {
                for _ in 0..holder * 3 {
                    tokio::task::yield_now().await;
                }
            }
        }
    }

    /// Called before the write of this number: pauses in the middle, until somebody else was let in.
    pub(super) async fn before_write(&self, holder: usize, count: u64) {
        let is_last = holder + 1 == self.answers.len();
        if self.stagger.is_some() && count == self.half && !is_last {
            self.has_had(holder + 1, 1).await;
        }
    }

    /// A holder had an answer to a write, of whatever kind.
    pub(super) fn answered(&self, holder: usize) {
        self.answers[holder].send_modify(|answers| *answers += 1);
    }

    async fn has_had(&self, holder: usize, count: u64) {
        let mut answers = self.answers[holder].subscribe();
        answers.wait_for(|answers| *answers >= count).await.expect("the sender is beside it");
    }
}
