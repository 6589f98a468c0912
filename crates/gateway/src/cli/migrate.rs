//! `portcullis migrate`.

use std::path::{Path, PathBuf};

use clap::Args;
use portcullis_store::{MovedLog, MovedRows};
use serde_json::{Map, Value, json};

use super::{installation::Installation, output::Failure};
use crate::boot::{self, OfflineNode};

#[derive(Args)]
pub(super) struct Migrate {
    #[command(flatten)]
    installation: Installation,
    /// Move everything from this SQLite installation, a data folder or `sqlite:` and a file, into
    /// the empty PostgreSQL database of the configuration
    #[arg(long, value_name = "SOURCE")]
    from: Option<String>,
}

impl Migrate {
    pub(super) async fn run(self) -> Result<(), Failure> {
        match &self.from {
            None => self.bring_up_to_date().await,
            Some(source) => self.take_over(&file_of(source)).await,
        }
    }

    /// Opening a database brings its schema up to date.
    async fn bring_up_to_date(&self) -> Result<(), Failure> {
        let durability = async |node: &OfflineNode| Ok(node.operator.store.durability().await?);
        let engine = self.installation.with_offline_node(durability).await?.engine;
        let shown = json!({ "engine": engine });
        self.installation.output().record(&shown, "the schema of the database is up to date")
    }

    async fn take_over(&self, file: &Path) -> Result<(), Failure> {
        let config = self.installation.config()?;
        let moved = boot::take_over(&config, file).await?;
        let mut text: Vec<String> =
            moved.tables.iter().map(|it| format!("{:>12}  {}", it.rows, it.name)).collect();
        text.push(format!(
            "moved {} rows; {} logs have the size and root they had before",
            rows(&moved),
            moved.logs.len(),
        ));
        text.push(format!(
            "`{}` is as it was: keep it until you have a backup of the new database, and never \
             serve from it again",
            file.display(),
        ));
        self.installation.output().record(&to_json(&moved), &text.join("\n"))
    }
}

/// The database file of a data folder, or the file itself.
fn file_of(source: &str) -> PathBuf {
    let path = source.strip_prefix("sqlite://").or_else(|| source.strip_prefix("sqlite:"));
    let path = PathBuf::from(path.unwrap_or(source));
    if path.is_dir() { path.join("portcullis.db") } else { path }
}

fn rows(moved: &MovedRows) -> u64 {
    moved.tables.iter().map(|table| table.rows).sum()
}

fn to_json(moved: &MovedRows) -> Value {
    let tables: Map<String, Value> =
        moved.tables.iter().map(|table| (table.name.to_owned(), json!(table.rows))).collect();
    let hex = |log: &MovedLog| {
        log.root.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
    };
    let logs = moved.logs.iter();
    let logs = logs.map(|log| json!({ "org": log.org_id, "size": log.size, "root": hex(log) }));
    json!({ "rows": rows(moved), "tables": tables, "logs": logs.collect::<Vec<_>>() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_is_a_folder_or_a_file_with_or_without_scheme() {
        let folder = tempfile::tempdir().unwrap();
        let shown = folder.path().display();

        assert_eq!(file_of(&shown.to_string()), folder.path().join("portcullis.db"));
        assert_eq!(file_of(&format!("sqlite:{shown}")), folder.path().join("portcullis.db"));
        assert_eq!(file_of("sqlite:/var/lib/p.db"), PathBuf::from("/var/lib/p.db"));
        assert_eq!(file_of("p.db"), PathBuf::from("p.db"));
    }
}
