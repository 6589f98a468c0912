//! Pinning: a tool is called only with the definition that was accepted of it.
//!
//! The first definition that an upstream gives of a tool is accepted, or waits: each with
//! `pin = "review"`, those of tools that a provider in use adds with `pin = "review-additions"`, and
//! those in which DLP finds likely instructions to a model. Any other one waits from then on: the
//! tool stays in the catalogue with the definition that was accepted, as `quarantined`, and calls of
//! it are denied by `tool-pinning` until the operator accepts the new one (`portcullis tool accept`)
//! or the upstream takes it back.
//! Pins are kept by org and tool in the store; they outlive the tool and the provider. Their number
//! is limited for each provider ([`capacity`]): further tools that it lists stay out, so that a server
//! which renames its tools neither fills the store nor makes a pin be forgotten.
//!
//! **Invariant:** when the pins cannot be read or written, nothing new comes into the catalogue.
//! **Invariant:** what was in quarantine is called in the accepted version only. A node with
//! another one, because its list is older than the operator's decision, denies the call as before.

pub(crate) mod acceptance;
mod capacity;
pub(crate) mod events;
pub(crate) mod quarantined;
pub(crate) mod recalled;

pub(crate) use self::events::LeftOut;
pub use self::events::LeftOutTool;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use portcullis_core::{
    capability::{CapabilityId, CapabilityKind, CapabilityName, Definition, ProviderSlug},
    id::OrgId,
};
use portcullis_store::{Pin, Pinned, StoreError, UpstreamDefinition};

use self::{
    capacity::FittedList,
    events::{ChangedTool, RearrangedTool},
    quarantined::Versions,
};
use super::Tools;
use crate::catalogue::provider::{Pinning, Provider};

/// Tools that a provider lists, sorted by their pins.
#[derive(Default)]
struct SortedTools {
    shown: Vec<Definition>,
    held: BTreeSet<CapabilityId>,
    known: BTreeMap<CapabilityId, Versions>,
    /// To be accepted, being the first.
    first: Vec<UpstreamDefinition>,
    waiting: Vec<UpstreamDefinition>,
    /// As accepted again.
    back: Vec<CapabilityId>,
    /// Changes to record as events.
    changed: Vec<ChangedTool>,
    /// The same values as accepted, in another order.
    rearranged: Vec<RearrangedTool>,
    left_out: Vec<LeftOut>,
    /// True if tools wait of which nothing was accepted yet.
    review: bool,
}

impl Tools {
    /// The definitions that may be shown of what a provider lists: for a tool that changed, the
    /// one that was accepted. Remembers what is new, and tells of what changed.
    pub(crate) async fn pinned(
        &self,
        provider: &Provider,
        org: Option<OrgId>,
        listed: Vec<Definition>,
        steering: &BTreeSet<CapabilityId>,
        left_out: Vec<LeftOut>,
    ) -> Result<Vec<Definition>, StoreError> {
        let slug = provider.declared.slug.as_str();
        let _one_at_a_time = self.pins.turn.lock().await;
        let now = self.base.clock.now();
        let pinned = match provider.declared.pinning {
            Pinning::Off => Pinned::default(),
            Pinning::On | Pinning::ReviewAdditions | Pinning::Review => {
                self.base.store.list_pins(org, slug).await?
            }
        };
        self.pins.learn_skills(org, slug, &pinned.pins);
        let FittedList { listed, surplus, forgotten } =
            capacity::make(provider, &pinned.pins, listed, now);
        let listed = versions(&provider.declared.slug, listed, steering);
        let texts = self.texts(org, &pinned.pins, &listed, &left_out).await?;
        let mut sorted = sort(provider, pinned, listed, &left_out, texts);
        if !forgotten.is_empty() {
            self.base.store.forget_waiting(org, &forgotten).await?;
        }
        if !sorted.first.is_empty() {
            self.base.store.pin_tools(org, &sorted.first, now).await?;
        }
        if !sorted.waiting.is_empty() {
            self.base.store.hold_tools(org, &sorted.waiting, now).await?;
        }
        if !sorted.back.is_empty() {
            self.base.store.release_tools(org, &sorted.back, now).await?;
        }
        self.pins.learn(org, slug, &sorted);
        sorted.left_out.extend(left_out);
        self.tell_of_changes(provider, org, sorted.changed);
        self.tell_of_rearranged(provider, org, sorted.rearranged);
        self.tell_of_left_out(provider, org, &sorted.left_out);
        self.tell_of_surplus(provider, org, surplus).await?;
        Ok(sorted.shown)
    }

