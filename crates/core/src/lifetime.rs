//! Lifetimes of tokens: the default when nothing is asked for, and the maximum.

use crate::{clock::Timestamp, id::PrincipalKind};

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

/// The shortest life that can be asked for, in seconds.
pub const SHORTEST: i64 = MINUTE;
/// The longest life of an exchanged access token, in seconds.
pub const LONGEST: i64 = 12 * HOUR;
/// The longest life of a grant from its login on, in seconds.
pub const LONGEST_GRANT: i64 = 30 * DAY;

/// Lifetime of a grant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GrantLife {
    /// A refresh token that is not used for so many seconds is worth nothing.
    pub idle: i64,
    /// From its login on a grant lasts so many seconds, however often it is refreshed.
    pub absolute: i64,
}

impl Default for GrantLife {
    fn default() -> Self {
        Self { idle: DAY, absolute: 7 * DAY }
    }
}

impl GrantLife {
    /// When the refresh tokens of a grant that begins `now` end at the latest.
    #[must_use]
    pub fn ends_at(self, now: Timestamp) -> Timestamp {
        now.plus_seconds(self.absolute.min(LONGEST_GRANT))
    }

    /// When a refresh token made `now` ends, in a grant that lasts until `grant_ends_at`.
    #[must_use]
    pub fn refresh_expiry(self, now: Timestamp, grant_ends_at: Timestamp) -> Timestamp {
        now.plus_seconds(self.idle).min(grant_ends_at)
    }
}

/// Lifetime of an access token that is exchanged for a credential.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AccessLife {
    /// Seconds when nothing is asked for; all there is when absent.
    usual: Option<i64>,
    /// Seconds at most.
    longest: Option<i64>,
    /// A token never outlives what it is made from.
    parent_ends_at: Option<Timestamp>,
}

impl AccessLife {
    /// After a login under a trust rule that allows `rule` seconds: an hour for a user, 15 minutes
    /// for a service account, when nothing is asked for.
    #[must_use]
    pub fn of_login(kind: PrincipalKind, rule: Option<i64>) -> Self {
        let usual = match kind {
            PrincipalKind::User => HOUR,
            PrincipalKind::Service => 15 * MINUTE,
        };
        let longest = Some(rule.unwrap_or(LONGEST).min(LONGEST));
        Self { usual: Some(usual), longest, parent_ends_at: None }
    }

    /// For what is made from a token: all that is left of it, when nothing is asked for.
    #[must_use]
    pub const fn of_token(ends_at: Timestamp) -> Self {
        Self { usual: None, longest: None, parent_ends_at: Some(ends_at) }
    }

    /// For what is made from a token that is only there to be exchanged: it stands for a login.
    #[must_use]
    pub fn of_exchange_only(kind: PrincipalKind, ends_at: Timestamp) -> Self {
        Self { parent_ends_at: Some(ends_at), ..Self::of_login(kind, None) }
    }

    /// Returns the lifetime that meets both bounds, as a delegation needs it.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            usual: shorter(self.usual, other.usual),
            longest: shorter(self.longest, other.longest),
            parent_ends_at: shorter(self.parent_ends_at, other.parent_ends_at),
        }
    }

    /// The same bounds, and `seconds` when nothing is asked for.
    #[must_use]
    pub const fn usually(self, seconds: i64) -> Self {
        Self { usual: Some(seconds), ..self }
    }

    /// When the token ends. What is `asked` for beyond a bound is cut to it.
    #[must_use]
    pub fn ends_at(self, now: Timestamp, asked: Option<i64>) -> Timestamp {
        let seconds = shorter(asked.or(self.usual), self.longest);
        let ends_at =
            shorter(seconds.map(|seconds| now.plus_seconds(seconds)), self.parent_ends_at);
        // Each of the three constructors sets a bound.
        ends_at.unwrap_or(now)
    }
}

fn shorter<T: Ord>(one: Option<T>, other: Option<T>) -> Option<T> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lives_are_as_long_as_asked_within_their_bounds() {
        let now = Timestamp::default();
        let user = PrincipalKind::User;
        let service = PrincipalKind::Service;
        let login = AccessLife::of_login;
        let token = |seconds| AccessLife::of_token(now.plus_seconds(seconds));
        let exchanged = |seconds| {
            AccessLife::of_exchange_only(PrincipalKind::Service, now.plus_seconds(seconds))
        };
        for (life, asked, wanted) in [
            (login(user, None), None, HOUR),
            (login(user, None), Some(60), 60),
            (login(user, None), Some(13 * HOUR), 12 * HOUR),
            (login(user, None), Some(i64::MAX), 12 * HOUR),
            (login(user, Some(600)), None, 600),
            (login(user, Some(600)), Some(601), 600),
            (login(service, None), None, 900),
            (login(service, Some(HOUR)), None, 900),
            (login(service, Some(HOUR)), Some(HOUR), HOUR),
            (login(service, Some(DAY)), Some(DAY), 12 * HOUR),
            (token(50 * DAY), None, 50 * DAY),
            (token(50 * DAY), Some(120), 120),
            (token(30), Some(DAY), 30),
            (token(30), Some(i64::MAX), 30),
            (exchanged(50 * DAY), None, 900),
            (exchanged(50 * DAY), Some(50 * DAY), 12 * HOUR),
            (exchanged(30), None, 30),
            (login(user, Some(300)).and(token(9000)), None, 300),
            (login(user, Some(300)).and(token(9000)), Some(HOUR), 300),
            (login(user, Some(HOUR)).and(token(200)), Some(HOUR), 200),
            (token(9000).and(token(200)), None, 200),
        ] {
            assert_eq!(life.ends_at(now, asked), now.plus_seconds(wanted), "{asked:?} {life:?}");
        }
    }

    #[test]
    fn a_grant_ends_although_it_is_refreshed() {
        let life = GrantLife::default();
        let now = Timestamp::default();
        let ends_at = life.ends_at(now);

        assert_eq!(ends_at, now.plus_seconds(7 * DAY));
        assert_eq!(life.refresh_expiry(now, ends_at), now.plus_seconds(DAY));
        let late = now.plus_seconds(7 * DAY - 5);
        assert_eq!(life.refresh_expiry(late, ends_at), ends_at);
        let greedy = GrantLife { idle: DAY, absolute: 90 * DAY };
        assert_eq!(greedy.ends_at(now), now.plus_seconds(30 * DAY));
    }
}
