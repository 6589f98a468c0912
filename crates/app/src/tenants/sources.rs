//! Callers without a valid token, counted by where they come from.
//!
//! Only requests without a valid token are charged, so a bad neighbour behind the same NAT cannot
//! lock out valid tokens.

use std::{
    net::{IpAddr, Ipv6Addr},
    sync::Arc,
    time::Duration,
};

use moka::sync::Cache;
use portcullis_core::{
    clock::Timestamp,
    limits::{Bucket, Resource, UNAUTHENTICATED_PER_MINUTE, Window},
};

use super::Counter;

/// Remembered sources; the least used are forgotten first.
const MAX_SOURCES: u64 = 100_000;
/// Look-ups of unknown tokens, and bodies of unknown callers, that an exhausted source may still
/// cause in a window.
const TRICKLE: u32 = 10;

#[derive(Debug, Default)]
struct Source {
    failed: Counter,
    trickle: Counter,
    bodies: Counter,
}

/// The buckets of all sources.
#[derive(Debug)]
pub(crate) struct Sources {
    known: Cache<IpAddr, Arc<Source>>,
}

impl Sources {
    pub(crate) fn new() -> Self {
        let known =
            Cache::builder().max_capacity(MAX_SOURCES).time_to_idle(Duration::from_mins(2)).build();
        Self { known }
    }

    fn source(&self, address: IpAddr) -> Arc<Source> {
        self.known.get_with(subnet(address), Arc::default)
    }

    /// Charges one failed request. `Err` is the exhausted bucket.
    pub(crate) fn charge(&self, address: IpAddr, now: Timestamp) -> Result<Bucket, Bucket> {
        let window = Window::at(now, 0);
        let left = self.source(address).failed.take(window, UNAUTHENTICATED_PER_MINUTE);
        left.map(|remaining| bucket(window, remaining)).ok_or_else(|| bucket(window, 0))
    }

    /// The bucket as it stands.
    pub(crate) fn peek(&self, address: IpAddr, now: Timestamp) -> Bucket {
        let window = Window::at(now, 0);
        let left = self.known.get(&subnet(address)).map_or(UNAUTHENTICATED_PER_MINUTE, |source| {
            source.failed.remaining(window, UNAUTHENTICATED_PER_MINUTE)
        });
        bucket(window, left)
    }

    /// True if an unknown token of this source may be looked up: always while its bucket holds,
    /// then only a trickle, so that new valid tokens get in.
    pub(crate) fn may_look_up(&self, address: IpAddr, now: Timestamp) -> bool {
        if self.peek(address, now).remaining > 0 {
            return true;
        }
        self.source(address).trickle.take(Window::at(now, 0), TRICKLE).is_some()
    }

    /// Tells if a body of an unknown caller may be read, for it may hold a credential; as for look-ups.
    pub(crate) fn may_send_a_body(&self, address: IpAddr, now: Timestamp) -> bool {
        if self.peek(address, now).remaining > 0 {
            return true;
        }
        self.source(address).bodies.take(Window::at(now, 0), TRICKLE).is_some()
    }
}

fn bucket(window: Window, remaining: u32) -> Bucket {
    Bucket {
        resource: Resource::Unauthenticated,
        limit: UNAUTHENTICATED_PER_MINUTE,
        remaining,
        resets_at: window.ends_at,
    }
}

/// An IPv4 address stands for itself, an IPv6 address for its /64.
#[must_use]
pub fn subnet(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let network = address.to_bits() & !u128::from(u64::MAX);
            IpAddr::V6(Ipv6Addr::from_bits(network))
        }
        IpAddr::V4(address) => IpAddr::V4(address),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_micros(1_795_172_535_123_000);

    #[test]
    fn the_sixty_first_failure_of_a_source_is_refused_and_others_are_not() {
        let sources = Sources::new();
        let bad = "203.0.113.7".parse().unwrap();

        let passed = (0..100).filter(|_| sources.charge(bad, NOW).is_ok()).count();

        assert_eq!(passed, 60);
        assert_eq!(sources.peek("203.0.113.8".parse().unwrap(), NOW).remaining, 60);
    }

    #[test]
    fn neighbours_in_one_ipv6_network_share_a_bucket() {
        let sources = Sources::new();

        sources.charge("2001:db8::1".parse().unwrap(), NOW).unwrap();

        assert_eq!(sources.peek("2001:db8::2".parse().unwrap(), NOW).remaining, 59);
        assert_eq!(sources.peek("2001:db8:0:1::2".parse().unwrap(), NOW).remaining, 60);
    }

    #[test]
    fn an_exhausted_source_still_gets_a_trickle_of_look_ups() {
        let sources = Sources::new();
        let bad = "203.0.113.7".parse().unwrap();
        while sources.charge(bad, NOW).is_ok() {}

        let looked_up = (0..100).filter(|_| sources.may_look_up(bad, NOW)).count();

        assert_eq!(looked_up, usize::try_from(TRICKLE).unwrap());
    }
}
