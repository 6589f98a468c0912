//! Known tools, and the facts about each that policies can name.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use cedar_policy::{Entities, Entity, RestrictedExpression};

use crate::capability::{self, Capability, CapabilityId, CapabilityKind, ProviderSlug};
use crate::policy::{
    engine::{Member, RequestTarget},
    language::entity_types::{
        EVERYTHING, HINTS, KINDS, PROVIDER, entity_types, resource_type, uid,
    },
};

/// The providers there are, and the tools of those that have told them.
#[derive(Debug, Clone, Default)]
pub struct Catalogue {
    providers: BTreeMap<String, Option<BTreeMap<String, Arc<Capability>>>>,
    /// All resources and templates of each provider, of which policies are bound to a few.
    resources: BTreeMap<String, Vec<Arc<Capability>>>,
    webhooks: BTreeSet<String>,
}

/// Result of looking up a name of a policy in the catalogue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::policy) enum NameLookup {
    /// The catalogue has it.
    Yes,
    /// Its provider is configured but has not told its tools yet.
    NotYet,
    NoProvider,
    NoTool,
    /// Neither a tool id nor a group.
    NoName,
}

impl Catalogue {
    /// From each configured provider and its tools; `None` while they are not known yet.
    #[must_use]
    pub fn new(
        providers: impl IntoIterator<Item = (ProviderSlug, Option<Vec<Arc<Capability>>>)>,
    ) -> Self {
        let mut resources: BTreeMap<String, Vec<Arc<Capability>>> = BTreeMap::new();
        let mut by_id = |tools: Vec<Arc<Capability>>| {
            for tool in &tools {
                if tool.id.kind().governed() == CapabilityKind::Resource {
                    let own = resources.entry(tool.id.provider().to_owned()).or_default();
                    own.push(Arc::clone(tool));
                }
            }
            tools.into_iter().map(|tool| (tool.id.slot().to_owned(), tool)).collect()
        };
        let providers = providers
            .into_iter()
            .map(|(slug, tools)| (slug.as_str().to_owned(), tools.map(&mut by_id)))
            .collect();
        Self { providers, resources, webhooks: BTreeSet::new() }
    }

    /// The same with the names of the webhooks that notices can go to.
    #[must_use]
    pub fn with_webhooks(mut self, names: impl IntoIterator<Item = String>) -> Self {
        self.webhooks = names.into_iter().collect();
        self
    }

    pub(in crate::policy) const fn webhooks(&self) -> &BTreeSet<String> {
        &self.webhooks
    }

    /// Every tool that is known.
    pub(in crate::policy) fn tools(&self) -> impl Iterator<Item = &Arc<Capability>> {
        self.providers.values().flatten().flat_map(BTreeMap::values)
    }

    pub(in crate::policy) fn provider(&self, slug: &str) -> NameLookup {
        if self.providers.contains_key(slug) { NameLookup::Yes } else { NameLookup::NoProvider }
    }

    /// The tool of this id, or why it is not known here.
    pub fn find_tool(&self, id: &str) -> Result<Arc<Capability>, &'static str> {
        let parsed: CapabilityId =
            id.parse().map_err(|_| "this is no id of a tool, prompt, resource or skill")?;
        let provider =
            self.providers.get(parsed.provider()).ok_or("no such provider is configured here")?;
        let tools = provider.as_ref().ok_or("the provider has not listed its tools yet")?;
        if parsed.kind().governed() != CapabilityKind::Resource {
            let found = tools.get(parsed.slot()).filter(|it| it.id == parsed).cloned();
            return found.ok_or("the provider lists no such tool, prompt or skill");
        }
        let skill = |id: &CapabilityId| tools.get(id.slot()).filter(|it| it.id == *id).cloned();
        if let Some(skill) = capability::holding(&parsed, skill) {
            let named = skill.file(parsed.name()).is_some();
            return named.then_some(skill).ok_or("the manifest of its skill names no such file");
        }
        let resources = self.resources.get(parsed.provider()).into_iter().flatten();
        let listed = resources.clone().find(|it| it.id == parsed).cloned();
        let found = listed.or_else(|| capability::unlisted(&parsed, resources.cloned()));
        found.ok_or("the provider has no such resource")
    }

    /// Looks up a capability of whatever kind by its id.
    fn capability(&self, id: &str) -> NameLookup {
        if let Some(slug) = id.strip_prefix(CapabilityKind::Resource.prefix()) {
            let is_slug = slug.parse::<ProviderSlug>().is_ok();
            return if is_slug { self.provider(slug) } else { NameLookup::NoName };
        }
        let (kind, provider) = match id.strip_prefix(CapabilityKind::Skill.prefix()) {
            // The action of a skill names its folder, and not its URI.
            Some(short) => match short.split_once(':') {
                Some((slug, _)) if slug.parse::<ProviderSlug>().is_ok() => {
                    (CapabilityKind::Skill, slug.to_owned())
                }
                Some(_) | None => return NameLookup::NoName,
            },
            None => match id.parse::<CapabilityId>() {
                Ok(parsed) => (parsed.kind(), parsed.provider().to_owned()),
                Err(_) => return NameLookup::NoName,
            },
        };
        match self.providers.get(&provider) {
            None => NameLookup::NoProvider,
            Some(None) => NameLookup::NotYet,
            Some(Some(tools)) if tools.contains_key(id) => NameLookup::Yes,
            // Lists of tools alone tell nothing of prompts.
            Some(Some(tools)) if !tools.values().any(|it| it.id.kind() == kind) => {
                NameLookup::NotYet
            }
            Some(Some(_)) => NameLookup::NoTool,
        }
    }

    /// Looks up an entity of this kind by its id: the provider of resources, else the id without the kind.
    pub(in crate::policy) fn entity(&self, kind: CapabilityKind, short: &str) -> NameLookup {
        if matches!(kind, CapabilityKind::Resource | CapabilityKind::Skill) {
            return self.capability(&format!("{}{short}", kind.prefix()));
        }
        match CapabilityId::of_kind(kind, short) {
            Ok(id) => self.capability(id.as_str()),
            Err(_) => NameLookup::NoName,
        }
    }

    pub(in crate::policy) fn action(&self, id: &str) -> NameLookup {
        if id == EVERYTHING || HINTS.contains(&id) || KINDS.contains(&id) {
            return NameLookup::Yes;
        }
        match id.strip_suffix(":*").or_else(|| id.strip_prefix(PROVIDER)) {
            Some(slug) if slug.parse::<ProviderSlug>().is_err() => NameLookup::NoName,
            Some(slug) => self.provider(slug),
            None => self.capability(id),
        }
    }
}

