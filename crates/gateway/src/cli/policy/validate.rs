//! `portcullis policy validate` and `portcullis policy list`.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    sync::Arc,
};

use clap::Args;
use portcullis_app::{CaseFile, CaseRun, FolderFiles, Workbench};
use portcullis_core::policy::{Origin, PolicyError, PolicyRecord, PolicySet, Summary};
use portcullis_store::{Store, StoreError};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::{Desk, Failure, line_of, read};
use crate::{boot::OfflineNode, config::Config};

#[derive(Args)]
pub(in crate::cli) struct Validate {
    #[command(flatten)]
    desk: Desk,
    /// Treat warnings as errors
    #[arg(long)]
    strict: bool,
}

#[derive(Args)]
pub(in crate::cli) struct List {
    #[command(flatten)]
    desk: Desk,
}

/// Place of a policy of this folder, as an editor opens it.
fn place(record: &PolicyRecord, folder: &Path) -> String {
    match &record.origin {
        Origin::File { path, line, .. } => {
            let path = path.strip_prefix("policies/").unwrap_or(path);
            // Without the `.` of a folder that is named by the place of the configuration.
            let place: PathBuf = folder.join(path).components().collect();
            format!("{}:{line}", place.display())
        }
        Origin::Builtin => "built in".to_owned(),
    }
}

/// A warning about a policy.
struct Warning<'a> {
    record: &'a PolicyRecord,
    text: String,
}

impl Warning<'_> {
    fn to_json(&self, folder: &Path) -> Value {
        json!({ "policy": self.record.id, "at": place(self.record, folder), "message": self.text })
    }

    fn line(&self, folder: &Path) -> String {
        format!("{}: warning: `{}`: {}", place(self.record, folder), self.record.id, self.text)
    }
}

/// Every warning, and the ids to write for principals that are given by their names.
async fn warnings<'a>(set: &'a PolicySet, config: &Config) -> Vec<Warning<'a>> {
    let patience = config.server.patience();
    // A database that fails or does not answer is none at hand.
    let ids = timeout(patience, of_database(set, config)).await;
    let (ids, told) = ids.map(Result::unwrap_or_default).unwrap_or_default();
    let mut found = Vec::new();
    for record in set.records() {
        let texts = record.validation.warnings.iter();
        let texts = texts.filter(|text| !told.contains(&(&*record.id, (*text).clone())));
        found.extend(texts.map(|text| Warning { record, text: text.clone() }));
    }
    found.extend(ids);
    found
}

/// Warnings with ids, and the general ones that they replace, by their policies.
type WithIds<'a> = (Vec<Warning<'a>>, BTreeSet<(&'a str, String)>);

/// The ids of principals that policies give by their names, and unknown groups of approvers, where the database
/// of this installation is at hand: the command itself needs none.
async fn of_database<'a>(set: &'a PolicySet, config: &Config) -> Result<WithIds<'a>, Failure> {
    let mut found = WithIds::default();
    let needs_none = |record: &PolicyRecord| {
        set.misnamed(&record.id).is_empty() && set.approvers_of(&record.id).is_none()
    };
    if set.records().iter().all(needs_none) {
        return Ok(found);
    }
    let Some(node) = OfflineNode::present(config).await? else { return Ok(found) };
    let store = &node.operator.store;
    for org in store.list_orgs().await? {
        for record in set.records() {
            for misnamed in set.misnamed(&record.id) {
                let known = store.find_principal_by_name(org.id, misnamed.name()).await?;
                let advice = known.map(|known| misnamed.advice(known.id));
                if let Some(advice) = advice {
                    let general = misnamed.warning();
                    let text = format!("{general}; {advice}, in the org `{}`", org.name);
                    found.0.push(Warning { record, text });
                    found.1.insert((&*record.id, general));
                }
            }
        }
    }
    let unknown = unknown_approvers(set, config, store).await?;
    found.0.extend(unknown.into_iter().map(|(record, text)| Warning { record, text }));
    node.close().await;
    Ok(found)
}

/// The policies that ask groups for approvals whom no principal of any org is in, as far as is known, and no
/// trust rule names.
pub(in crate::cli) async fn unknown_approvers<'a>(
    set: &'a PolicySet,
    config: &Config,
    store: &Store,
) -> Result<Vec<(&'a PolicyRecord, String)>, StoreError> {
    let groups = |record: &PolicyRecord| set.approvers_of(&record.id).into_iter().flatten();
    let mut unknown: BTreeSet<String> = set.records().iter().flat_map(groups).cloned().collect();
    unknown.retain(|group| !config.trust.iter().any(|rule| rule.names_group(group)));
    let orgs = store.list_orgs().await?;
    if unknown.is_empty() || orgs.is_empty() {
        return Ok(Vec::new());
    }
    for org in &orgs {
        unknown = store.unnamed_groups(org.id, &unknown).await?;
    }
    let warning = |group: &String| {
        format!(
            "no principal is in the group `{group}`, and no trust rule names it: only admins can approve"
        )
    };
    let of = |record: &'a PolicyRecord| {
        let unknown = groups(record).filter(|group| unknown.contains(*group));
        unknown.map(move |group| (record, warning(group))).collect::<Vec<_>>()
    };
    Ok(set.records().iter().flat_map(of).collect())
}

