//! From what an upstream lists to what may be shown: looked through by DLP, compiled once for
//! trial, and pinned.

use std::sync::Arc;

use portcullis_core::{
    clock::Timestamp,
    id::OrgId,
    tool::{PatternBudget, ProviderSlug, Tool, ToolDefinition},
};
use portcullis_store::StoreError;
use portcullis_upstream::ToolList;

use super::{Tools, pins::events::LeftOut};
use crate::{dlp::Dlp, providers::provider::Provider};

impl Tools {
    /// The definitions of a list that may be shown to `org`, or to every org: one of a tool that
    /// changed is the accepted one. What is left out is told in the log.
    pub(crate) async fn definitions(
        &self,
        provider: &Provider,
        org: Option<OrgId>,
        list: ToolList,
    ) -> Result<Vec<ToolDefinition>, StoreError> {
        let mut left_out: Vec<LeftOut> = list.skipped.iter().map(LeftOut::skipped).collect();
        if list.truncated {
            left_out.push(LeftOut::new("", &"the list is longer than what is read of one"));
        }
        let (slug, dlp) = (provider.declared.slug.clone(), self.screening.dlp());
        // A thousand schemas take a while: not on a thread that serves requests.
        let looked = self.base.list_work(org, move || usable(&slug, &dlp, list.tools)).await;
        let (definitions, unusable) = looked.unwrap_or_else(|| {
            tracing::error!(provider = %provider.declared.slug, "looking through tools ended in a panic");
            (Vec::new(), Vec::new())
        });
        left_out.extend(unusable);
        self.pinned(provider, org, definitions, left_out).await
    }
}

/// The definitions as DLP lets them be shown; a tool that cannot be shown or whose schema cannot
/// be enforced stays out.
fn usable(
    slug: &ProviderSlug,
    dlp: &Arc<Dlp>,
    all: Vec<ToolDefinition>,
) -> (Vec<ToolDefinition>, Vec<LeftOut>) {
    let (mut usable, mut left_out) = (Vec::with_capacity(all.len()), Vec::new());
    let mut patterns = PatternBudget::default();
    for definition in all {
        let (version, name) = (definition.version(), definition.name.clone());
        let cleared = match dlp.engine().clear_definition(definition) {
            Ok(cleared) => cleared,
            Err(error) => {
                left_out.push(LeftOut::new(name.as_str(), &error));
                continue;
            }
        };
        let trial = Tool::new(slug, cleared.clone(), Timestamp::default());
        if let Err(error) = trial.and_then(|tool| patterns.admit(tool)) {
            left_out.push(LeftOut::new(name.as_str(), &error));
            continue;
        }
        if cleared.version() != version {
            tracing::warn!(provider = %slug, tool = %cleared.name, "words masked");
        }
        usable.push(cleared);
    }
    (usable, left_out)
}

/// Compiles each definition; a tool whose schema cannot be enforced stays out.
pub(super) fn compile(
    slug: &ProviderSlug,
    definitions: Vec<ToolDefinition>,
    seen: Vec<Timestamp>,
) -> Vec<Arc<Tool>> {
    let mut patterns = PatternBudget::default();
    let mut tools = Vec::with_capacity(definitions.len());
    for (definition, updated_at) in definitions.into_iter().zip(seen) {
        let name = definition.name.clone();
        let tool = Tool::new(slug, definition, updated_at);
        match tool.and_then(|tool| patterns.admit(tool)) {
            Ok(tool) => tools.push(Arc::new(tool)),
            Err(error) => {
                tracing::warn!(provider = %slug, tool = %name, %error, "tool left out");
            }
        }
    }
    tools
}
