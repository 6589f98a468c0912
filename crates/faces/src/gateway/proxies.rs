//! Source address of a request that comes through declared proxies.

use std::net::IpAddr;

use axum::http::HeaderMap;
use portcullis_core::token::CidrList;

/// The proxies the operator trusts to tell the client's address. None by default: then
/// `X-Forwarded-For` is never read.
#[derive(Debug, Clone, Default)]
pub struct Proxies(Option<CidrList>);

impl Proxies {
    /// The proxies in these networks are trusted.
    #[must_use]
    pub const fn new(trusted: Option<CidrList>) -> Self {
        Self(trusted)
    }

    /// Tells if `peer` is one of them.
    #[must_use]
    pub fn trust(&self, peer: IpAddr) -> bool {
        self.0.as_ref().is_some_and(|trusted| trusted.contains(peer.to_canonical()))
    }

    /// The address of the client: the nearest one that is no trusted proxy.
    #[must_use]
    pub fn client(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        let peer = peer.to_canonical();
        let Some(trusted) = &self.0 else { return peer };
        let mut client = peer;
        let values: Vec<&str> = headers
            .get_all("x-forwarded-for")
            .iter()
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(','))
            .collect();
        for hop in values.into_iter().rev() {
            if !trusted.contains(client) {
                break;
            }
            match hop.trim().parse::<IpAddr>() {
                Ok(address) => client = address.to_canonical(),
                Err(_) => break,
            }
        }
        client
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(trusted: Option<&str>, peer: &str, forwarded: &str) -> String {
        let mut headers = HeaderMap::new();
        headers.insert("x-forwarded-for", forwarded.parse().unwrap());
        let proxies = Proxies::new(trusted.map(|list| list.parse().unwrap()));
        proxies.client(peer.parse().unwrap(), &headers).to_string()
    }

    #[test]
    fn only_a_declared_proxy_is_believed_and_only_as_far_as_it_goes() {
        assert_eq!(client(None, "10.0.0.1", "203.0.113.7"), "10.0.0.1");
        assert_eq!(client(Some("10.0.0.0/8"), "203.0.113.9", "203.0.113.7"), "203.0.113.9");
        assert_eq!(client(Some("10.0.0.0/8"), "10.0.0.1", "6.6.6.6, 203.0.113.7"), "203.0.113.7");
        assert_eq!(client(Some("10.0.0.0/8"), "10.0.0.1", "203.0.113.7, 10.0.0.2"), "203.0.113.7");
        assert_eq!(client(Some("10.0.0.0/8"), "10.0.0.1", "nonsense"), "10.0.0.1");
    }
}