impl Validate {
    /// A dry run of loading: exit code 0 when the set would be taken, 1 when not.
    pub(super) async fn run(self) -> Result<(), Failure> {
        let config = self.desk.config()?;
        let bench = self.desk.bench(&config).await?;
        let folder = self.desk.folder(&config);
        let output = self.desk.output();
        let files = read(&folder)?;
        let (set, tests) = match loaded(&bench, files) {
            Ok(loaded) => loaded,
            Err(errors) => {
                let lines: Vec<String> =
                    errors.iter().map(|error| line_of(&folder, error)).collect();
                let shown = json!({ "valid": false, "errors": errors, "warnings": [] });
                output.record(&shown, &lines.join("\n"))?;
                return Err(
                    format!("{} in {}", count(errors.len(), "error"), folder.display()).into()
                );
            }
        };
        let warnings = warnings(&set, &config).await;
        let shown: Vec<Value> = warnings.iter().map(|it| it.to_json(&folder)).collect();
        let summary = set.summary();
        if let Some(warning) = crowding(&summary) {
            self.desk.output().warn(&warning);
        }
        let mut lines: Vec<String> = warnings.iter().map(|it| it.line(&folder)).collect();
        lines.push(format!(
            "{} active, {} shadow, {} disabled, {}: {}",
            summary.active,
            summary.shadow,
            summary.disabled,
            count(warnings.len(), "warning"),
            set.version()
        ));
        if tests.passed + tests.not_run.len() > 0 {
            lines.push(format!(
                "{} passed, {} not run",
                count(tests.passed, "case"),
                tests.not_run.len()
            ));
        }
        let not_run = tests.not_run.iter();
        lines.extend(not_run.map(|error| format!("warning: {}", line_of(&folder, error))));
        let warned = warnings.len() + tests.not_run.len();
        let valid = !self.strict || warned == 0;
        let shown = json!({
            "valid": valid, "errors": [], "warnings": shown, "policy_set": set.version(),
            "unindexed": summary.unindexed,
            "tests": { "passed": tests.passed, "skipped": tests.not_run.len(), "not_run": tests.not_run },
        });
        output.record(&shown, &lines.join("\n"))?;
        if valid { Ok(()) } else { Err(count(warned, "warning").into()) }
    }
}

/// The cases that stand beside the policies, run.
#[derive(Default)]
struct Tests {
    passed: usize,
    /// Cases about tools that are not known here.
    not_run: Vec<PolicyError>,
}

/// The set, if its policies load and do what the cases expect; every error otherwise.
fn loaded(
    bench: &Workbench,
    files: FolderFiles,
) -> Result<(Arc<PolicySet>, Tests), Vec<PolicyError>> {
    let set = bench.load(files.policies)?;
    let mut tests = Tests::default();
    let mut errors = Vec::new();
    for file in &files.cases {
        match CaseFile::read(file).and_then(|cases| bench.run(&set, &cases)) {
            Ok(runs) => {
                tests.passed += runs.iter().filter(|run| run.passed == Some(true)).count();
                errors.extend(runs.iter().filter_map(CaseRun::failure));
                tests.not_run.extend(runs.iter().filter_map(CaseRun::not_run));
            }
            Err(error) => errors.push(error),
        }
    }
    if errors.is_empty() { Ok((set, tests)) } else { Err(errors) }
}

/// More policies than this without principals and actions make every call dearer.
const MANY_UNINDEXED: usize = 50;

fn crowding(summary: &Summary) -> Option<String> {
    (summary.unindexed > MANY_UNINDEXED).then(|| {
        format!(
            "{} policies name neither principals nor actions: all of them are looked at on every \
             call; say in their scope whom or what they are about",
            summary.unindexed
        )
    })
}

fn count(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

impl List {
    pub(super) async fn run(self) -> Result<(), Failure> {
        let folder = self.desk.folder(&self.desk.config()?);
        let (_, set) = self.desk.loaded().await?;
        let records: Vec<Value> = set
            .records()
            .iter()
            .filter(|record| !record.builtin)
            .map(|record| {
                let mut shown = json!(record);
                if let Value::Object(members) = &mut shown {
                    members.insert("at".to_owned(), Value::from(place(record, &folder)));
                }
                shown
            })
            .collect();
        self.desk.output().table(&records, &["id", "effect", "status", "phase", "at", "title"])
    }
}
