//! Headers on their way through: what belongs to one connection is left behind.

use std::net::IpAddr;

use http::header::{
    CONNECTION, EXPECT, HeaderMap, HeaderName, HeaderValue, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE,
    TRAILER, TRANSFER_ENCODING, UPGRADE, VIA,
};

/// Belong to one connection, whether `Connection` names them or not.
const OF_ONE_HOP: [HeaderName; 9] = [
    CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
];
/// By these a service may take a request for one of another method.
static OVERRIDES: [HeaderName; 3] = [
    HeaderName::from_static("x-http-method-override"),
    HeaderName::from_static("x-http-method"),
    HeaderName::from_static("x-method-override"),
];
const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// Leaves behind what belongs to the connection that the message came on.
pub(super) fn leave_behind(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in named.iter().chain(&OF_ONE_HOP) {
        headers.remove(name);
    }
}

/// The header that asks for another method than the one of the request.
pub(super) fn override_in(headers: &HeaderMap) -> Option<&'static HeaderName> {
    OVERRIDES.iter().find(|name| headers.contains_key(*name))
}

/// The headers of a request on its way to the upstream. `Host` stays what the caller sent.
pub(super) fn inwards(headers: &mut HeaderMap, peer: IpAddr) {
    leave_behind(headers);
    // The proxy itself has asked for the body, or will.
    headers.remove(EXPECT);
    let before: Vec<&str> =
        headers.get_all(FORWARDED_FOR).iter().filter_map(|value| value.to_str().ok()).collect();
    let peer = peer.to_string();
    let way = before.into_iter().chain([peer.as_str()]).collect::<Vec<_>>().join(", ");
    let way = HeaderValue::from_str(&way).expect("it was made of such values and an address");
    headers.insert(FORWARDED_FOR, way);
    headers.append(VIA, HeaderValue::from_static("1.1 leasehold-fence-proxy"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_belongs_to_one_connection_is_left_behind() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("connection", "close, X-Private"),
            ("connection", "fencing-token"),
            ("keep-alive", "timeout=5"),
            ("x-private", "1"),
            ("transfer-encoding", "chunked"),
            ("te", "trailers"),
            ("expect", "100-continue"),
            ("fencing-token", "34"),
            ("content-length", "3"),
            ("host", "a"),
            ("x-forwarded-for", "10.0.0.1"),
        ] {
            headers.append(name, HeaderValue::from_static(value));
        }
        inwards(&mut headers, "10.0.0.2".parse().unwrap());
        let mut left: Vec<&str> = headers.keys().map(HeaderName::as_str).collect();
        left.sort_unstable();
        assert_eq!(left, ["content-length", "host", "via", "x-forwarded-for"]);
        assert_eq!(headers[FORWARDED_FOR], "10.0.0.1, 10.0.0.2");
    }
}
