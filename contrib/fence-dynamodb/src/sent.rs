//! How a request ended, counting those that were sent and not answered.

use std::error::Error as StdError;
use std::fmt;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use aws_sdk_dynamodb::config::http::HttpResponse;
use aws_sdk_dynamodb::config::interceptors::{
    BeforeTransmitInterceptorContextRef, FinalizerInterceptorContextRef,
};
use aws_sdk_dynamodb::config::{ConfigBag, Intercept, RuntimeComponents};
use aws_sdk_dynamodb::error::{BoxError, ProvideErrorMetadata, SdkError};
use leasehold_fence::{Authority, Error, Stamp};

/// How often a conflict is tried. With the pauses it lasts a third of a second at most, so that nobody's guard grows old by it.
const TRIES: u32 = 5;
/// The first pause after a conflict; each is twice the one before, and up to half of it longer by chance.
const FIRST_PAUSE: Duration = Duration::from_millis(10);

/// How one try ended.
pub(super) struct Ended {
    pub(super) error: Error,
    conflict: bool,
}

impl Ended {
    /// Trying again would end the same.
    pub(super) fn for_good(error: Error) -> Self {
        Self { error, conflict: false }
    }
}

/// Tries until it does not end in a conflict. The authority is asked each time.
pub(super) async fn patiently<F: Future<Output = Result<(), Ended>>>(
    authority: &impl Authority,
    once: impl Fn(Stamp) -> F,
) -> Result<(), Error> {
    let mut tried = 1;
    loop {
        let ended = once(authority.stamp()?).await;
        match ended {
            Ok(()) => return Ok(()),
            Err(Ended { conflict: true, .. }) if tried < TRIES => {}
            Err(Ended { error, .. }) => return Err(error),
        }
        let pause = FIRST_PAUSE * 2_u32.pow(tried - 1);
        let chance = u32::try_from(RandomState::new().build_hasher().finish() % 50).expect("it is below 50");
        tokio::time::sleep(pause + pause * chance / 100).await;
        tried += 1;
    }
}

/// Counts the requests of one call, repeated ones included, that were sent and of which nobody knows how they ended.
#[derive(Clone, Default)]
pub(super) struct Sent {
    open: Arc<AtomicU32>,
}

impl fmt::Debug for Sent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} open", self.open())
    }
}

impl Sent {
    pub(super) fn open(&self) -> u32 {
        self.open.load(Ordering::SeqCst)
    }

    /// The end of a call: nothing was written if every request was answered by a refusal, else nobody can say.
    pub(super) fn ended(
        &self,
        place: &str,
        conflict: bool,
        error: &SdkError<impl StdError + ProvideErrorMetadata + 'static, HttpResponse>,
    ) -> Ended {
        let words = words(error);
        match self.open() {
            0 => Ended { error: Error::failed(place, words), conflict },
            _ => Ended::for_good(Error::unknown(place, words)),
        }
    }
}

/// What the service said; else each cause, because the SDK's own words stop at the first.
pub(super) fn words<E>(error: &SdkError<E, HttpResponse>) -> String
where
    E: StdError + ProvideErrorMetadata + 'static,
{
    let meta = error.meta();
    if let (Some(code), Some(message)) = (meta.code(), meta.message()) {
        return format!("{code}: {message}");
    }
    let causes = std::iter::successors(Some(error as &dyn StdError), |error| (*error).source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

impl Intercept for Sent {
    fn name(&self) -> &'static str {
        "LeaseholdSent"
    }

    fn read_before_transmit(
        &self,
        _context: &BeforeTransmitInterceptorContextRef<'_>,
        _components: &RuntimeComponents,
        _config: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        self.open.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }

    fn read_after_attempt(
        &self,
        context: &FinalizerInterceptorContextRef<'_>,
        _components: &RuntimeComponents,
        _config: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let answered = context.response().is_some_and(|response| response.status().is_client_error());
        let error = context.output_or_error().and_then(Result::err);
        let connector = error.and_then(|error| error.as_connector_error());
        if answered || connector.is_some_and(|error| was_refused(error)) {
            self.open.fetch_sub(1, Ordering::SeqCst);
        }
        Ok(())
    }
}

/// No connection was made, so nothing was sent.
fn was_refused(error: &(dyn StdError + 'static)) -> bool {
    let mut causes = std::iter::successors(Some(error), |error| (*error).source());
    causes.any(|cause| {
        cause
            .downcast_ref::<io::Error>()
            .is_some_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
    })
}
