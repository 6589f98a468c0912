//! Fixed 60-second windows and what is left in them.

use aws_lc_rs::digest;

use crate::{clock::Timestamp, id::OrgId, principal::Plan};

/// Length of a window in seconds.
pub const WINDOW_SECONDS: i64 = 60;

crate::words! {
    /// Resource that a limit counts.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum Resource {
        /// Authenticated requests of an org.
        Requests = "requests",
        /// Invocations of an org.
        Invocations = "invocations",
        /// Failed requests of one source address.
        Unauthenticated = "unauthenticated",
    }
}

impl Resource {
    /// Returns the amount that `plan` allows in a window; sources without a token get what is usual.
    #[must_use]
    pub const fn limit(self, plan: Plan) -> u32 {
        match self {
            Self::Requests => plan.requests_per_minute(),
            Self::Invocations => plan.invocations_per_minute(),
            Self::Unauthenticated => UNAUTHENTICATED_PER_MINUTE,
        }
    }
}

/// Failed requests one source may make in a minute, unless the operator says otherwise.
pub const UNAUTHENTICATED_PER_MINUTE: u32 = 60;

/// One window: which it is and when it ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// Counts windows since the epoch; equal numbers are the same window.
    pub number: i64,
    /// Unix time in seconds at which the next window begins.
    pub ends_at: i64,
}

impl Window {
    /// The window that `now` lies in, for boundaries shifted by `offset` seconds.
    #[must_use]
    pub const fn at(now: Timestamp, offset: i64) -> Self {
        let number = (now.as_seconds() - offset).div_euclid(WINDOW_SECONDS);
        Self { number, ends_at: (number + 1) * WINDOW_SECONDS + offset }
    }

    /// Whole seconds from `now` until the window ends, at least 1.
    #[must_use]
    pub fn seconds_left(self, now: Timestamp) -> i64 {
        let micros = self.ends_at * 1_000_000 - now.as_micros();
        micros.div_euclid(1_000_000).saturating_add(i64::from(micros % 1_000_000 != 0)).max(1)
    }
}

/// An org's window boundary: SHA-256 of its id, modulo 60, so that tenants do not all reset on
/// the minute and every node agrees without talking.
#[must_use]
pub fn window_offset(org: OrgId) -> i64 {
    let hash = digest::digest(&digest::SHA256, org.to_string().as_bytes());
    let remainder =
        hash.as_ref().iter().fold(0u32, |sum, byte| (sum * 256 + u32::from(*byte)) % 60);
    i64::from(remainder)
}

/// One bucket as a caller sees it after this request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bucket {
    pub resource: Resource,
    /// Size of the bucket in this window.
    pub limit: u32,
    pub remaining: u32,
    /// Unix time in seconds when `remaining` is `limit` again.
    pub resets_at: i64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_ends_on_its_offset_and_the_next_begins_there() {
        let before = Window::at(Timestamp::from_micros(119_999_999), 0);
        let after = Window::at(Timestamp::from_micros(120_000_000), 0);
        let shifted = Window::at(Timestamp::from_micros(120_000_000), 7);

        assert_eq!((before.number, before.ends_at), (1, 120));
        assert_eq!((after.number, after.ends_at), (2, 180));
        assert_eq!((shifted.number, shifted.ends_at), (1, 127));
    }

    #[test]
    fn the_seconds_left_are_never_too_few() {
        let window = Window { number: 1, ends_at: 120 };

        assert_eq!(window.seconds_left(Timestamp::from_micros(119_999_999)), 1);
        assert_eq!(window.seconds_left(Timestamp::from_micros(118_000_001)), 2);
        assert_eq!(window.seconds_left(Timestamp::from_micros(60_000_000)), 60);
    }

    #[test]
    fn the_offset_is_the_hash_modulo_sixty() {
        let org: OrgId = "org_01M754BKTKX1YB8Q05NMW9TP4G".parse().unwrap();

        let offset = window_offset(org);

        assert_eq!(offset, 15);
    }
}
