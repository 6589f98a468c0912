//! `portcullis policy diff`.

use std::{path::PathBuf, sync::Arc};

use clap::Args;
use portcullis_app::{LastGood, SetChange, Workbench};
use portcullis_core::policy::PolicySet;
use serde_json::json;

use super::{Desk, Failure, load};
use crate::config::Config;

#[derive(Args)]
pub(in crate::cli) struct Diff {
    #[command(flatten)]
    desk: Desk,
    /// The folder to compare with; without it what was last in force here
    #[arg(long, value_name = "FOLDER")]
    from: Option<PathBuf>,
}

impl Diff {
    /// Exit code 0 when nothing differs, 1 when something does.
    pub(super) async fn run(self) -> Result<(), Failure> {
        let config = self.desk.config()?;
        let bench = self.desk.bench(&config).await?;
        let before = if let Some(folder) = &self.from {
            load(&bench, folder)?
        } else {
            last_in_force(&config, &bench)?
        };
        let after = load(&bench, &self.desk.folder(&config))?;
        let change = SetChange::between(&before, &after);
        let marked = [("+", &change.added), ("~", &change.changed), ("-", &change.removed)];
        let lines: Vec<String> = marked
            .iter()
            .flat_map(|(mark, ids)| ids.iter().map(move |id| format!("{mark} {id}")))
            .collect();
        let same = lines.is_empty();
        let shown = json!({
            "from": before.version(), "to": after.version(), "added": change.added,
            "changed": change.changed, "removed": change.removed,
        });
        let text = if same { "nothing differs".to_owned() } else { lines.join("\n") };
        self.desk.output().record(&shown, &text)?;
        if same { Ok(()) } else { Err(format!("{} differ", lines.len()).into()) }
    }
}

/// The policies that a node of this installation last decided by.
pub(super) fn last_in_force(config: &Config, bench: &Workbench) -> Result<Arc<PolicySet>, Failure> {
    let kept = LastGood::new(config.last_good_file()).read().map_err(|error| {
        format!("no policies were ever in force here ({error}); compare with `--from`")
    })?;
    bench.load(kept).map_err(|errors| {
        let lines: Vec<String> = errors.iter().map(ToString::to_string).collect();
        format!("what was last in force no longer fits:\n{}", lines.join("\n")).into()
    })
}
