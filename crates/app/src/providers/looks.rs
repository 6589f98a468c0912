//! Looks at the tools of a server: in the background, or before the call that found its list too old.

use std::{sync::Arc, time::Duration};

use portcullis_core::{
    call::{Cleared, PinState, Use},
    clock::Timestamp,
    refusal::Refusal,
};
use portcullis_store::ProviderStatus;
use portcullis_upstream::{CallAnswer, CallError, TaskRequest, Trace};

use super::{Providers, view::ProviderView};
use crate::{
    base::admission::Admission,
    catalogue::{
        Visible,
        connection::Connection,
        freshness::{Age, Unlisted},
        unknown,
    },
    request::Ctx,
};

/// The longest a call waits for a look.
const PATIENCE: Duration = Duration::from_secs(10);

/// Occasion of a look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Occasion {
    /// A call finds the list too old.
    OldList,
    /// A person wants to know how the connection stands.
    Test,
}

/// The end of a test of a connection.
#[derive(Debug)]
pub struct ConnectionTest {
    pub provider: ProviderView,
    /// The reason that the tools could not be listed.
    pub failure: Option<Refusal>,
    pub took: Duration,
}

impl Providers {
    /// Asks a connection for its tools now, and tells how it stands. Tests of the same moment share one look.
    ///
    /// # Errors
    /// A refusal if the caller may not see the connection. A server that fails is no error.
    pub async fn test_connection(
        self: &Arc<Self>,
        ctx: &Ctx,
        id: &str,
    ) -> Result<ConnectionTest, Refusal> {
        let unknown = || Refusal::not_found("provider", id);
        let record = self.find_visible(ctx, id).await?;
        let connection = self.connection_of(record).await?.ok_or_else(unknown)?;
        let asked_at = self.base.clock.now();
        let failure = if connection.status() == ProviderStatus::NeedsAuth {
            Some(connection.unauthorized(Vec::new()))
        } else {
            self.wait_for_look(&connection, asked_at, Occasion::Test).await.err()
        };
        let took = self.base.clock.now().as_micros() - asked_at.as_micros();
        let took = Duration::from_micros(u64::try_from(took).unwrap_or_default());
        let provider = self.provider(ctx, id).await?;
        Ok(ConnectionTest { provider, failure, took })
    }

    /// The tool as its server has it now, if the list that it came from is too old for a call; then
    /// the call waited. Most calls find a list that is fresh, which costs one comparison.
    pub(crate) async fn refresh_tool_list(
        self: &Arc<Self>,
        visible: &Visible,
        admission: &mut Admission,
    ) -> Result<Option<Visible>, Refusal> {
        let now = self.base.clock.now();
        let freshness = visible.connection.freshness();
        match freshness.age_at(visible.connection.server(), now) {
            Age::Fresh => Ok(None),
            Age::Due => {
                if freshness.claim(now) {
                    self.look_in_background(&visible.connection);
                }
                Ok(None)
            }
            // Boxed, so that calls that find a fresh list carry no space for it.
            Age::Old => Box::pin(self.look_first(visible, now, admission)).await.map(Some),
        }
    }

    /// Asks a connection for its tools on a task of its own.
    pub(crate) fn look_in_background(self: &Arc<Self>, connection: &Arc<Connection>) {
        let this = Arc::clone(self);
        let connection = Arc::clone(connection);
        let org = connection.org;
        // A list may be long, and its schemas costly.
        let listing = async move {
            if let Err(error) = this.list_again(&connection).await {
                tracing::warn!(provider = connection.slug(), %error, "tools cannot be listed");
            }
        };
        drop(self.base.workers.spawn(org, &self.base.tasks, listing));
    }

    /// Sends a call that its server's new process or session was not sent, once this one has listed the
    /// same tool. Gives the error back if it has not.
    pub(crate) async fn call_again(
        self: &Arc<Self>,
        connection: &Arc<Connection>,
        call: &Cleared<Use>,
        task: Option<TaskRequest<'_>>,
        trace: Trace<'_>,
        error: CallError,
    ) -> Result<CallAnswer, CallError> {
        let looked = self.wait_for_look(connection, self.base.clock.now(), Occasion::OldList).await;
        let called = call.tool();
        let listed = self.catalogue.tool_through(connection, called.id.as_str());
        let is_same = listed.is_some_and(|tool| {
            let pin = self.tools.pins.state(connection.org, &tool);
            tool.version == called.version && pin == PinState::Accepted
        });
        if looked.is_err() || !is_same {
            return Err(error);
        }
        let trace = Trace { peer: Some(connection.freshness().peer()), ..trace };
        connection.server().call(connection.org, call, task, trace).await
    }

    async fn look_first(
        self: &Arc<Self>,
        visible: &Visible,
        asked_at: Timestamp,
        admission: &mut Admission,
    ) -> Result<Visible, Refusal> {
        let Visible { tool, connection } = visible;
        let resting = connection.server().check(connection.org, &tool.id);
        resting.map_err(|error| connection.refusal(&error))?;
        // The look shows the credential of the call.
        self.ensure_credentials(connection, admission).await?;
        let looking = self.wait_for_look(connection, asked_at, Occasion::OldList);
        admission.outside(looking).await??;
        let id = tool.id.as_str();
        let unknown = || unknown(&tool.id);
        let tool = self.catalogue.tool_through(connection, id).ok_or_else(unknown)?;
        Ok(Visible { tool, connection: Arc::clone(connection) })
    }

    /// Waits for a look that many calls share. It goes on when no caller waits any more.
    async fn wait_for_look(
        self: &Arc<Self>,
        connection: &Arc<Connection>,
        asked_at: Timestamp,
        occasion: Occasion,
    ) -> Result<(), Refusal> {
        let this = Arc::clone(self);
        let way = Arc::clone(connection);
        let looking = async move { this.look_once(&way, asked_at, occasion).await };
        let looking = self.base.workers.spawn(connection.org, &self.base.tasks, looking);
        let patience = PATIENCE.min(connection.server().call_timeout());
        match tokio::time::timeout(patience, looking).await {
            Ok(Ok(looked)) => {
                looked.map_err(|unlisted| unlisted.refusal(|error| connection.refusal(error)))
            }
            Ok(Err(_)) => Err(Refusal::Internal),
            Err(_) => Err(Refusal::UpstreamTimeout {
                provider: connection.provider.declared.slug.clone(),
                timeout_ms: u64::try_from(patience.as_millis()).unwrap_or(u64::MAX),
            }),
        }
    }

    async fn look_once(
        self: &Arc<Self>,
        connection: &Arc<Connection>,
        asked_at: Timestamp,
        occasion: Occasion,
    ) -> Result<(), Unlisted> {
        let freshness = connection.freshness();
        let mut last = freshness.turn.lock().await;
        // The previous holder of the turn may have looked for this one as well.
        let is_known = match occasion {
            Occasion::OldList => {
                freshness.age_at(connection.server(), self.base.clock.now()) != Age::Old
            }
            Occasion::Test => freshness.looked_since(asked_at),
        };
        if is_known {
            return Ok(());
        }
        if let Some(why) = last.failed_since(asked_at) {
            return Err(why);
        }
        let looked = self.list_in_turn(connection).await;
        last.ended(self.base.clock.now(), &looked);
        if looked.is_err() && connection.own().is_none() {
            // From now on the job asks until it heals, also without calls.
            connection.provider.look_again.notify_one();
        }
        looked
    }
}
