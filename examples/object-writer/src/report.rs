//! The object: a report of which there are versions, and the store that it lies in.

use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use async_trait::async_trait;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector as Tcp;
use hyper_util::rt::TokioExecutor;
use object_store::aws::{AmazonS3, AmazonS3Builder};
use object_store::client::{
    ClientOptions, HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse,
    HttpResponseBody, HttpService,
};
use serde::{Deserialize, Serialize};

/// A version of the report, and who wrote it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Report {
    pub(crate) version: u64,
    pub(crate) by: String,
}

impl Report {
    pub(crate) fn read(bytes: &[u8]) -> Result<Self> {
        serde_json::from_slice(bytes).context("what lies there is no report")
    }

    pub(crate) fn bytes(&self) -> Bytes {
        serde_json::to_vec(self).expect("two plain fields are JSON").into()
    }
}

/// A bucket of the store at an endpoint, with the keys of the environment.
pub(crate) fn bucket(endpoint: &str, name: &str) -> Result<Arc<AmazonS3>> {
    let has_keys = std::env::var_os("AWS_ACCESS_KEY_ID").is_some();
    ensure!(
        has_keys,
        "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are not set; a server that checks none takes any"
    );
    let builder = AmazonS3Builder::from_env().with_endpoint(endpoint).with_bucket_name(name);
    let store = builder.with_allow_http(true).with_http_connector(Plain).build();
    Ok(Arc::new(store.with_context(|| format!("no bucket {name:?} at {endpoint:?}"))?))
}

/// HTTP in the clear, because the gate has to see which request it holds. A program of yours leaves this out and takes the feature
/// `aws` of `object_store`, which brings a client with TLS.
#[derive(Debug)]
struct Plain;

impl HttpConnector for Plain {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(Service(Client::builder(TokioExecutor::new()).build_http())))
    }
}

#[derive(Debug)]
struct Service(Client<Tcp, Full<Bytes>>);

#[async_trait]
impl HttpService for Service {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let (parts, body) = request.into_parts();
        let body = body.collect().await?.to_bytes();
        let answered = self.0.request(http::Request::from_parts(parts, Full::new(body))).await;
        let (parts, body) =
            answered.map_err(|error| HttpError::new(HttpErrorKind::Interrupted, error))?.into_parts();
        let body = body.collect().await.map_err(|error| HttpError::new(HttpErrorKind::Interrupted, error))?;
        Ok(HttpResponse::from_parts(parts, HttpResponseBody::from(body.to_bytes())))
    }
}
