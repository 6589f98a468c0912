//! DNS rebinding: a page of another site that has its name resolve to this gateway is told by the
//! names that its browser sends in `Host` and `Origin`.

use std::net::{IpAddr, SocketAddr};

use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use portcullis_core::oauth::Origin;

/// The names of this gateway, and the pages that may ask it.
#[derive(Debug, Default)]
pub struct Guard {
    /// Host names in lower case, without ports.
    hosts: Vec<String>,
    origins: Vec<Origin>,
    /// Browsers reach the gateway by `https`.
    secure: bool,
    /// Only programs of this machine can connect.
    on_loopback: bool,
}

impl Guard {
    /// For a gateway that listens on `listen`, is reached by these names besides, and by `https` if it
    /// is `secure`.
    pub fn new(
        listen: Option<SocketAddr>,
        secure: bool,
        hosts: impl IntoIterator<Item = String>,
        origins: Vec<Origin>,
    ) -> Self {
        let hosts = hosts.into_iter().map(|host| host.to_ascii_lowercase()).collect();
        let on_loopback = listen.is_some_and(|address| address.ip().is_loopback());
        Self { hosts, origins, secure, on_loopback }
    }

    /// A name that is known, or an address: no name resolves to that which its owner could change.
    pub(crate) fn knows(&self, host: &str) -> bool {
        let name = name_of(host).to_ascii_lowercase();
        let bare = name.trim_start_matches('[').trim_end_matches(']');
        bare.parse::<IpAddr>().is_ok() || name == "localhost" || self.hosts.contains(&name)
    }

    /// Returns true for the origin of a page that the operator lists.
    pub(crate) fn lists(&self, origin: &HeaderValue) -> bool {
        let origin = origin.to_str().ok().and_then(Origin::from_header);
        origin.is_some_and(|origin| self.origins.contains(&origin))
    }

    /// Returns true if browsers reach the gateway by `https`.
    pub(crate) const fn is_secure(&self) -> bool {
        self.secure
    }

    /// Returns true if a browser says that a page of this very gateway sent the request: by `Origin`,
    /// by `Sec-Fetch-Site`, or by both. Pages that the operator lists are others.
    pub(crate) fn is_own_page(
        &self,
        scheme: &str,
        host: Option<&str>,
        headers: &HeaderMap,
    ) -> bool {
        let Some(host) = host.filter(|host| self.knows(host)) else { return false };
        let one = |name: HeaderName| {
            let mut values = headers.get_all(name).iter();
            let first = values.next();
            (first.map(HeaderValue::as_bytes), values.next().is_some())
        };
        let (site, several_sites) = one(HeaderName::from_static("sec-fetch-site"));
        let (origin, several_origins) = one(header::ORIGIN);
        let same_site = site == Some(b"same-origin".as_slice());
        if several_sites || several_origins || (site.is_some() && !same_site) {
            return false;
        }
        match origin.map(|origin| str::from_utf8(origin).unwrap_or_default()) {
            // Pages without a referrer have no origin to name.
            None | Some("null") => same_site,
            Some(origin) => {
                let own = Origin::at(scheme, host);
                own.is_some() && Origin::from_header(origin) == own
            }
        }
    }

