//! The log of an installation as it is, held against what was kept of it.

use std::process::ExitCode;

use portcullis_app::{Indexed, LogIdentity, Witnessed, origin};
use portcullis_core::audit::export::{Report, Since};
use portcullis_store::Org;
use serde_json::{Value, json};

use super::{KeptCheckpoint, Verify, checkpoints::KeptLog, finish, report_text};
use crate::{
    boot::OfflineNode,
    cli::{installation::with_node_of, output::Failure},
};

impl Verify {
    pub(super) async fn run_live(mut self, org: &str) -> Result<ExitCode, Failure> {
        let config = self.installation.config()?;
        let hold = async |node: &OfflineNode| {
            let org = node.operator.org(org).await?;
            let identity = node.log_identity(&config).await?;
            if self.keys.is_empty() {
                let known = identity.keys.known(&origin(&identity.host, org.id))?;
                self.keys = known.into_iter().map(|key| key.verifier).collect();
            }
            self.hold(node, &org, identity).await
        };
        with_node_of(&config, hold).await
    }

    async fn hold(
        &self,
        node: &OfflineNode,
        org: &Org,
        identity: LogIdentity,
    ) -> Result<ExitCode, Failure> {
        // Before the log is looked at: what is published meanwhile is of a larger one.
        let kept = self.since.as_deref().map(|path| KeptLog::read(path, &self.keys)).transpose();
        let kept = match kept {
            Ok(kept) => kept,
            Err(fault) => return Ok(self.tell(Err(fault))),
        };
        let (newest, trees) = kept.map(|kept| (kept.newest, kept.trees)).unzip();
        let witnessed =
            Witnessed { keys: self.keys.clone(), newest, trees: trees.unwrap_or_default() };
        let found = node.operator.verify_log(org, identity, &witnessed).await?;
        let held = found.and_then(|(report, indexed)| {
            if let Some(path) = &self.since {
                KeptLog::refuse(path, &indexed.strangers, &self.keys)?;
            }
            Ok(write_report(&report, &indexed, witnessed.newest))
        });
        Ok(self.tell(held))
    }
}

fn write_report(report: &Report, indexed: &Indexed, newest: Option<Since>) -> (Value, String) {
    let mut found = json!(report);
    let mut text = report_text(report);
    if let Value::Object(members) = &mut found {
        members.insert("indexed".to_owned(), json!(indexed.events));
    }
    text.push(format!(
        "places and tiles are those of {} event{}",
        indexed.events,
        if indexed.events == 1 { "" } else { "s" }
    ));
    let kept = newest.map(|since| KeptCheckpoint { newest: since.checkpoint().size, since });
    finish(&mut found, text, kept.as_ref())
}
