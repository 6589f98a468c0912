//! The host that a request is meant for: exactly one, and the same wherever it is told.

use std::net::Ipv6Addr;

use axum::{
    extract::Request,
    http::{HeaderMap, Uri, Version, header, uri::Authority},
};
use portcullis_core::refusal::Refusal;

/// Refuses a request without a host, with several, or with one that other servers on the way could
/// read in another way (RFC 9112 §3.2, RFC 9113 §8.3.1).
pub(crate) fn check(request: &Request) -> Result<(), Refusal> {
    let mut told = request.headers().get_all(header::HOST).iter();
    let first = told.next();
    let second = told.next();
    if second.is_some() {
        return Err(wrong("may stand once only"));
    }
    let first = first.map(|value| value.to_str().map_err(|_| malformed())).transpose()?;
    let authority = request.uri().authority().map(Authority::as_str);
    for told in [first, authority].into_iter().flatten() {
        if !is_host(told) {
            return Err(malformed());
        }
    }
    let Some(host) = first else {
        // Under HTTP/1.1 a target that names a host does not replace the header.
        let needless = match request.version() {
            Version::HTTP_09 | Version::HTTP_10 => true,
            Version::HTTP_11 => false,
            _ => authority.is_some(),
        };
        return if needless { Ok(()) } else { Err(wrong("is required")) };
    };
    if authority.is_some_and(|authority| !host.eq_ignore_ascii_case(authority)) {
        return Err(wrong("has to be the host that the request is sent to"));
    }
    Ok(())
}

/// The host that a request names, with or without a port.
pub(crate) fn named<'a>(headers: &'a HeaderMap, uri: &'a Uri) -> Option<&'a str> {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
    host.or_else(|| uri.authority().map(Authority::as_str))
}

fn wrong(problem: &str) -> Refusal {
    Refusal::bad_parameter("Host", format!("The header `Host` {problem}."))
}

fn malformed() -> Refusal {
    wrong("has to hold a host name or an address, and maybe a port")
}

/// Tells if `text` is a host with or without a port, and nothing besides.
fn is_host(text: &str) -> bool {
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let Some((address, rest)) = rest.split_once(']') else { return false };
            if address.parse::<Ipv6Addr>().is_err() {
                return false;
            }
            match rest.strip_prefix(':') {
                Some(port) => (address, port),
                None => return rest.is_empty(),
            }
        }
        None => text.split_once(':').unwrap_or((text, "")),
    };
    let named = |letter: u8| letter.is_ascii_alphanumeric() || b"-._~".contains(&letter);
    let is_name = text.starts_with('[') || (!host.is_empty() && host.bytes().all(named));
    let is_port = port.is_empty()
        || (port.bytes().all(|digit| digit.is_ascii_digit()) && port.parse::<u16>().is_ok());
    is_name && is_port
}

#[cfg(test)]
mod tests {
    use axum::body::Body;

    use super::*;

    fn checked(version: Version, target: &str, hosts: &[&str]) -> bool {
        let mut request = Request::get(target).version(version);
        for host in hosts {
            request = request.header(header::HOST, *host);
        }
        check(&request.body(Body::empty()).unwrap()).is_ok()
    }

    #[test]
    fn a_host_is_a_name_or_an_address_with_or_without_a_port() {
        for good in
            ["x", "gate.acme.example", "gate:8080", "127.0.0.1:1", "[::1]", "[::1]:80", "a_b", "x:"]
        {
            assert!(is_host(good), "{good}");
        }
        for bad in [
            "", ":80", "a b", "a/b", "a?b", "a#c", "u@x", "u:p@x", "x:80:80", "x:99999", "x:-1",
            "[::1", "[::1]x", "[x]", "[]", "::1", "a,b", "a\\b", "a%2eb", "x:8o",
        ] {
            assert!(!is_host(bad), "{bad}");
        }
    }

    #[test]
    fn a_request_names_one_host() {
        let both = [Version::HTTP_11, Version::HTTP_2];

        assert!(both.iter().all(|version| !checked(*version, "/", &[])));
        assert!(both.iter().all(|version| !checked(*version, "/", &["x", "x"])));
        assert!(both.iter().all(|version| !checked(*version, "http://x/", &["y"])));
        assert!(both.iter().all(|version| !checked(*version, "http://u@x/", &["u@x"])));
        assert!(both.iter().all(|version| checked(*version, "http://x/", &["X"])));
        assert!(checked(Version::HTTP_10, "/", &[]));
        assert!(checked(Version::HTTP_2, "http://x/", &[]));
        assert!(!checked(Version::HTTP_11, "http://x/", &[]));
    }
}
