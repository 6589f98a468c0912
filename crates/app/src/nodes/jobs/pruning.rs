//! Once an hour: what is beyond its retention goes.

use std::time::Duration;

use crate::App;

pub(super) const EVERY: Duration = Duration::from_hours(1);

pub(super) async fn prune(app: &App) {
    app.prune().await;
}