/// Returns true if an action id names a group, not a tool or prompt.
pub(in crate::policy) fn is_group(action: &str) -> bool {
    action.ends_with(":*")
        || HINTS.contains(&action)
        || KINDS.contains(&action)
        || action.starts_with(PROVIDER)
}

/// Attributes of one tool that policies can name.
pub(in crate::policy) struct ToolFacts {
    pub(in crate::policy) id: String,
    pub(in crate::policy) kind: CapabilityKind,
    pub(in crate::policy) provider_group: String,
    pub(in crate::policy) groups: Vec<String>,
    pub(in crate::policy) place: RequestTarget,
    pub(in crate::policy) hints: Hints,
    /// True unless its input schema has patterns that cannot be enforced.
    schema_enforced: bool,
    name: String,
}

/// Hints of a tool about itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "four independent hints of the MCP spec")]
pub(in crate::policy) struct Hints {
    read_only: bool,
    destructive: bool,
    idempotent: bool,
    open_world: bool,
}

impl Hints {
    /// Defaults are the MCP spec's: silent tools may destroy and reach the open world.
    fn of(tool: &Capability) -> Self {
        if tool.id.kind() != CapabilityKind::Tool {
            let (read_only, idempotent) = (true, true);
            return Self { read_only, destructive: false, idempotent, open_world: false };
        }
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

    /// Risk of a tool by its own hints: from 0, which only reads what is its own, to 3, which
    /// destroys and reaches the open world.
    const fn risk(self) -> i64 {
        if self.read_only {
            return self.open_world as i64;
        }
        1 + self.destructive as i64 + self.open_world as i64
    }
}

impl ToolFacts {
    /// `labels` are those that the operator gave the tool.
    pub(in crate::policy) fn of(tool: &Capability, labels: &[&str]) -> Self {
        let hints = Hints::of(tool);
        let of_provider = format!("{PROVIDER}{}", tool.id.provider());
        // The group `{slug}:*` holds tools only: what permits it opens nothing else.
        let (kind, provider_group) = match tool.id.kind() {
            CapabilityKind::Tool => ("kind:tool", format!("{}:*", tool.id.provider())),
            CapabilityKind::Prompt => ("kind:prompt", of_provider.clone()),
            CapabilityKind::Resource | CapabilityKind::Template => {
                ("kind:resource", of_provider.clone())
            }
            CapabilityKind::Skill => ("kind:skill", of_provider.clone()),
        };
        let mut groups = vec![provider_group.clone(), kind.to_owned(), EVERYTHING.to_owned()];
        if provider_group != of_provider {
            groups.push(of_provider);
        }
        groups.extend(hints.groups().map(str::to_owned));
        let provider = uid(&entity_types().provider, tool.id.provider());
        let action = Member {
            uid: uid(&entity_types().action, tool.id.action()),
            near: Some(uid(&entity_types().action, &provider_group)),
            within: groups.iter().map(|group| uid(&entity_types().action, group)).collect(),
        };
        let labels = labels.iter().map(|label| uid(&entity_types().label, label));
        // All resources of a provider are one entity, which has its name, and a skill has that of its folder.
        let named = match tool.id.kind() {
            CapabilityKind::Tool | CapabilityKind::Prompt => None,
            CapabilityKind::Resource | CapabilityKind::Template => Some(tool.id.provider()),
            CapabilityKind::Skill => tool.id.action().strip_prefix(CapabilityKind::Skill.prefix()),
        };
        let resource = Member {
            uid: uid(resource_type(tool.id.kind()), named.unwrap_or_else(|| tool.id.short())),
            near: Some(provider.clone()),
            within: labels.chain([provider]).collect(),
        };
        Self {
            id: tool.id.action().to_owned(),
            kind: tool.id.kind().governed(),
            place: RequestTarget { action, resource },
            provider_group,
            groups,
            hints,
            schema_enforced: tool.unenforced().is_empty(),
            name: named.unwrap_or_else(|| tool.id.name()).to_owned(),
        }
    }

    /// The action with its groups and the tool with its provider, as the evaluator needs them.
    pub(in crate::policy) fn entities(&self) -> Entities {
        let RequestTarget { action, resource } = &self.place;
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
            ("schema_enforced", flag(self.schema_enforced)),
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
