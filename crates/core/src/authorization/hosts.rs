//! The hosts under whose names clients find this gateway.

use std::net::IpAddr;

use url::{Host, Url};

/// Names of this gateway besides the host of its public address.
#[derive(Debug, Clone, Default)]
pub struct OwnHosts {
    /// Names in small letters, with the ports that they are listed with.
    names: Vec<(String, Option<u16>)>,
    /// The address that the gateway listens on.
    listener: Option<IpAddr>,
}

impl OwnHosts {
    /// These host names, each with or without a port, of a gateway that listens on the address `listener`.
    #[must_use]
    pub fn new(hosts: impl IntoIterator<Item = String>, listener: Option<IpAddr>) -> Self {
        let name = |host: String| match host.to_ascii_lowercase().split_once(':') {
            // No client asks at port 0.
            Some((name, port)) => (name.to_owned(), Some(port.parse().unwrap_or_default())),
            None => (host.to_ascii_lowercase(), None),
        };
        Self { names: hosts.into_iter().map(name).collect(), listener }
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
    /// listed name counts at its port, or else at none and at that of `own`. On the machine itself `localhost` and
    /// the address that is listened on stand for `own` at its port: any program may listen on others.
    pub(super) fn admit(&self, asked: &Url, own: &Url) -> bool {
        let at = asked.port_or_known_default();
        let is_own_port = at == own.port_or_known_default();
        let is_listed_at = |port: Option<u16>| match port {
            Some(_) => at == port,
            None => asked.port().is_none() || is_own_port,
        };
        let is_own = if is_local(asked) {
            is_local(own) && is_own_port && self.listens_on(asked)
        } else {
            let host = asked.host_str();
            self.names.iter().any(|(name, port)| host == Some(name.as_str()) && is_listed_at(*port))
        };
        asked.origin() == own.origin() || (is_own && asked.scheme() == own.scheme())
    }

    /// Returns true for a name and for the address that the gateway listens on.
    fn listens_on(&self, asked: &Url) -> bool {
        match asked.host() {
            Some(Host::Ipv4(address)) => self.listener == Some(address.into()),
            Some(Host::Ipv6(address)) => self.listener == Some(address.into()),
            Some(Host::Domain(_)) | None => true,
        }
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
        let given = ["Gateway.internal", "other.internal:9443", "localhost", "bad.internal:x"];
        let listener = "127.0.0.3".parse().ok();
        let hosts = OwnHosts::new(given.map(str::to_owned), listener);
        let public = "https://gw.example/a";
        let at_port = "https://gw.example:8443";
        let local = "http://127.0.0.1:8080";
        let named = "http://localhost:8080";

        for (public, host, wanted) in [
            (public, "gw.example", public),
            (public, "GATEWAY.internal", "https://gateway.internal/a"),
            (public, "gateway.internal:443", "https://gateway.internal/a"),
            (public, "gateway.internal:8443", public),
            (public, "other.internal:9443", "https://other.internal:9443/a"),
            (public, "other.internal", public),
            (public, "bad.internal", public),
            (at_port, "gateway.internal:8443", "https://gateway.internal:8443"),
            (at_port, "gateway.internal", "https://gateway.internal"),
            (at_port, "gateway.internal:9443", at_port),
            (public, "gw.example:8443", public),
            (public, "evil.example", public),
            (public, "gateway.internal.evil.example", public),
            (public, "user@gateway.internal.", public),
            (public, "192.0.2.1", public),
            (public, "localhost", public),
            (public, "127.0.0.1", public),
            (public, "", public),
            (local, "localhost:8080", "http://localhost:8080"),
            (local, "[::1]:8080", local),
            (local, "127.0.0.2:8080", local),
            (local, "127.0.0.3:8080", "http://127.0.0.3:8080"),
            (local, "127.0.0.3:9", local),
            (named, "127.0.0.1:8080", named),
            (named, "127.0.0.3:8080", "http://127.0.0.3:8080"),
            (local, "127.0.0.1:8080", local),
            (local, "localhost", local),
            (local, "localhost:9", local),
            (local, "192.0.2.1:8080", local),
            (local, "gateway.internal:8080", "http://gateway.internal:8080"),
            (local, "gateway.internal:9", local),
        ] {
            assert_eq!(hosts.address_at(public, host), wanted, "{host} of {public}");
        }
    }
}
