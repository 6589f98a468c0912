//! Pins as this node knows them, and the tools that it holds back.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque},
    sync::{Arc, Mutex, PoisonError},
};

use arc_swap::ArcSwap;
use portcullis_core::{
    call::PinState,
    capability::{self, Capability, CapabilityId, CapabilityKind},
    clock::Timestamp,
    id::OrgId,
    mcp::skills,
};
use portcullis_store::{Pin, PinChange, StoreError};

use super::{SortedTools, events::LeftOut};
use crate::providers::tools::Tools;

/// Clocks of nodes differ, and a change may become visible after it was dated.
const MARGIN_SECONDS: i64 = 30;

/// The org that a provider is kept for; `None` is every org.
pub(super) type Org = Option<OrgId>;

/// The accepted version of a tool, and the one that waits.
pub(super) type Versions = (Option<String>, Option<String>);

/// Folders by org and provider, as [`skills::folder_of`] writes them.
type SkillFolders = HashMap<(Org, String), Arc<HashSet<String>>>;

/// Looks at a provider of which events tell, within [`TOLD_SECONDS`].
const TOLD_MOST: usize = 30;
const TOLD_SECONDS: i64 = 3600;

/// Calls of a tool that are held back.
#[derive(Debug, Clone, PartialEq, Eq)]
enum HeldCalls {
    /// All: a definition waits.
    Waits,
    /// All that would be judged by another definition than this accepted version. A list is taken
    /// over a moment after its pins, and each connection has a list of its own.
    Except(String),
}

/// Pins as this node knows them.
#[derive(Debug, Default)]
pub(crate) struct Pins {
    /// Read by every call.
    held: ArcSwap<HashMap<Org, HashMap<CapabilityId, HeldCalls>>>,
    /// Accepted and waiting version of each tool, as they were when its upstream was asked last.
    pub(super) known: Mutex<HashMap<(Org, CapabilityId), Versions>>,
    /// Tools of each provider that cannot be used, as recorded in events.
    pub(super) left_out: Mutex<HashMap<(Org, String), Vec<LeftOut>>>,
    /// The same as of the last look, as they may be shown; few of each provider.
    pub(super) shown_left_out: Mutex<BTreeMap<(String, Org), Vec<LeftOut>>>,
    /// Listings in another order than accepted that were told of, by tool and version.
    pub(super) rearranged: Mutex<HashSet<(Org, CapabilityId, String)>>,
    /// The number of tools of each provider above its limit.
    pub(super) surplus: Mutex<HashMap<(Org, String), u64>>,
    /// When events told of what each provider lists.
    told_at: Mutex<HashMap<(Org, String), VecDeque<Timestamp>>>,
    /// When each change by others that was followed was made, by org and tool.
    pub(super) followed: Mutex<HashMap<(String, String), Timestamp>>,
    /// Folders of the skills of each provider that are pinned.
    skill_folders: ArcSwap<SkillFolders>,
    /// Held from reading pins until what they say is known here: an older look never overwrites
    /// a newer one.
    pub(super) turn: tokio::sync::Mutex<()>,
}

impl Pins {
    /// True if the tool, as it is here, is in quarantine for this org.
    pub(crate) fn hold(&self, org: OrgId, tool: &Capability) -> bool {
        let held = self.held.load();
        !held.is_empty()
            && [None, Some(org)].iter().any(|org| {
                match held.get(org).and_then(|tools| tools.get(&tool.id)) {
                    None => false,
                    Some(HeldCalls::Waits) => true,
                    Some(HeldCalls::Except(accepted)) => *accepted != tool.version,
                }
            })
    }

    /// True if a definition of this resource waits for this org, or one of a template that makes it if `templates` count.
    pub(crate) fn wait(&self, org: OrgId, id: &CapabilityId, templates: bool) -> bool {
        let held = self.held.load();
        let of_orgs = [None, Some(org)];
        let held = of_orgs.iter().filter_map(|org| held.get(org)).flatten();
        let waiting = held.filter(|(it, calls)| {
            **calls == HeldCalls::Waits
                && it.provider() == id.provider()
                && (templates || it.kind() != CapabilityKind::Template)
        });
        capability::is_among(id, waiting.map(|it| it.0))
    }

    /// Takes over the folders of the skills of a provider among these pins, which are all of it.
    pub(super) fn learn_skills(&self, org: Org, provider: &str, pins: &[Pin]) {
        let skills = pins
            .iter()
            .filter(|pin| pin.kind == CapabilityKind::Skill && pin.tool.provider() == provider);
        let folders: HashSet<String> =
            skills.filter_map(|pin| skills::folder_of(pin.tool.name())).collect();
        let key = (org, provider.to_owned());
        if folders == *self.skill_folders(org, provider) {
            return;
        }
        let folders = Arc::new(folders);
        self.skill_folders.rcu(|all| {
            let mut all = HashMap::clone(all);
            all.insert(key.clone(), Arc::clone(&folders));
            all
        });
    }

