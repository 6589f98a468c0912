//! From what an upstream lists to what may be shown: looked through by DLP, compiled once for
//! trial, and pinned.

use std::{fmt, sync::Arc};

use portcullis_core::{
    clock::Timestamp,
    id::OrgId,
    tool::{PatternBudget, ProviderSlug, Tool, ToolDefinition},
};
use portcullis_store::StoreError;
use portcullis_upstream::ToolList;

use super::{Tools, pins::events::LeftOut};
use crate::{catalogue::provider::Provider, dlp::Dlp};

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
            left_out.push(LeftOut::new("", &"the list does not end within what is read of one"));
        }
        let slug = provider.declared.slug.clone();
        let dlp = self.screening.dlp();
        // A thousand schemas take a while: not on a thread that serves requests.
        let strict = provider.declared.strict_patterns;
        let looked = move || usable(&slug, &dlp, strict, list.tools);
        let looked = self.base.list_work(org, looked).await;
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
    strict: bool,
    all: Vec<ToolDefinition>,
) -> (Vec<ToolDefinition>, Vec<LeftOut>) {
    let mut usable = Vec::with_capacity(all.len());
    let mut left_out = Vec::new();
    let mut patterns = PatternBudget::default();
    for definition in all {
        let version = definition.version();
        let name = definition.name.clone();
        let cleared = match definition.cleared(dlp.engine()) {
            Ok(cleared) => cleared,
            Err(error) => {
                left_out.push(LeftOut::new(name.as_str(), &error));
                continue;
            }
        };
        let trial = Tool::new(slug, cleared.clone(), Timestamp::default());
        let trial = match trial.and_then(|tool| patterns.admit(tool)) {
            Ok(trial) => trial,
            Err(error) => {
                left_out.push(LeftOut::new(name.as_str(), &error));
                continue;
            }
        };
        if let Some(first) = trial.unenforced().first().filter(|_| strict) {
            left_out.push(LeftOut::new(name.as_str(), &Unenforced(first)));
            continue;
        }
        if cleared.version() != version {
            tracing::warn!(provider = %slug, tool = %cleared.name, "words masked");
        }
        usable.push(cleared);
    }
    (usable, left_out)
}

/// The first pattern of a tool that cannot be enforced, where all have to be.
struct Unenforced<'a>(&'a str);

impl fmt::Display for Unenforced<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the pattern at {} of its input schema cannot be matched in linear time; `patterns = \"note\"` \
             of the provider uses the tool without it",
            self.0
        )
    }
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
