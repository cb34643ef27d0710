//! Registers: small values beside a lease, kept by the service, that only its holder can write.
//!
//! They are the fence that needs no [seal](crate::SessionOptions::seal_at): the service that grants the lease judges the token of the write
//! in the very log in which it is granted, released and lost, so an older token is refused from the grant on. For a cursor, an
//! address or a configuration they save a database; for more than a few values of up to 64 KiB they are the wrong place.

use leasehold_core::protocol::{Query, ReadAnswer};
use leasehold_core::{Answer, Ending, Op, Refusal, RegisterKey, ResourceName, Token, Value};
use leasehold_fence::{Authority, Error as FenceError, Stale};
use tokio::sync::oneshot;

use crate::driver::ToDriver;
use crate::error::Error;
use crate::guard::Guard;
use crate::store::{Store, unexpected};

/// What a register holds.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RegisterView {
    /// What was written.
    pub value: Vec<u8>,
    /// With which token: that of the lease under which it was written, which may be over.
    pub token: Token,
}

impl Store {
    /// A register of a resource, if it is written. One that goes with its lease is not there any more when that is over.
    ///
    /// # Errors
    /// When the key cannot be, or the store cannot be reached.
    pub async fn register(&self, resource: &ResourceName, key: &str) -> Result<Option<RegisterView>, Error> {
        let query = Query::Register { resource: resource.clone(), key: RegisterKey::new(key)? };
        match self.read(query).await? {
            ReadAnswer::Register(register) => {
                Ok(register.map(|(value, token)| RegisterView { value: value.as_bytes().to_vec(), token }))
            }
            other => Err(unexpected(&other)),
        }
    }
}

/// A register that is about to be written: [`Guard::register`].
#[derive(Debug, Clone, Copy)]
#[must_use = "write it"]
pub struct Register<'a> {
    guard: &'a Guard<'a>,
    key: &'a str,
    with_lease: bool,
}

impl Guard<'_> {
    /// A register of the resource, to be written under this guard.
    ///
    /// ```no_run
    /// # async fn example(store: &leasehold::Store, lease: &leasehold::Lease) -> Result<(), Box<dyn std::error::Error>> {
    /// use std::time::Duration;
    ///
    /// let cursor = store.register(lease.resource(), "cursor").await?;
    /// let guard = lease.guard(Duration::from_secs(2))?;
    /// guard.register("cursor").write(b"4711").await?;
    /// # Ok(()) }
    /// ```
    pub fn register<'a>(&'a self, key: &'a str) -> Register<'a> {
        Register { guard: self, key, with_lease: false }
    }
}

impl Register<'_> {
    /// The value goes when the lease ends, in the same moment.
    pub fn with_lease(mut self) -> Self {
        self.with_lease = true;
        self
    }

    /// Writes the register. The guard is asked first; then the service judges the token in its log, where nothing comes between.
    ///
    /// # Errors
    /// As every fenced write: *no authority* when the guard is over, nothing was sent; *stale* when the lease is not that of the holder
    /// any more, nothing was written, now or later; *failed* when the service refuses for another reason (more than 16 registers,
    /// a key or value that is too long); *unknown* when no answer came.
    pub async fn write(self, value: &[u8]) -> Result<(), FenceError> {
        let value = Value::new(value.to_vec()).map_err(|why| self.failed(why.into()))?;
        self.send(Some(value)).await
    }

    /// Removes the register.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub async fn remove(self) -> Result<(), FenceError> {
        self.send(None).await
    }

    async fn send(self, value: Option<Value>) -> Result<(), FenceError> {
        let key = RegisterKey::new(self.key).map_err(|why| self.failed(why.into()))?;
        self.guard.stamp()?;
        let lease = self.guard.lease();
        let (resource, token) = (lease.resource().clone(), lease.granted().token);
        let op = Op::WriteRegister { resource, token, key, value, with_lease: self.with_lease };
        let (reply, answer) = oneshot::channel();
        lease.session.send(|key| ToDriver::Submit { key, op, reply: Some(reply) });
        match answer.await {
            Ok(Ok(Answer::RegisterWritten)) => Ok(()),
            Ok(Err(Error::Refused(Refusal::NotCurrent { ended, .. }))) => Err(self.stale(ended.as_ref())),
            // Only then nobody can say; every other error tells of a command that has no effect.
            Ok(Err(error @ Error::OutcomeUnknown)) => Err(self.unknown(error)),
            Ok(Err(error)) => Err(self.failed(error)),
            Ok(Ok(_)) | Err(_) => Err(self.unknown(Error::OutcomeUnknown)),
        }
    }

    fn stale(&self, ended: Option<&Ending>) -> FenceError {
        let highest = match ended {
            Some(Ending::Taken { by }) => Some(by.get()),
            // The service says that it is over, not who holds it now.
            _ => None,
        };
        let token = self.guard.lease().granted().token.get();
        Stale { name: self.guard.fence_name(), token, highest }.into()
    }

    fn failed(&self, why: Error) -> FenceError {
        FenceError::failed(self.place(), why)
    }

    fn unknown(&self, why: Error) -> FenceError {
        FenceError::unknown(self.place(), why)
    }

    fn place(&self) -> String {
        format!("register {} of {}", self.key, self.guard.lease().resource())
    }
}