    /// Folders of the skills of a provider that are pinned, as [`skills::folder_of`] writes them.
    pub(in crate::providers::tools) fn skill_folders(
        &self,
        org: Org,
        provider: &str,
    ) -> Arc<HashSet<String>> {
        let all = self.skill_folders.load();
        all.get(&(org, provider.to_owned())).cloned().unwrap_or_default()
    }

    /// State of the tool, as it is here, for this org.
    pub(crate) fn state(&self, org: OrgId, tool: &Capability) -> PinState {
        if self.hold(org, tool) { PinState::Quarantined } else { PinState::Accepted }
    }

    /// True if events may tell of what a provider lists, which they do then: its server decides how
    /// often that is something new, and the log is kept for long.
    pub(super) fn may_tell(&self, org: Org, provider: &str, now: Timestamp) -> bool {
        let mut told = self.told_at.lock().unwrap_or_else(PoisonError::into_inner);
        let told = told.entry((org, provider.to_owned())).or_default();
        while told.front().is_some_and(|first| now >= first.plus_seconds(TOLD_SECONDS)) {
            told.pop_front();
        }
        let may = told.len() < TOLD_MOST;
        if may {
            told.push_back(now);
        }
        may
    }

    /// Takes over what stands about all tools that a provider lists now. What was held stays so for
    /// a connection that has another definition than the accepted one.
    pub(super) fn learn(&self, org: Org, provider: &str, sorted: &SortedTools) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let mut held = HashMap::clone(&self.held.load());
        let tools = held.entry(org).or_default();
        tools.retain(|tool, calls| {
            tool.provider() != provider
                || *calls != HeldCalls::Waits
                || sorted.known.contains_key(tool)
        });
        for (tool, (accepted, _)) in &sorted.known {
            let before =
                known.get(&(org, tool.clone())).and_then(|(accepted, _)| accepted.as_ref());
            let moved = before.is_some_and(|before| Some(before) != accepted.as_ref());
            if sorted.held.contains(tool) {
                tools.insert(tool.clone(), HeldCalls::Waits);
            } else if let Some(accepted) = accepted
                && (moved || tools.contains_key(tool))
            {
                tools.insert(tool.clone(), HeldCalls::Except(accepted.clone()));
            }
        }
        held.retain(|_, tools| !tools.is_empty());
        self.held.store(Arc::new(held));
        known.retain(|(of, tool), _| *of != org || tool.provider() != provider);
        known.extend(sorted.known.iter().map(|(tool, it)| ((org, tool.clone()), it.clone())));
    }

    /// Takes over what stands about tools that were listed earlier, perhaps by another node.
    pub(super) fn learn_kept(&self, org: Org, pins: &[Pin]) {
        let providers: BTreeSet<&str> = pins.iter().map(|pin| pin.tool.provider()).collect();
        for provider in providers {
            self.learn_skills(org, provider, pins);
        }
        let _known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let mut held = HashMap::clone(&self.held.load());
        let tools = held.entry(org).or_default();
        for pin in pins {
            let Some(accepted) = &pin.accepted else { continue };
            let of_pin = if pin.found.is_some() {
                HeldCalls::Waits
            } else {
                HeldCalls::Except(accepted.version.clone())
            };
            tools.entry(pin.tool.clone()).or_insert(of_pin);
        }
        held.retain(|_, tools| !tools.is_empty());
        self.held.store(Arc::new(held));
    }

    /// True if this node has another idea of the tool than the store.
    fn differs(&self, change: &PinChange) -> bool {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let known = known.get(&(change.org, change.tool.clone()));
        known.is_none_or(|(accepted, found)| (accepted, found) != (&change.accepted, &change.found))
    }

    /// Changes that this node does not know of. Each is given once.
    fn unfollowed(&self, mut changes: Vec<PinChange>, since: Timestamp) -> Vec<PinChange> {
        let mut followed = self.followed.lock().unwrap_or_else(PoisonError::into_inner);
        followed.retain(|_, at| *at >= since);
        changes.retain(|change| {
            let scope = change.org.map_or_else(String::new, |org| org.to_string());
            let before = followed.insert((scope, change.tool.to_string()), change.changed_at);
            before != Some(change.changed_at) && self.differs(change)
        });
        changes
    }
}

impl Tools {
    /// Changes of pins that this node does not know of. Each is given once.
    pub(crate) async fn changed_pins(&self) -> Result<Vec<PinChange>, StoreError> {
        // Not while this node changes pins: it would take its own change for that of another, ask the
        // provider again, and so on for as long as there is something new each time.
        let _turn = self.pins.turn.lock().await;
        let since = self.base.clock.now().plus_seconds(-MARGIN_SECONDS);
        let changes = self.base.store.pins_changed_since(since).await?;
        Ok(self.pins.unfollowed(changes, since))
    }
}
