//! One server with the S3 interface for all tests, and stores over it.

use std::sync::OnceLock;
use std::time::Duration;

use leasehold_kit::Receiver as _;
use leasehold_kit::s3::Server;
use object_store::aws::{AmazonS3, AmazonS3Builder, S3ConditionalPut};
use object_store::{BackoffConfig, RetryConfig};

use crate::object_store::http::Http;

pub(crate) const BUCKET: &str = "fenced";

/// The address of one server with a bucket that every test may use under paths of its own.
pub(crate) fn url() -> &'static str {
    static SERVER: OnceLock<(Server, String)> = OnceLock::new();
    let start = || {
        let server = Server::start().unwrap();
        server.make_bucket(BUCKET).unwrap();
        let url = server.url();
        (server, url)
    };
    &SERVER.get_or_init(start).1
}

pub(crate) fn store(http: &Http, conditional: S3ConditionalPut) -> AmazonS3 {
    store_at(url(), http, conditional)
}

pub(crate) fn store_at(url: &str, http: &Http, conditional: S3ConditionalPut) -> AmazonS3 {
    let backoff = BackoffConfig {
        init_backoff: Duration::from_millis(10),
        max_backoff: Duration::from_millis(50),
        ..BackoffConfig::default()
    };
    let retry = RetryConfig { backoff, max_retries: 3, retry_timeout: Duration::from_secs(20) };
    AmazonS3Builder::new()
        .with_endpoint(url)
        .with_allow_http(true)
        .with_bucket_name(BUCKET)
        .with_region("us-east-1")
        .with_access_key_id("test")
        .with_secret_access_key("test")
        .with_conditional_put(conditional)
        .with_retry(retry)
        .with_http_connector(http.clone())
        .build()
        .unwrap()
}
