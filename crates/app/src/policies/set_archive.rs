//! Every set that was in force, kept by its digest, so that what an event points at can be read.

use std::sync::Arc;

use portcullis_core::{
    policy::{FACTS_FILE, PolicyFile, PolicySet, principals_in},
    refusal::Refusal,
};
use portcullis_store::{NewPolicySet, PolicyVersion, StoreError};
use serde_json::{Value, json};

use super::{Policies, set_change::SetChange};
use crate::request::Ctx;

impl Policies {
    /// Keeps the set in the store, of its policies those that `change` brought. Runs beside: until
    /// it is done, the set is in the folder.
    pub(crate) fn keep_set(
        self: &Arc<Self>,
        set: &Arc<PolicySet>,
        before: &str,
        change: &SetChange,
    ) {
        let fresh = change.added.iter().chain(&change.changed);
        let fresh: Vec<PolicyVersion> =
            fresh.filter_map(|id| set.find(id)).filter_map(version_of).collect();
        let this = Arc::clone(self);
        let set = Arc::clone(set);
        let before = before.to_owned();
        let files = self.others.load_full();
        self.base.tasks.spawn(async move {
            let mut kept = this.kept.lock().await;
            // One that could not be kept before is missing besides what changed since.
            let fresh = if *kept == before { fresh } else { all(&set) };
            if this.keep(&set, fresh, &files).await {
                set.version().clone_into(&mut kept);
            }
        });
    }

    /// True if a set is kept now, with those of its policies that are new to the store.
    async fn keep(&self, set: &PolicySet, fresh: Vec<PolicyVersion>, others: &str) -> bool {
        let own = set.records().iter().filter_map(|it| Some((&*it.id, it.version.as_deref()?)));
        let members = own.collect();
        let files = others.to_owned();
        let kept = NewPolicySet { version: set.version(), members, files };
        let kept = self.base.store.keep_policy_set(&kept, &fresh, self.base.clock.now()).await;
        kept.inspect_err(StoreError::log).is_ok()
    }

    /// Tells the log if the node begins with another set than the one that was last in force, and
    /// keeps what it begins with.
    pub(crate) fn begin_with_policies(self: &Arc<Self>) {
        let this = Arc::clone(self);
        let set = self.current();
        let opened = self.take_opened();
        if let Some(files) = &opened {
            self.keep_last_good(files);
        }
        self.base.tasks.spawn(async move {
            match this.base.store.last_policy_set().await {
                Ok(Some(last)) if last.version != set.version() => {
                    let members = last.members.iter().map(|(id, version)| (&**id, &**version));
                    let change = SetChange::since(members, &set);
                    this.policy_set_changed(&set, &last.version, &change);
                }
                Ok(_) => {}
                Err(error) => error.log(),
            }
            if let Some(files) = opened {
                let mut kept = this.kept.lock().await;
                if this.keep(&set, all(&set), &others(&files)).await {
                    set.version().clone_into(&mut kept);
                }
            }
        });
    }

    /// The record of a policy in an earlier version, as it was when it was in force, if it could
    /// concern the caller's org.
    pub async fn policy_version(
        &self,
        ctx: &Ctx,
        id: &str,
        version: &str,
    ) -> Result<Value, Refusal> {
        let unknown = || Refusal::not_found("policy version", version);
        let found = self.base.store.find_policy_version(id, version).await;
        let record = found?.ok_or_else(unknown)?;
        let record: Value = serde_json::from_str(&record).map_err(|_| unknown())?;
        let source = record.get("source").and_then(Value::as_str).unwrap_or_default();
        let org = self.org_view(ctx.caller().org_id, &principals_in(source)).await?;
        if org.can_be_concerned_by(source) { Ok(record) } else { Err(unknown()) }
    }

    /// The files of a set that was once in force, each policy in one of its own.
    pub(crate) async fn kept_files(
        &self,
        version: &str,
    ) -> Result<Option<Vec<PolicyFile>>, Refusal> {
        let found = self.base.store.find_policy_set(version).await;
        let Some(set) = found? else { return Ok(None) };
        let file = |record: &String| {
            let record: Value = serde_json::from_str(record).ok()?;
            let text = record.get("source")?.as_str()?.to_owned();
            let path = record.pointer("/origin/path").and_then(Value::as_str).unwrap_or("kept");
            Some(PolicyFile { path: path.to_owned(), text })
        };
        let others: Value = serde_json::from_str(&set.files).unwrap_or_default();
        let facts = others.get(FACTS_FILE).and_then(Value::as_str);
        let facts =
            facts.map(|text| PolicyFile { path: FACTS_FILE.to_owned(), text: text.to_owned() });
        Ok(set.records.iter().map(file).chain(facts.map(Some)).collect())
    }
}

/// Files of a set besides its policies, as JSON.
pub(super) fn others(files: &[PolicyFile]) -> String {
    let facts = files.iter().find(|file| file.path == FACTS_FILE);
    json!({ FACTS_FILE: facts.map(|file| &file.text) }).to_string()
}

/// All policies of a set.
fn all(set: &PolicySet) -> Vec<PolicyVersion> {
    set.records().iter().filter_map(version_of).collect()
}

fn version_of(record: &portcullis_core::policy::PolicyRecord) -> Option<PolicyVersion> {
    Some(PolicyVersion {
        id: record.id.to_string(),
        version: record.version.as_deref()?.to_owned(),
        record: json!(record.full()).to_string(),
    })
}