    /// The accepted definitions of the tools that are listed otherwise, or not to be used.
    async fn texts(
        &self,
        org: Option<OrgId>,
        pins: &[Pin],
        listed: &BTreeMap<CapabilityId, ListedDefinition>,
        left_out: &[LeftOut],
    ) -> Result<Texts, StoreError> {
        let spoilt: BTreeSet<(CapabilityKind, &str)> =
            left_out.iter().map(|it| (it.kind(), it.name())).collect();
        let mut texts = Texts::new();
        for pin in pins {
            let Some(accepted) = &pin.accepted else { continue };
            let differs = listed.get(&pin.tool).map(|it| it.version != accepted.version);
            if differs.unwrap_or_else(|| spoilt.contains(&(pin.tool.kind(), pin.tool.name()))) {
                let text = self.base.store.definitions_of(org, &pin.tool).await?.accepted;
                texts.extend(text.and_then(|text| read(&text)).map(|it| (pin.tool.clone(), it)));
            }
        }
        Ok(texts)
    }

    /// Learns what stands in the store about the tools of a list that was kept, before anybody
    /// calls one of them.
    pub(crate) async fn learn_pins(
        &self,
        provider: &Provider,
        org: OrgId,
    ) -> Result<(), StoreError> {
        match provider.declared.pinning {
            Pinning::Off => Ok(()),
            Pinning::On | Pinning::ReviewAdditions | Pinning::Review => {
                let _one_at_a_time = self.pins.turn.lock().await;
                let pins =
                    self.base.store.list_pins(Some(org), provider.declared.slug.as_str()).await?;
                self.pins.learn_kept(Some(org), &pins.pins);
                Ok(())
            }
        }
    }
}

struct ListedDefinition {
    definition: Definition,
    version: String,
    place: usize,
    /// True if it likely holds instructions to a model.
    is_steering: bool,
}

/// Accepted definitions by tool.
type Texts = BTreeMap<CapabilityId, Definition>;

/// Each tool with the version it is listed in; of two with one name, the first.
fn versions(
    slug: &ProviderSlug,
    listed: Vec<Definition>,
    steering: &BTreeSet<CapabilityId>,
) -> BTreeMap<CapabilityId, ListedDefinition> {
    let mut versions = BTreeMap::new();
    for (place, definition) in listed.into_iter().enumerate() {
        let version = definition.version();
        let tool = CapabilityId::new(definition.kind, slug, &definition.name);
        let is_steering = steering.contains(&tool);
        let listed = ListedDefinition { definition, version, place, is_steering };
        versions.entry(tool).or_insert(listed);
    }
    versions
}

/// The part of a name in which others of its kind may not be equal: what people see as the same, and of a skill all.
fn likeness(kind: CapabilityKind, name: &CapabilityName) -> String {
    if kind == CapabilityKind::Skill { name.to_string() } else { name.skeleton() }
}

/// Puts each definition where it belongs. Of twins the one that was accepted before stays, else
/// the one that was listed first.
fn sort(
    provider: &Provider,
    Pinned { pins, nameless }: Pinned,
    listed: BTreeMap<CapabilityId, ListedDefinition>,
    left_out: &[LeftOut],
    mut texts: Texts,
) -> SortedTools {
    let slug = &provider.declared.slug;
    let pins: BTreeMap<CapabilityId, Pin> =
        pins.into_iter().map(|pin| (pin.tool.clone(), pin)).collect();
    let accepted = pins.values().filter(|pin| pin.accepted.is_some());
    let mut names: HashMap<(CapabilityKind, String), CapabilityName> = accepted
        .filter_map(|pin| {
            CapabilityName::of_kind(pin.kind, pin.tool.name()).ok().map(|it| (pin.kind, it))
        })
        .map(|(kind, name)| ((kind, likeness(kind, &name)), name))
        .collect();
    // It is unknown which tool an unreadable pin belongs to: it may be any that looks new.
    let review = nameless > 0 || reviews_new(provider.declared.pinning, &pins);
    let mut sorted = SortedTools { review, ..SortedTools::default() };
    let mut listed: Vec<_> = listed.into_iter().collect();
    listed.sort_unstable_by_key(|(_, listed)| listed.place);
    for (tool, listed) in listed {
        let pin = pins.get(&tool);
        let name = &listed.definition.name;
        if pin.is_none_or(|pin| pin.accepted.is_none()) {
            let first = names
                .entry((tool.kind(), likeness(tool.kind(), name)))
                .or_insert_with(|| name.clone());
            if first != name {
                sorted.left_out.push(LeftOut::twin(tool.kind(), name, first));
                continue;
            }
        }
        match provider.declared.pinning {
            Pinning::Off => sorted.shown.push(listed.definition),
            Pinning::On | Pinning::ReviewAdditions | Pinning::Review => {
                sorted.add(tool, pin, listed, &mut texts);
            }
        }
    }
    for pin in left_out.iter().filter_map(|it| pins.get(&it.tool(slug)?)) {
        sorted.add_spoilt(pin, &mut texts);
    }
    // What waits does not pass in another way because its upstream lists it no more.
    for pin in pins.values() {
        sorted.add_gone(pin);
    }
    sorted
}

