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
    capability::{Capability, CapabilityKind},
    json::Document,
    policy::{DEFAULT_DENY, FACTS_FILE, PolicyFile},
};
use serde_json::json;

use super::{Desk, Failure, loaded, read};
use crate::{boot, cli::output::json_text};

#[derive(Args)]
pub(in crate::cli) struct Init {
    #[command(flatten)]
    desk: Desk,
    /// Write a file for this provider alone, beside what is there
    #[arg(long, value_name = "SLUG")]
    add: Option<String>,
    /// Let service accounts use the tools that only read, too; otherwise the permit for them is a comment
    #[arg(long)]
    services_read: bool,
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

const CASES_HEAD: &str = "# Run with `portcullis policy test`. Each case is a call and what it has to come to.\n\
    defaults:\n  principal: {type: user, id: usr_example, roles: [member]}\ncases:\n";

const ADDED: &str = "// Written by `portcullis policy init --add` for the tools of one provider. Edit it: it is yours.";

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
        self.desk.output().line(&json_text(&described))
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
            let schema = serde_json::to_string_pretty(&set.schema())?;
            return self.desk.output().line(&json_text(&schema));
        }
        let unwritable = "a name cannot be written in Cedar's syntax; take `--json`";
        self.desk.output().line(set.cedarschema().ok_or(unwritable)?.trim_end())
    }
}

/// Turns the lines of a permit for service accounts into those that are written.
type ForServices = fn(&str) -> String;

impl Init {
    fn for_services(&self) -> ForServices {
        if self.services_read { permitted } else { commented }
    }

    /// Writes nothing over a file that is there, and nothing with which the folder would not load.
    pub(super) async fn run(self) -> Result<(), Failure> {
        let config = self.desk.config()?;
        if self.desk.policies.is_none() {
            self.desk.installation.warn_if_unconfigured(&config);
        }
        let bench = self.desk.bench(&config).await?;
        let folder = self.desk.folder(&config);
        let tools = by_provider(&bench, self.add.as_deref());
        let files = match &self.add {
            None => [(FILE.to_owned(), HEAD.to_owned()), (CASES.to_owned(), CASES_HEAD.to_owned())],
            Some(slug) if tools.is_empty() => {
                let message = format!(
                    "no tools of a provider `{slug}` are known: declare it in the configuration, and see \
                     `portcullis check`"
                );
                return Err(message.into());
            }
            Some(slug) => [
                (format!("{slug}.cedar"), format!("{ADDED}\n")),
                (format!("tests/{slug}.yaml"), CASES_HEAD.to_owned()),
            ],
        };
        let [(file, head), (case_file, case_head)] = files;
        let new = PolicyFile { path: file, text: policies(head, &tools, self.for_services()) };
        let files = [
            (folder.join(&new.path), new.text.clone()),
            (folder.join(case_file), cases(case_head, &tools)),
        ];
        if let Some((taken, _)) = files.iter().find(|(path, _)| path.exists()) {
            return Err(format!("`{}` exists; move it away first", taken.display()).into());
        }
        let unwritten =
            format!("nothing was written: the folder does not load with `{}`", new.path);
        let there = if folder.is_dir() { read(&folder)?.policies } else { Vec::new() };
        let all = there.into_iter().chain([new]).collect();
        loaded(&bench, &folder, all).map_err(|errors| format!("{errors}\n{unwritten}"))?;
        for (path, text) in &files {
            write_new(path, text)?;
            self.desk.output().line(&format!("wrote {}", path.display()))?;
        }
        Ok(())
    }
}

fn write_new(path: &Path, text: &str) -> Result<(), Failure> {
    let failed = |error| format!("`{}`: {error}", path.display());
    let folder: PathBuf = path.parent().map(Path::to_owned).unwrap_or_default();
    boot::make_private(&folder).map_err(failed)?;
    fs::write(path, text).map_err(failed)?;
    Ok(())
}

type ByProvider<'a> = BTreeMap<&'a str, Vec<&'a Capability>>;

