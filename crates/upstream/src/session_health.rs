//! Health of a session: whether its server still knows it.

use std::sync::atomic::{AtomicU8, Ordering};

/// Put in doubt by failures, confirmed by answers.
#[derive(Debug, Default)]
pub(crate) struct SessionHealth(AtomicU8);

/// Weight of a failure as a sign that the session is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Suspicion {
    /// Servers fail so for many reasons.
    Weak,
    /// Servers fail so when they do not know the session.
    Strong,
}

const NONE: u8 = 0;
const RAISED: u8 = 1;
/// The server knew the session when it was asked.
const VOUCHED: u8 = 2;
/// A request failed as in a session that is not known, although the server had just said that it knows it.
const CERTAIN: u8 = 3;

impl SessionHealth {
    /// A request failed.
    pub(crate) fn suspect(&self, suspicion: Suspicion) {
        let more = |before| {
            let was_vouched = matches!(before, VOUCHED | CERTAIN);
            Some(if was_vouched && suspicion == Suspicion::Strong { CERTAIN } else { RAISED })
        };
        // It always changes.
        let _ = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
    }

    /// A request was answered as by a server that knows the session.
    pub(crate) fn confirm(&self) {
        if self.0.load(Ordering::Relaxed) != NONE {
            self.0.store(NONE, Ordering::Relaxed);
        }
    }

    /// The server says that it knows the session. If the next request fails as in one that is not known, that is
    /// not believed.
    pub(crate) fn vouch(&self) {
        self.0.store(VOUCHED, Ordering::Relaxed);
    }

    /// Returns true if the server has to be asked before the session is used again.
    pub(crate) fn is_suspect(&self) -> bool {
        matches!(self.0.load(Ordering::Relaxed), RAISED | CERTAIN)
    }

    /// Returns true if asking is of no use any more.
    pub(crate) fn is_certain(&self) -> bool {
        self.0.load(Ordering::Relaxed) == CERTAIN
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_believed_once_until_it_answers_a_request() {
        let health = SessionHealth::default();
        assert!(!health.is_suspect());

        health.suspect(Suspicion::Strong);
        assert!(health.is_suspect() && !health.is_certain());
        health.suspect(Suspicion::Strong);
        assert!(!health.is_certain(), "nobody has asked yet");
        health.vouch();
        assert!(!health.is_suspect());
        health.suspect(Suspicion::Strong);
        assert!(health.is_suspect() && health.is_certain());

        let health = SessionHealth::default();
        health.suspect(Suspicion::Strong);
        health.vouch();
        health.confirm();
        health.suspect(Suspicion::Strong);
        assert!(!health.is_certain(), "it answered in between");

        health.vouch();
        health.suspect(Suspicion::Weak);
        assert!(health.is_suspect() && !health.is_certain(), "it may have failed for any reason");
    }
}
