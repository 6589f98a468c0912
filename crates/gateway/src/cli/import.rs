//! `portcullis import`: settings of MCP clients, written as `[[providers]]`.

mod document;
mod env_file;
mod http;
mod imported;
mod members;
mod program;
mod provider;
mod risks;
mod secrets;
mod variables;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::File,
    io::{self, Read},
    path::PathBuf,
    sync::Arc,
};

use clap::Args;
use portcullis_core::{capability::ProviderSlug, secret::Secret};
use portcullis_upstream::Outbound;

use self::{
    document::{Entries, Entry},
    imported::Imported,
    secrets::{Detectors, quote_name},
    variables::Names,
};
use super::output::{Failure, Output};
use crate::{boot::SystemRandom, config::Config};

/// Bytes of the largest file.
const MAX_BYTES: u64 = 1 << 20;

const HELP: &str = "\
Formats, told by the content of the file:
  `mcpServers`     Claude Desktop and Claude Code (`projects` as well), Cursor, Windsurf, Gemini CLI
  `servers`        Visual Studio Code: `mcp.json`, or below `mcp` in `settings.json`
  `[mcp_servers]`  Codex: `config.toml`
JSON may have comments and trailing commas.

Headers and environment variables become references to variables of the gateway's environment, and so
does a URL that holds a secret; no value is printed. A comment above each entry names the variables to
set; `--env-file` writes those whose values the client has. Values of environment variables that are no
secrets, such as levels, numbers, paths and addresses without credentials, stay as they are. So does the
default of a reference such as `${NAME:-none}`; one that may be a secret goes to `--env-file`.

An entry that cannot be used, such as one with HTTP+SSE or with a secret among the arguments of its
program, is left out; a comment says why and what to do. So is an entry whose slug `--config` declares. A
member of the list that is no server, such as a comment, is named by a warning.

Entries that run code from their arguments, such as `sh -c`, or set variables that decide what code
programs run, such as `LD_PRELOAD` and `PATH`, are written with a warning, which also goes to standard error.

Example:
  portcullis import ~/.cursor/mcp.json --config portcullis.toml --env-file mcp.env >> portcullis.toml
  (set -a; . ./mcp.env; portcullis check --config portcullis.toml)

Exit codes:
  0  every entry was written, or is in the configuration already
  1  some entries were left out, or a file cannot be read or written";

#[derive(Args)]
#[command(after_help = HELP)]
pub(super) struct Import {
    /// The client's file, or `-` for standard input
    file: PathBuf,
    /// Configuration of the gateway; entries whose slugs it declares are not written again
    #[arg(long, env = "PORTCULLIS_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
    /// Write the secrets as `NAME=value` into this new file, which only you may read
    #[arg(long, value_name = "FILE")]
    env_file: Option<PathBuf>,
}

impl Import {
    pub(super) fn run(self) -> Result<(), Failure> {
        let mut taken = TakenNames::default();
        if self.config.is_some() {
            let declared = Config::load(self.config.as_deref())?.providers;
            taken.declared = declared.into_iter().map(|provider| provider.slug).collect();
        }
        let Entries { servers: entries, others } = document::entries(&self.read()?)?;
        let judge =
            Judge { detectors: Detectors::new()?, outbound: Outbound::new(Arc::new(SystemRandom)) };
        let mut left_out = 0_usize;
        let mut secrets = BTreeMap::new();
        let mut written = String::new();
        for other in &others {
            let other = quote_name(other);
            let text = format!("{other} is no server: it is not described by an object");
            Output::new(false).warn(&text);
            written.extend(["\n# ", &text, ".\n"]);
        }
        for entry in &entries {
            match judge.import(entry, &mut taken) {
                Ok(ImportEntry::New(mut imported)) => {
                    imported.warnings.iter().for_each(|warning| Output::new(false).warn(warning));
                    if self.env_file.is_some() {
                        secrets.extend(imported.take_values());
                    }
                    written.push_str(&imported.text());
                }
                Ok(ImportEntry::Declared(slug)) => {
                    let name = quote_name(&entry.name);
                    let line = format!("\n# Already in the configuration, as `{slug}`: {name}.\n");
                    written.push_str(&line);
                }
                Err(reason) => {
                    left_out += 1;
                    let line = format!("\n# Left out: {}: {reason}\n", quote_name(&entry.name));
                    written.push_str(&line);
                }
            }
        }
        let text = self.heading(&secrets)? + &written;
        Output::new(false).line(text.trim_end())?;
        if left_out > 0 {
            let count = entries.len();
            return Err(format!(
                "{left_out} of {count} entries were left out; the output says why and what to do"
            )
            .into());
        }
        Ok(())
    }

