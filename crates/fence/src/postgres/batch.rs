//! A whole transaction as one message.

use super::open::Lent;
use super::{Fence, ends, text};
use crate::error::Error;
use crate::pending::Pending;
use crate::stamp::Authority;

impl Fence {
    /// Enters the fence and carries out statements, all in one message and one transaction: one round trip, and nothing that has left
    /// this program can be carried out in part. The statements take no parameters and give back no rows; quote what you put into them.
    ///
    /// They must not have a COMMIT or ROLLBACK among them: what stands behind it is not fenced any more. If they do, that is noticed at the end,
    /// and is [`Error::Unknown`].
    ///
    /// # Errors
    /// [`Error::NoAuthority`], [`Error::Stale`]. [`Error::Failed`] when a statement failed: nothing was written. [`Error::Unknown`] when
    /// it was sent and no answer came.
    pub async fn batch(&self, authority: &impl Authority, statements: &str) -> Result<(), Error> {
        let mut pending = Pending::new(&self.counts, &self.place);
        let result: Result<(), Error> = async {
            let mut lent = Lent::new(self.acquired().await?);
            // After the wait for a connection, right before it is sent.
            let stamp = authority.stamp()?;
            // Without the BEGIN and COMMIT they would be one transaction too, but a BEGIN among the statements would leave it open.
            let (entry, still) = (self.entry(&stamp, true), self.still(&stamp));
            let script = format!("BEGIN; {entry};\n{statements}\n; {still}; COMMIT");
            pending.sent();
            lent.is_clear = false;
            let done = text::send(&mut lent.connection, &script).await;
            lent.is_clear = done.is_ok();
            let result = done.map_err(|error| ends::of_commit(error, &stamp, &self.place));
            if result.is_err() {
                lent.clear().await;
            }
            if let Err(Error::Stale(_)) = &result {
                self.note(&mut lent.connection, &stamp).await;
            }
            result
        }
        .await;
        pending.ended(result)
    }
}
