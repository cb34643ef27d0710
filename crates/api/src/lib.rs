//! The interface in one place: what each call takes, what it answers, and every way in which it can be refused.
//!
//! HTTP, the command's `--json` and the OpenAPI document are written from these types; gRPC decodes into the same requests and has the same error
//! codes. A field or a word that stands here stands nowhere else. Times are lengths in milliseconds whose names end in `_ms`; tokens, revisions and ids
//! are decimal strings, because a JSON number loses the last digits of one.
//!
//! What it does not do: it asks no node, reads no clock and knows no socket.

pub mod answer;
pub mod call;
pub mod code;
mod error;
mod key;
#[cfg(feature = "openapi")]
pub mod openapi;
pub mod request;
mod text;
pub mod view;
pub mod word;

pub use error::{ApiError, bad_field, refusal_code};
pub use key::{BadNonce, BadSessionKey, SessionKey, parse_nonce};
pub use text::{Hex, Number, Object, TokenNumber, quoted};
