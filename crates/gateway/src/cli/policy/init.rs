//! `portcullis policy init`, `portcullis policy schema` and `portcullis policy tools`.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

use clap::Args;
use portcullis_app::Workbench;
use portcullis_core::{
    json::Document,
    policy::{DEFAULT_DENY, FACTS_FILE},
    tool::Tool,
};

use super::{Desk, Failure, load, loaded, read};
use crate::boot;

#[derive(Args)]
pub(in crate::cli) struct Init {
    #[command(flatten)]
    desk: Desk,
}

#[derive(Args)]
pub(in crate::cli) struct Schema {
    #[command(flatten)]
    desk: Desk,
}

#[derive(Args)]
pub(in crate::cli) struct Tools {
    #[command(flatten)]
    desk: Desk,
}

const FILE: &str = "starter.cedar";
const CASES: &str = "tests/starter.yaml";

const HEAD: &str = r#"// Written by `portcullis policy init` for the tools that were connected. Edit it: it is yours.
//
// A call needs a `permit`, and no `forbid` may match it. Without any policy every call is denied.
// `@id` is the policy's name: it stands in every answer and every audit event it decides.
// Save, and the set is in force; when anything is wrong, the set before it stays.
//
//   portcullis policy validate     every mistake with file, line and column
//   portcullis policy test         the cases in `tests`
//   portcullis policy simulate     what would happen if

@id("no-credentials-out")
@title("Credentials stay inside")
@reason("The input holds a credential; take it out, and consider it leaked")
@severity("critical")
@priority("100")
forbid (principal, action in Mcp::Action::"*:*", resource)
when { context.dlp.findings.containsAny(["aws_access_key", "github_token", "private_key"]) };
"#;

impl Tools {
    pub(super) async fn run(self) -> Result<(), Failure> {
        let bench = self.desk.bench(&self.desk.config()?).await?;
        let described = serde_json::to_string_pretty(&bench.description())?;
        self.desk.output().line(&described)
    }
}

impl Schema {
    pub(super) async fn run(self) -> Result<(), Failure> {
        let config = self.desk.config()?;
        let bench = self.desk.bench(&config).await?;
        let folder = self.desk.folder(&config);
        let files = if folder.is_dir() { read(&folder)?.policies } else { Vec::new() };
        let facts = files.into_iter().filter(|file| file.path == FACTS_FILE).collect();
        let set = loaded(&bench, &folder, facts)?;
        if self.desk.installation.json {
            return self.desk.output().line(&serde_json::to_string_pretty(&set.schema())?);
        }
        let unwritable = "a name cannot be written in Cedar's syntax; take `--json`";
        self.desk.output().line(set.cedarschema().ok_or(unwritable)?.trim_end())
    }
}

impl Init {
    /// Writes nothing over a file that is there.
    pub(super) async fn run(self) -> Result<(), Failure> {
        let config = self.desk.config()?;
        let bench = self.desk.bench(&config).await?;
        let folder = self.desk.folder(&config);
        let files = [(folder.join(FILE), policies(&bench)), (folder.join(CASES), cases(&bench))];
        if let Some((taken, _)) = files.iter().find(|(path, _)| path.exists()) {
            return Err(format!("`{}` exists; move it away first", taken.display()).into());
        }
        for (path, text) in &files {
            write_new(path, text)?;
            self.desk.output().line(&format!("wrote {}", path.display()))?;
        }
        load(&bench, &folder).map(drop)
    }
}

fn write_new(path: &Path, text: &str) -> Result<(), Failure> {
    let failed = |error| format!("`{}`: {error}", path.display());
    let folder: PathBuf = path.parent().map(Path::to_owned).unwrap_or_default();
    boot::make_private(&folder).map_err(failed)?;
    fs::write(path, text).map_err(failed)?;
    Ok(())
}

fn by_provider(bench: &Workbench) -> BTreeMap<&str, Vec<&Tool>> {
    let mut providers: BTreeMap<&str, Vec<&Tool>> = BTreeMap::new();
    for tool in bench.tools() {
        providers.entry(tool.id.provider()).or_default().push(tool);
    }
    providers
}

/// Hints of its server about it, for people.
fn hints(tool: &Tool) -> &'static str {
    let hint = |name: &str| tool.definition.hint(name);
    match (hint("readOnlyHint"), hint("destructiveHint")) {
        (Some(true), _) => "only reads",
        (_, Some(false)) => "changes things, destroys nothing",
        (_, Some(true) | None) => "may change and destroy things",
    }
}

fn policies(bench: &Workbench) -> String {
    let mut text = HEAD.to_owned();
    for (slug, tools) in by_provider(bench) {
        let _ = write!(text, "\n// ---- {slug} ----\n//\n");
        for tool in tools {
            let _ = writeln!(text, "//   {}  {}", tool.id, hints(tool));
        }
        let _ = write!(
            text,
            r#"
@id("{slug}-read")
@title("Members may use what only reads at {slug}")
@description("What only reads is what the server says of its tools.")
permit (principal in Mcp::Role::"member", action in Mcp::Action::"{slug}:*", resource)
when {{ resource.read_only }};

// Shadow: counted and reported, never in the way. Look at `would_flip` in its record and at
// `governance.shadow` of the events, then make it `active`.
@id("{slug}-no-destruction-by-services")
@title("Service accounts destroy nothing at {slug}")
@reason("Destructive tools need a person")
@mode("shadow")
forbid (principal is Mcp::Service, action in Mcp::Action::"{slug}:*", resource)
when {{ resource.destructive }};

// Everything else, for administrators. Narrow it before you make it active.
@id("{slug}-admins")
@title("Administrators may use every tool of {slug}")
@mode("disabled")
permit (principal in Mcp::Role::"admin", action in Mcp::Action::"{slug}:*", resource);
"#
        );
    }
    text
}

fn cases(bench: &Workbench) -> String {
    let mut text = "# Run with `portcullis policy test`. Each case is a call and what it has to come to.\n\
                    defaults:\n  principal: {type: user, id: usr_example, roles: [member]}\ncases:\n"
        .to_owned();
    let mut any = false;
    let nothing = Document::of(&serde_json::json!({}));
    for tool in bench.tools().filter(|tool| tool.violations(nothing.root()).is_empty()) {
        let reads = tool.definition.hint("readOnlyHint") == Some(true);
        let (said, decision, policy) = if reads {
            ("may", "allow", format!("{}-read", tool.id.provider()))
        } else {
            ("may not yet", "deny", DEFAULT_DENY.to_owned())
        };
        let id = &tool.id;
        let _ = write!(
            text,
            "  - id: members {said} use {id}\n    tool: {id}\n    input: {{}}\n    \
             expect: {{decision: {decision}, policy: {policy}}}\n"
        );
        any = true;
    }
    if any { text } else { text.replace("cases:\n", "cases: []\n") }
}