    /// The first comment, after these secrets are in their file.
    fn heading(&self, secrets: &BTreeMap<String, Secret>) -> Result<String, Failure> {
        let mut heading = String::from(
            "# Written by `portcullis import`. Set the variables that are named here where the gateway \
             runs, then\n# try the configuration with `portcullis check`.\n",
        );
        if let Some(file) = self.env_file.as_deref().filter(|_| !secrets.is_empty()) {
            env_file::write(file, secrets)?;
            let place = std::path::absolute(file)?;
            heading.extend([
                "#\n# Secrets are in ",
                &quote_name(&place.to_string_lossy()),
                ", which only you may read. The gateway gets them from a shell with\n\
                 # `set -a; . FILE; set +a`, and from systemd with `EnvironmentFile=FILE` in its unit.\n",
            ]);
        }
        Ok(heading)
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

/// Names that are given already.
#[derive(Default)]
struct TakenNames {
    /// Slugs of the configuration.
    declared: BTreeSet<String>,
    /// Slugs of entries before, each with the name of its entry.
    slugs: BTreeMap<String, String>,
    variables: Names,
}

/// An entry that can be used.
enum ImportEntry<'a> {
    /// A provider to be written.
    New(Imported<'a>),
    /// The configuration has its slug.
    Declared(String),
}

/// Rules that entries are judged by.
struct Judge {
    detectors: Detectors,
    outbound: Outbound,
}

impl Judge {
    /// The provider that an entry becomes, or why there is none.
    fn import<'a>(
        &self,
        entry: &Entry,
        taken: &'a mut TakenNames,
    ) -> Result<ImportEntry<'a>, String> {
        let wanted = provider::slug(&entry.name)?;
        if taken.declared.contains(&wanted) {
            return Ok(ImportEntry::Declared(wanted));
        }
        let slug = taken.free_slug(&wanted)?;
        let mut imported = provider::import(&slug, entry, &self.detectors, &mut taken.variables)?;
        self.try_out(&imported)?;
        if let Some(other) = taken.slugs.get(&wanted) {
            imported.note(format!("Its slug would be `{wanted}`, which is that of {other}."));
        }
        taken.slugs.insert(slug, quote_name(&entry.name));
        Ok(ImportEntry::New(imported))
    }

    /// Rejects what the gateway would not start with.
    fn try_out(&self, imported: &Imported<'_>) -> Result<(), String> {
        let config: Config =
            toml::from_str(&imported.entry).map_err(|error| error.message().to_owned())?;
        config.providers.iter().try_for_each(|provider| {
            provider.rehearse(&self.outbound, &config.connect).map_err(|error| error.to_string())
        })
    }
}

impl TakenNames {
    /// `wanted`, or the first of `wanted-2`, `wanted-3` and so on that is free. Fails if that is
    /// too long.
    fn free_slug(&self, wanted: &str) -> Result<String, String> {
        let mut slug = wanted.to_owned();
        let mut number = 1;
        while self.declared.contains(&slug) || self.slugs.contains_key(&slug) {
            number += 1;
            slug = format!("{wanted}-{number}");
        }
        if slug.parse::<ProviderSlug>().is_err() {
            return Err(format!("another entry has its slug `{wanted}`; rename one of the two"));
        }
        Ok(slug)
    }
}
