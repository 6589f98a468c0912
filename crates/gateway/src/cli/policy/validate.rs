//! `portcullis policy validate` and `portcullis policy list`.

use std::sync::Arc;

use clap::Args;
use portcullis_app::{CaseFile, CaseRun, FolderFiles, Workbench};
use portcullis_core::policy::{Origin, PolicyError, PolicyRecord, PolicySet, Summary};
use serde_json::{Value, json};

use super::{Desk, Failure, line_of, read};

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

/// Place of a policy, as an editor opens it.
fn place(record: &PolicyRecord) -> String {
    match &record.origin {
        Origin::File { path, line, .. } => format!("{path}:{line}"),
        Origin::Builtin => "built in".to_owned(),
    }
}

/// Every warning with the policy it is about.
fn warnings(set: &PolicySet) -> Vec<(String, &PolicyRecord, &str)> {
    let mut found = Vec::new();
    for record in set.records() {
        let texts = record.validation.warnings.iter();
        found.extend(texts.map(|text| (place(record), record, text.as_str())));
    }
    found
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
        let warnings = warnings(&set);
        let shown: Vec<Value> = warnings
            .iter()
            .map(|(place, record, text)| json!({ "policy": record.id, "at": place, "message": text }))
            .collect();
        let summary = set.summary();
        if let Some(warning) = crowding(&summary) {
            self.desk.output().warn(&warning);
        }
        let mut lines: Vec<String> = warnings
            .iter()
            .map(|(place, record, text)| format!("{place}: warning: `{}`: {text}", record.id))
            .collect();
        lines.push(format!(
            "{} active, {} shadow, {} disabled, {}: {}",
            summary.active,
            summary.shadow,
            summary.disabled,
            count(warnings.len(), "warning"),
            set.version()
        ));
        if tests.total > 0 {
            lines.push(format!(
                "{} passed, {} not run",
                count(tests.passed, "case"),
                tests.skipped()
            ));
        }
        let valid = !self.strict || warnings.is_empty();
        let shown = json!({
            "valid": valid, "errors": [], "warnings": shown, "policy_set": set.version(),
            "unindexed": summary.unindexed,
            "tests": { "passed": tests.passed, "skipped": tests.skipped() },
        });
        output.record(&shown, &lines.join("\n"))?;
        if valid { Ok(()) } else { Err(count(warnings.len(), "warning").into()) }
    }
}

/// The cases that stand beside the policies, run.
#[derive(Default)]
struct Tests {
    total: usize,
    passed: usize,
}

impl Tests {
    const fn skipped(&self) -> usize {
        self.total - self.passed
    }
}

/// The set, if its policies load and do what the cases expect; every error otherwise.
fn loaded(
    bench: &Workbench,
    files: FolderFiles,
) -> Result<(Arc<PolicySet>, Tests), Vec<PolicyError>> {
    let set = bench.load(files.policies)?;
    let (mut tests, mut errors) = (Tests::default(), Vec::new());
    for file in &files.cases {
        match CaseFile::read(file).and_then(|cases| bench.run(&set, &cases)) {
            Ok(runs) => {
                tests.total += runs.len();
                tests.passed += runs.iter().filter(|run| run.passed == Some(true)).count();
                errors.extend(runs.iter().filter_map(CaseRun::failure));
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
        let (_, set) = self.desk.loaded().await?;
        let records: Vec<Value> = set
            .records()
            .iter()
            .filter(|record| !record.builtin)
            .map(|record| {
                let mut shown = json!(record);
                if let Value::Object(members) = &mut shown {
                    members.insert("at".to_owned(), Value::from(place(record)));
                }
                shown
            })
            .collect();
        self.desk.output().table(&records, &["id", "effect", "status", "phase", "at", "title"])
    }
}
