//! Which tools are known, and the facts about one that policies can name.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use cedar_policy::{Entities, Entity, RestrictedExpression};

use super::{
    engine::{Member, Place},
    names::{EVERYTHING, HINTS, names, uid},
};
use crate::tool::{ProviderSlug, Tool, ToolId};

/// The providers there are, and the tools of those that have told them.
#[derive(Debug, Clone, Default)]
pub struct Catalogue {
    providers: BTreeMap<String, Option<BTreeMap<String, Arc<Tool>>>>,
    webhooks: BTreeSet<String>,
    /// `None` while nobody knows which groups there are.
    groups: Option<BTreeSet<String>>,
}

/// What the catalogue says about a name in a policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Known {
    /// It is there.
    Yes,
    /// Its provider is configured but has not told its tools yet.
    NotYet,
    /// No such provider is configured.
    NoProvider,
    /// The provider has no such tool.
    NoTool,
    /// It is no tool id and no group.
    NoName,
}

impl Catalogue {
    /// A provider of this name would make its tools look like the groups `hint:…`: it is left
    /// out, so that nothing permits its tools.
    pub const RESERVED_PROVIDER: &str = "hint";

    /// From each configured provider and its tools; `None` while they are not known yet.
    #[must_use]
    pub fn new(
        providers: impl IntoIterator<Item = (ProviderSlug, Option<Vec<Arc<Tool>>>)>,
    ) -> Self {
        let by_id = |tools: Vec<Arc<Tool>>| {
            tools.into_iter().map(|tool| (tool.id.as_str().to_owned(), tool)).collect()
        };
        let providers = providers
            .into_iter()
            .filter(|(slug, _)| slug.as_str() != Self::RESERVED_PROVIDER)
            .map(|(slug, tools)| (slug.as_str().to_owned(), tools.map(by_id)))
            .collect();
        Self { providers, webhooks: BTreeSet::new(), groups: None }
    }

    /// The same with the names of the webhooks that notices can go to.
    #[must_use]
    pub fn with_webhooks(mut self, names: impl IntoIterator<Item = String>) -> Self {
        self.webhooks = names.into_iter().collect();
        self
    }

    /// The same with the groups that principals can be in; policies about others are doubtful.
    #[must_use]
    pub fn with_groups(mut self, names: impl IntoIterator<Item = String>) -> Self {
        self.groups = Some(names.into_iter().collect());
        self
    }

    /// Whether principals can be in this group, as far as is known.
    pub(super) fn may_have_group(&self, name: &str) -> bool {
        self.groups.as_ref().is_none_or(|groups| groups.contains(name))
    }

    pub(super) const fn webhooks(&self) -> &BTreeSet<String> {
        &self.webhooks
    }

    /// Every tool that is known.
    pub(super) fn tools(&self) -> impl Iterator<Item = &Arc<Tool>> {
        self.providers.values().flatten().flat_map(BTreeMap::values)
    }

    pub(super) fn provider(&self, slug: &str) -> Known {
        if self.providers.contains_key(slug) { Known::Yes } else { Known::NoProvider }
    }

    pub(super) fn tool(&self, id: &str) -> Known {
        let Ok(parsed) = id.parse::<ToolId>() else { return Known::NoName };
        match self.providers.get(parsed.provider()) {
            None => Known::NoProvider,
            Some(None) => Known::NotYet,
            Some(Some(tools)) if tools.contains_key(id) => Known::Yes,
            Some(Some(_)) => Known::NoTool,
        }
    }

    pub(super) fn action(&self, id: &str) -> Known {
        if id == EVERYTHING || HINTS.contains(&id) {
            return Known::Yes;
        }
        match id.strip_suffix(":*") {
            Some(slug) if slug.parse::<ProviderSlug>().is_err() => Known::NoName,
            Some(slug) => self.provider(slug),
            None => self.tool(id),
        }
    }
}

/// Whether an action id names a group, not a tool.
pub(super) fn is_group(action: &str) -> bool {
    action.ends_with(":*") || HINTS.contains(&action)
}

