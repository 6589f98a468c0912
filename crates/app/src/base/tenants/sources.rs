//! Callers without a valid token, counted by where they come from.
//!
//! **Invariant:** only requests without a valid token are charged, and what a source may still look up when it
//! has used up its requests is counted for each kind of credential. So a bad neighbour behind the same NAT locks
//! out neither tokens and sessions that this node knew within the hour, which are looked up always, nor new
//! tokens, whatever it makes up of other kinds. What all sources together look up beyond their requests has a
//! bound.

use std::{
    net::{IpAddr, Ipv6Addr},
    sync::Arc,
    time::Duration,
};

use moka::sync::Cache;
use portcullis_core::{
    clock::Timestamp,
    limits::{Bucket, Resource, Window},
};

use super::Counter;
use crate::base::caches::{Lifetime, NodeCache};

/// Look-ups of a kind that an exhausted source may cause in a window, while the node has some left.
const SHARE: u32 = 1_200;
/// Look-ups of a kind that all exhausted sources may cause in a window.
const OF_ALL: u32 = 6_000;
/// Look-ups of a kind that an exhausted source may cause in a window in any case.
const TRICKLE: u32 = 10;
/// Clients that a source may register in a window; nothing is kept of them.
const REGISTRATIONS: u32 = 600;
/// Bytes that a source and a hash take, about.
const SOURCE_BYTES: usize = 256;
const HASH_BYTES: usize = 128;
/// Time for which a valid token or cookie is remembered, and an unknown one.
const LIVE_FOR: Duration = Duration::from_hours(1);
const UNKNOWN_FOR: Duration = Duration::from_mins(1);

/// Kind of a credential that is looked up. Each has look-ups of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LookUp {
    /// A token, whose checksum was right.
    Token,
    /// The cookie of a browser session.
    Cookie,
    /// A code, a state or a link: good for one use.
    Code,
    /// A signed assertion.
    Assertion,
    /// The body of an unknown caller, which may hold any of them.
    Body,
}

/// Look-ups in a window, by kind.
#[derive(Debug, Default)]
struct LookUps {
    tokens: Counter,
    cookies: Counter,
    codes: Counter,
    assertions: Counter,
    bodies: Counter,
}

impl LookUps {
    const fn of(&self, kind: LookUp) -> &Counter {
        match kind {
            LookUp::Token => &self.tokens,
            LookUp::Cookie => &self.cookies,
            LookUp::Code => &self.codes,
            LookUp::Assertion => &self.assertions,
            LookUp::Body => &self.bodies,
        }
    }
}

#[derive(Debug, Default)]
struct Source {
    failed: Counter,
    look_ups: LookUps,
    trickle: LookUps,
    registrations: Counter,
}

/// The buckets of all sources.
#[derive(Debug)]
pub(crate) struct Sources {
    /// Requests without a valid token that a source may make in a window.
    limit: u32,
    known: Cache<IpAddr, Arc<Source>>,
    /// Look-ups of all exhausted sources.
    look_ups: LookUps,
    /// Hashes that were valid, and that were unknown, when they were looked up last.
    live: Cache<[u8; 32], ()>,
    unknown: Cache<[u8; 32], ()>,
}

impl Sources {
    pub(crate) fn new(limit: u32) -> Self {
        let (idle, live) = (Lifetime::Unused(Duration::from_mins(2)), Lifetime::Unused(LIVE_FOR));
        Self {
            limit,
            known: NodeCache::Sources.make(idle, |_, _| SOURCE_BYTES),
            look_ups: LookUps::default(),
            live: NodeCache::LiveSecrets.make(live, |_, &()| HASH_BYTES),
            unknown: NodeCache::UnknownSecrets
                .make(Lifetime::Whole(UNKNOWN_FOR), |_, &()| HASH_BYTES),
        }
    }

    fn source(&self, address: IpAddr) -> Arc<Source> {
        self.known.get_with(subnet(address), Arc::default)
    }

    /// Charges one failed request. `Err` is the exhausted bucket.
    pub(crate) fn charge(&self, address: IpAddr, now: Timestamp) -> Result<Bucket, Bucket> {
        let window = Window::at(now, 0);
        let left = self.source(address).failed.take(window, self.limit);
        left.map(|remaining| self.bucket(window, remaining)).ok_or_else(|| self.bucket(window, 0))
    }

    /// Counts a registration of a client. `Err` is the bucket of a source that has made too many.
    pub(crate) fn register(&self, address: IpAddr, now: Timestamp) -> Result<(), Bucket> {
        let window = Window::at(now, 0);
        let taken = self.source(address).registrations.take(window, REGISTRATIONS);
        let exhausted = || Bucket { limit: REGISTRATIONS, ..self.bucket(window, 0) };
        taken.map(drop).ok_or_else(exhausted)
    }

