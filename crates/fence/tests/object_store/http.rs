//! A client that speaks plain HTTP, so that it can be told to lose answers.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector as Tcp;
use hyper_util::rt::TokioExecutor;
use object_store::client::{
    ClientOptions, HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse,
    HttpResponseBody, HttpService,
};

/// What becomes of a conditional put of a head, and of the answer to it.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Answer {
    /// The server says that it has an error of its own, as if it had failed behind the write. The client sends it again.
    Error,
    /// The connection breaks.
    Lost,
    /// It was not carried out: the key is not good any more.
    Forbidden,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Http {
    pub(crate) answers: Arc<Mutex<VecDeque<Answer>>>,
}

impl HttpConnector for Http {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        let client = Client::builder(TokioExecutor::new()).build_http();
        Ok(HttpClient::new(Service { client, answers: Arc::clone(&self.answers) }))
    }
}

#[derive(Debug)]
struct Service {
    client: Client<Tcp, Full<Bytes>>,
    answers: Arc<Mutex<VecDeque<Answer>>>,
}

#[async_trait::async_trait]
impl HttpService for Service {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let is_head = request.headers().contains_key("if-match") && !request.uri().path().ends_with("/probe");
        let answer =
            is_head.then(|| self.answers.lock().expect("nobody panics with it").pop_front()).flatten();
        if matches!(answer, Some(Answer::Forbidden)) {
            let (mut parts, ()) = ::http::Response::new(()).into_parts();
            parts.status = ::http::StatusCode::FORBIDDEN;
            return Ok(HttpResponse::from_parts(parts, HttpResponseBody::from(Bytes::new())));
        }
        let (parts, body) = request.into_parts();
        let body = body.collect().await?.to_bytes();
        let sent = self.client.request(::http::Request::from_parts(parts, Full::new(body))).await;
        let answered = sent.map_err(|error| {
            let kind = if error.is_connect() { HttpErrorKind::Connect } else { HttpErrorKind::Interrupted };
            HttpError::new(kind, error)
        })?;
        let broken = |error| HttpError::new(HttpErrorKind::Interrupted, error);
        let (mut parts, body) = answered.into_parts();
        let body = body.collect().await.map_err(broken)?.to_bytes();
        match answer {
            Some(Answer::Lost) => {
                return Err(HttpError::new(HttpErrorKind::Interrupted, std::io::Error::other("planned")));
            }
            Some(Answer::Error) => parts.status = ::http::StatusCode::INTERNAL_SERVER_ERROR,
            Some(Answer::Forbidden) | None => {}
        }
        Ok(HttpResponse::from_parts(parts, HttpResponseBody::from(body)))
    }
}
