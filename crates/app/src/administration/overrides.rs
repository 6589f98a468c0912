//! Policies that admins switch off for their org, for a while.

use portcullis_core::{
    audit::EventType,
    clock::Timestamp,
    id::PrincipalId,
    json,
    policy::{Effect, PolicyRecord, Status},
    refusal::{Conflict, Refusal},
};
use portcullis_store::{OverrideEnd, OverrideSet, PolicyOverride};
use serde::Serialize;
use serde_json::json;
use utoipa::ToSchema;

use super::{Administration, sentence};
use crate::{
    audit::{events::row_of, holds::reason},
    request::{Ctx, Precondition},
};

/// The longest that a policy can be off: what is meant for longer belongs into its file.
pub const MAX_OVERRIDE_SECONDS: i64 = 7 * 24 * 60 * 60;

/// An override as it is asked for.
#[derive(Debug, Clone)]
pub struct OverrideRequest {
    pub ttl_seconds: i64,
    pub reason: String,
}

/// A policy that is switched off for the org.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = SetPolicyOverride)]
pub struct OverrideView {
    #[schema(example = "no-prod-writes")]
    pub policy_id: String,
    /// Always `disabled`.
    pub status: Status,
    /// The moment from which it counts again.
    pub until: Timestamp,
    #[schema(example = "incident 4711")]
    pub reason: String,
    #[schema(value_type = String, example = "usr_01M754BKTKX1YB8Q05NMW9TP4G")]
    pub set_by: PrincipalId,
    pub set_at: Timestamp,
}

impl Administration {
    /// The version of a policy as the caller's org sees it: changes with its text, and with how it is switched off.
    #[must_use]
    pub fn policy_version_tag(&self, ctx: &Ctx, record: &PolicyRecord) -> String {
        let off = self.policies.switched_off(ctx.caller().org_id, &record.id);
        let written = self.policies.as_written(&record.id).and_then(|written| written.version);
        let parts = json!([record.id, written, off]);
        json::sha256(&[parts.to_string().as_bytes()])
    }

    /// Switches a policy off for the caller's org, in place of an earlier override. Never one that is locked or
    /// built in; one that forbids only for a person, without an agent or a client in between: a program would lift its own
    /// bounds. So it would by shortening that a policy that permits is off. It is off on this node before this
    /// returns, on all others within two seconds.
    pub async fn switch_policy_off(
        &self,
        ctx: &Ctx,
        id: &str,
        precondition: &Precondition,
        request: OverrideRequest,
    ) -> Result<OverrideView, Refusal> {
        self.writable()?;
        let (record, version) = self.overridable(ctx, id, precondition).await?;
        if record.locked {
            return Err(Refusal::Conflict { reason: Conflict::Locked });
        }
        let caller = ctx.caller();
        if record.effect == Effect::Forbid && !caller.is_person() {
            return Err(Refusal::Conflict { reason: Conflict::PeopleOnly });
        }
        let reason = reason(&request.reason);
        let reason = reason.map_err(|error| Refusal::bad_request(sentence(&error.to_string())))?;
        if !(1..=MAX_OVERRIDE_SECONDS).contains(&request.ttl_seconds) {
            let message = "`ttl` is 1 to 604800 seconds; for longer, the policy's file is changed.";
            return Err(Refusal::bad_request(message));
        }
        let now = self.base.now();
        let new = PolicyOverride {
            org_id: caller.org_id,
            policy_id: id.to_owned(),
            version,
            reason: reason.to_owned(),
            set_by: caller.principal_id,
            set_at: now,
            until: now.plus_seconds(request.ttl_seconds),
        };
        let change = json!({ "version": new.version, "until": new.until, "reason": new.reason });
        let kind = EventType::PolicyOverrideSet;
        let event = row_of(&self.event(ctx, kind, "policy", id, Some(change)));
        // Of a program it is a permit, which would count again at the end.
        let end = if caller.is_person() { OverrideEnd::Any } else { OverrideEnd::NotEarlier };
        match self.base.store.set_policy_override(&new, end, &event).await? {
            OverrideSet::Done => {}
            OverrideSet::Full => {
                return Err(Refusal::Conflict { reason: Conflict::TooManyOverrides });
            }
            OverrideSet::Earlier => {
                return Err(Refusal::Conflict { reason: Conflict::PeopleOnly });
            }
        }
        self.policies.read_org_overrides().await;
        let PolicyOverride { policy_id, reason, set_by, set_at, until, .. } = new;
        Ok(OverrideView { policy_id, status: Status::Disabled, until, reason, set_by, set_at })
    }

    /// Takes back that a policy is switched off for the caller's org: of one that permits only for a person.
    pub async fn switch_policy_on(
        &self,
        ctx: &Ctx,
        id: &str,
        precondition: &Precondition,
    ) -> Result<(), Refusal> {
        self.writable()?;
        let (record, _) = self.overridable(ctx, id, precondition).await?;
        if record.effect == Effect::Permit && !ctx.caller().is_person() {
            return Err(Refusal::Conflict { reason: Conflict::PeopleOnly });
        }
        let kind = EventType::PolicyOverrideRemoved;
        let event = row_of(&self.event(ctx, kind, "policy", id, None));
        let org = ctx.caller().org_id;
        if !self.base.store.remove_policy_override(org, id, &event).await? {
            return Err(Refusal::not_found("policy override", id));
        }
        self.policies.read_org_overrides().await;
        Ok(())
    }

    /// The policy as its file says, with its version, if it can concern the caller's org and is as the
    /// precondition says.
    async fn overridable(
        &self,
        ctx: &Ctx,
        id: &str,
        precondition: &Precondition,
    ) -> Result<(PolicyRecord, String), Refusal> {
        let (_, shown) = self.policies.policy(ctx, id).await?;
        if !precondition.admits(&self.policy_version_tag(ctx, &shown)) {
            return Err(Refusal::PreconditionFailed);
        }
        let record = self.policies.as_written(id).unwrap_or(shown);
        match record.version.as_deref().map(str::to_owned) {
            Some(version) if !record.builtin => Ok((record, version)),
            Some(_) | None => Err(Refusal::Conflict { reason: Conflict::Locked }),
        }
    }
}
