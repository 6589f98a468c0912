//! Looks after connections: renews credentials ahead of their end, and forgets unconfirmed
//! connects.

use std::{sync::Arc, time::Duration};

use futures_util::{StreamExt, stream};
use portcullis_lanes::{FairLimits, FairSlots};
use portcullis_store::ProviderRecord;

use crate::providers::{Providers, connect::refresh::Reason};

pub(super) const EVERY: Duration = Duration::from_secs(2);
/// Connections looked at in one round.
const BATCH: u32 = 200;
/// At once: orgs take turns, so that those of one whose authorization server hangs are not in the way.
const AT_ONCE: FairLimits =
    FairLimits { slots: 16, reserve: 4, waiting: usize::MAX, patience: Duration::from_hours(1) };

/// Rounds between two looks at the keys that seal credentials.
pub(super) const KEYS_EVERY: u32 = 20;

/// Rounds between two looks at connections whose provider is not configured; the first round is one.
pub(super) const MISSING_EVERY: u32 = 15;

/// Takes keys into use that a rotation made. Reading them may run a program.
pub(super) async fn look_at_keys(providers: &Arc<Providers>) {
    let looking = Arc::clone(providers);
    let now = providers.base.clock.now();
    if tokio::task::spawn_blocking(move || looking.vaults.reload(now)).await.is_err() {
        tracing::error!("checking the keys of the vault ended in a panic");
    }
}

pub(super) async fn look_after(providers: &Arc<Providers>) {
    renew_due(providers).await;
    forget_expired(providers).await;
}

async fn renew_due(providers: &Arc<Providers>) {
    let due = match providers.base.store.due_refreshes(providers.base.clock.now(), BATCH).await {
        Ok(due) => due,
        Err(error) => {
            error.log();
            return;
        }
    };
    let slots = Arc::new(FairSlots::new(AT_ONCE));
    let renew = async |record: ProviderRecord| {
        let _slot = slots.take(record.org_id).await;
        renew(providers, record).await;
    };
    stream::iter(due).for_each_concurrent(None, renew).await;
}

/// One connection; what goes wrong is noted in its record, with the time of the next try.
async fn renew(providers: &Arc<Providers>, record: ProviderRecord) {
    let revision = record.revision;
    if let Ok(Some(connection)) = providers.connection_of(record).await {
        providers.renewed(&connection, revision, Reason::Due).await;
    }
}

async fn forget_expired(providers: &Arc<Providers>) {
    match providers.base.store.expired_attempts(providers.base.clock.now(), BATCH).await {
        Ok(expired) => {
            for attempt in expired {
                providers.give_up(&attempt, "expired").await;
            }
        }
        Err(error) => {
            error.log();
        }
    }
}
