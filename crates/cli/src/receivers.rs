//! Receivers by URL: whatever is protected, for `fence-check` and for sealing at a grant.

use std::sync::Arc;

use leasehold::fence::Receiver;

const KNOWN: &str = "receivers are postgres://HOST/DATABASE, redis://HOST, file:PATH (the file that is protected) and http://HOST:PORT \
                     (a fence-proxy)";

/// Opens the receiver behind a URL. What is wrong with it, or keeps it from being opened, is said in words without its password.
pub(crate) async fn open(url: &str) -> Result<Arc<dyn Receiver>, String> {
    let (scheme, rest) = url.split_once(':').unwrap_or(("", url));
    let opened = match scheme {
        "postgres" | "postgresql" => postgres(url),
        "redis" | "rediss" | "valkey" => redis(url).await,
        "file" if !rest.is_empty() => file(rest),
        "http" => http(url),
        _ => Err(KNOWN.to_owned()),
    };
    opened.map_err(|why| format!("receiver {:?}: {why}", without_password(url)))
}

fn postgres(url: &str) -> Result<Arc<dyn Receiver>, String> {
    let fence = leasehold_fence::postgres::Fence::at(url).map_err(|error| error.to_string())?;
    Ok(Arc::new(fence))
}

async fn redis(url: &str) -> Result<Arc<dyn Receiver>, String> {
    let url = url.replacen("valkey:", "redis:", 1);
    let fence = leasehold_fence::redis::Fence::open(&url).await.map_err(|error| error.to_string())?;
    Ok(Arc::new(fence))
}

fn file(path: &str) -> Result<Arc<dyn Receiver>, String> {
    let fence = leasehold_fence::files::Fence::new(path).map_err(|error| error.to_string())?;
    Ok(Arc::new(fence))
}

fn http(url: &str) -> Result<Arc<dyn Receiver>, String> {
    let proxy = leasehold_fence::http::Proxy::new(url).map_err(|error| error.to_string())?;
    Ok(Arc::new(proxy))
}

/// The same URL for people and logs.
fn without_password(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let (place, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    match place.rsplit_once('@') {
        Some((user, host)) => {
            let user = user.split(':').next().unwrap_or_default();
            format!("{scheme}://{user}@{host}{path}")
        }
        None => url.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_not_repeated() {
        assert_eq!(without_password("postgres://app:secret@db:5432/x?a=b"), "postgres://app@db:5432/x?a=b");
        assert_eq!(without_password("redis://:p@ss@cache"), "redis://@cache");
        assert_eq!(without_password("redis://cache/1"), "redis://cache/1");
        assert_eq!(without_password("file:/x@y"), "file:/x@y");
    }

    #[tokio::test]
    async fn what_is_no_receiver_is_named_with_those_that_are() {
        for url in ["", "nonsense", "ftp://host/x"] {
            let said = open(url).await.map(drop).expect_err("it is none");
            assert!(said.starts_with(&format!("receiver {url:?}: receivers are postgres://")), "{said}");
        }
    }
}
