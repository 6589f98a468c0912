//! The connections to PostgreSQL that statements share.

use std::time::Duration;

use futures_util::future::try_join_all;
use sqlx::{
    PgPool,
    postgres::{PgConnectOptions, PgPoolOptions},
};
use tokio::time::sleep;

use super::nodelay::{opened_at_once, send_at_once};
use crate::settings::DatabaseSettings;

/// Connections opened together at first. A start sends one query after the other, and a connection
/// that was returned is free a moment later.
const AT_FIRST: u32 = 4;
/// Length of a moment, and number of moments that are waited for.
const MOMENT: Duration = Duration::from_millis(1);
const MOMENTS: u32 = 50;

/// Connects.
pub(crate) async fn open(
    settings: &DatabaseSettings,
    options: &PgConnectOptions,
) -> Result<PgPool, sqlx::Error> {
    let wait_ms = settings.wait.as_millis().to_string();
    let options = options.clone().options([
        ("lock_timeout", wait_ms.as_str()),
        // What a node that is gone has locked is free again.
        ("idle_in_transaction_session_timeout", "60s"),
        // The planner takes recursive statements to be long; compiling one takes half a second, running it some ms.
        ("jit", "off"),
    ]);
    let port = options.get_port();
    let most = settings.connections.max(2);
    let pool = PgPoolOptions::new()
        .after_connect(move |_, _| {
            Box::pin(async move {
                send_at_once(port);
                Ok(())
            })
        })
        .max_connections(most)
        .acquire_timeout(settings.wait)
        .test_before_acquire(false)
        .connect_lazy_with(options);
    opened_at_once(port, first(&pool, most.min(AT_FIRST))).await?;
    Ok(pool)
}

/// Opens so many, and waits until they are free.
async fn first(pool: &PgPool, number: u32) -> Result<(), sqlx::Error> {
    drop(try_join_all((0..number).map(|_| pool.acquire())).await?);
    for _ in 0..MOMENTS {
        if pool.num_idle() >= usize::try_from(number).unwrap_or(usize::MAX) {
            break;
        }
        sleep(MOMENT).await;
    }
    Ok(())
}
