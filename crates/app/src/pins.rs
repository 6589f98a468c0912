//! Pinning: a tool is called only with the definition that was accepted of it.
//!
//! The first definition that an upstream gives of a tool is accepted (`pin = "on"`), or waits
//! (`pin = "review"`). Any other one waits from then on: the tool stays in the catalogue with the
//! definition that was accepted, as `quarantined`, and calls of it are denied by `tool-pinning`
//! until the operator accepts the new one (`portcullis tool accept`) or the upstream takes it back.
//! Pins are kept by org and tool in the store; they outlive the tool and the provider.
//!
//! **Invariant:** when the pins cannot be read or written, nothing new comes into the catalogue.
//! **Invariant:** what was in quarantine is called in the accepted version only. Whoever still has
//! another one, because its list is older than the operator's word, is denied as before.

mod events;
mod follow;
mod held;

pub(crate) use self::{
    events::{LeftOut, concerned, tool},
    follow::{EVERY, follow},
    held::Pins,
};

use std::collections::{BTreeMap, BTreeSet, HashMap};

use portcullis_core::{
    audit::{DlpResult, Governance, RecordedDecision},
    id::OrgId,
    policy::TOOL_PINNING,
    refusal::Refusal,
    tool::{ToolDefinition, ToolId, ToolName},
};
use portcullis_store::{Pin, StoreError, Told};
use serde_json::Map;

use self::{events::Changed, held::Versions};
use crate::{App, providers::Provider};

/// What the operator says about changes of a provider's tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Pinning {
    /// The first definition of a tool is accepted, every other one waits.
    #[default]
    On,
    /// New tools wait as well.
    Review,
    /// Whatever the upstream says counts.
    Off,
}

/// Why a quarantined tool is not called.
pub(crate) const REASON: &str =
    "the tool's definition changed after it was accepted and waits for review";

/// What a provider lists, sorted by what stands in the pins.
#[derive(Default)]
struct Sorted {
    /// What may be shown.
    shown: Vec<ToolDefinition>,
    held: BTreeSet<ToolId>,
    known: BTreeMap<ToolId, Versions>,
    /// To be accepted, being the first.
    first: Vec<Told>,
    /// To wait.
    waiting: Vec<Told>,
    /// As accepted again.
    back: Vec<ToolId>,
    /// What events have to tell.
    changed: Vec<Changed>,
    left_out: Vec<LeftOut>,
}

impl App {
    /// The definitions that may be shown of what a provider lists: for a tool that changed, the
    /// one that was accepted. Remembers what is new, and tells of what changed.
    pub(crate) async fn pinned(
        &self,
        provider: &Provider,
        org: Option<OrgId>,
        listed: Vec<ToolDefinition>,
        left_out: Vec<LeftOut>,
    ) -> Result<Vec<ToolDefinition>, StoreError> {
        let slug = provider.declared.slug.as_str();
        let _one_at_a_time = self.pins.turn.lock().await;
        let pins = match provider.declared.pinning {
            Pinning::Off => Vec::new(),
            Pinning::On | Pinning::Review => self.store.list_pins(org, slug).await?,
        };
        let mut sorted = sort(provider, pins, listed, &left_out);
        let now = self.clock.now();
        if !sorted.first.is_empty() {
            self.store.pin_tools(org, &sorted.first, now).await?;
        }
        if !sorted.waiting.is_empty() {
            self.store.hold_tools(org, &sorted.waiting, now).await?;
        }
        if !sorted.back.is_empty() {
            self.store.release_tools(org, &sorted.back, now).await?;
        }
        self.pins.learn(org, slug, &sorted);
        sorted.left_out.extend(left_out);
        self.tell_of_changes(provider, org, sorted.changed);
        self.tell_of_left_out(provider, org, &sorted.left_out);
        Ok(sorted.shown)
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
            Pinning::On | Pinning::Review => {
                let _one_at_a_time = self.pins.turn.lock().await;
                let pins = self.store.list_pins(Some(org), provider.declared.slug.as_str()).await?;
                self.pins.learn_kept(Some(org), &pins);
                Ok(())
            }
        }
    }
}

/// The answer to a call of a tool in quarantine.
pub(crate) fn quarantined() -> Refusal {
    Refusal::PolicyDenied {
        policy: TOOL_PINNING.to_owned(),
        reason: REASON.to_owned(),
        dlp: None,
        more: Map::new(),
    }
}

/// What is recorded of it: decided before DLP and policy.
pub(crate) fn quarantine() -> Governance {
    Governance {
        decision: Some(RecordedDecision::Deny),
        determining_policies: vec![TOOL_PINNING.to_owned()],
        dlp_findings: Vec::new(),
        dlp_result: DlpResult::Skipped,
        policy: Some(TOOL_PINNING.to_owned()),
        policy_set: None,
        policy_version: None,
        reason: Some(REASON.to_owned()),
        shadow: Vec::new(),
    }
}

