//! Policies without a node: what the command line and build machines work with.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use futures_util::{StreamExt as _, stream};
use portcullis_core::{
    capability::{Capability, CapabilityId, CapabilityName, Definition, ProviderSlug},
    clock::Timestamp,
    dlp::Engine,
    policy::{Catalogue, PolicyError, PolicyFile, PolicySet},
    refusal::Refusal,
};
use portcullis_store::EventRecord;
use serde_json::{Value, json};

use super::{
    CaseFile, CaseRun, Simulation,
    rehearsal::Rehearsal,
    replay::explained::{EventExplanation, Explainer},
    report::RequestReport,
};
use crate::{
    catalogue::provider::Declared,
    policies::reload::{Ground, load_files},
};

/// Tools to check policies against, and what judges calls of them.
#[derive(Debug)]
pub struct Workbench {
    tools: BTreeMap<String, Arc<Capability>>,
    catalogue: Catalogue,
    dlp: Engine,
    now: Timestamp,
}

/// A provider that did not tell its tools, or a description that is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what}: {why}")]
pub struct Unread {
    /// The provider's slug, or the place in the description.
    pub what: String,
    pub why: String,
}

impl Workbench {
    /// With the tools that are `remembered`, and those that the other providers tell within `patience`, a few
    /// at a time. Those that do not are named; policies about them are checked as far as that goes without
    /// their tools.
    pub async fn connected(
        providers: &[Declared],
        remembered: &BTreeMap<ProviderSlug, Vec<Definition>>,
        dlp: Engine,
        now: Timestamp,
        patience: Duration,
    ) -> (Self, Vec<Unread>) {
        let learnt = providers.iter().map(|provider| async move {
            let told = match remembered.get(&provider.slug) {
                Some(definitions) => Ok(Some(definitions.clone())),
                // Only connections know its tools.
                None if !provider.auth.needs_nobody() => Ok(None),
                None => list_tools(provider, patience).await.map(Some),
            };
            (provider.slug.clone(), told)
        });
        let learnt: Vec<_> = stream::iter(learnt).buffered(ASKED_AT_ONCE).collect().await;
        let mut failed = Vec::new();
        let mut known = Vec::new();
        for (slug, told) in learnt {
            let told = told.unwrap_or_else(|why| {
                failed.push(Unread { what: slug.to_string(), why });
                None
            });
            let tools = told.map(|definitions| {
                let tools = definitions.into_iter();
                tools.filter_map(|it| Capability::new(&slug, it, now).ok()).map(Arc::new).collect()
            });
            known.push((slug, tools));
        }
        for provider in providers {
            provider.server.shutdown().await;
        }
        (Self::of(known, dlp, now), failed)
    }

    /// With tools as the API describes them (`GET /v1/mcps?view=full`); `slugs` are the providers
    /// there are besides.
    pub fn described(
        slugs: Vec<ProviderSlug>,
        description: &Value,
        dlp: Engine,
        now: Timestamp,
    ) -> Result<Self, Unread> {
        let items = description.pointer("/data/items").or_else(|| description.get("items"));
        let items = items.unwrap_or(description).as_array().ok_or_else(|| Unread {
            what: "the tools".to_owned(),
            why: "have to be a list, or an answer of `GET /v1/mcps?view=full`".to_owned(),
        })?;
        let mut known: BTreeMap<ProviderSlug, Option<Vec<Arc<Capability>>>> =
            slugs.into_iter().map(|slug| (slug, None)).collect();
        for (at, item) in items.iter().enumerate() {
            let (slug, tool) =
                tool_of(item, now).map_err(|why| Unread { what: format!("tool {at}"), why })?;
            known.entry(slug).or_default().get_or_insert_default().push(Arc::new(tool));
        }
        Ok(Self::of(known.into_iter().collect(), dlp, now))
    }

    fn of(
        known: Vec<(ProviderSlug, Option<Vec<Arc<Capability>>>)>,
        dlp: Engine,
        now: Timestamp,
    ) -> Self {
        let tools = known.iter().filter_map(|(_, tools)| tools.as_ref()).flatten();
        let tools = tools.map(|tool| (tool.id.to_string(), Arc::clone(tool))).collect();
        Self { tools, catalogue: Catalogue::new(known), dlp, now }
    }

