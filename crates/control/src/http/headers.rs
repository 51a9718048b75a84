//! What every answer says to browsers: run nothing from elsewhere, be in no frame of others, guess no types, tell nobody where the user was.
//!
//! By the door without TLS only who means this host is answered: the page of another site whose name leads to loopback is not (DNS rebinding).

use crate::caller::Peer;
use axum::extract::{ConnectInfo, Request};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use serve::error::ApiError;
use std::net::IpAddr;

/// No script, style, picture, frame or request but of this origin; no form but to it (CSP level 3).
const CSP: &str = "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'";

const ALWAYS: [(HeaderName, &str); 5] = [
    (header::CONTENT_SECURITY_POLICY, CSP),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

/// Adds them to an answer. What says nothing else is not to be kept.
pub async fn around(
    ConnectInfo(peer): ConnectInfo<Peer>,
    request: Request,
    next: Next,
) -> Response {
    let mut response = if peer.is_near() && !names_loopback(request.headers()) {
        let cause = "the request is for another host, and this door is for loopback alone".into();
        ApiError::of_request(StatusCode::MISDIRECTED_REQUEST, cause).into_response()
    } else {
        next.run(request).await
    };
    let headers = response.headers_mut();
    for (name, value) in ALWAYS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

/// Whether the `Host` of a request is a loopback address, or `localhost`.
fn names_loopback(headers: &HeaderMap) -> bool {
    let mut hosts = headers.get_all(header::HOST).iter();
    let (Some(host), None) = (hosts.next().and_then(|host| host.to_str().ok()), hosts.next())
    else {
        return false;
    };
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let address = name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    name == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_meant_by_its_addresses_and_its_name_alone() {
        let is = |hosts: &[&str]| {
            let mut headers = HeaderMap::new();
            for host in hosts {
                headers.append(header::HOST, host.parse().unwrap());
            }
            names_loopback(&headers)
        };
        for good in ["localhost", "localhost:80", "127.0.0.1:8080", "127.0.0.2", "[::1]:1", "[::1]"]
        {
            assert!(is(&[good]), "{good}");
        }
        for bad in [
            "",
            "evil.example",
            "evil.example:80",
            "192.0.2.1:80",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
        ] {
            assert!(!is(&[bad]), "{bad}");
        }
        assert!(!is(&[]) && !is(&["localhost", "evil.example"]));
    }
}
