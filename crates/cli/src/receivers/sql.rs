//! Databases behind a network.

use std::str::FromStr as _;
use std::sync::Arc;

use leasehold::fence::Receiver;
use sqlx::MySqlPool;
use sqlx::mysql::MySqlConnectOptions;

const HOW: &str = "write mysql://USER@HOST/DATABASE";

pub(super) fn postgres(url: &str) -> Result<Arc<dyn Receiver>, String> {
    let fence = leasehold_fence::postgres::Fence::at(url).map_err(|error| error.to_string())?;
    Ok(Arc::new(fence))
}

/// MySQL, or MariaDB, which speaks the same.
pub(super) fn mysql(url: &str) -> Result<Arc<dyn Receiver>, String> {
    if !url.contains("://") {
        return Err(format!("it does not begin with mysql://; {HOW}"));
    }
    let options = MySqlConnectOptions::from_str(url).map_err(|error| {
        format!("{error}; {HOW}, with %2C for a comma and %40 for an at sign in a password")
    })?;
    if options.get_database().is_none_or(str::is_empty) {
        return Err(format!("it names no database; {HOW}"));
    }
    Ok(Arc::new(leasehold_fence::mysql::Fence::new(MySqlPool::connect_lazy_with(options))))
}
