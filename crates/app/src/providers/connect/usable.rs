//! A call through a connection: with credentials that are good, or none.

use std::sync::Arc;

use portcullis_core::{
    call::{Cleared, Use},
    refusal::{Executed, Refusal, UpstreamReason},
};
use portcullis_store::ProviderStatus;
use portcullis_upstream::{CallAnswer, CallError, CallErrorKind, TaskRequest, Trace};

use super::refresh::{Reason, Renewal};
use crate::{
    base::admission::Admission,
    catalogue::connection::{Connection, Fitness, Live, OwnRoute},
    providers::Providers,
};

impl Providers {
    /// Sees to it that a connection can be called through, before anything is sent: credentials
    /// that have ended are renewed first. Fails if a person must act.
    pub(crate) async fn ensure_credentials(
        self: &Arc<Self>,
        connection: &Arc<Connection>,
        admission: &mut Admission,
    ) -> Result<(), Refusal> {
        if connection.status() == ProviderStatus::NeedsAuth {
            return Err(connection.unauthorized(Vec::new()));
        }
        let Some(own) = connection.own() else { return Ok(()) };
        let live = own.live();
        if live.credential == Fitness::Unreadable {
            return Err(connection.unauthorized(Vec::new()));
        }
        let grant = &live.record.grant;
        if grant.expires_at.is_none_or(|at| at > self.base.clock.now()) {
            return Ok(());
        }
        // Boxed, here and below, so that calls whose credentials are good carry no room for it.
        Box::pin(self.made_new(connection, &live, admission)).await
    }

    /// Renews credentials that have ended.
    async fn made_new(
        self: &Arc<Self>,
        connection: &Arc<Connection>,
        live: &Live,
        admission: &mut Admission,
    ) -> Result<(), Refusal> {
        let grant = &live.record.grant;
        if !grant.refreshable {
            let why = "the credentials have ended";
            self.mark_lost(connection, &live.record, why).await?;
            return Err(connection.unauthorized(Vec::new()));
        }
        // While the provider cannot be asked, calls do not ask it either: the job does, in its time.
        let later = grant.refresh_due_at.is_some_and(|at| at > self.base.clock.now());
        if grant.refresh_failures > 0 && later {
            let provider = connection.provider.declared.slug.clone();
            return Err(Refusal::upstream(provider, UpstreamReason::ConnectFailed));
        }
        let renewing = self.renewed(connection, live.record.revision, Reason::Due);
        match admission.outside(renewing).await? {
            Renewal::Yes => Ok(()),
            Renewal::NeedsAuth => Err(connection.unauthorized(Vec::new())),
            Renewal::Failed(refusal) => Err(refusal),
        }
    }

    /// Calls a tool through a connection. A server that refuses the credentials has not looked at
    /// the call: they are renewed once, and the call is sent once more.
    pub(crate) async fn call_through(
        self: &Arc<Self>,
        connection: &Arc<Connection>,
        call: &Cleared<Use>,
        task: Option<TaskRequest<'_>>,
        trace: Trace<'_>,
    ) -> Result<CallAnswer, CallError> {
        let seen = connection.own().map(OwnRoute::live);
        let first = self.call_listed(connection, call, task, trace).await;
        let Some(seen) = seen else { return first };
        let error = match first {
            Err(error) if error.executed == Executed::No => error,
            answered => return answered,
        };
        Box::pin(self.call_refused(connection, seen, error, call, task, trace)).await
    }

    /// Sends the call to the process or session that listed its tool; a new one lists first.
    async fn call_listed(
        self: &Arc<Self>,
        connection: &Arc<Connection>,
        call: &Cleared<Use>,
        task: Option<TaskRequest<'_>>,
        trace: Trace<'_>,
    ) -> Result<CallAnswer, CallError> {
        let trace = Trace { peer: Some(connection.freshness().peer()), ..trace };
        match connection.server().call(connection.org, call, task, trace).await {
            Err(error) if error.is_new_peer() => {
                Box::pin(self.call_again(connection, call, task, trace, error)).await
            }
            answered => answered,
        }
    }

    /// Handles a call that its server rejected before any processing.
    async fn call_refused(
        self: &Arc<Self>,
        connection: &Arc<Connection>,
        seen: Arc<Live>,
        error: CallError,
        call: &Cleared<Use>,
        task: Option<TaskRequest<'_>>,
        trace: Trace<'_>,
    ) -> Result<CallAnswer, CallError> {
        match error.kind {
            CallErrorKind::AuthRequired => {}
            CallErrorKind::Forbidden => {
                self.wants_more(connection).await;
                return Err(error);
            }
            CallErrorKind::Upstream(_)
            | CallErrorKind::NotFound
            | CallErrorKind::Unanswerable(_)
            | CallErrorKind::Timeout { .. }
            | CallErrorKind::Overloaded
            | CallErrorKind::Resting { .. } => return Err(error),
        }
        if seen.record.grant.refreshable {
            let renewed = self.renewed(connection, seen.record.revision, Reason::Refused).await;
            if let Renewal::Yes = renewed {
                let second = self.call_listed(connection, call, task, trace).await;
                if !matches!(&second, Err(error) if error.kind == CallErrorKind::AuthRequired) {
                    return second;
                }
            } else {
                return Err(error);
            }
        }
        let record =
            connection.own().map_or_else(|| seen.record.clone(), |own| own.live().record.clone());
        let why = "the provider refuses the credentials";
        if let Err(refusal) = self.mark_lost(connection, &record, why).await {
            tracing::warn!(%refusal, "a connection cannot be marked");
        }
        Err(error)
    }

    /// Remembers the further scopes that a provider asked for, for the next connect.
    async fn wants_more(&self, connection: &Connection) {
        let challenge = connection.server().challenge();
        let Some(challenge) = challenge.filter(|challenge| challenge.insufficient_scope) else {
            return;
        };
        let Some(own) = connection.own() else { return };
        let why = if challenge.scopes.is_empty() {
            "the provider asks for more scopes".to_owned()
        } else {
            format!("the provider asks for the scopes {}", challenge.scopes.join(" "))
        };
        let why = self.screening.recordable(&why);
        let live = own.live();
        let record = &live.record;
        if !challenge.scopes.is_empty() {
            let authorizer = &connection.provider.authorizer;
            authorizer.refused(Some(&challenge), &record.grant.scopes).await;
        }
        let org = record.org_id;
        let id = record.id;
        let revision = record.revision;
        let status = record.status;
        let now = self.base.clock.now();
        let set =
            self.base.store.set_status_of(org, id, revision, status, Some(why.as_str()), now).await;
        if let Err(error) = set {
            error.log();
        }
    }
}
