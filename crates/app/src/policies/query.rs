//! Listing policies.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use portcullis_core::{
    capability::{Capability, CapabilityId},
    id::{OrgId, PrincipalId},
    policy::{Effect, Misnamed, OrgView, PolicyError, PolicyRecord, PolicySet, Somebody},
    refusal::Refusal,
};

use super::{Policies, Reload};
use crate::{base::tenants::tallies::PolicyStats, request::Ctx};

/// Filter of a list of policies.
#[derive(Debug, Clone, Default)]
pub struct PolicyQuery {
    /// Only with these statuses; empty means any.
    pub statuses: Vec<String>,
    pub effect: Option<String>,
    /// Only those that can apply to this tool.
    pub tool: Option<CapabilityId>,
    /// Only those that can apply to this principal.
    pub principal: Option<Somebody>,
    pub tag: Option<String>,
    /// Only whose id, title or description contains this, whatever the case.
    pub text: Option<String>,
    pub after: Option<String>,
    pub limit: usize,
}

/// Warnings about policies, by id.
pub(crate) type Warnings = BTreeMap<Arc<str>, Vec<String>>;

/// Policies in force that are shown to the caller's org.
#[derive(Debug)]
pub struct PolicyPage {
    pub set: Arc<PolicySet>,
    /// The numbers of the records that the query wants, by id.
    pub found: Vec<usize>,
    /// Warnings for the caller's org about policies among them, by id.
    pub warnings: Warnings,
    pub more: bool,
    pub reload: Arc<Reload>,
    /// Errors of the last reload, except those in policies of other orgs.
    pub errors: Vec<PolicyError>,
}

/// Groups, and names of principals, that are looked up for one answer; others get no warning.
const LOOKED_UP: usize = 200;

fn mentions(record: &PolicyRecord, text: &str) -> bool {
    let text = text.to_lowercase();
    let places = [Some(&*record.id), record.title.as_deref(), record.description.as_deref()];
    places.into_iter().flatten().any(|place| place.to_lowercase().contains(&text))
}

