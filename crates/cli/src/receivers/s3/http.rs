//! The way to the store: HTTP/1.1, in the clear or under TLS with the certificates that this machine trusts.
//!
//! No time-out but for connecting: whoever asks cuts what takes too long. Proxies (`HTTPS_PROXY`) are not used.

use std::error::Error as StdError;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector as Tcp;
use hyper_util::rt::TokioExecutor;
use object_store::client::{
    ClientOptions, HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse,
    HttpResponseBody, HttpService,
};
use rustls::crypto::{CryptoProvider, ring};
use rustls::{ClientConfig, RootCertStore};

/// Who takes no connection within this time is not there. Twice this, for the second try, is below the patience of the command line.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

type Trouble = Box<dyn StdError + Send + Sync>;

/// Makes the client of a store.
#[derive(Debug)]
pub(super) struct Http {
    /// Whether the store is spoken to in the clear, so that nobody needs to be trusted: a container may have no certificates at all.
    pub(super) is_plain: bool,
}

impl HttpConnector for Http {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        let mut tcp = Tcp::new();
        // The connector around it knows which addresses are HTTP.
        tcp.enforce_http(false);
        tcp.set_connect_timeout(Some(CONNECT_TIMEOUT));
        let provider = ring::default_provider();
        let builder = HttpsConnectorBuilder::new();
        let generic = |source: Trouble| object_store::Error::Generic { store: "S3", source };
        let builder = match self.is_plain {
            true => {
                builder.with_tls_config(trusting_nobody(provider).map_err(|error| generic(error.into()))?)
            }
            false => {
                builder.with_provider_and_native_roots(provider).map_err(|error| generic(error.into()))?
            }
        };
        let connector = builder.https_or_http().enable_http1().wrap_connector(tcp);
        Ok(HttpClient::new(Service(Client::builder(TokioExecutor::new()).build(connector))))
    }
}

fn trusting_nobody(provider: CryptoProvider) -> Result<ClientConfig, rustls::Error> {
    let builder =
        ClientConfig::builder_with_provider(Arc::new(provider)).with_safe_default_protocol_versions()?;
    Ok(builder.with_root_certificates(RootCertStore::empty()).with_no_client_auth())
}

#[derive(Debug)]
struct Service(Client<HttpsConnector<Tcp>, Full<Bytes>>);

#[async_trait]
impl HttpService for Service {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let (parts, body) = request.into_parts();
        let body = body.collect().await?.to_bytes();
        let answered = self.0.request(::http::Request::from_parts(parts, Full::new(body))).await;
        let (parts, body) = answered.map_err(failed)?.into_parts();
        let body = body.collect().await.map_err(|error| HttpError::new(HttpErrorKind::Interrupted, error))?;
        Ok(HttpResponse::from_parts(parts, HttpResponseBody::from(body.to_bytes())))
    }
}

/// What never connected may be sent again; of anything else nobody knows whether it arrived.
fn failed(error: hyper_util::client::legacy::Error) -> HttpError {
    let kind = if error.is_connect() { HttpErrorKind::Connect } else { HttpErrorKind::Interrupted };
    HttpError::new(kind, error)
}