/// What policies can name about one tool.
pub(super) struct ToolFacts {
    pub(super) id: String,
    pub(super) provider_group: String,
    pub(super) groups: Vec<String>,
    pub(super) place: Place,
    pub(super) hints: Hints,
    name: String,
}

/// What a tool says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "four independent hints of the MCP spec")]
pub(super) struct Hints {
    read_only: bool,
    destructive: bool,
    idempotent: bool,
    open_world: bool,
}

impl Hints {
    /// Defaults are the MCP spec's: silent tools may destroy and reach the open world.
    fn of(tool: &Tool) -> Self {
        let hint = |name, default| tool.definition.hint(name).unwrap_or(default);
        let read_only = hint("readOnlyHint", false);
        Self {
            read_only,
            destructive: !read_only && hint("destructiveHint", true),
            idempotent: hint("idempotentHint", false),
            open_world: hint("openWorldHint", true),
        }
    }

    fn groups(self) -> impl Iterator<Item = &'static str> {
        let flags = [self.read_only, self.destructive, self.open_world];
        HINTS.into_iter().zip(flags).filter_map(|(group, set)| set.then_some(group))
    }

    /// How much harm a tool can do by what it says of itself: from 0, which only reads what is
    /// its own, to 3, which destroys and reaches the open world.
    const fn risk(self) -> i64 {
        if self.read_only {
            return self.open_world as i64;
        }
        1 + self.destructive as i64 + self.open_world as i64
    }
}

impl ToolFacts {
    /// `labels` are those that the operator gave the tool.
    pub(super) fn of(tool: &Tool, labels: &[&str]) -> Self {
        let hints = Hints::of(tool);
        let provider_group = format!("{}:*", tool.id.provider());
        let mut groups = vec![provider_group.clone(), EVERYTHING.to_owned()];
        groups.extend(hints.groups().map(str::to_owned));
        let provider = uid(&names().provider, tool.id.provider());
        let action = Member {
            uid: uid(&names().action, tool.id.as_str()),
            near: Some(uid(&names().action, &provider_group)),
            within: groups.iter().map(|group| uid(&names().action, group)).collect(),
        };
        let labels = labels.iter().map(|label| uid(&names().label, label));
        let resource = Member {
            uid: uid(&names().tool, tool.id.as_str()),
            near: Some(provider.clone()),
            within: labels.chain([provider]).collect(),
        };
        Self {
            id: tool.id.as_str().to_owned(),
            place: Place { action, resource },
            provider_group,
            groups,
            hints,
            name: tool.id.name().to_owned(),
        }
    }

    /// The action with its groups and the tool with its provider, as the evaluator needs them.
    pub(super) fn entities(&self) -> Entities {
        let Place { action, resource } = &self.place;
        let groups = action.within.iter().cloned().collect();
        let action = Entity::new_no_attrs(action.uid.clone(), groups);
        let text = |text: &str| RestrictedExpression::new_string(text.to_owned());
        let flag = RestrictedExpression::new_bool;
        let provider = resource.near.as_ref().map_or("", |provider| provider.id().unescaped());
        let attributes = [
            ("provider", text(provider)),
            ("name", text(&self.name)),
            ("read_only", flag(self.hints.read_only)),
            ("destructive", flag(self.hints.destructive)),
            ("idempotent", flag(self.hints.idempotent)),
            ("open_world", flag(self.hints.open_world)),
            ("risk", RestrictedExpression::new_long(self.hints.risk())),
        ];
        let attributes = attributes.map(|(name, value)| (name.to_owned(), value));
        let parents = resource.within.iter().cloned();
        let tool = Entity::new_with_tags(resource.uid.clone(), attributes, parents, []);
        // Plain strings, numbers and booleans always evaluate; a tool without attributes fails
        // closed.
        let tool = tool.unwrap_or_else(|_| Entity::with_uid(resource.uid.clone()));
        // Two different entities never collide; without them nothing is permitted.
        Entities::from_entities([action, tool], None).unwrap_or_else(|_| Entities::empty())
    }
}
