//! What the handles of a session look up in the store.

use leasehold_core::ResourceName;
use leasehold_core::protocol::{Query, ReadAnswer, Request, Response};
use leasehold_core::table::LeaseView;
use tokio::sync::oneshot;

use super::{SessionRef, ToDriver};
use crate::error::Error;

impl SessionRef {
    /// Who holds a resource, and who waits for it.
    pub(crate) async fn look_at(&self, resource: &ResourceName) -> Result<Option<LeaseView>, Error> {
        let (reply, answer) = oneshot::channel();
        let request = Box::new(Request::Read(Query::Lease(resource.clone())));
        self.send(|_| ToDriver::Request { request, reply });
        match answer.await.unwrap_or_else(|_| Err(self.over()))? {
            Response::Read { answer: ReadAnswer::Lease(lease), .. } => Ok(lease),
            other => Err(crate::store::failed(other)),
        }
    }
}
