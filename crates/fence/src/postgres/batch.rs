//! A whole transaction as one message.

use super::{Fence, ends, text};
use crate::error::Error;
use crate::stamp::Authority;

impl Fence {
    /// Enters the fence and carries out statements, all in one message and one transaction: one round trip, and nothing that has left
    /// this program can be carried out in part. The statements take no parameters and give back no rows; quote what you put into them.
    ///
    /// They must not have a BEGIN, COMMIT or ROLLBACK among them: what stands behind a COMMIT is not fenced any more.
    ///
    /// # Errors
    /// [`Error::NoAuthority`], [`Error::Stale`]. [`Error::Failed`] when a statement failed: nothing was written. [`Error::Unknown`] when
    /// it was sent and no answer came.
    pub async fn batch(&self, authority: &impl Authority, statements: &str) -> Result<(), Error> {
        let result = self.sent(authority, statements).await;
        self.counts.write(&self.place, result)
    }

    async fn sent(&self, authority: &impl Authority, statements: &str) -> Result<(), Error> {
        let mut connection = self.pool.acquire().await.map_err(|error| self.failed(error))?;
        // After the wait for a connection, right before it is sent.
        let stamp = authority.stamp()?;
        // Statements that are sent together are one transaction, which ends by itself, well or badly.
        let script =
            format!("SELECT {}leasehold_enter({});\n{statements}", self.schema, text::arguments(&stamp));
        let done = text::send(&mut connection, &script).await;
        let result = done.map_err(|error| ends::of_commit(error, &stamp, &self.place));
        if let Err(Error::Stale(_)) = &result {
            self.note(&mut connection, &stamp).await;
        }
        result
    }
}
