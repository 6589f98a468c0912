//! The policy set in force: loaded from a folder, swapped whole, read over the API.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use arc_swap::ArcSwap;
use portcullis_core::{
    clock::Timestamp,
    policy::{Catalogue, Effect, PolicyError, PolicyFile, PolicyRecord, PolicySet},
    principal::Scope,
    refusal::Refusal,
};

use crate::{App, Ctx, Dlp};

/// The largest policy file that is read, in bytes.
const MAX_FILE: u64 = 1 << 20;
/// The most policy files that are read.
const MAX_FILES: usize = 10_000;
const MAX_DEPTH: usize = 16;

/// The folder of `*.cedar` files.
#[derive(Debug, Clone)]
pub struct PolicyFolder(PathBuf);

impl PolicyFolder {
    /// The folder at `path`.
    #[must_use]
    pub const fn new(path: PathBuf) -> Self {
        Self(path)
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Reads every `*.cedar` file below the folder, in the order of their paths.
    pub fn read(&self) -> io::Result<Vec<PolicyFile>> {
        let mut files = Vec::new();
        self.collect(&self.0, MAX_DEPTH, &mut files)?;
        files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(files)
    }

    fn collect(&self, folder: &Path, depth: usize, files: &mut Vec<PolicyFile>) -> io::Result<()> {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            let hidden =
                path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
            // Before anything else: an editor's lock file is a link that leads nowhere.
            if hidden {
                continue;
            }
            let kind = fs::metadata(&path)?;
            if kind.is_dir() && depth > 0 {
                self.collect(&path, depth - 1, files)?;
            } else if path.extension().is_some_and(|extension| extension == "cedar") {
                if kind.len() > MAX_FILE || files.len() >= MAX_FILES {
                    let message = format!("`{}` is over the limits", path.display());
                    return Err(io::Error::other(message));
                }
                let name = path.strip_prefix(&self.0).unwrap_or(&path);
                let text = fs::read_to_string(&path)?;
                files.push(PolicyFile { path: name.to_string_lossy().into_owned(), text });
            }
        }
        Ok(())
    }
}

/// How the last attempt to load went.
#[derive(Debug, Clone)]
pub struct Reload {
    /// When it was tried.
    pub at: Timestamp,
    /// What was wrong; empty means the set was taken.
    pub errors: Vec<PolicyError>,
}

/// The set in force.
#[derive(Debug)]
pub(crate) struct Policies {
    folder: PolicyFolder,
    current: ArcSwap<PolicySet>,
    last_reload: ArcSwap<Reload>,
    pub(crate) changing: Mutex<()>,
}

impl Policies {
    pub(crate) fn new(folder: PolicyFolder, set: PolicySet, now: Timestamp) -> Self {
        let reload = Reload { at: now, errors: Vec::new() };
        Self {
            folder,
            current: ArcSwap::from_pointee(set),
            last_reload: ArcSwap::from_pointee(reload),
            changing: Mutex::new(()),
        }
    }

    /// The snapshot a call keeps from its first decision to its last.
    pub(crate) fn current(&self) -> Arc<PolicySet> {
        self.current.load_full()
    }

    pub(crate) fn rebind(&self, catalogue: &Catalogue) {
        let _one_at_a_time = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let bound = self.current.load().rebind(catalogue);
        self.current.store(Arc::new(bound));
    }
}

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
    pub principal: Option<String>,
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

impl App {
    /// Loads the folder anew. On any error the set in force stays, and the errors are kept to be
    /// shown.
    pub fn reload_policies(&self) -> Result<(), Vec<PolicyError>> {
        let now = self.clock.now();
        let policies = &self.policies;
        // Held while loading: a catalogue that changes meanwhile is bound after this, not lost.
        let _one_at_a_time = policies.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let loaded = self.load_policies(&self.dlp(), now);
        let outcome = loaded.map(|set| {
            let current = policies.current.load();
            if set.version() != current.version() {
                tracing::info!(version = set.version(), "another policy set is in force");
                self.policy_set_changed(set.version());
            }
            policies.current.store(Arc::new(set.after(&current)));
        });
        let errors = outcome.as_ref().err().cloned().unwrap_or_default();
        for error in &errors {
            tracing::error!(%error, "the policy folder cannot be loaded; the last good set stays");
        }
        if !errors.is_empty() {
            crate::counting::reload_failed();
        }
        policies.last_reload.store(Arc::new(Reload { at: now, errors }));
        outcome
    }

    pub(crate) fn load_policies(
        &self,
        dlp: &Dlp,
        now: Timestamp,
    ) -> Result<PolicySet, Vec<PolicyError>> {
        let files = self.policies.folder.read().map_err(|error| {
            vec![PolicyError::unreadable(&self.policies.folder.0.to_string_lossy(), &error)]
        })?;
        PolicySet::load(files, &self.catalogue(), &dlp.engine().names(), now)
    }

    /// The set in force and how the last reload went.
    #[must_use]
    pub fn policy_set(&self) -> (Arc<PolicySet>, Arc<Reload>) {
        (self.policies.current(), self.policies.last_reload.load_full())
    }

    /// The records the query wants, by id; and whether there are more.
    pub fn policies(
        &self,
        ctx: &Ctx,
        query: &PolicyQuery,
    ) -> Result<(Arc<PolicySet>, Vec<usize>, bool), Refusal> {
        ctx.require(Scope::PoliciesRead)?;
        let set = self.policies.current();
        let mut found: Vec<usize> = Vec::new();
        for (index, record) in set.records().iter().enumerate() {
            if !self.wants(&set, query, record, ctx)? {
                continue;
            }
            if found.len() == query.limit {
                return Ok((set, found, true));
            }
            found.push(index);
        }
        Ok((set, found, false))
    }

    fn wants(
        &self,
        set: &PolicySet,
        query: &PolicyQuery,
        record: &PolicyRecord,
        ctx: &Ctx,
    ) -> Result<bool, Refusal> {
        if let Some(tool) = &query.tool {
            let visible = self.visible(ctx, tool)?;
            if !set.applies_to_tool(&record.id, &visible.tool) {
                return Ok(false);
            }
        }
        let status = record.status.as_str();
        let effect = match record.effect {
            Effect::Permit => "permit",
            Effect::Forbid => "forbid",
        };
        Ok(query.after.as_deref().is_none_or(|after| &*record.id > after)
            && (query.statuses.is_empty() || query.statuses.iter().any(|s| s == status))
            && query.effect.as_deref().is_none_or(|wanted| wanted == effect)
            && query.tag.as_deref().is_none_or(|tag| record.tags.iter().any(|own| own == tag))
            && query
                .principal
                .as_deref()
                .is_none_or(|who| set.applies_to_principal(&record.id, who))
            && query.text.as_deref().is_none_or(|text| mentions(record, text)))
    }

    /// One record with its source.
    pub fn policy(&self, ctx: &Ctx, id: &str) -> Result<(Arc<PolicySet>, usize), Refusal> {
        ctx.require(Scope::PoliciesRead)?;
        let set = self.policies.current();
        let index = set.records().iter().position(|record| &*record.id == id);
        index.map(|index| (set, index)).ok_or_else(|| Refusal::not_found("policy", id))
    }
}
