//! `portcullis policy validate` and `portcullis policy list`.

use clap::Args;
use portcullis_core::policy::{Origin, PolicyRecord, PolicySet};
use serde_json::{Value, json};

use super::{Desk, Failure, line_of, try_load};

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

/// Where a policy begins, as a person opens it.
fn place(record: &PolicyRecord) -> String {
    match &record.origin {
        Origin::File { path, line } => format!("{path}:{line}"),
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
        let set = match try_load(&bench, &folder)? {
            Ok(set) => set,
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
        let valid = !self.strict || warnings.is_empty();
        let shown = json!({
            "valid": valid, "errors": [], "warnings": shown, "policy_set": set.version(),
        });
        output.record(&shown, &lines.join("\n"))?;
        if valid { Ok(()) } else { Err(count(warnings.len(), "warning").into()) }
    }
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
