//! Removes export files whose day is over, and gives up exports whose node is gone.

use std::time::Duration;

use crate::{App, audit::exports};

pub(super) const EVERY: Duration = Duration::from_mins(1);

pub(super) async fn sweep(app: &App) {
    exports::sweep(app).await;
}
