//! Gives recorded events their place in the log, every 250 ms while any are waiting.

use std::{sync::Arc, time::Duration};

use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;

use crate::{App, counting, store_failed};

const EVERY: Duration = Duration::from_millis(250);

pub(super) async fn run(app: Arc<App>, stop: CancellationToken) {
    let mut ticks = tokio::time::interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = stop.cancelled() => break,
            _ = ticks.tick() => {
                counting::audit(app.writer.progress());
                seal_all(&app).await;
            }
        }
    }
    seal_all(&app).await;
}

async fn seal_all(app: &App) {
    let waiting = match app.store.orgs_with_unsealed().await {
        Ok(waiting) => waiting,
        Err(error) => return drop(store_failed(&error)),
    };
    for org in waiting {
        if let Err(error) = app.seal(org).await {
            store_failed(&error);
        }
    }
}
