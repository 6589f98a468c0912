//! `portcullis import`: settings of MCP clients, written as `[[providers]]`.

mod document;
mod http;
mod program;
mod provider;
mod risks;
mod secrets;

use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, Read},
    path::PathBuf,
    sync::Arc,
};

use clap::Args;
use portcullis_upstream::Outbound;

use self::{document::Entry, provider::Imported, secrets::Detectors};
use super::{Failure, output::Output};
use crate::{boot::SystemRandom, config::Config};

/// Bytes of the largest file.
const MAX_BYTES: u64 = 1 << 20;

const HELP: &str = "\
Formats, told by the content of the file:
  `mcpServers`     Claude Desktop and Claude Code, Cursor, Windsurf, Gemini CLI
  `servers`        Visual Studio Code: `mcp.json`, or below `mcp` in `settings.json`
  `[mcp_servers]`  Codex: `config.toml`
JSON may have comments and trailing commas.

Headers and environment variables become references to variables of the gateway's environment, and so
does a URL that holds a secret; no value is printed. A comment above each entry names the variables to
set. An entry that cannot be used, such as one with HTTP+SSE or with a secret among the arguments of its
program, is left out; a comment says why and what to do.

Entries that run code from their arguments, such as `sh -c`, or set variables that decide what code
programs run, such as `LD_PRELOAD` and `PATH`, are written with a warning, which also goes to standard error.

Example:
  portcullis import ~/.cursor/mcp.json >> portcullis.toml
  portcullis check --config portcullis.toml

Exit codes:
  0  every entry was written
  1  some entries were left out, or the file cannot be read";

#[derive(Args)]
#[command(after_help = HELP)]
pub(super) struct Import {
    /// The client's file, or `-` for standard input
    file: PathBuf,
    /// Configuration of the gateway; entries whose slugs it declares already are left out
    #[arg(long, env = "PORTCULLIS_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
}

impl Import {
    pub(super) fn run(self) -> Result<(), Failure> {
        let mut taken = BTreeMap::new();
        if self.config.is_some() {
            for provider in Config::load(self.config.as_deref())?.providers {
                taken.insert(provider.slug, "the configuration".to_owned());
            }
        }
        let entries = document::entries(&self.read()?)?;
        let judge =
            Judge { detectors: Detectors::new()?, outbound: Outbound::new(Arc::new(SystemRandom)) };
        let count = entries.len();
        let mut left_out = 0_usize;
        let mut text = String::from(
            "# Written by `portcullis import`. Set the variables that are named here where the gateway \
             runs, then\n# try the configuration with `portcullis check`.\n",
        );
        for entry in &entries {
            match judge.import(entry, &mut taken) {
                Ok(imported) => {
                    imported.warnings.iter().for_each(|warning| Output::new(false).warn(warning));
                    text.push_str(&imported.text());
                }
                Err(reason) => {
                    left_out += 1;
                    let line = format!("\n# Left out: {}: {reason}\n", secrets::shown(&entry.name));
                    text.push_str(&line);
                }
            }
        }
        Output::new(false).line(text.trim_end())?;
        if left_out > 0 {
            return Err(format!(
                "{left_out} of {count} entries were left out; the output says why and what to do"
            )
            .into());
        }
        Ok(())
    }

    fn read(&self) -> Result<Vec<u8>, Failure> {
        let unreadable = |error: io::Error| -> Failure {
            format!("`{}` cannot be read: {error}", self.file.display()).into()
        };
        let mut bytes = Vec::new();
        let read = if self.file.as_os_str() == "-" {
            io::stdin().lock().take(MAX_BYTES + 1).read_to_end(&mut bytes)
        } else {
            let file = File::open(&self.file).map_err(unreadable)?;
            file.take(MAX_BYTES + 1).read_to_end(&mut bytes)
        };
        read.map_err(unreadable)?;
        if bytes.len() as u64 > MAX_BYTES {
            return Err(format!(
                "`{}` is larger than 1 MiB, which no list of servers is: name the file that holds \
                 `mcpServers`, `servers` or `[mcp_servers]`",
                self.file.display()
            )
            .into());
        }
        Ok(bytes)
    }
}

/// Rules that entries are judged by.
struct Judge {
    detectors: Detectors,
    outbound: Outbound,
}

impl Judge {
    /// The provider that an entry becomes, or why there is none.
    fn import(
        &self,
        entry: &Entry,
        taken: &mut BTreeMap<String, String>,
    ) -> Result<Imported, String> {
        let slug = provider::slug(&entry.name)?;
        if let Some(other) = taken.get(&slug) {
            return Err(format!(
                "its slug `{slug}` is taken by {other} already; rename one of the two"
            ));
        }
        let imported = provider::import(&slug, entry, &self.detectors)?;
        self.try_out(&imported)?;
        taken.insert(slug, format!("the entry {}", secrets::shown(&entry.name)));
        Ok(imported)
    }

    /// Says no to what the gateway would not start with.
    fn try_out(&self, imported: &Imported) -> Result<(), String> {
        let config: Config =
            toml::from_str(&imported.entry).map_err(|error| error.message().to_owned())?;
        config.providers.iter().try_for_each(|provider| {
            provider.rehearse(&self.outbound, &config.connect).map_err(|error| error.to_string())
        })
    }
}
