//! Redis and Valkey.

use std::sync::Arc;
use std::time::Duration;

use leasehold::fence::Receiver;
use leasehold_fence::redis::Fence;
use redis::Client;
use redis::aio::{ConnectionManager, ConnectionManagerConfig};

pub(super) const NO_TLS: &str = "there is no TLS for Redis here; write redis://HOST for a server, or a tunnel to one, that takes plain connections";

/// An answer, or a connection, is waited for this long: a disk that is busy takes most of a second, and a seal is tried again.
const PATIENCE: Duration = Duration::from_secs(2);

/// A fence that connects when it is asked or sealed first.
pub(super) fn open(url: &str) -> Result<Arc<dyn Receiver>, String> {
    let words = |error: redis::RedisError| format!("{error}; write redis://[:PASSWORD@]HOST[:PORT][/NUMBER]");
    let client = Client::open(url.replacen("valkey:", "redis:", 1)).map_err(words)?;
    let info = client.get_connection_info();
    let place = format!("redis://{}/{}", info.addr(), info.redis_settings().db());
    let config = ConnectionManagerConfig::new()
        // A server that is down is an answer for the caller, not a reason to wait; and no command is sent twice.
        .set_number_of_retries(1)
        .set_connection_timeout(Some(PATIENCE))
        .set_response_timeout(Some(PATIENCE));
    let connection = ConnectionManager::new_lazy_with_config(client, config).map_err(words)?;
    Ok(Arc::new(Fence::new(place, connection)))
}