/// True if the record is asked for; the index is asked last.
fn wants(
    set: &PolicySet,
    query: &PolicyQuery,
    record: &PolicyRecord,
    tool: Option<&Capability>,
) -> bool {
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

impl Policies {
    /// The set in force and how the last reload went.
    #[must_use]
    pub fn policy_set(&self) -> (Arc<PolicySet>, Arc<Reload>) {
        (self.current(), self.last_reload())
    }

    /// The records the query wants among those that can concern the caller's org.
    pub async fn list(&self, ctx: &Ctx, query: &PolicyQuery) -> Result<PolicyPage, Refusal> {
        let set = self.current_of(ctx.caller().org_id);
        let tool = query
            .tool
            .as_ref()
            .map(|tool| self.catalogue.visible(&ctx.session.connections, tool))
            .transpose()?;
        let tool = tool.as_ref().map(|visible| &*visible.tool);
        let org = self.org_view_of(ctx.caller().org_id, &set).await?;
        let reload = self.last_reload();
        let is_ours = |error: &&PolicyError| {
            let id = error.policy.as_deref();
            id.is_none_or(|id| set.find(id).is_none() || set.can_concern(id, &org))
        };
        let errors = reload.errors.iter().filter(is_ours).cloned().collect();
        let mut found = Vec::new();
        let mut more = false;
        for (index, record) in set.records().iter().enumerate() {
            if !wants(&set, query, record, tool) || !set.can_concern(&record.id, &org) {
                continue;
            }
            if found.len() == query.limit {
                more = true;
                break;
            }
            found.push(index);
        }
        let records = found.iter().filter_map(|index| set.records().get(*index));
        let warnings = self.warnings(ctx, &set, records).await?;
        Ok(PolicyPage { set, found, warnings, more, reload, errors })
    }

    /// One record for its source and with the warnings for the caller's org, if the policy can concern
    /// it.
    pub async fn policy(
        &self,
        ctx: &Ctx,
        id: &str,
    ) -> Result<(Arc<PolicySet>, PolicyRecord), Refusal> {
        let unknown = || Refusal::not_found("policy", id);
        let set = self.current_of(ctx.caller().org_id);
        let index = set.records().binary_search_by(|record| (*record.id).cmp(id));
        let index = index.map_err(|_| unknown())?;
        let org = self.org_view_of(ctx.caller().org_id, &set).await?;
        let found = set.records().get(index).filter(|_| set.can_concern(id, &org));
        let record = found.ok_or_else(unknown)?;
        let mut warnings = self.warnings(ctx, &set, [record].into_iter()).await?;
        let record = record.warning(warnings.remove(&record.id).unwrap_or_default());
        Ok((set, record))
    }

    /// Warnings about these policies that depend on the caller's org: a set is loaded without knowing
    /// its people.
    async fn warnings<'a>(
        &self,
        ctx: &Ctx,
        set: &PolicySet,
        records: impl Iterator<Item = &'a PolicyRecord> + Clone + Send,
    ) -> Result<Warnings, Refusal> {
        let org = ctx.caller().org_id;
        let mut warnings = self.empty_groups(org, set, records.clone()).await?;
        for (id, advice) in self.ids_of_names(org, set, records).await? {
            warnings.entry(id).or_default().extend(advice);
        }
        Ok(warnings)
    }

    /// The ids to write for principals of the org that policies give by their names.
    async fn ids_of_names<'a>(
        &self,
        org: OrgId,
        set: &PolicySet,
        records: impl Iterator<Item = &'a PolicyRecord> + Send,
    ) -> Result<Warnings, Refusal> {
        let misnamed = records.flat_map(|record| {
            set.misnamed(&record.id).into_iter().map(|it| (Arc::clone(&record.id), it))
        });
        // PostgreSQL takes no text with a zero byte, and no principal has one in its name.
        let names = misnamed.filter(|(_, it)| !it.name().contains('\0'));
        let names: Vec<(Arc<str>, Misnamed)> = names.take(LOOKED_UP).collect();
        let mut found = Warnings::new();
        for (id, misnamed) in names {
            let known = self.base.store.find_principal_by_name(org, misnamed.name()).await?;
            found.entry(id).or_default().extend(known.map(|known| misnamed.advice(known.id)));
        }
        Ok(found)
    }

    /// The groups that have to approve and that have no member in the org, as far as is known.
    async fn empty_groups<'a>(
        &self,
        org: OrgId,
        set: &PolicySet,
        records: impl Iterator<Item = &'a PolicyRecord> + Clone,
    ) -> Result<Warnings, Refusal> {
        let groups = |record: &PolicyRecord| set.approvers_of(&record.id).into_iter().flatten();
        let all: BTreeSet<String> =
            records.clone().flat_map(groups).take(LOOKED_UP).cloned().collect();
        if all.is_empty() {
            return Ok(Warnings::new());
        }
        let unnamed = self.base.store.unnamed_groups(org, &all).await?;
        let warning = |group: &String| {
            format!(
                "no login of this org named the group `{group}`, and `portcullis principal \
                 set-groups` put no principal into it: only admins can approve"
            )
        };
        let of = |record: &PolicyRecord| -> Vec<String> {
            groups(record).filter(|group| unnamed.contains(*group)).map(warning).collect()
        };
        let found = records.map(|record| (Arc::clone(&record.id), of(record)));
        Ok(found.filter(|(_, warnings)| !warnings.is_empty()).collect())
    }

    /// Statistics of a policy in the caller's org: the number of tools it applies to, and its
    /// counters since this node started.
    #[must_use]
    pub fn policy_stats(&self, ctx: &Ctx, set: &PolicySet, id: &str) -> PolicyStats {
        let org = ctx.caller().org_id;
        let tools = self.catalogue.tools.load();
        let is_open = |tool: &Capability| {
            let provider = self.catalogue.providers.get(tool.id.provider());
            provider.is_some_and(|provider| provider.is_open_to(org))
        };
        let tools = tools.values().map(|(tool, _)| tool);
        let tools = tools.filter(|tool| is_open(tool) && set.applies_to_tool(id, tool));
        PolicyStats { applies_to_tools: tools.count(), ..ctx.session.tenant.tallies.of(id) }
    }

    /// The org as policies can name it, when these principals are named.
    pub(crate) async fn org_view(
        &self,
        org: OrgId,
        named: &BTreeSet<PrincipalId>,
    ) -> Result<OrgView, Refusal> {
        let members = if named.is_empty() {
            Vec::new()
        } else {
            let found = self.base.store.principals_among(org, named).await;
            found?.into_keys().collect()
        };
        let foreign =
            self.catalogue.providers.values().filter(|provider| !provider.is_open_to(org));
        let foreign = foreign.map(|provider| provider.declared.slug.to_string());
        Ok(OrgView::new(org, members, foreign))
    }

    /// The org as the policies of this set name it.
    pub(crate) async fn org_view_of(
        &self,
        org: OrgId,
        set: &PolicySet,
    ) -> Result<OrgView, Refusal> {
        self.org_view(org, &set.named_principals()).await
    }
}
