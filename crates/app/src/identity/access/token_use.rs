//! Remembers when tokens were used, to the minute, away from the path of requests.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use portcullis_core::{clock::Timestamp, id::TokenId};

use super::Access;

pub(crate) const EVERY: Duration = Duration::from_secs(10);

/// Tokens used since the last write, in order: so they are locked by all nodes. Touched once a minute
/// and token, so it is never contended.
#[derive(Debug, Default)]
pub(crate) struct UsedTokens(Mutex<BTreeMap<TokenId, Timestamp>>);

impl UsedTokens {
    pub(crate) fn note(&self, token: TokenId, at: Timestamp) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(token, at);
    }

    fn take(&self) -> Vec<(TokenId, Timestamp)> {
        let used = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        used.into_iter().collect()
    }
}

pub(crate) async fn write(access: &Access) {
    let used = access.used_tokens.take();
    if used.is_empty() {
        return;
    }
    if let Err(error) = access.base.store.touch_tokens(&used).await {
        error.log();
    }
}