/// Puts each definition where it belongs. Of twins the one that was accepted before stays, else
/// the one that was listed first.
fn sort(
    provider: &Provider,
    pins: Vec<Pin>,
    listed: Vec<ToolDefinition>,
    left_out: &[LeftOut],
) -> Sorted {
    let slug = &provider.declared.slug;
    let pins: BTreeMap<ToolId, Pin> = pins.into_iter().map(|pin| (pin.tool.clone(), pin)).collect();
    let accepted = pins.values().filter(|pin| pin.accepted.is_some());
    let mut names: HashMap<String, ToolName> = accepted
        .filter_map(|pin| pin.tool.name().parse::<ToolName>().ok())
        .map(|name| (name.skeleton(), name))
        .collect();
    let mut sorted = Sorted::default();
    for definition in listed {
        let tool = ToolId::new(slug, &definition.name);
        let pin = pins.get(&tool);
        if pin.is_none_or(|pin| pin.accepted.is_none()) {
            let first =
                names.entry(definition.name.skeleton()).or_insert_with(|| definition.name.clone());
            if *first != definition.name {
                sorted.left_out.push(LeftOut::twin(&definition.name, first));
                continue;
            }
        }
        match provider.declared.pinning {
            Pinning::Off => sorted.shown.push(definition),
            Pinning::On | Pinning::Review => {
                sorted.add(provider, Listed { tool, pin, definition });
            }
        }
    }
    for pin in left_out.iter().filter_map(|it| pins.get(&it.tool(slug)?)) {
        sorted.add_spoilt(pin);
    }
    sorted
}

/// A definition that is listed, and what stands about its tool.
struct Listed<'a> {
    tool: ToolId,
    pin: Option<&'a Pin>,
    definition: ToolDefinition,
}

impl Listed<'_> {
    fn told(&self, version: &str) -> Told {
        let (tool, text) = (self.tool.clone(), self.definition.to_json().to_string());
        Told { tool, version: version.to_owned(), text }
    }
}

impl Sorted {
    fn add(&mut self, provider: &Provider, listed: Listed<'_>) {
        let version = listed.definition.version();
        let accepted = listed.pin.and_then(|pin| pin.accepted.as_ref());
        let Some(accepted) = accepted else { return self.add_new(provider, listed, version) };
        if accepted.version == version {
            self.known.insert(listed.tool.clone(), (Some(version), None));
            if listed.pin.is_some_and(|pin| pin.found.is_some()) {
                self.back.push(listed.tool);
            }
            self.shown.push(listed.definition);
            return;
        }
        self.wait(&listed, &version, Some(accepted.version.clone()));
        let before = read(&accepted.text);
        if listed.pin.is_none_or(|pin| pin.told.as_deref() != Some(&version)) {
            let members = before.as_ref().map(|it| it.members_that_differ(&listed.definition));
            self.changed.push(Changed {
                tool: listed.tool.clone(),
                old: Some(accepted.version.clone()),
                new: version,
                members: members.unwrap_or_default(),
            });
        }
        self.held.insert(listed.tool);
        self.shown.extend(before);
    }

    /// A tool that was accepted and that its upstream made unusable.
    fn add_spoilt(&mut self, pin: &Pin) {
        let Some(accepted) = &pin.accepted else { return };
        if self.known.contains_key(&pin.tool) {
            return;
        }
        let found = pin.found.as_ref().map(|found| found.version.clone());
        self.known.insert(pin.tool.clone(), (Some(accepted.version.clone()), found));
        self.held.insert(pin.tool.clone());
        self.shown.extend(read(&accepted.text));
    }

    /// A tool of which nothing was accepted yet.
    fn add_new(&mut self, provider: &Provider, listed: Listed<'_>, version: String) {
        if provider.declared.pinning != Pinning::Review {
            self.first.push(listed.told(&version));
            self.known.insert(listed.tool, (Some(version), None));
            self.shown.push(listed.definition);
            return;
        }
        self.wait(&listed, &version, None);
        if listed.pin.is_none_or(|pin| pin.told.as_deref() != Some(&version)) {
            let (tool, members) = (listed.tool, Vec::new());
            self.changed.push(Changed { tool, old: None, new: version, members });
        }
    }

    fn wait(&mut self, listed: &Listed<'_>, version: &str, accepted: Option<String>) {
        let found = listed.pin.and_then(|pin| pin.found.as_ref());
        if found.is_none_or(|found| found.version != version) {
            self.waiting.push(listed.told(version));
        }
        self.known.insert(listed.tool.clone(), (accepted, Some(version.to_owned())));
    }
}

/// A definition as it is kept.
pub(crate) fn read(text: &str) -> Option<ToolDefinition> {
    use portcullis_core::json::{self, Bounds};
    ToolDefinition::from_json(json::parse(text.as_bytes(), Bounds::RECORDED).ok()?)
}