    /// The same with the names of the webhooks that policies may name.
    #[must_use]
    pub fn with_webhooks(mut self, names: impl IntoIterator<Item = String>) -> Self {
        self.catalogue = self.catalogue.with_webhooks(names);
        self
    }

    /// The tools, by id.
    pub fn tools(&self) -> impl Iterator<Item = &Capability> {
        self.tools.values().map(|tool| &**tool)
    }

    /// The tools as [`Self::described`] reads them.
    #[must_use]
    pub fn description(&self) -> Value {
        let told = self.tools().map(|tool| {
            let definition = &tool.definition;
            json!({
                "id": tool.id.as_str(), "title": definition.title,
                "description": definition.description, "annotations": definition.annotations,
                "input_schema": definition.input_schema,
                "output_schema": definition.output_schema,
            })
        });
        json!({ "items": told.collect::<Vec<_>>() })
    }

    const fn ground<'a>(&'a self, detectors: &'a [&'a str]) -> Ground<'a> {
        Ground { catalogue: &self.catalogue, detectors, now: self.now }
    }

    /// Loads policies, checked against the tools. Gives every error.
    pub fn load(&self, files: Vec<PolicyFile>) -> Result<Arc<PolicySet>, Vec<PolicyError>> {
        load_files(files, self.ground(&self.dlp.names())).map(Arc::new)
    }

    /// Answers hypothetical calls as the API would, with `live` as the set in force. Recorded
    /// calls are not at hand here.
    pub fn simulate(
        &self,
        live: &Arc<PolicySet>,
        simulation: &Simulation,
    ) -> Result<RequestReport, Refusal> {
        self.rehearsed(|rehearsal| rehearsal.simulate(live, simulation))
    }

    /// Explains the decision of a recorded call by `set`, which is taken for the one in force; `None` if
    /// the event is not about a call or cannot be read.
    #[must_use]
    pub fn explain(&self, set: &PolicySet, event: &EventRecord) -> Option<EventExplanation> {
        let tools = |id: &str| self.tools.get(id).cloned();
        Explainer { set, tools: &tools, org: None }.explain(event)
    }

    /// Asks `set` the cases of a file.
    pub fn run(&self, set: &Arc<PolicySet>, cases: &CaseFile) -> Result<Vec<CaseRun>, PolicyError> {
        self.rehearsed(|rehearsal| cases.run(set, rehearsal))
    }

    fn rehearsed<T>(&self, work: impl FnOnce(&Rehearsal<'_>) -> T) -> T {
        let detectors = self.dlp.names();
        let ground = self.ground(&detectors);
        work(&Rehearsal { engine: &self.dlp, ground })
    }
}

/// Providers that are asked at a time: many of them are programs, which take a processor each to start.
const ASKED_AT_ONCE: usize = 4;

/// The tools that a provider tells, or why it does not.
async fn list_tools(provider: &Declared, patience: Duration) -> Result<Vec<Definition>, String> {
    match tokio::time::timeout(patience, provider.server.list()).await {
        Ok(Ok(list)) => Ok(list.definitions),
        Ok(Err(error)) => Err(error.kind.to_string()),
        Err(_) => {
            let seconds = patience.as_secs();
            Err(format!("no answer within {seconds} s (`server.provider_patience_seconds`)"))
        }
    }
}

fn tool_of(item: &Value, now: Timestamp) -> Result<(ProviderSlug, Capability), String> {
    let text = |name: &str| item.get(name).and_then(Value::as_str).map(str::to_owned);
    let id = text("id").ok_or("has no `id`")?;
    let id: CapabilityId = id.parse().map_err(|_| format!("`{id}` is no tool id"))?;
    let slug: ProviderSlug = id.provider().parse().map_err(|_| "has no provider".to_owned())?;
    let name = CapabilityName::of_kind(id.kind(), id.name());
    let name = name.map_err(|_| "has no name".to_owned())?;
    let schema = item.get("input_schema").cloned().unwrap_or_else(|| json!({}));
    let definition = Definition {
        kind: id.kind(),
        title: text("title"),
        description: text("description"),
        output_schema: item.get("output_schema").filter(|schema| !schema.is_null()).cloned(),
        annotations: item.get("annotations").cloned().unwrap_or_else(|| json!({})),
        ..Definition::new(name, schema)
    };
    let tool =
        Capability::new(&slug, definition, now).map_err(|error| format!("`{id}`: {error}"))?;
    Ok((slug, tool))
}
