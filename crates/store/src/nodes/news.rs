//! Change notices for nodes by PostgreSQL's NOTIFY: ids, never contents.

use async_recursion::async_recursion as boxed;
use std::time::Duration;

use portcullis_core::id::OrgId;
use sqlx::postgres::{PgConnectOptions, PgListener, PgPoolOptions};
use tokio::time::timeout;

use crate::{db::opened_at_once, error::StoreError};

/// The channel that the triggers of the schema push to.
const CHANNEL: &str = "portcullis";
/// Silence after which the connection is probed, and time limit of the probe.
const SILENCE: Duration = Duration::from_secs(5);
const PATIENCE: Duration = Duration::from_secs(2);

/// A change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum News {
    /// Tokens were revoked, or principals, plan or connections of this org changed: whatever is
    /// remembered of its callers has to be looked up again.
    Org(OrgId),
    Pins,
}

impl News {
    fn read(payload: &str) -> Option<Self> {
        let (what, id) = payload.split_once(' ')?;
        match what {
            "tokens" | "principals" | "orgs" | "connections" => id.parse().ok().map(Self::Org),
            "pins" => Some(Self::Pins),
            // Of a later version.
            _ => None,
        }
    }
}

/// A wire on which pushes arrive.
pub struct Listener(PgListener);

impl std::fmt::Debug for Listener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Listener")
    }
}

impl Listener {
    pub(super) async fn open(options: &PgConnectOptions) -> Result<Self, StoreError> {
        // A pool for each: a wire that died in silence keeps its place in its pool for long.
        let pool = PgPoolOptions::new()
            .max_connections(1)
            .acquire_timeout(PATIENCE)
            .connect_lazy_with(options.clone());
        let opening = async {
            let mut listener = PgListener::connect_with(&pool).await?;
            listener.ignore_pool_close_event(true);
            listener.listen(CHANNEL).await?;
            Ok::<_, sqlx::Error>(listener)
        };
        match timeout(PATIENCE, opened_at_once(options.get_port(), opening)).await {
            Ok(listener) => Ok(Self(listener?)),
            Err(_) => Err(silent()),
        }
    }

    /// The next news. An error is the end of this wire: what is pushed until there is another one
    /// is not heard.
    #[boxed]
    pub async fn next(&mut self) -> Result<News, StoreError> {
        self.0.eager_reconnect(false);
        loop {
            match timeout(SILENCE, self.0.try_recv()).await {
                Ok(Ok(Some(told))) => {
                    if let Some(news) = News::read(told.payload()) {
                        return Ok(news);
                    }
                }
                Ok(Ok(None)) => {
                    return Err(StoreError::Unavailable("the wire of pushes broke".to_owned()));
                }
                Ok(Err(error)) => return Err(error.into()),
                Err(_) => self.try_wire().await?,
            }
        }
    }

    async fn try_wire(&mut self) -> Result<(), StoreError> {
        match timeout(PATIENCE, sqlx::query("SELECT 1").execute(&mut self.0)).await {
            Ok(answer) => Ok(answer.map(drop)?),
            Err(_) => Err(silent()),
        }
    }
}

fn silent() -> StoreError {
    StoreError::Unavailable("the database does not answer in time".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn news_are_read_and_what_is_unknown_is_left_alone() {
        let org: OrgId = "org_01M754BKTKX1YB8Q05NMW9TP4G".parse().unwrap();

        for what in ["tokens", "principals", "orgs", "connections"] {
            assert_eq!(News::read(&format!("{what} {org}")), Some(News::Org(org)), "{what}");
        }
        assert_eq!(News::read("pins "), Some(News::Pins));
        for unknown in ["", "tokens", "tokens org_1", "weather fine"] {
            assert_eq!(News::read(unknown), None, "{unknown}");
        }
    }
}
