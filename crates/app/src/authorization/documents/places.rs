//! Places of fetches at addresses that strangers choose: so many of one source, and so many of one host.

use std::{net::IpAddr, sync::Arc};

use portcullis_core::oauth;
use portcullis_lanes::{SharePlace, Shares};

use crate::tenants::sources::subnet;

/// Fetches at once for clients to which somebody consented, and for all others.
const AT_ONCE: usize = 64;
/// Those of them that one source causes, and that one host answers.
const OF_A_SOURCE: usize = 2;
const OF_A_HOST: usize = 2;

/// Places of fetches.
#[derive(Debug)]
pub(super) struct Places {
    sources: Arc<Shares<IpAddr>>,
    hosts: Arc<Shares<[u8; 32]>>,
}

/// A place of one fetch, until it is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    _source: SharePlace<IpAddr>,
    _host: SharePlace<[u8; 32]>,
}

impl Places {
    pub(super) fn new() -> Self {
        let sources = Arc::new(Shares::new(AT_ONCE, OF_A_SOURCE));
        Self { sources, hosts: Arc::new(Shares::new(AT_ONCE, OF_A_HOST)) }
    }

    /// A place for what `source` asks for at `address`; `None` while there is none.
    pub(super) fn take(&self, source: IpAddr, address: &str) -> Option<Place> {
        let host = host(address).unwrap_or_default();
        let source = self.sources.take(subnet(source))?;
        Some(Place { _source: source, _host: self.hosts.take(oauth::digest(host))? })
    }
}

/// The host of an address as a parser would write it, which names no user.
pub(super) fn host(address: &str) -> Option<&str> {
    address.strip_prefix("https://").and_then(|rest| rest.split(['/', ':']).next())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_and_a_host_have_two_places_each_whatever_else_is_asked_for() {
        let places = Places::new();
        let take = |source: &str, host: &str| {
            places.take(source.parse().unwrap(), &format!("https://{host}/client.json"))
        };

        let of_source: Vec<_> =
            (0..5).map_while(|n| take("203.0.113.7", &format!("{n}.example"))).collect();
        let of_host: Vec<_> =
            (0..5).map_while(|n| take(&format!("203.0.113.1{n}"), "app.example:8443")).collect();

        assert_eq!((of_source.len(), of_host.len()), (2, 2));
        assert!(take("203.0.113.8", "other.example").is_some());
        drop(of_source);
        assert!(take("203.0.113.7", "5.example").is_some());
    }
}