    /// The bucket as it stands.
    pub(crate) fn peek(&self, address: IpAddr, now: Timestamp) -> Bucket {
        let window = Window::at(now, 0);
        let source = self.known.get(&subnet(address));
        let left = source.map_or(self.limit, |it| it.failed.remaining(window, self.limit));
        self.bucket(window, left)
    }

    /// Returns true if a credential of this source may be looked up: always while its bucket holds, then as many
    /// as are left of its share and of those of the node, or of a trickle.
    pub(crate) fn may_look_up(&self, kind: LookUp, address: IpAddr, now: Timestamp) -> bool {
        self.peek(address, now).remaining > 0 || self.has_look_up(kind, address, now)
    }

    /// The same for the hash of a token or a cookie: always as well if it was valid within the hour, and not if
    /// it was unknown a moment ago.
    pub(crate) fn may_look_up_hash(
        &self,
        kind: LookUp,
        hash: &[u8; 32],
        address: IpAddr,
        now: Timestamp,
    ) -> bool {
        self.peek(address, now).remaining > 0
            || self.live.contains_key(hash)
            || (!self.unknown.contains_key(hash) && self.has_look_up(kind, address, now))
    }

    fn has_look_up(&self, kind: LookUp, address: IpAddr, now: Timestamp) -> bool {
        let window = Window::at(now, 0);
        let source = self.source(address);
        let own = source.look_ups.of(kind);
        let has_share = own.remaining(window, SHARE) > 0
            && self.look_ups.of(kind).take(window, OF_ALL).is_some()
            && own.take(window, SHARE).is_some();
        has_share || source.trickle.of(kind).take(window, TRICKLE).is_some()
    }

    const fn bucket(&self, window: Window, remaining: u32) -> Bucket {
        let resource = Resource::Unauthenticated;
        Bucket { resource, limit: self.limit, remaining, resets_at: window.ends_at }
    }

    /// Remembers that the token or cookie of this hash was found to be valid.
    pub(crate) fn note_live(&self, hash: &[u8; 32]) {
        // Reading it keeps it, too.
        if self.live.get(hash).is_none() {
            self.live.insert(*hash, ());
        }
    }

    /// Remembers that there is no valid token or cookie of this hash.
    pub(crate) fn note_unknown(&self, hash: &[u8; 32]) {
        self.live.invalidate(hash);
        self.unknown.insert(*hash, ());
    }

    /// Tells if a body of an unknown caller may be read, for it may hold a credential; as for look-ups.
    pub(crate) fn may_send_a_body(&self, address: IpAddr, now: Timestamp) -> bool {
        self.may_look_up(LookUp::Body, address, now)
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
        let sources = Sources::new(60);
        let bad = "203.0.113.7".parse().unwrap();

        let passed = (0..100).filter(|_| sources.charge(bad, NOW).is_ok()).count();

        assert_eq!(passed, 60);
        assert_eq!(sources.peek("203.0.113.8".parse().unwrap(), NOW).remaining, 60);
    }

    #[test]
    fn neighbours_in_one_ipv6_network_share_a_bucket() {
        let sources = Sources::new(60);

        sources.charge("2001:db8::1".parse().unwrap(), NOW).unwrap();

        assert_eq!(sources.peek("2001:db8::2".parse().unwrap(), NOW).remaining, 59);
        assert_eq!(sources.peek("2001:db8:0:1::2".parse().unwrap(), NOW).remaining, 60);
    }

    #[test]
    fn an_exhausted_source_looks_up_its_share_of_each_kind_and_all_together_no_more_than_the_node_may()
     {
        let sources = Sources::new(60);
        let looked_up = |kind: LookUp, number: u8| {
            let from = IpAddr::from([203, 0, 113, number]);
            while sources.charge(from, NOW).is_ok() {}
            (0..2_000).filter(|_| sources.may_look_up(kind, from, NOW)).count()
        };

        let cookies: Vec<usize> = (0..7).map(|number| looked_up(LookUp::Cookie, number)).collect();

        let (share, trickle) = (SHARE as usize, TRICKLE as usize);
        assert_eq!(cookies[..5], [share + trickle; 5]);
        assert_eq!(cookies[5..], [trickle; 2], "the node has no more");
        assert_eq!(
            looked_up(LookUp::Token, 0),
            share + trickle,
            "tokens have look-ups of their own"
        );
    }

    #[test]
    fn a_hash_that_was_live_is_looked_up_always_and_one_that_was_unknown_is_not() {
        let sources = Sources::new(60);
        let bad = "203.0.113.7".parse().unwrap();
        sources.note_live(&[1; 32]);
        sources.note_unknown(&[2; 32]);
        while sources.charge(bad, NOW).is_ok() {}
        let may = |byte: u8| sources.may_look_up_hash(LookUp::Token, &[byte; 32], bad, NOW);

        assert!(!may(2), "nothing is spent on it");
        while may(3) {}
        assert!((0..100).all(|_| may(1)));
        sources.note_unknown(&[1; 32]);
        assert!(!may(1), "it was revoked");
    }
}
