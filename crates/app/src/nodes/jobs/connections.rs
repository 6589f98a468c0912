//! Looks after connections: renews credentials ahead of their end, and forgets connects that
//! nobody confirmed.

use std::{sync::Arc, time::Duration};

use futures_util::{StreamExt, stream};
use portcullis_lanes::{FairLimits, FairSlots};
use portcullis_store::ProviderRecord;

use crate::{App, providers::connect::Reason, store_failed};

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
pub(super) async fn look_at_keys(app: &Arc<App>) {
    let looking = Arc::clone(app);
    let now = app.clock.now();
    if tokio::task::spawn_blocking(move || looking.vaults.reload(now)).await.is_err() {
        tracing::error!("looking at the keys of the vault ended in a panic");
    }
}

pub(super) async fn look_after(app: &Arc<App>) {
    renew_due(app).await;
    forget_expired(app).await;
}

async fn renew_due(app: &Arc<App>) {
    let due = match app.store.due_refreshes(app.clock.now(), BATCH).await {
        Ok(due) => due,
        Err(error) => {
            store_failed(&error);
            return;
        }
    };
    let slots = Arc::new(FairSlots::new(AT_ONCE));
    let renew = async |record: ProviderRecord| {
        let _slot = slots.take(record.org_id).await;
        renew(app, record).await;
    };
    stream::iter(due).for_each_concurrent(None, renew).await;
}

/// One connection; what goes wrong is noted in its record, with the time of the next try.
async fn renew(app: &Arc<App>, record: ProviderRecord) {
    let revision = record.revision;
    if let Ok(Some(connection)) = app.connection_of(record).await {
        app.renewed(&connection, revision, Reason::Due).await;
    }
}

async fn forget_expired(app: &Arc<App>) {
    match app.store.expired_attempts(app.clock.now(), BATCH).await {
        Ok(expired) => {
            for attempt in expired {
                app.give_up(&attempt, "expired").await;
            }
        }
        Err(error) => {
            store_failed(&error);
        }
    }
}