/// True if tools wait of which nothing was accepted. A provider is in use once anything of it was.
fn reviews_new(pinning: Pinning, pins: &BTreeMap<CapabilityId, Pin>) -> bool {
    match pinning {
        Pinning::On | Pinning::Off => false,
        Pinning::ReviewAdditions => pins.values().any(|pin| pin.accepted.is_some()),
        Pinning::Review => true,
    }
}

impl ListedDefinition {
    fn upstream_definition(&self, tool: &CapabilityId) -> UpstreamDefinition {
        let text = self.definition.to_json().to_string();
        UpstreamDefinition { tool: tool.clone(), version: self.version.clone(), text }
    }
}

impl SortedTools {
    fn add(
        &mut self,
        tool: CapabilityId,
        pin: Option<&Pin>,
        listed: ListedDefinition,
        texts: &mut Texts,
    ) {
        let accepted = pin.and_then(|pin| pin.accepted.as_ref());
        let Some(accepted) = accepted else { return self.add_new(tool, pin, listed) };
        if accepted.version == listed.version {
            self.known.insert(tool.clone(), (Some(listed.version), None));
            if pin.is_some_and(|pin| pin.found.is_some()) {
                self.back.push(tool);
            }
            self.shown.push(listed.definition);
            return;
        }
        let before = texts.remove(&tool);
        if let Some(before) =
            before.as_ref().filter(|it| it.is_rearrangement_of(&listed.definition))
        {
            self.known.insert(tool.clone(), (Some(accepted.version.clone()), None));
            if pin.is_some_and(|pin| pin.found.is_some()) {
                self.back.push(tool.clone());
            }
            self.shown.push(before.clone());
            self.rearranged.push(RearrangedTool { tool, version: listed.version });
            return;
        }
        self.wait(&tool, pin, &listed, Some(accepted.version.clone()));
        if pin.is_none_or(|pin| pin.told.as_deref() != Some(&listed.version)) {
            let members = before.as_ref().map(|it| it.members_that_differ(&listed.definition));
            self.changed.push(ChangedTool {
                tool: tool.clone(),
                old: Some(accepted.version.clone()),
                new: listed.version,
                members: members.unwrap_or_default(),
                is_steering: listed.is_steering,
            });
        }
        self.shown.extend(before);
    }

    /// A tool that was accepted and that its upstream made unusable.
    fn add_spoilt(&mut self, pin: &Pin, texts: &mut Texts) {
        let Some(accepted) = &pin.accepted else { return };
        if self.known.contains_key(&pin.tool) {
            return;
        }
        let found = pin.found.as_ref().map(|found| found.version.clone());
        self.known.insert(pin.tool.clone(), (Some(accepted.version.clone()), found));
        self.held.insert(pin.tool.clone());
        self.shown.extend(texts.remove(&pin.tool));
    }

    /// A tool that waits and is not listed now.
    fn add_gone(&mut self, pin: &Pin) {
        let Some(found) = &pin.found else { return };
        if !self.known.contains_key(&pin.tool) {
            let accepted = pin.accepted.as_ref().map(|accepted| accepted.version.clone());
            self.known.insert(pin.tool.clone(), (accepted, Some(found.version.clone())));
            self.held.insert(pin.tool.clone());
        }
    }

    /// A tool of which nothing was accepted yet.
    fn add_new(&mut self, tool: CapabilityId, pin: Option<&Pin>, listed: ListedDefinition) {
        if !self.review && !listed.is_steering {
            self.first.push(listed.upstream_definition(&tool));
            self.known.insert(tool, (Some(listed.version), None));
            self.shown.push(listed.definition);
            return;
        }
        self.wait(&tool, pin, &listed, None);
        if pin.is_none_or(|pin| pin.told.as_deref() != Some(&listed.version)) {
            let ListedDefinition { version: new, is_steering, .. } = listed;
            let members = Vec::new();
            self.changed.push(ChangedTool { tool, old: None, new, members, is_steering });
        }
    }

    fn wait(
        &mut self,
        tool: &CapabilityId,
        pin: Option<&Pin>,
        listed: &ListedDefinition,
        accepted: Option<String>,
    ) {
        let found = pin.and_then(|pin| pin.found.as_ref());
        if found.is_none_or(|found| found.version != listed.version) {
            self.waiting.push(listed.upstream_definition(tool));
        }
        self.known.insert(tool.clone(), (accepted, Some(listed.version.clone())));
        self.held.insert(tool.clone());
    }
}

/// A definition as it is kept.
pub(crate) fn read(text: &str) -> Option<Definition> {
    use portcullis_core::json::{self, Bounds};
    Definition::from_json(json::parse(text.as_bytes(), Bounds::RECORDED).ok()?)
}
