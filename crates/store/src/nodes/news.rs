//! Change notices for nodes by PostgreSQL's NOTIFY: ids, never contents.

use std::{future::poll_fn, time::Duration};

use portcullis_core::id::OrgId;
use tokio::{sync::mpsc, time::timeout};
use tokio_postgres::{AsyncMessage, Client};
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

use crate::{
    address::Address,
    db::{Tls, boxed},
    error::{DriverError, StoreError},
};

/// Listens on the channel that the triggers of the schema push to.
const LISTEN: &str = "LISTEN portcullis";
/// Pushes that wait to be read, at most; more wait in front of the wire.
const PUSHES: usize = 1_024;
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
pub struct Listener {
    client: Client,
    pushes: mpsc::Receiver<String>,
    _wire: AbortOnDropHandle<()>,
}

impl std::fmt::Debug for Listener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Listener")
    }
}

impl Listener {
    pub(super) async fn open(address: &Address) -> Result<Self, StoreError> {
        let opening = async {
            let tls = Tls::new(&address.tls)?;
            let (client, mut wire) = address.config.connect(tls).await?;
            let (heard, pushes) = mpsc::channel(PUSHES);
            let listening = async move {
                while let Some(Ok(message)) = poll_fn(|context| wire.poll_message(context)).await {
                    if let AsyncMessage::Notification(push) = message
                        && heard.send(push.payload().to_owned()).await.is_err()
                    {
                        return;
                    }
                }
            };
            let wire = AbortOnDropHandle::new(TaskTracker::new().spawn(listening));
            client.batch_execute(LISTEN).await?;
            Ok::<_, DriverError>(Self { client, pushes, _wire: wire })
        };
        match timeout(PATIENCE, opening).await {
            Ok(listener) => Ok(listener?),
            Err(_) => Err(silent()),
        }
    }

    /// The next news. An error is the end of this wire: what is pushed until there is another one
    /// is not heard.
    #[boxed]
    pub async fn next(&mut self) -> Result<News, StoreError> {
        loop {
            match timeout(SILENCE, self.pushes.recv()).await {
                Ok(Some(push)) => {
                    if let Some(news) = News::read(&push) {
                        return Ok(news);
                    }
                }
                Ok(None) => {
                    return Err(StoreError::Unavailable("the wire of pushes broke".to_owned()));
                }
                Err(_) => self.try_wire().await?,
            }
        }
    }

    async fn try_wire(&mut self) -> Result<(), StoreError> {
        match timeout(PATIENCE, self.client.check_connection()).await {
            Ok(answer) => Ok(answer.map_err(DriverError::from)?),
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
