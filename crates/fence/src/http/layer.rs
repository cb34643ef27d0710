//! The layer that reads stamps. It compares nothing: see the [module](super).

use std::fmt;
use std::future::{Ready, ready};
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::future::Either;
use http::request::Parts;
use http::{Method, Request, Response};
use tower::{Layer, Service};

use super::problem::Problem;
use super::stamps;

type NameOf = dyn Fn(&Parts) -> Option<String> + Send + Sync;
type Needs = dyn Fn(&Method) -> bool + Send + Sync;

/// Whether a method may change anything: all but GET, HEAD, OPTIONS and TRACE.
pub fn is_write(method: &Method) -> bool {
    ![Method::GET, Method::HEAD, Method::OPTIONS, Method::TRACE].contains(method)
}

/// Puts the [`Stamp`](crate::Stamp) of a request into its extensions. A write without one is answered with 428, a malformed one with 400.
///
/// It is the handler that compares, in the transaction in which it writes.
#[derive(Clone)]
pub struct StampLayer {
    name_of: Option<Arc<NameOf>>,
    needs: Arc<Needs>,
}

impl StampLayer {
    /// The fence name comes from the header `Fencing-Name`, and writes need a token.
    pub fn new() -> Self {
        Self { name_of: None, needs: Arc::new(is_write) }
    }

    /// The fence name follows from the request, its path for example; nothing for one that is not fenced. A caller that names another in
    /// `Fencing-Name` is refused, because its token belongs to something else.
    #[must_use]
    pub fn named(mut self, name_of: impl Fn(&Parts) -> Option<String> + Send + Sync + 'static) -> Self {
        self.name_of = Some(Arc::new(name_of));
        self
    }

    /// Which methods need a token, instead of all [writes](is_write). Others have a stamp too, if they carry a token.
    #[must_use]
    pub fn needed_for(mut self, needs: impl Fn(&Method) -> bool + Send + Sync + 'static) -> Self {
        self.needs = Arc::new(needs);
        self
    }

    /// Reads the stamp of a request into its extensions.
    fn read(&self, parts: &mut Parts) -> Result<(), Problem> {
        let name = self.name_of.as_ref().map(|name_of| name_of(parts));
        if name == Some(None) {
            return Ok(());
        }
        match stamps::read(&parts.headers, name.flatten().as_deref())? {
            Some(stamp) => drop(parts.extensions.insert(stamp)),
            None if (self.needs)(&parts.method) => return Err(Problem::token_missing()),
            None => {}
        }
        Ok(())
    }
}

impl Default for StampLayer {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for StampLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = if self.name_of.is_some() { "route" } else { "header" };
        f.debug_struct("StampLayer").field("names", &names).finish_non_exhaustive()
    }
}

impl<S> Layer<S> for StampLayer {
    type Service = StampService<S>;

    fn layer(&self, inner: S) -> StampService<S> {
        StampService { layer: self.clone(), inner }
    }
}

/// A service whose requests have stamps.
#[derive(Debug, Clone)]
pub struct StampService<S> {
    layer: StampLayer,
    inner: S,
}

impl<S, B, R> Service<Request<B>> for StampService<S>
where
    S: Service<Request<B>, Response = Response<R>>,
    R: From<String>,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Either<S::Future, Ready<Result<S::Response, S::Error>>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let (mut parts, body) = request.into_parts();
        match self.layer.read(&mut parts) {
            Ok(()) => Either::Left(self.inner.call(Request::from_parts(parts, body))),
            Err(problem) => Either::Right(ready(Ok(problem.response()))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stamp::Stamp;
    use tower::{ServiceExt, service_fn};

    /// What a request comes to: the status, and the stamp that the handler sees.
    async fn asked(layer: StampLayer, request: Request<()>) -> (u16, String) {
        let handler = service_fn(|request: Request<()>| async move {
            let stamp = request.extensions().get::<Stamp>().map(ToString::to_string);
            Ok::<_, std::convert::Infallible>(Response::new(stamp.unwrap_or_default()))
        });
        let response = layer.layer(handler).oneshot(request).await.unwrap();
        (response.status().as_u16(), response.into_body())
    }

    fn request(method: Method, headers: &[(&str, &str)]) -> Request<()> {
        let request = Request::builder().method(method).uri("/reports/7");
        headers.iter().fold(request, |request, (name, value)| request.header(*name, *value)).body(()).unwrap()
    }

    const BOTH: [(&str, &str); 2] = [("Fencing-Token", "34"), ("Fencing-Name", "a")];

    #[tokio::test]
    async fn the_handler_finds_the_stamp_and_reads_pass_without() {
        let layer = StampLayer::new;
        assert_eq!(asked(layer(), request(Method::PUT, &BOTH)).await, (200, "token 34 of a".to_owned()));
        assert_eq!(asked(layer(), request(Method::GET, &BOTH)).await, (200, "token 34 of a".to_owned()));
        assert_eq!(asked(layer(), request(Method::GET, &[])).await, (200, String::new()));
    }

    #[tokio::test]
    async fn a_write_without_a_stamp_never_reaches_the_handler() {
        for method in
            [Method::PUT, Method::POST, Method::DELETE, Method::PATCH, Method::from_bytes(b"MKCOL").unwrap()]
        {
            let (status, body) = asked(StampLayer::new(), request(method, &[])).await;
            assert_eq!(status, 428);
            assert!(
                body.contains("\"code\":\"token-missing\"") && body.contains("fencing-token is missing"),
                "{body}"
            );
        }
        let (status, body) = asked(StampLayer::new(), request(Method::PUT, &BOTH[..1])).await;
        assert!(status == 428 && body.contains("name-missing"), "{body}");
        let (status, body) =
            asked(StampLayer::new(), request(Method::PUT, &[("Fencing-Token", "x"), BOTH[1]])).await;
        assert!(status == 400 && body.contains("stamp-malformed"), "{body}");
    }

    #[tokio::test]
    async fn the_name_may_follow_from_the_route_and_a_route_may_be_open() {
        let named = || {
            StampLayer::new()
                .named(|parts| parts.uri.path().strip_prefix("/reports/").map(|id| format!("report {id}")))
        };
        let stamp = "token 34 of report 7".to_owned();
        assert_eq!(asked(named(), request(Method::PUT, &BOTH[..1])).await, (200, stamp));
        let (status, body) = asked(named(), request(Method::PUT, &BOTH)).await;
        assert!(status == 400 && body.contains("name-differs"), "{body}");
        let open = StampLayer::new().named(|_| None);
        assert_eq!(asked(open, request(Method::PUT, &[])).await, (200, String::new()));
    }

    #[tokio::test]
    async fn which_methods_need_a_token_can_be_chosen() {
        let all = || StampLayer::new().needed_for(|_| true);
        assert_eq!(asked(all(), request(Method::GET, &[])).await.0, 428);
        let few = StampLayer::new().needed_for(|method| method == Method::DELETE);
        assert_eq!(asked(few, request(Method::POST, &[])).await.0, 200);
    }
}
