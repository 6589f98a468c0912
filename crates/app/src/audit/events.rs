//! The audit log: writing events that have no upstream effect, and reading what was written.

mod view;

use std::{sync::Arc, time::Duration};

use portcullis_core::{
    audit::{
        Actor, Detached, Event, EventParts, EventType, Outcome, Sealed, Shown, Target,
        checkpoint::hash_text, uncommitted,
    },
    clock::Timestamp,
    id::{EventId, OrgId},
    json::{self, Bounds},
    principal::Scope,
    refusal::{Executed, Refusal, Unavailable},
};
use portcullis_store::{
    EventFilter, EventOrder, EventRecord, EventTexts, Name, NewEvent, NewIntent, OpenIntent,
    RecordTexts, TextColumn, Visibility,
};
use serde_json::{Map, Value, json};
use tokio::time::Instant;

pub use self::view::EventView;
use self::view::{EventDetached, EventIntegrity};
use super::Audit;
use crate::request::Ctx;

/// A sealed event as core reads it; `None` for one without a place in the log.
pub(crate) fn sealed(record: &EventRecord) -> Option<Sealed<'_>> {
    let seal = record.seal.as_ref()?;
    Some(Sealed {
        core: &record.core,
        detached: record.detached.as_deref(),
        salts: record.salts.as_deref(),
        sequence: seal.sequence,
        recorded_at: seal.recorded_at,
        leaf_hash: seal.leaf_hash,
    })
}

/// Something of the installation, which no org owns.
pub(crate) fn installation(kind: &'static str, id: &str) -> Target {
    Target {
        capability: None,
        credential: None,
        id: Some(id.to_owned()),
        provider_id: None,
        kind,
        version: None,
    }
}

pub(crate) fn row_of(event: &Event) -> NewEvent {
    row_of_parts(&event.parts())
}

/// The row of an event in parts.
pub(crate) fn row_of_parts(event: &EventParts<'_>) -> NewEvent {
    let governance = event.governance;
    NewEvent {
        id: event.id,
        org_id: event.org_id,
        kind: event.kind.as_str().into(),
        occurred_at: event.occurred_at,
        actor_id: event.actor.id,
        via: event.actor.via,
        token_id: event.actor.token_id,
        decision: governance.and_then(|it| it.decision).map(|it| it.as_str().into()),
        dlp_result: governance.map(|it| it.dlp_result.as_str().into()),
        outcome: Some(event.outcome.status.as_str().into()),
        request_id: event.request.map(|request| request.id),
        has_payload: event.detached.has_payload(),
        texts: texts_of(event),
    }
}

/// The record of an event and its erasable part.
fn record_of(event: &EventParts<'_>) -> EventTexts {
    let core = event.kept_json();
    let mut texts = EventTexts::with_capacity(core.len() + event.detached.written_len());
    texts.write(TextColumn::Core, |out| out.push_str(&core));
    texts.write(TextColumn::Detached, |out| event.detached.write_values(out));
    texts.write(TextColumn::Salts, |out| event.detached.write_seed(out));
    texts
}

fn texts_of(event: &EventParts<'_>) -> EventTexts {
    let mut texts = record_of(event);
    if let Some(target) = event.target.and_then(|target| target.id.as_deref()) {
        texts.write(TextColumn::Target, |out| out.push_str(target));
    }
    if let Some(policy) = event.governance.and_then(|it| it.policy.as_deref()) {
        texts.write(TextColumn::Policy, |out| out.push_str(policy));
    }
    texts
}

/// The moment until which a caller waits for its record to be durable before it is told 503.
pub(crate) fn patience() -> Instant {
    Instant::now() + Duration::from_secs(5)
}

/// The row of the event that was written into an intent.
pub(crate) fn recovered(intent: &OpenIntent) -> Option<NewEvent> {
    let RecordTexts { core: record, detached, salts } = &intent.record;
    let core = Value::Object(object(record)?);
    let text = |path: &str| core.pointer(path).and_then(Value::as_str);
    let name = |path: &str| text(path).map(|name| Name::from(name.to_owned()));
    let members = detached.as_deref().and_then(object).unwrap_or_default();
    let is_kept = |name| members.get(name).is_some_and(|value| !value.is_null());
    let has_payload = is_kept("input") || is_kept("output");
    let texts = [
        (TextColumn::Target, text("/target/id")),
        (TextColumn::Policy, text("/governance/policy")),
        (TextColumn::Core, Some(record.as_str())),
        (TextColumn::Detached, detached.as_deref()),
        (TextColumn::Salts, salts.as_deref()),
    ];
    let known = texts.iter().filter_map(|(column, text)| Some((*column, (*text)?)));
    let texts = known.fold(EventTexts::default(), |row, (column, text)| row.with(column, text));
    Some(NewEvent {
        id: intent.id,
        org_id: intent.org_id,
        kind: name("/type")?,
        occurred_at: Timestamp::parse_rfc3339(text("/occurred_at")?)?,
        actor_id: text("/actor/id").and_then(|id| id.parse().ok()),
        via: text("/actor/via").and_then(|id| id.parse().ok()),
        token_id: text("/actor/token_id").and_then(|id| id.parse().ok()),
        decision: name("/governance/decision"),
        dlp_result: name("/governance/dlp_result"),
        outcome: name("/outcome/status"),
        request_id: text("/request/id").and_then(|id| id.parse().ok()),
        has_payload,
        texts,
    })
}

