//! Audit events about tools that changed or cannot be used. An upstream decides how often its tools
//! change, so one refresh names a few tools and counts the others.

use std::{
    fmt::Display,
    sync::{Arc, PoisonError},
};

use portcullis_core::{
    audit::{Actor, Auth, Detached, Event, EventType, Outcome, Target},
    capability::{CapabilityId, CapabilityKind, CapabilityName, ProviderSlug},
    clock::Clock,
    id::{EventId, Ids, OrgId},
    principal::Scope,
    random::Random,
    refusal::Executed,
};
use portcullis_store::{AuditWriter, Store, StoreError};
use portcullis_upstream::Skipped;
use serde::Serialize;
use serde_json::{Value, json};

use crate::{
    audit::events::{patience, row_of},
    catalogue::provider::Provider,
    providers::tools::Tools,
    request::Ctx,
};

/// The most tools of one look that have an event of their own.
const MOST_EVENTS: usize = 20;
/// The most unusable tools that an event names.
const MOST_NAMED: usize = 50;

/// Reason that a definition waits although it is the first, or that it deserves a closer look.
const STEERING: &str = "likely instructions in the definition";

/// A tool whose definition is not the accepted one.
pub(super) struct ChangedTool {
    pub(super) tool: CapabilityId,
    pub(super) old: Option<String>,
    pub(super) new: String,
    pub(super) members: Vec<&'static str>,
    /// True if it likely holds instructions to a model.
    pub(super) is_steering: bool,
}

/// A tool that is listed with the same values as accepted, in another order.
pub(super) struct RearrangedTool {
    pub(super) tool: CapabilityId,
    pub(super) version: String,
}

/// The most rearrangements that are remembered as told.
const MOST_REMEMBERED: usize = 10_000;

/// A listed tool that is not in the catalogue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct LeftOut {
    kind: CapabilityKind,
    name: String,
    why: String,
}

/// A tool that is not in the catalogue, as it is shown to callers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOutTool {
    pub kind: CapabilityKind,
    pub provider: String,
    /// Its name, masked; empty if it has none.
    pub name: String,
    pub reason: String,
}

impl LeftOut {
    pub(crate) fn new(kind: CapabilityKind, name: &str, why: &dyn Display) -> Self {
        Self { kind, name: name.to_owned(), why: why.to_string() }
    }

    pub(crate) fn skipped(skipped: &Skipped) -> Self {
        Self::new(skipped.kind, &skipped.name, &skipped.why)
    }

    pub(super) const fn kind(&self) -> CapabilityKind {
        self.kind
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// The tool it would be, if its name can be one.
    pub(super) fn tool(&self, provider: &ProviderSlug) -> Option<CapabilityId> {
        let name = CapabilityName::of_kind(self.kind, &self.name).ok()?;
        Some(CapabilityId::new(self.kind, provider, &name))
    }

    pub(super) fn twin(
        kind: CapabilityKind,
        name: &CapabilityName,
        first: &CapabilityName,
    ) -> Self {
        Self::new(kind, name.as_str(), &format_args!("its name can be taken for that of `{first}`"))
    }
}

impl Tools {
    pub(super) fn tell_of_changes(
        &self,
        provider: &Provider,
        org: Option<OrgId>,
        all: Vec<ChangedTool>,
    ) {
        let slug = provider.declared.slug.as_str();
        for it in &all {
            tracing::warn!(tool = %it.tool, version = it.new, "a definition waits to be accepted; see `portcullis tool diff`");
        }
        // What is not told now is told with a later look, if it still holds then.
        if all.is_empty() || !self.pins.may_tell(org, slug, self.base.clock.now()) {
            return;
        }
        let teller = self.teller();
        let slug = slug.to_owned();
        self.base.tasks.spawn(async move {
            let (named, others) = all.split_at(all.len().min(MOST_EVENTS));
            for it in named {
                let mut change = json!({
                    "action": if it.old.is_some() { "quarantined" } else { "waits" },
                    "old_version": it.old, "new_version": it.new, "members": it.members,
                });
                if let Some(change) = change.as_object_mut().filter(|_| it.is_steering) {
                    change.insert("reason".to_owned(), Value::from(STEERING));
                }
                let target = tool(&it.tool, Some(it.new.clone()));
                if !teller.tell(org, EventType::ToolChanged, target, None, change).await {
                    return;
                }
            }
            if !others.is_empty() {
                let count = u64::try_from(others.len()).ok();
                let change = json!({ "action": "quarantined" });
                let target = provider_target(&slug);
                if !teller.tell(org, EventType::ToolChanged, target, count, change).await {
                    return;
                }
            }
            let told: Vec<_> = all.iter().map(|it| (it.tool.clone(), it.new.clone())).collect();
            if let Err(error) = teller.store.told_of_tools(org, &told).await {
                tracing::error!(%error, "events of changed tools could not be recorded; retrying");
            }
        });
    }

