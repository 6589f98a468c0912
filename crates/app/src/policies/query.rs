//! Listing policies.

use std::sync::Arc;

use portcullis_core::{
    policy::{Effect, PolicyRecord, PolicySet, Somebody},
    principal::Scope,
    refusal::Refusal,
    tool::Tool,
};

use super::{PolicyStats, Reload};
use crate::{App, Ctx};

/// Which policies to list.
#[derive(Debug, Clone, Default)]
pub struct PolicyQuery {
    /// Only with these statuses; empty means any.
    pub statuses: Vec<String>,
    /// Only with this effect.
    pub effect: Option<String>,
    /// Only those that can apply to this tool.
    pub tool: Option<String>,
    /// Only those that can apply to this principal.
    pub principal: Option<Somebody>,
    /// Only with this tag.
    pub tag: Option<String>,
    /// Only whose id, title or description contains this, whatever the case.
    pub text: Option<String>,
    /// Only those after this id.
    pub after: Option<String>,
    /// At most so many.
    pub limit: usize,
}

fn mentions(record: &PolicyRecord, text: &str) -> bool {
    let text = text.to_lowercase();
    let places = [Some(&*record.id), record.title.as_deref(), record.description.as_deref()];
    places.into_iter().flatten().any(|place| place.to_lowercase().contains(&text))
}

/// Whether the record is asked for; the index is asked last.
fn wants(set: &PolicySet, query: &PolicyQuery, record: &PolicyRecord, tool: Option<&Tool>) -> bool {
    let status = record.status.as_str();
    let effect = match record.effect {
        Effect::Permit => "permit",
        Effect::Forbid => "forbid",
    };
    query.after.as_deref().is_none_or(|after| &*record.id > after)
        && (query.statuses.is_empty() || query.statuses.iter().any(|s| s == status))
        && query.effect.as_deref().is_none_or(|wanted| wanted == effect)
        && query.tag.as_deref().is_none_or(|tag| record.tags.iter().any(|own| own == tag))
        && query.text.as_deref().is_none_or(|text| mentions(record, text))
        && tool.is_none_or(|tool| set.applies_to_tool(&record.id, tool))
        && query.principal.as_ref().is_none_or(|who| set.concerns(&record.id, who))
}

impl App {
    /// The set in force and how the last reload went.
    #[must_use]
    pub fn policy_set(&self) -> (Arc<PolicySet>, Arc<Reload>) {
        (self.policies.current(), self.policies.last_reload())
    }

    /// The records the query wants, by id; and whether there are more.
    pub fn policies(
        &self,
        ctx: &Ctx,
        query: &PolicyQuery,
    ) -> Result<(Arc<PolicySet>, Vec<usize>, bool), Refusal> {
        ctx.require(Scope::PoliciesRead)?;
        let set = self.policies.current();
        let tool = query.tool.as_ref().map(|tool| self.visible(ctx, tool)).transpose()?;
        let tool = tool.as_ref().map(|visible| &*visible.tool);
        let mut found: Vec<usize> = Vec::new();
        for (index, record) in set.records().iter().enumerate() {
            if !wants(&set, query, record, tool) {
                continue;
            }
            if found.len() == query.limit {
                return Ok((set, found, true));
            }
            found.push(index);
        }
        Ok((set, found, false))
    }

    /// One record with its source.
    pub fn policy(&self, ctx: &Ctx, id: &str) -> Result<(Arc<PolicySet>, usize), Refusal> {
        ctx.require(Scope::PoliciesRead)?;
        let set = self.policies.current();
        let index = set.records().binary_search_by(|record| (*record.id).cmp(id));
        index.map(|index| (set, index)).map_err(|_| Refusal::not_found("policy", id))
    }

    /// What a policy is about, and what became of it since this node runs.
    #[must_use]
    pub fn policy_stats(&self, set: &PolicySet, id: &str) -> PolicyStats {
        let tools = self.tools.load();
        let tools = tools.values().filter(|(tool, _)| set.applies_to_tool(id, tool));
        PolicyStats { applies_to_tools: tools.count(), ..self.policies.tallies.of(id) }
    }
}
