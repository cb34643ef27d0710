//! HTTP: the headers in which a stamp travels, a layer that reads them, words for refusals, and the holder's side.
//!
//! ```text
//! PUT /reports/nightly HTTP/1.1
//! Fencing-Token: 34
//! Fencing-Name: reports/nightly
//! Fencing-Holder: worker-3
//! ```
//!
//! **Which step is atomic: none of this.** [`StampLayer`] reads the stamp and puts it into the request's extensions; it compares
//! nothing, on purpose. Whatever a layer compared would be over before the handler writes, and a pause fits in between: a check in
//! middleware is check-then-act, whatever it is called. The handler hands the stamp to its own store **in the transaction in which it
//! writes**, with the adapter of that store, and turns a refusal into an answer with [`refusal`].
//!
//! **What it needs**: what the store's adapter needs. **What it does not cover**: who may send which token. A stamp protects against
//! holders that are late, not against callers that lie; authenticate them as you do anyway. A service that cannot be changed has the
//! weaker [proxy](crate::proxy) in front of it.
//!
//! The service, with axum:
//!
//! ```
//! use axum::extract::Extension;
//! use axum::response::Response;
//! use leasehold_fence::http::{StampLayer, refusal};
//! use leasehold_fence::{Error, Stamp};
//! # async fn write_fenced(stamp: &Stamp, body: String) -> Result<(), Error> { Ok(()) }
//!
//! async fn put(Extension(stamp): Extension<Stamp>, body: String) -> Response {
//!     // One transaction: compare, raise, write.
//!     match write_fenced(&stamp, body).await {
//!         Ok(()) => Response::default(),
//!         Err(error) => refusal(&error), // 412 if the token is stale
//!     }
//! }
//!
//! let app: axum::Router = axum::Router::new()
//!     .route("/report", axum::routing::put(put))
//!     .layer(StampLayer::new().named(|_request| Some("reports/nightly".to_owned())));
//! ```
//!
//! The holder, before *each* request; the authority is the guard of its lease, so a lapsed one sends nothing:
//!
//! ```
//! use leasehold_fence::http::stamped;
//! # let guard = leasehold_fence::Stamp::new("reports/nightly", 34)?;
//!
//! let mut request = http::Request::put("http://reports.internal/report").body("...")?;
//! stamped(request.headers_mut(), &guard)?;
//! # assert_eq!(request.headers()["fencing-token"], "34");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod client;
mod layer;
mod problem;
mod stamps;

pub use client::{BadAddress, DEFAULT_ANSWER_TIMEOUT, MAX_PROBLEM_BYTES, Proxy};
pub use layer::{StampLayer, StampService, is_write};
pub use problem::{ANSWER_HEADER, CODES, Code, Problem, refusal};
pub use stamps::{HOLDER_HEADER, NAME_HEADER, TOKEN_HEADER, read, stamped};

#[cfg(feature = "proxy")]
pub(crate) use client::{A_SERVICE, ANSWER_MARK, base, client, in_words};
#[cfg(feature = "proxy")]
pub(crate) use stamps::decoded;

/// Below this path a proxy answers by itself, and forwards nothing.
pub(crate) const OWN_PATH: &str = "/.leasehold";
