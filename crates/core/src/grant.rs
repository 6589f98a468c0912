//! State machine of a grant: the worth of a refresh token when it is presented.
//!
//! A grant is what begins with one login. At any moment at most one of its refresh tokens is
//! unspent. Spending it buys the next pair; the token spent last is answered with that same pair
//! for a little while, for the answer may have been lost on its way. Whatever else a spent token
//! is presented for is taken as theft: the grant ends.

mod sealed;

pub use self::sealed::TokenPair;

use crate::clock::Timestamp;

/// Seconds for which the pair that a spent refresh token bought is given out again.
pub const RETRY_SECONDS: i64 = 30;
/// The same for tokens of OAuth clients, which run in several processes that refresh at once.
pub const CLIENT_RETRY_SECONDS: i64 = 45;

/// State of one refresh token of a grant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RefreshState {
    /// From when on it is not accepted: it was idle for too long, or the grant ends.
    pub expires_at: Timestamp,
    /// True if it, or what it came from, was revoked.
    pub revoked: bool,
    /// When it was spent, and what became of its successor.
    pub spent: Option<Spent>,
    /// Seconds for which the pair that it bought is given out again.
    pub retry_seconds: i64,
}

/// A refresh token that has bought its pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spent {
    pub at: Timestamp,
    /// True if the refresh token of that pair was spent as well.
    pub successor_spent: bool,
}

/// Answer to a refresh token that is presented.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presented {
    /// Spend it for a new pair.
    Fresh,
    /// Give the pair it bought once more.
    Repeated,
    /// Spent before: revoke the grant.
    Reused,
    Expired,
    Revoked,
}

impl RefreshState {
    /// Returns the answer to a token in this state at `now`.
    #[must_use]
    pub fn presented(&self, now: Timestamp) -> Presented {
        match self.spent {
            _ if self.revoked => Presented::Revoked,
            Some(Spent { at, successor_spent: false })
                if now <= at.plus_seconds(self.retry_seconds) =>
            {
                Presented::Repeated
            }
            Some(_) => Presented::Reused,
            None if self.expires_at <= now => Presented::Expired,
            None => Presented::Fresh,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::default().plus_seconds(seconds)
    }

    const fn spent(at: Timestamp, successor_spent: bool) -> Spent {
        Spent { at, successor_spent }
    }

    #[test]
    fn each_state_has_one_answer() {
        let live = RefreshState {
            expires_at: at(100),
            revoked: false,
            spent: None,
            retry_seconds: RETRY_SECONDS,
        };
        let of_client = RefreshState { retry_seconds: CLIENT_RETRY_SECONDS, ..live };
        for (state, now, wanted) in [
            (live, 0, Presented::Fresh),
            (live, 99, Presented::Fresh),
            (live, 100, Presented::Expired),
            (RefreshState { spent: Some(spent(at(10), false)), ..live }, 10, Presented::Repeated),
            (RefreshState { spent: Some(spent(at(10), false)), ..live }, 40, Presented::Repeated),
            (RefreshState { spent: Some(spent(at(10), false)), ..live }, 41, Presented::Reused),
            (
                RefreshState { spent: Some(spent(at(10), false)), ..of_client },
                55,
                Presented::Repeated,
            ),
            (
                RefreshState { spent: Some(spent(at(10), false)), ..of_client },
                56,
                Presented::Reused,
            ),
            (RefreshState { spent: Some(spent(at(10), true)), ..live }, 11, Presented::Reused),
            // A clock that was set back does not turn a retry into a theft.
            (RefreshState { spent: Some(spent(at(10), false)), ..live }, 5, Presented::Repeated),
            (RefreshState { spent: Some(spent(at(90), false)), ..live }, 110, Presented::Repeated),
            (RefreshState { spent: Some(spent(at(10), false)), ..live }, 500, Presented::Reused),
            (RefreshState { revoked: true, ..live }, 0, Presented::Revoked),
            (
                RefreshState { revoked: true, spent: Some(spent(at(10), false)), ..live },
                11,
                Presented::Revoked,
            ),
        ] {
            assert_eq!(state.presented(at(now)), wanted, "{state:?} at {now}");
        }
    }
}
