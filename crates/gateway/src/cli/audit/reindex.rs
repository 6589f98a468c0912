//! `portcullis audit reindex`.

use std::process::ExitCode;

use clap::Args;
use portcullis_app::{ReindexMode, Reindexed};
use portcullis_core::id::OrgId;
use portcullis_store::Org;
use serde_json::{Value, json};

use super::export::Bar;
use crate::{
    boot::OfflineNode,
    cli::{installation::Installation, output::Failure},
};

#[derive(Args)]
pub(in crate::cli) struct Reindex {
    /// Only the log of this org (id or name)
    #[arg(long)]
    org: Option<String>,
    /// Tell what differs, and change nothing
    #[arg(long)]
    check: bool,
    #[command(flatten)]
    installation: Installation,
}

impl Reindex {
    pub(super) async fn run(self) -> Result<ExitCode, Failure> {
        let config = self.installation.config()?;
        let retention = config.audit.retention.rule();
        let mode = if self.check { ReindexMode::Check } else { ReindexMode::Mend };
        let reindex = async |node: &OfflineNode| {
            let operator = &node.operator;
            let identity = node.log_identity(&config).await?;
            let named = match &self.org {
                Some(named) => Some(operator.org(named).await?),
                None => None,
            };
            let only = named.as_ref().map(|org| org.id);
            let orgs = match named {
                Some(org) => vec![org],
                None => operator.store.list_orgs().await?,
            };
            let mut logs = Vec::new();
            for org in orgs {
                let mut bar = Bar::new();
                let show = |done, size| bar.show(done, size);
                let found = operator.reindex(&org, identity.clone(), mode, retention, show).await;
                bar.clear();
                logs.push((org, found?));
            }
            let mut stray = operator.reindex_entries(only, mode).await?;
            for (org, found) in &mut logs {
                found.stray_entries = stray.remove(&Some(org.id)).unwrap_or(0);
            }
            Ok((logs, stray.values().sum::<u64>()))
        };
        let (logs, stray) = self.installation.with_offline_node(reindex).await?;
        self.tell(&logs, stray)
    }

    /// Tells what was found, and gives the exit code that says it.
    fn tell(&self, logs: &[(Org, Reindexed)], stray: u64) -> Result<ExitCode, Failure> {
        let unproven = logs.iter().any(|(_, found)| !found.is_whole());
        let differs = stray > 0 || logs.iter().any(|(_, found)| found.differs());
        let code = match (unproven, differs) {
            (true, _) => 10,
            (false, true) => 14,
            (false, false) => 0,
        };
        let records = logs.iter().map(|(org, found)| record(org.id, &org.name, found));
        let records: Vec<Value> = records.collect();
        let told = json!({
            "checked_only": self.check,
            "exit_code": code,
            "logs": records,
            "stray_entries": stray,
        });
        let mut lines: Vec<_> =
            logs.iter().flat_map(|(org, found)| sentences(org, found)).collect();
        if stray > 0 {
            lines.push(format!("{stray} entries of the index were those of no event"));
        }
        if differs {
            lines.push(if self.check { "nothing was changed" } else { "made anew" }.to_owned());
        }
        self.installation.output().record(&told, &lines.join("\n"))?;
        Ok(ExitCode::from(code))
    }
}

/// Findings in a log, with its org.
fn record(org: OrgId, name: &str, found: &Reindexed) -> Value {
    let mut record = json!(found);
    if let Value::Object(members) = &mut record {
        members.insert("org_id".to_owned(), json!(org));
        members.insert("org".to_owned(), json!(name));
    }
    record
}

/// Lines for a person about a log.
fn sentences(org: &Org, found: &Reindexed) -> Vec<String> {
    let name = &org.name;
    let Reindexed { events, differing, unproven, stray_entries, .. } = found;
    let mut lines = vec![format!("{name}: {differing} of {events} events differed")];
    lines.extend(found.named.iter().map(|event| {
        let columns = event.columns.iter().map(|column| format!("`{column}`"));
        let columns = columns.collect::<Vec<_>>().join(", ");
        format!("  {} at place {}: {columns}", event.event, event.sequence)
    }));
    if *stray_entries > 0 {
        lines.push(format!("  {stray_entries} entries of the index are those of no event"));
    }
    if let Some(end) = &found.end {
        lines.push(format!("  NOT compared: {end}; see `portcullis audit verify`"));
    }
    if found.missing > 0 {
        lines.push(format!(
            "  {} events are MISSING, and counts are left as they are",
            found.missing
        ));
    }
    match found.counts {
        None if !found.is_whole() => {}
        None => lines.push("  counts are compared once no event differs".to_owned()),
        Some(0) => {}
        Some(counts) => lines.push(format!("  {counts} counts of calls differed")),
    }
    if *unproven > 0 {
        let places = found.unproven_places.iter().map(ToString::to_string);
        let places = places.collect::<Vec<_>>().join(", ");
        lines.push(format!(
            "  {unproven} records are NOT those of the log, and nothing was made of them; the first are at {places}"
        ));
    }
    lines
}
