//! What the handles of a session look up in the store.

use leasehold_core::protocol::{Query, ReadAnswer, Request, Response, TokenCheck};
use leasehold_core::table::LeaseView;
use leasehold_core::{ResourceName, Token};
use tokio::sync::oneshot;

use super::{SessionRef, ToDriver};
use crate::error::Error;

impl SessionRef {
    /// Who holds a resource, and who waits for it.
    pub(crate) async fn look_at(&self, resource: &ResourceName) -> Result<Option<LeaseView>, Error> {
        match self.read(Query::Lease(resource.clone())).await? {
            Response::Read { answer: ReadAnswer::Lease(lease), .. } => Ok(lease.map(|lease| *lease)),
            other => Err(crate::store::failed(other)),
        }
    }

    /// Whether a token is that of a present lease.
    pub(crate) async fn is_current(&self, resource: &ResourceName, token: Token) -> Result<bool, Error> {
        match self.read(Query::Check { resource: resource.clone(), token }).await? {
            Response::Read { answer: ReadAnswer::Check(check), .. } => Ok(check == TokenCheck::Current),
            other => Err(crate::store::failed(other)),
        }
    }

    async fn read(&self, query: Query) -> Result<Response, Error> {
        let (reply, answer) = oneshot::channel();
        let request = Box::new(Request::Read(query));
        self.send(|_| ToDriver::Request { request, reply });
        answer.await.unwrap_or_else(|_| Err(self.over()))
    }
}