/// Events that are read at a time for a page.
const READ_AT_ONCE: usize = 50;
/// Bytes of events after which a page ends, however few those are: payloads are read with them.
const PAGE_BYTES: usize = 4 << 20;

/// A page of events, without payloads and salts.
#[derive(Debug)]
pub struct Events {
    /// In the order asked for.
    pub items: Vec<EventView>,
    pub more: bool,
    /// Place of the last one.
    pub last: Option<i64>,
}

pub(crate) fn object(text: &str) -> Option<Map<String, Value>> {
    match json::parse(text.as_bytes(), Bounds::RECORDED) {
        Ok(Value::Object(members)) => Some(members),
        Ok(_) | Err(_) => None,
    }
}

impl Audit {
    /// Records an event that has no upstream effect; it is durable when this returns.
    pub(crate) async fn record(&self, event: Event) -> Result<(), Refusal> {
        self.writer.append(row_of(&event), patience()).await.map_err(|error| {
            tracing::error!(%error, event = %event.id, "an event could not be recorded");
            Refusal::Unavailable { reason: Unavailable::Audit }
        })
    }

    /// The write-ahead row of a call: the event that stands if the node dies before its end.
    pub(crate) fn intent_of(&self, event: &EventParts<'_>) -> NewIntent {
        NewIntent {
            id: event.id,
            org_id: event.org_id,
            opened_at: self.base.clock.now(),
            record: record_of(event),
            key: None,
            approvals: Vec::new(),
        }
    }

    /// An event of the gateway itself about `target` in the log of `org`.
    pub(crate) fn system_event(&self, org: OrgId, kind: EventType, target: Target) -> Event {
        Event {
            id: EventId::new(self.base.ids()),
            org_id: org,
            kind,
            occurred_at: self.base.clock.now(),
            count: None,
            actor: Actor::system(),
            request: None,
            target: Some(target),
            governance: None,
            outcome: Outcome::success(Executed::Yes),
            detached: Detached::default(),
        }
    }

