//! Legal holds on the log of an org: listed, laid and lifted by its admins.

use portcullis_core::{
    audit::EventType,
    clock::Timestamp,
    id::{HoldId, PrincipalId},
    refusal::{Conflict, Refusal},
};
use portcullis_store::{Hold, HoldLaid, NewEvent};
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::{Administration, sentence};
use crate::{
    audit::{
        events::row_of,
        holds::{HoldRequest, record},
    },
    request::Ctx,
};

/// A hold: nothing that it covers is erased or pruned until it is lifted.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = Hold)]
pub struct HoldView {
    /// Its id.
    #[schema(value_type = String, example = "hld_01M754BKTKX1YB8Q05NMW9TP4G")]
    pub id: HoldId,
    #[schema(example = "case 4711")]
    pub reason: String,
    /// Only what this principal did, or what was done on its behalf; everything if `null`.
    #[schema(value_type = Option<String>)]
    pub actor: Option<PrincipalId>,
    /// Only what was recorded at this moment or later.
    pub from: Option<Timestamp>,
    /// Only what was recorded before this moment.
    pub to: Option<Timestamp>,
    pub created_at: Timestamp,
    /// When it was lifted, if it was.
    pub released_at: Option<Timestamp>,
}

impl From<Hold> for HoldView {
    fn from(hold: Hold) -> Self {
        let Hold { id, org_id: _, reason, actor_id, from, to, created_at, released_at } = hold;
        Self { id, reason, actor: actor_id, from, to, created_at, released_at }
    }
}

/// A page of holds.
#[derive(Debug)]
pub struct ListedHolds {
    pub items: Vec<HoldView>,
    /// Place at which the list goes on, if it does.
    pub end: Option<HoldId>,
}

impl Administration {
    /// The holds of the caller's org, oldest first, also those that were lifted.
    pub async fn holds(
        &self,
        ctx: &Ctx,
        after: Option<HoldId>,
        limit: usize,
    ) -> Result<ListedHolds, Refusal> {
        let one_more = i64::try_from(limit).unwrap_or(i64::MAX).saturating_add(1);
        let mut found = self.base.store.list_holds(ctx.caller().org_id, after, one_more).await?;
        let more = found.len() > limit;
        found.truncate(limit);
        let end = found.last().filter(|_| more).map(|last| last.id);
        Ok(ListedHolds { items: found.into_iter().map(HoldView::from).collect(), end })
    }

    /// Lays a hold on the log of the caller's org, whichever org the request names.
    pub async fn lay_hold(&self, ctx: &Ctx, request: HoldRequest) -> Result<HoldView, Refusal> {
        self.writable()?;
        // The operator holds also what principals did that are gone.
        if let Some(actor) = request.actor.filter(|_| !ctx.caller().is_operator) {
            self.found(ctx, &actor.to_string()).await?;
        }
        let request = HoldRequest { org: ctx.caller().org_id, ..request };
        let made = request.made(self.base.ids(), self.base.now());
        let hold = made.map_err(|error| Refusal::bad_request(sentence(&error.to_string())))?;
        let event = self.hold_changed(ctx, hold.id, json!({ "laid": record(&hold) }));
        match self.base.store.lay_hold(&hold, &event).await? {
            HoldLaid::Done => {}
            HoldLaid::Full => return Err(Refusal::Conflict { reason: Conflict::TooManyHolds }),
        }
        Ok(hold.into())
    }

    /// Lifts a hold of the caller's org that is in force.
    pub async fn lift_hold(&self, ctx: &Ctx, id: &str) -> Result<HoldId, Refusal> {
        self.writable()?;
        let unknown = || Refusal::not_found("hold", id);
        let hold: HoldId = id.parse().map_err(|_| unknown())?;
        let event = self.hold_changed(ctx, hold, json!({ "lifted": hold }));
        let lifted = self.base.store.lift_hold(ctx.caller().org_id, hold, &event).await?;
        if lifted { Ok(hold) } else { Err(unknown()) }
    }

    fn hold_changed(&self, ctx: &Ctx, id: HoldId, details: Value) -> NewEvent {
        let mut event = self.event(ctx, EventType::AuditHoldChanged, "hold", id, None);
        event.detached = event.detached.keep("hold", Some(details), &*self.base.random);
        row_of(&event)
    }
}