    /// Tells of tools that cannot be used, when they are others than at the last look.
    /// Tells once of each tool that is listed in another order; it stays in use.
    pub(super) fn tell_of_rearranged(
        &self,
        provider: &Provider,
        org: Option<OrgId>,
        mut all: Vec<RearrangedTool>,
    ) {
        {
            let mut told = self.pins.rearranged.lock().unwrap_or_else(PoisonError::into_inner);
            if told.len() > MOST_REMEMBERED {
                told.clear();
            }
            all.retain(|it| told.insert((org, it.tool.clone(), it.version.clone())));
        }
        let slug = provider.declared.slug.as_str();
        for it in &all {
            tracing::info!(tool = %it.tool, version = it.version, "the tool lists the same in another order");
        }
        if all.is_empty() || !self.pins.may_tell(org, slug, self.base.clock.now()) {
            return;
        }
        let teller = self.teller();
        self.base.tasks.spawn(async move {
            for it in all.iter().take(MOST_EVENTS) {
                let change = json!({ "action": "rearranged", "new_version": it.version });
                let target = tool(&it.tool, Some(it.version.clone()));
                if !teller.tell(org, EventType::ToolChanged, target, None, change).await {
                    return;
                }
            }
        });
    }

    pub(super) fn tell_of_left_out(
        &self,
        provider: &Provider,
        org: Option<OrgId>,
        all: &[LeftOut],
    ) {
        let slug = provider.declared.slug.as_str();
        let named = self.shown_left_out(slug, org, all);
        {
            let mut told = self.pins.left_out.lock().unwrap_or_else(PoisonError::into_inner);
            let before = told.entry((org, slug.to_owned())).or_default();
            let tells = *before != all
                && (all.is_empty() || self.pins.may_tell(org, slug, self.base.clock.now()));
            if !tells {
                return;
            }
            all.clone_into(before);
        }
        if all.is_empty() {
            return;
        }
        for it in &named {
            tracing::warn!(provider = slug, tool = it.name, why = it.why, "tool left out");
        }
        let change = json!({ "action": "skipped", "tools": named });
        let teller = self.teller();
        let target = provider_target(slug);
        let count = u64::try_from(all.len()).ok();
        self.base.tasks.spawn(async move {
            teller.tell(org, EventType::ToolSkipped, target, count, change).await;
        });
    }

    /// Keeps what may be shown of the tools that cannot be used.
    fn shown_left_out(&self, slug: &str, org: Option<OrgId>, all: &[LeftOut]) -> Vec<LeftOut> {
        let named = all.iter().take(MOST_NAMED);
        let named =
            named.map(|it| LeftOut { name: self.screening.recordable(&it.name), ..it.clone() });
        let named: Vec<_> = named.collect();
        let mut shown = self.pins.shown_left_out.lock().unwrap_or_else(PoisonError::into_inner);
        if named.is_empty() {
            shown.remove(&(slug.to_owned(), org));
        } else {
            shown.insert((slug.to_owned(), org), named.clone());
        }
        named
    }

    /// The tools that the caller's providers list and that are not in the catalogue, at most 50 of each, by
    /// provider.
    #[must_use]
    pub fn left_out(&self, ctx: &Ctx) -> Vec<LeftOutTool> {
        let org = ctx.caller().org_id;
        let shown = self.pins.shown_left_out.lock().unwrap_or_else(PoisonError::into_inner);
        let own = shown
            .iter()
            .filter(|((slug, of), _)| of.is_none_or(|of| of == org) && self.reaches(ctx, slug));
        let own: Vec<(String, Vec<LeftOut>)> =
            own.map(|((slug, _), tools)| (slug.clone(), tools.clone())).collect();
        drop(shown);
        // Names of prompts and URIs tell of what policies may hide; who reads the settings knows them.
        let knows_all = ctx.require(Scope::Admin).is_ok();
        let told = |it: &LeftOut| knows_all || it.kind == CapabilityKind::Tool;
        let tools = own.into_iter().flat_map(|(slug, tools)| {
            tools.into_iter().filter(told).map(move |LeftOut { kind, name, why }| LeftOutTool {
                kind,
                provider: slug.clone(),
                name,
                reason: why,
            })
        });
        tools.collect()
    }