    pub(crate) fn check(
        &self,
        host: Option<&str>,
        headers: &HeaderMap,
    ) -> Result<(), &'static str> {
        let known = host.is_some_and(|host| self.knows(host));
        if !known && !self.on_loopback {
            return Err("The header `Host` names a host that this gateway does not know; the \
                        operator lists it in `mcp.hosts`.");
        }
        let mut origins = headers.get_all(header::ORIGIN).iter();
        let Some(origin) = origins.next() else { return Ok(()) };
        let origin = origin.to_str().ok().and_then(Origin::from_header);
        let scheme = if self.secure { "https" } else { "http" };
        let own = host.filter(|_| known).and_then(|host| Origin::at(scheme, host));
        let may_ask =
            |origin: Origin| Some(&origin) == own.as_ref() || self.origins.contains(&origin);
        if origins.next().is_none() && origin.is_some_and(may_ask) {
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

    fn guard(listen: &str, secure: bool) -> Guard {
        let hosts = ["Gate.acme.example".to_owned()];
        let origins = ["https://gate.acme.example", "https://app.acme.example:443/"];
        let origins = origins.iter().filter_map(|origin| Origin::parse(origin)).collect();
        Guard::new(listen.parse().ok(), secure, hosts, origins)
    }

    #[test]
    fn a_host_is_known_by_its_name_or_is_an_address() {
        let open = guard("0.0.0.0:443", true);

        for host in ["gate.acme.example", "GATE.acme.example:8443", "192.0.2.1", "[::1]:80"] {
            assert!(check(&open, host, &[]), "{host}");
        }
        for host in ["evil.example", "gate.acme.example.evil.example", "x:80"] {
            assert!(!check(&open, host, &[]), "{host}");
        }
        assert!(check(&guard("127.0.0.1:80", false), "whatever", &[]));
    }

    #[test]
    fn an_origin_is_our_own_or_listed_with_its_scheme_host_and_port() {
        let plain = guard("127.0.0.1:80", false);
        let secure = guard("0.0.0.0:443", true);

        for (guard, host, origin, wanted) in [
            (&secure, "gate.acme.example", "https://gate.acme.example", true),
            (&secure, "gate.acme.example:443", "https://gate.acme.example", true),
            (&secure, "GATE.acme.example:8443", "https://gate.acme.example:8443", true),
            (&secure, "192.0.2.1", "https://192.0.2.1:443", true),
            (&secure, "[2001:db8::1]:8443", "https://[2001:DB8:0::1]:8443", true),
            (&secure, "192.0.2.1", "https://App.acme.example", true),
            (&secure, "gate.acme.example", "http://gate.acme.example", false),
            (&secure, "gate.acme.example", "https://gate.acme.example:80", false),
            (&secure, "192.0.2.1", "http://app.acme.example", false),
            (&secure, "192.0.2.1", "https://app.acme.example:8443", false),
            (&secure, "192.0.2.1:8080", "http://192.0.2.1:8080", false),
            (&plain, "localhost:8080", "http://localhost:8080", true),
            (&plain, "localhost", "http://LOCALHOST:80", true),
            (&plain, "localhost", "https://gate.acme.example", true),
            (&plain, "localhost:8080", "https://localhost:8080", false),
            (&plain, "localhost:443", "https://localhost", false),
            (&plain, "localhost:8080", "http://localhost", false),
            (&plain, "localhost:8080", "http://localhost:9", false),
            (&plain, "localhost:8080", "ftp://localhost:8080", false),
            (&plain, "localhost:8080", "http://localhost:8080/", false),
            (&plain, "localhost:8080", "https://evil.example", false),
            (&plain, "localhost:8080", "null", false),
            (&plain, "localhost:8080", "", false),
            // A name that was made to resolve here is the same in both headers.
            (&plain, "evil.example", "http://evil.example", false),
        ] {
            assert_eq!(check(guard, host, &[origin]), wanted, "{host} {origin}");
        }
        let twice = ["http://localhost:8080", "https://evil.example"];
        assert!(!check(&plain, "localhost:8080", &twice));
        assert!(!check(&plain, "localhost:8080", &[twice[0], twice[0]]));
    }

    #[test]
    fn only_pages_of_the_gateway_itself_are_its_own() {
        let listed = Origin::parse("https://app.example").unwrap();
        let hosts = ["gw.example".to_owned()];
        let guard = Guard::new("0.0.0.0:443".parse().ok(), true, hosts, vec![listed]);
        let own = |host: &str, sent: &[(&'static str, &str)]| {
            let mut headers = HeaderMap::new();
            for (name, value) in sent {
                headers.append(*name, value.parse().unwrap());
            }
            guard.is_own_page("https", Some(host), &headers)
        };
        let origin = ("origin", "https://gw.example");
        let same = ("sec-fetch-site", "same-origin");

        assert!(own("gw.example", &[origin]));
        assert!(own("gw.example", &[same]));
        assert!(own("gw.example", &[origin, same]));
        assert!(own("gw.example", &[("origin", "null"), same]));
        for sent in [
            vec![],
            vec![("origin", "null")],
            vec![("origin", "http://gw.example")],
            vec![("origin", "https://gw.example:8443")],
            vec![("origin", "https://app.example")],
            vec![("origin", "https://app.example"), same],
            vec![origin, ("sec-fetch-site", "same-site")],
            vec![origin, ("sec-fetch-site", "none")],
            vec![origin, same, same],
            vec![origin, origin],
        ] {
            assert!(!own("gw.example", &sent), "{sent:?}");
        }
        assert!(!own("evil.example", &[("origin", "https://evil.example"), same]));
    }
}
