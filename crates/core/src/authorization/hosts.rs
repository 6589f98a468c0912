//! The hosts under whose names clients find this gateway.

use url::{Host, Url};

/// Names of this gateway besides the host of its public address.
#[derive(Debug, Clone, Default)]
pub struct OwnHosts(Vec<String>);

impl OwnHosts {
    /// These host names, without ports.
    #[must_use]
    pub fn new(hosts: impl IntoIterator<Item = String>) -> Self {
        Self(hosts.into_iter().map(|host| host.to_ascii_lowercase()).collect())
    }

    /// The address of the gateway for a client that asked at `host`, with or without a port: `public_url` at that
    /// host. Of a host that is none of the gateway's it is `public_url` itself.
    #[must_use]
    pub fn address_at(&self, public_url: &str, host: &str) -> String {
        self.own_address(public_url, host).unwrap_or_else(|| public_url.to_owned())
    }

    fn own_address(&self, public_url: &str, host: &str) -> Option<String> {
        let own = Url::parse(public_url).ok()?;
        let asked = Url::parse(&format!("{}://{host}", own.scheme())).ok()?;
        let path = own.path().trim_end_matches('/');
        self.admit(&asked, &own).then(|| format!("{}{path}", asked.origin().ascii_serialization()))
    }

    /// Returns true if `asked` is at a host of the gateway, whose public address is `own`, by the same scheme. A
    /// listed name counts at any port; names of the machine itself stand for each other at one port.
    pub(super) fn admit(&self, asked: &Url, own: &Url) -> bool {
        let is_own = if is_local(asked) {
            is_local(own) && asked.port_or_known_default() == own.port_or_known_default()
        } else {
            asked.host_str().is_some_and(|host| self.0.iter().any(|it| it == host))
        };
        asked.origin() == own.origin() || (is_own && asked.scheme() == own.scheme())
    }
}

/// Returns true for `localhost` and addresses of the machine itself.
fn is_local(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_the_host_that_was_asked_if_it_is_one_of_the_gateways() {
        let hosts = OwnHosts::new(["Gateway.internal".to_owned(), "localhost".to_owned()]);
        let public = "https://gw.example/a";
        let local = "http://127.0.0.1:8080";

        for (public, host, wanted) in [
            (public, "gw.example", public),
            (public, "GATEWAY.internal", "https://gateway.internal/a"),
            (public, "gateway.internal:443", "https://gateway.internal/a"),
            (public, "gateway.internal:8443", "https://gateway.internal:8443/a"),
            (public, "gw.example:8443", public),
            (public, "evil.example", public),
            (public, "gateway.internal.evil.example", public),
            (public, "user@gateway.internal.", public),
            (public, "192.0.2.1", public),
            (public, "localhost", public),
            (public, "127.0.0.1", public),
            (public, "", public),
            (local, "localhost:8080", "http://localhost:8080"),
            (local, "[::1]:8080", "http://[::1]:8080"),
            (local, "127.0.0.1:8080", local),
            (local, "localhost", local),
            (local, "localhost:9", local),
            (local, "192.0.2.1:8080", local),
            (local, "gateway.internal:9", "http://gateway.internal:9"),
        ] {
            assert_eq!(hosts.address_at(public, host), wanted, "{host} of {public}");
        }
    }
}