/// The tools of each provider, or of this one.
fn by_provider<'a>(bench: &'a Workbench, only: Option<&str>) -> ByProvider<'a> {
    let mut providers = ByProvider::new();
    let is_wanted = |tool: &&Capability| {
        tool.id.kind() == CapabilityKind::Tool && only.is_none_or(|slug| tool.id.provider() == slug)
    };
    for tool in bench.tools().filter(is_wanted) {
        providers.entry(tool.id.provider()).or_default().push(tool);
    }
    providers
}

/// Hints of its server about it, for people.
fn hints(tool: &Capability) -> &'static str {
    let hint = |name: &str| tool.definition.hint(name);
    match (hint("readOnlyHint"), hint("destructiveHint")) {
        (Some(true), _) => "only reads",
        (_, Some(false)) => "changes things, destroys nothing",
        (_, Some(true) | None) => "may change and destroy things",
    }
}

fn only_reads(tool: &Capability) -> bool {
    tool.definition.hint("readOnlyHint") == Some(true)
}

/// Permits of the tools that only read, by name: what their server adds later is permitted by no policy.
fn reading(slug: &str, tools: &[&Capability], for_services: ForServices) -> String {
    let reads: Vec<&Capability> = tools.iter().copied().filter(|tool| only_reads(tool)).collect();
    if reads.is_empty() {
        return "\n// No tool here says that it only reads, so nothing is permitted yet.\n"
            .to_owned();
    }
    let named = reads.iter().map(|tool| format!("  Mcp::Action::\"{}\"", tool.id));
    let named = named.collect::<Vec<_>>().join(",\n");
    let services = for_services(&format!(
        r#"@id("{slug}-services-read")
@title("Service accounts may use what only reads at {slug}")
permit (principal is Mcp::Service, action in [
{named}
], resource);"#
    ));
    format!(
        r#"
@id("{slug}-read")
@title("Members may use what only reads at {slug}")
@description("What only reads is what the server says of its tools. A tool that it adds later is not among them.")
permit (principal in Mcp::Role::"member", action in [
{named}
], resource);

{services}
"#
    )
}

/// A permit for all service accounts.
fn permitted(permit: &str) -> String {
    format!(
        "// All service accounts (agents, CI jobs). To name one instead: `principal == Mcp::Service::\"sa_…\"`\n\
         // (`portcullis principal list` has the ids).\n{permit}"
    )
}

/// The same as a comment.
fn commented(permit: &str) -> String {
    let lines = permit.lines().map(|line| format!("\n// {line}"));
    format!(
        "// Service accounts (agents, CI jobs) may use nothing here yet. Take the comment marks away to let all of \
         them\n// read, or name one: `principal == Mcp::Service::\"sa_…\"` (`portcullis principal list` has the \
         ids).\n//{}",
        lines.collect::<Vec<_>>().concat()
    )
}

fn policies(head: String, providers: &ByProvider<'_>, for_services: ForServices) -> String {
    let mut text = head;
    for (slug, tools) in providers {
        let _ = write!(text, "\n// ---- {slug} ----\n//\n");
        for tool in tools {
            let _ = writeln!(text, "//   {}  {}", tool.id, hints(tool));
        }
        text.push_str(&reading(slug, tools, for_services));
        let _ = write!(
            text,
            r#"
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

fn cases(head: String, providers: &ByProvider<'_>) -> String {
    let mut text = head;
    let mut any = false;
    let nothing = Document::of(&json!({}));
    let tools = providers.values().flatten();
    for tool in tools.filter(|tool| tool.violations(nothing.root()).is_empty()) {
        let (said, decision, policy) = if only_reads(tool) {
            ("may", "allow", format!("{}-read", tool.id.provider()))
        } else {
            ("may not yet", "deny", DEFAULT_DENY.to_owned())
        };
        let id = tool.id.as_str();
        // A name may hold what YAML reads as something else; it takes strings of JSON.
        let (case, tool) = (json!(format!("members {said} use {id}")), json!(id));
        let _ = write!(
            text,
            "  - id: {case}\n    tool: {tool}\n    input: {{}}\n    \
             expect: {{decision: {decision}, policy: {policy}}}\n"
        );
        any = true;
    }
    if any { text } else { text.replace("cases:\n", "cases: []\n") }
}
