//! DNS rebinding: a page of another site that has its name resolve to this gateway is told by the
//! names that its browser sends in `Host` and `Origin`.

use std::net::{IpAddr, SocketAddr};

use axum::{
    extract::Request,
    http::{HeaderMap, header, uri::Authority},
};
use portcullis_core::{mcp::ProtocolError, refusal::Refusal};

use super::super::{Gateway, exchange::Exchange, outcome::Outcome};

/// The names of this gateway, and the pages that may ask it.
#[derive(Debug, Default)]
pub(crate) struct Guard {
    /// Host names in lower case, without ports.
    hosts: Vec<String>,
    /// Origins in lower case.
    origins: Vec<String>,
    /// Only programs of this machine can connect.
    on_loopback: bool,
}

impl Guard {
    /// For a gateway that listens on `listen` and is known by these names besides.
    pub(crate) fn new(
        listen: Option<SocketAddr>,
        hosts: impl IntoIterator<Item = String>,
        origins: impl IntoIterator<Item = String>,
    ) -> Self {
        let lower = |text: String| text.trim_end_matches('/').to_ascii_lowercase();
        Self {
            hosts: hosts.into_iter().map(lower).collect(),
            origins: origins.into_iter().map(lower).collect(),
            on_loopback: listen.is_some_and(|address| address.ip().is_loopback()),
        }
    }

    /// A name that is known, or an address: no name resolves to that which its owner could change.
    fn knows(&self, host: &str) -> bool {
        let name = name_of(host).to_ascii_lowercase();
        let bare = name.trim_start_matches('[').trim_end_matches(']');
        bare.parse::<IpAddr>().is_ok() || name == "localhost" || self.hosts.contains(&name)
    }

    fn check(&self, host: Option<&str>, headers: &HeaderMap) -> Result<(), &'static str> {
        let known = host.is_some_and(|host| self.knows(host));
        if !known && !self.on_loopback {
            return Err("The header `Host` names a host that this gateway does not know; the \
                        operator lists it in `mcp.hosts`.");
        }
        let mut origins = headers.get_all(header::ORIGIN).iter();
        let Some(origin) = origins.next() else { return Ok(()) };
        let origin = origin.to_str().unwrap_or_default().to_ascii_lowercase();
        let authority = origin.split_once("://").map(|(_, authority)| authority);
        let same = known && host.is_some_and(|host| Some(&*host.to_ascii_lowercase()) == authority);
        if origins.next().is_none() && (same || self.origins.contains(&origin)) {
            return Ok(());
        }
        Err(
            "Pages of this `Origin` may not use this gateway; the operator lists those that may in \
             `mcp.origins`.",
        )
    }
}

/// The part of a host before its port.
fn name_of(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|digit| digit.is_ascii_digit()) => name,
        Some(_) | None => host,
    }
}

/// The answer to a request that a page of a stranger may have sent: 403, before its token is looked
/// at.
pub(super) fn forbidden(
    request: &Request,
    gateway: &Gateway,
    exchange: &Exchange,
) -> Option<Outcome> {
    let host = request.headers().get(header::HOST).and_then(|host| host.to_str().ok());
    let host = host.or_else(|| request.uri().authority().map(Authority::as_str));
    let message = gateway.mcp.guard.check(host, request.headers()).err()?;
    let refusal = Refusal::bad_request(message);
    let charged = gateway.app.quotas.charge_source(refusal.clone(), &exchange.origin).refusal;
    if charged != refusal {
        return Some(charged.into());
    }
    let forbidden = ProtocolError::bad(portcullis_core::mcp::code::INVALID_REQUEST, message);
    Some(ProtocolError { http_status: 403, ..forbidden }.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(guard: &Guard, host: &str, origins: &[&str]) -> bool {
        let mut headers = HeaderMap::new();
        for origin in origins {
            headers.append(header::ORIGIN, origin.parse().unwrap());
        }
        guard.check(Some(host), &headers).is_ok()
    }

    fn guard(listen: &str) -> Guard {
        let hosts = ["Gate.acme.example".to_owned()];
        let origins =
            ["https://gate.acme.example".to_owned(), "https://app.acme.example/".to_owned()];
        Guard::new(listen.parse().ok(), hosts, origins)
    }

    #[test]
    fn a_host_is_known_by_its_name_or_is_an_address() {
        let open = guard("0.0.0.0:443");

        for host in ["gate.acme.example", "GATE.acme.example:8443", "192.0.2.1", "[::1]:80"] {
            assert!(check(&open, host, &[]), "{host}");
        }
        for host in ["evil.example", "gate.acme.example.evil.example", "x:80"] {
            assert!(!check(&open, host, &[]), "{host}");
        }
        assert!(check(&guard("127.0.0.1:80"), "whatever", &[]));
    }

    #[test]
    fn an_origin_is_our_own_or_listed() {
        for guard in [guard("0.0.0.0:443"), guard("127.0.0.1:80")] {
            assert!(check(&guard, "gate.acme.example", &["https://gate.acme.example"]));
            assert!(check(&guard, "localhost:8080", &["http://localhost:8080"]));
            assert!(check(&guard, "gate.acme.example", &["https://APP.acme.example"]));
            for origin in ["https://evil.example", "null", "", "http://localhost:9"] {
                assert!(!check(&guard, "localhost:8080", &[origin]), "{origin}");
            }
            let twice = ["http://localhost:8080", "https://evil.example"];
            assert!(!check(&guard, "localhost:8080", &twice));
        }
        // A name that was made to resolve here is the same in both headers.
        assert!(!check(&guard("127.0.0.1:80"), "evil.example", &["http://evil.example"]));
    }
}
