//! Gives recorded events their place in the log, every 250 ms while any are waiting.

use std::time::Duration;

use crate::{App, counting, store_failed};

pub(super) const EVERY: Duration = Duration::from_millis(250);

pub(super) async fn seal_all(app: &App) {
    counting::audit(app.writer.progress());
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
