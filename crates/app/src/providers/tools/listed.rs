//! From what an upstream lists to what may be shown: looked through by DLP, compiled once for
//! trial, and pinned.

use std::{
    collections::{BTreeSet, HashSet},
    fmt,
    sync::Arc,
};

use portcullis_core::{
    capability::{
        Capability, CapabilityId, CapabilityKind, Definition, PatternBudget, ProviderSlug,
    },
    clock::Timestamp,
    id::OrgId,
    mcp::skills,
};
use portcullis_store::StoreError;
use portcullis_upstream::DefinitionList;

use super::{Tools, pins::events::LeftOut};
use crate::{catalogue::provider::Provider, request::dlp::Dlp};

impl Tools {
    /// The definitions of a list that may be shown to `org`, or to every org: one of a tool that
    /// changed is the accepted one. What is left out is told in the log. `former` is what was listed before.
    pub(crate) async fn definitions(
        &self,
        provider: &Provider,
        org: Option<OrgId>,
        mut list: DefinitionList,
        former: Vec<Arc<Capability>>,
    ) -> Result<Vec<Definition>, StoreError> {
        // Of a kind that could not be listed, what was listed before still holds.
        let failed: Vec<CapabilityKind> = list.untold().collect();
        let kept = former.into_iter().filter(|it| failed.contains(&it.id.kind()));
        let kept: Vec<Definition> = kept.map(|it| it.definition.clone()).collect();
        // Pages that tools name are among them, if they were listed.
        let names: BTreeSet<_> = kept.iter().map(|it| (it.kind, it.name.as_str())).collect();
        list.definitions.retain(|it| !names.contains(&(it.kind, it.name.as_str())));
        let skills = kept.iter().filter(|it| it.kind == CapabilityKind::Skill);
        let skills =
            skills.map(|it| it.name.as_str()).chain(list.skills.iter().map(String::as_str));
        let mut folders: HashSet<String> = skills.filter_map(skills::folder_of).collect();
        take_files(&mut list.definitions, &folders);
        let mut left_out: Vec<LeftOut> = list.skipped.iter().map(LeftOut::skipped).collect();
        let endless = "the list does not end within what is read of one";
        left_out.extend(list.truncated.iter().map(|kind| LeftOut::new(*kind, "", &endless)));
        let slug = provider.declared.slug.clone();
        let dlp = self.screening.dlp();
        // A thousand schemas take a while: not on a thread that serves requests.
        let strict = provider.declared.strict_patterns;
        let looked = move || usable(&slug, &dlp, strict, list.definitions);
        let looked = self.base.list_work(org, looked).await;
        let looked = looked.unwrap_or_else(|| {
            tracing::error!(provider = %provider.declared.slug, "looking through tools ended in a panic");
            UsableTools::default()
        });
        left_out.extend(looked.left_out);
        let mut shown =
            self.pinned(provider, org, looked.definitions, &looked.steering, left_out).await?;
        shown.extend(kept);
        // What is pinned may tell of skills that are listed no more.
        if provider.server().kinds().contains(&CapabilityKind::Skill) {
            folders.extend(
                self.pins.skill_folders(org, provider.declared.slug.as_str()).iter().cloned(),
            );
            take_files(&mut shown, &folders);
        }
        Ok(shown)
    }
}

/// Takes what lies in these folders of skills from the resources: it is listed and read as files of skills alone.
fn take_files(all: &mut Vec<Definition>, folders: &HashSet<String>) {
    let is_inside = |uri: &str| skills::folders_above(uri).any(|it| folders.contains(&it));
    if !folders.is_empty() {
        all.retain(|it| it.kind != CapabilityKind::Resource || !is_inside(it.name.as_str()));
    }
}

/// Definitions of a list that can be used.
#[derive(Default)]
struct UsableTools {
    definitions: Vec<Definition>,
    /// Tools whose definitions likely hold instructions to a model.
    steering: BTreeSet<CapabilityId>,
    left_out: Vec<LeftOut>,
}

/// The definitions as DLP lets them be shown; a tool that cannot be shown or whose schema cannot
/// be enforced stays out.
fn usable(slug: &ProviderSlug, dlp: &Arc<Dlp>, strict: bool, all: Vec<Definition>) -> UsableTools {
    let UsableTools { mut definitions, mut steering, mut left_out } = UsableTools::default();
    let mut patterns = PatternBudget::default();
    for definition in all {
        let version = definition.version();
        let kind = definition.kind;
        let name = definition.name.clone();
        let cleared = match definition.cleared(dlp.engine()) {
            Ok(cleared) => cleared,
            Err(error) => {
                left_out.push(LeftOut::new(kind, name.as_str(), &error));
                continue;
            }
        };
        let trial = Capability::new(slug, cleared.clone(), Timestamp::default());
        let trial = match trial.and_then(|tool| patterns.admit(tool)) {
            Ok(trial) => trial,
            Err(error) => {
                left_out.push(LeftOut::new(kind, name.as_str(), &error));
                continue;
            }
        };
        if let Some(first) = trial.unenforced().first().filter(|_| strict) {
            left_out.push(LeftOut::new(kind, name.as_str(), &Unenforced(first)));
            continue;
        }
        if cleared.version() != version {
            tracing::warn!(provider = %slug, tool = %cleared.name, "words masked");
        }
        if dlp.engine().holds_instructions(&cleared.to_json()) {
            steering.insert(CapabilityId::new(cleared.kind, slug, &cleared.name));
        }
        definitions.push(cleared);
    }
    UsableTools { definitions, steering, left_out }
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
    definitions: Vec<Definition>,
    seen: Vec<Timestamp>,
) -> Vec<Arc<Capability>> {
    let mut patterns = PatternBudget::default();
    let mut tools = Vec::with_capacity(definitions.len());
    for (definition, updated_at) in definitions.into_iter().zip(seen) {
        let name = definition.name.clone();
        let tool = Capability::new(slug, definition, updated_at);
        match tool.and_then(|tool| patterns.admit(tool)) {
            Ok(tool) => tools.push(Arc::new(tool)),
            Err(error) => {
                tracing::warn!(provider = %slug, tool = %name, %error, "tool left out");
            }
        }
    }
    tools
}