    /// Records an event of the installation in the log of every org, on a task of its own.
    pub(crate) fn tell_every_org(
        &self,
        kind: EventType,
        target: Target,
        details: Option<(&'static str, Value)>,
    ) {
        let store = self.base.store.clone();
        let writer = self.writer.clone();
        let clock = Arc::clone(&self.base.clock);
        let random = Arc::clone(&self.base.random);
        self.base.tasks.spawn(async move {
            let orgs = match store.list_orgs().await {
                Ok(orgs) => orgs,
                Err(error) => return error.log(),
            };
            for org in orgs {
                let ids = portcullis_core::id::Ids { clock: &*clock, random: &*random };
                let mut detached = details.iter().fold(Detached::default(), |kept, (name, value)| {
                    kept.keep(name, Some(value.clone()), &*random)
                });
                // A log that is shorter later than a start says was cut.
                if kind == EventType::SystemStarted
                    && let Ok(size) = store.sealed_size(org.id).await
                {
                    detached = detached.keep("log", Some(json!({ "size": size })), &*random);
                }
                let event = Event {
                    id: EventId::new(ids),
                    org_id: org.id,
                    kind,
                    occurred_at: clock.now(),
                    count: None,
                    actor: Actor::system(),
                    request: None,
                    target: Some(target.clone()),
                    governance: None,
                    outcome: Outcome::success(Executed::Yes),
                    detached,
                };
                if let Err(error) = writer.append(row_of(&event), patience()).await {
                    tracing::error!(%error, event = kind.as_str(), "an event could not be recorded");
                }
            }
        });
    }

    /// Records that the caller is shown events, if they are everybody's. Fails if that cannot be recorded.
    pub async fn note_look(&self, ctx: &Ctx) -> Result<(), Refusal> {
        match visibility(ctx) {
            Visibility::All => self.note_access(ctx).await,
            Visibility::Own(_) | Visibility::Grant { .. } => Ok(()),
        }
    }

    /// The events the caller may see: its principal's, those of its own grant if its token was
    /// handed on, or everybody's with `audit:read`.
    pub async fn events(
        &self,
        ctx: &Ctx,
        filter: &EventFilter,
        order: EventOrder,
        after: Option<i64>,
        most: usize,
    ) -> Result<Events, Refusal> {
        let org = ctx.caller().org_id;
        self.note_look(ctx).await?;
        self.seal(org).await?;
        let store = &self.base.store;
        let seen = visibility(ctx);
        let mut items = Vec::new();
        let mut last = after;
        let mut bytes = 0;
        loop {
            let room = most.saturating_sub(items.len()).min(READ_AT_ONCE);
            let limit = u32::try_from(room).unwrap_or(u32::MAX);
            let page = store.list_events(org, seen, filter, order, last, limit).await?;
            for record in &page.events {
                bytes += record.core.len() + record.detached.as_deref().map_or(0, str::len);
                items.push(self.event_view(org, record, Shown::Named)?);
            }
            last = page.reached.or(last);
            let ends = !page.more || page.events.len() < room;
            if ends || items.len() >= most || bytes >= PAGE_BYTES {
                return Ok(Events { items, more: page.more, last });
            }
        }
    }

    /// One event in full, if the caller may see it; also when it has no place in the log yet.
    pub async fn event(&self, ctx: &Ctx, id: &str) -> Result<EventView, Refusal> {
        Ok(self.stored_event(ctx, id).await?.1)
    }

    /// The same as it is stored, and as it is shown.
    pub(crate) async fn stored_event(
        &self,
        ctx: &Ctx,
        id: &str,
    ) -> Result<(EventRecord, EventView), Refusal> {
        let unknown = || Refusal::not_found("event", id);
        let event_id: EventId = id.parse().map_err(|_| unknown())?;
        let org = ctx.caller().org_id;
        let found = self.base.store.find_event(org, visibility(ctx), event_id).await;
        let record = found?.ok_or_else(unknown)?;
        let view = self.event_view(org, &record, Shown::Whole)?;
        if !view.concerns(ctx.caller().principal_id) {
            self.note_access(ctx).await?;
        }
        Ok((record, view))
    }

    /// The event with what will be `shown` of it held against what the log has.
    fn event_view(
        &self,
        org: OrgId,
        stored: &EventRecord,
        shown: Shown,
    ) -> Result<EventView, Refusal> {
        let corrupt = || {
            tracing::error!(event = %stored.id, "a stored event cannot be read");
            Refusal::Internal
        };
        let record = object(&stored.core).ok_or_else(corrupt)?;
        let mismatch = self.mismatches_of(org, stored, shown, &record);
        let kept = stored.detached.as_deref().unwrap_or("{}");
        let (detached, salts) = match shown {
            Shown::Whole => {
                let salts = object(stored.salts.as_deref().unwrap_or("{}"));
                let whole = object(kept).map(EventDetached::whole);
                (whole, Some(salts.ok_or_else(corrupt)?))
            }
            Shown::Named | Shown::Bare => (EventDetached::named_in(kept), None),
        };
        let detached = detached.ok_or_else(corrupt)?;
        let place = stored.seal.as_ref();
        let integrity = EventIntegrity {
            log: self.log.origin(org),
            leaf_hash: place.map(|seal| hash_text(&seal.leaf_hash)),
            sealed: place.is_some(),
            mismatch,
            salts,
        };
        Ok(EventView {
            record,
            sequence: place.map(|seal| seal.sequence),
            recorded_at: place.map(|seal| seal.recorded_at),
            detached,
            integrity,
        })
    }

    fn mismatches_of(
        &self,
        org: OrgId,
        stored: &EventRecord,
        shown: Shown,
        record: &Map<String, Value>,
    ) -> Vec<String> {
        let detached = stored.detached.as_deref();
        let salts = stored.salts.as_deref();
        let mut found = match sealed(stored) {
            Some(sealed) => sealed.mismatches(shown),
            // Not in the tree yet: only what the record commits to can be held against it.
            None => uncommitted(&stored.core, detached, salts, shown),
        };
        let said = |name: &str| record.get(name).and_then(Value::as_str);
        let rows = [("id", stored.id.to_string()), ("org_id", org.to_string())];
        let misplaced = rows.iter().filter(|(name, row)| said(name) != Some(row));
        found.extend(misplaced.map(|(name, _)| (*name).to_owned()));
        self.note_mismatch(org, stored.id, &found);
        found
    }
}

/// Events that the caller may see.
pub(crate) fn visibility(ctx: &Ctx) -> Visibility {
    let caller = ctx.caller();
    if caller.scopes.contains(Scope::AuditRead) {
        Visibility::All
    } else if let Some(token) = caller.token_id.filter(|_| caller.is_handed_on()) {
        // What was handed on shows what is done with it, not what its principal did before.
        Visibility::Grant { principal: caller.principal_id, token }
    } else {
        Visibility::Own(caller.principal_id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_recorded_of_the_deepest_body_can_be_read() {
        let input = format!("{}{}", "[".repeat(63), "]".repeat(63));
        let body = format!(r#"{{"input":{input}}}"#);
        let record = format!(
            r#"{{"kind":"event","event":{{"detached":{{"decision_inputs":{body},"input":{input}}}}}}}"#
        );

        assert!(json::parse(body.as_bytes(), Bounds::REQUEST).is_ok());
        assert!(object(&record).is_some());
    }
}