    /// Notes the number of tools above the limit, and tells of it once as long as it holds.
    pub(super) async fn tell_of_surplus(
        &self,
        provider: &Provider,
        org: Option<OrgId>,
        surplus: u64,
    ) -> Result<(), StoreError> {
        let slug = provider.declared.slug.as_str();
        let most = provider.declared.max_pins;
        let key = (org, slug.to_owned());
        let before = {
            let surpluses = self.pins.surplus.lock().unwrap_or_else(PoisonError::into_inner);
            surpluses.get(&key).copied()
        };
        if before == Some(surplus) {
            return Ok(());
        }
        let now = self.base.clock.now();
        self.base.store.note_surplus(org, slug, surplus, now).await?;
        self.pins.surplus.lock().unwrap_or_else(PoisonError::into_inner).insert(key, surplus);
        let begins = surplus > 0 && before.unwrap_or(0) == 0;
        if !begins || !self.pins.may_tell(org, slug, now) {
            return Ok(());
        }
        tracing::warn!(
            provider = slug,
            surplus,
            most,
            "the provider lists more tools than are remembered of it; see `portcullis tool list`"
        );
        let change = json!({ "action": "surplus", "max_pins": most });
        let teller = self.teller();
        let target = provider_target(slug);
        self.base.tasks.spawn(async move {
            teller.tell(org, EventType::ToolSkipped, target, Some(surplus), change).await;
        });
        Ok(())
    }

    fn teller(&self) -> Teller {
        Teller {
            store: self.base.store.clone(),
            writer: self.audit.writer.clone(),
            clock: Arc::clone(&self.base.clock),
            random: Arc::clone(&self.base.random),
        }
    }
}

/// Writes events beside the work they tell of.
struct Teller {
    store: Store,
    writer: AuditWriter,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
}

impl Teller {
    /// Tells the org, or every org. `false` if that failed, also in part: then it is told again.
    async fn tell(
        &self,
        org: Option<OrgId>,
        kind: EventType,
        target: Target,
        count: Option<u64>,
        change: Value,
    ) -> bool {
        let orgs = match concerned(&self.store, org).await {
            Ok(orgs) => orgs,
            Err(error) => {
                tracing::error!(%error, event = kind.as_str(), "an event could not be recorded");
                return false;
            }
        };
        for org in orgs {
            let ids = Ids { clock: &*self.clock, random: &*self.random };
            let event = event(ids, org, kind, target.clone(), count, &change, &*self.random);
            if let Err(error) = self.writer.append(row_of(&event), patience()).await {
                tracing::error!(%error, event = kind.as_str(), "an event could not be recorded");
                return false;
            }
        }
        true
    }
}

/// The orgs whose log tells of it.
pub(crate) async fn concerned(store: &Store, org: Option<OrgId>) -> Result<Vec<OrgId>, StoreError> {
    match org {
        Some(org) => Ok(vec![org]),
        None => Ok(store.list_orgs().await?.into_iter().map(|org| org.id).collect()),
    }
}

fn event(
    ids: Ids<'_>,
    org_id: OrgId,
    kind: EventType,
    target: Target,
    count: Option<u64>,
    change: &Value,
    random: &dyn Random,
) -> Event {
    Event {
        id: EventId::new(ids),
        org_id,
        kind,
        occurred_at: ids.clock.now(),
        count,
        actor: Actor { auth: Auth { method: "system", trust: None }, ..Actor::system() },
        request: None,
        target: Some(target),
        governance: None,
        outcome: Outcome::success(Executed::Yes),
        detached: Detached::default().keep("change", Some(change.clone()), random),
    }
}

/// A tool or prompt as the target of an event.
pub(crate) fn tool(id: &CapabilityId, version: Option<String>) -> Target {
    let capability = Some(id.kind().governed());
    let id = Some(id.to_string());
    Target { capability, credential: None, id, provider_id: None, kind: "mcp", version }
}

fn provider_target(slug: &str) -> Target {
    let id = Some(slug.to_owned());
    Target {
        capability: None,
        credential: None,
        id,
        provider_id: None,
        kind: "provider",
        version: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_of_a_definition_that_is_left_out_is_found_whatever_its_kind() {
        let slug = "up".parse().unwrap();
        for id in ["up:a", "prompt:up:a b", "resource:up:x://a?b=%20", "resource:up:x://{a}"] {
            let id: CapabilityId = id.parse().unwrap();
            assert_eq!(LeftOut::new(id.kind(), id.name(), &"why").tool(&slug), Some(id));
        }
    }
}
