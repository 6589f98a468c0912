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
use serde_json::{Map, Value, json};

use super::{Desk, Failure, loaded, read};
use crate::{boot, cli::output::json_text};

#[derive(Args)]
pub(in crate::cli) struct Init {
    #[command(flatten)]
    desk: Desk,
    /// Write a file for this provider alone, beside what is there
    #[arg(long, value_name = "SLUG")]
    add: Option<String>,
    /// Let service accounts use what only reads, too; otherwise the permits for them are comments
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

const ADDED: &str =
    "// Written by `portcullis policy init --add` for one provider. Edit it: it is yours.";

const HEAD: &str = r#"// Written by `portcullis policy init` for the providers that were connected. Edit it: it is yours.
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

/// Turns permits for service accounts into the lines that are written.
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

/// Everything that each provider lists, or this one.
fn by_provider<'a>(bench: &'a Workbench, only: Option<&str>) -> ByProvider<'a> {
    let mut providers = ByProvider::new();
    let is_wanted =
        |it: &&Capability| !it.id.is_unlisted() && only.is_none_or(|slug| it.id.provider() == slug);
    for it in bench.tools().filter(is_wanted) {
        providers.entry(it.id.provider()).or_default().push(it);
    }
    providers
}

/// Those of a kind; templates are resources here.
fn of_kind<'a>(all: &[&'a Capability], kind: CapabilityKind) -> Vec<&'a Capability> {
    all.iter().copied().filter(|it| it.id.kind().governed() == kind).collect()
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

/// A permit of what only reads at a provider, which members have and service accounts may be given.
struct Permit {
    /// End of its id.
    name: &'static str,
    what: &'static str,
    description: &'static str,
    /// The head after the principal, and a condition.
    rest: String,
}

impl Permit {
    fn text(&self, slug: &str, start: &str, who: &str, principal: &str) -> String {
        let Self { name, what, description, rest } = self;
        format!(
            r#"@id("{slug}-{start}{name}")
@title("{who} may {what} {slug}")
@description("{description}")
permit (principal {principal}, {rest};"#
        )
    }
}

/// Permits of tools that only read and of prompts, by name: what their server adds later is permitted by no policy.
fn permits(slug: &str, all: &[&Capability]) -> Vec<Permit> {
    let [mut tools, prompts, resources, skills] =
        CapabilityKind::GOVERNED.map(|kind| of_kind(all, kind));
    tools.retain(|tool| only_reads(tool));
    let named = |all: &[&Capability]| {
        let all = all.iter().map(|it| format!("  Mcp::Action::\"{}\"", it.id.action()));
        let all: Vec<_> = all.collect();
        format!("action in [\n{}\n], resource)", all.join(",\n"))
    };
    let tools = (!tools.is_empty()).then(|| Permit {
        name: "read",
        what: "use what only reads at",
        description: "What only reads is what the server says of its tools. A tool that it adds later is not \
                      among them.",
        rest: named(&tools),
    });
    let prompts = (!prompts.is_empty()).then(|| Permit {
        name: "prompts",
        what: "use the prompts of",
        description: "A prompt that the server adds later is not among them.",
        rest: named(&prompts),
    });
    let resources = (!resources.is_empty()).then(|| Permit {
        name: "resources",
        what: "read the resources of",
        description: "Those that the server lists, and those that a template of it makes.",
        rest: format!(
            "action == Mcp::Action::\"resource:{slug}\", resource)\nwhen {{ context.resource.listed }}"
        ),
    });
    let skills = (!skills.is_empty()).then(|| Permit {
        name: "skills",
        what: "use the skills of",
        description: "Their manifests and files. A skill that the server adds later is not among them.",
        rest: named(&skills),
    });
    [tools, prompts, resources, skills].into_iter().flatten().collect()
}

/// The permits of a provider as they are written.
fn reading(slug: &str, all: &[&Capability], for_services: ForServices) -> String {
    let permits = permits(slug, all);
    if permits.is_empty() {
        return "\n// No tool here says that it only reads, so nothing is permitted yet.\n"
            .to_owned();
    }
    let written = |start: &str, who: &str, principal: &str| -> String {
        let all: Vec<_> = permits.iter().map(|it| it.text(slug, start, who, principal)).collect();
        all.join("\n\n")
    };
    let members = written("", "Members", "in Mcp::Role::\"member\"");
    let services = for_services(&written("services-", "Service accounts", "is Mcp::Service"));
    format!("\n{members}\n\n{services}\n")
}

/// Permits for all service accounts.
fn permitted(permits: &str) -> String {
    format!(
        "// All service accounts (agents, CI jobs). To name one instead: `principal == Mcp::Service::\"sa_…\"`\n\
         // (`portcullis principal list` has the ids).\n{permits}"
    )
}

/// The same as a comment.
fn commented(permits: &str) -> String {
    let lines = permits.lines().map(|line| format!("\n// {line}").trim_end().to_owned());
    format!(
        "// Service accounts (agents, CI jobs) may use nothing here yet. Take the comment marks away to let all of \
         them\n// read, or name one: `principal == Mcp::Service::\"sa_…\"` (`portcullis principal list` has the \
         ids).\n//{}",
        lines.collect::<Vec<_>>().concat()
    )
}

fn policies(head: String, providers: &ByProvider<'_>, for_services: ForServices) -> String {
    let mut text = head;
    for (slug, all) in providers {
        let _ = write!(text, "\n// ---- {slug} ----\n//\n{}", listed(slug, all));
        text.push_str(&reading(slug, all, for_services));
        if of_kind(all, CapabilityKind::Tool).is_empty() {
            continue;
        }
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

/// Comments on everything that a provider lists; its resources, which may be thousands, are counted.
fn listed(slug: &str, all: &[&Capability]) -> String {
    let [tools, prompts, resources, skills] =
        CapabilityKind::GOVERNED.map(|kind| of_kind(all, kind));
    let mut text = String::new();
    for tool in tools {
        let _ = writeln!(text, "//   {}  {}", tool.id, hints(tool));
    }
    for prompt in prompts {
        let _ = writeln!(text, "//   {}  gives messages", prompt.id);
    }
    if !resources.is_empty() {
        let _ =
            writeln!(text, "//   resource:{slug}  resources and templates: {}", resources.len());
    }
    for skill in skills {
        let _ = writeln!(text, "//   {}  instructs a model", skill.id.action());
    }
    text
}

fn cases(head: String, providers: &ByProvider<'_>) -> String {
    let mut text = String::new();
    for (slug, all) in providers {
        text += &cases_of(slug, all);
    }
    if text.is_empty() { head.replace("cases:\n", "cases: []\n") } else { head + &text }
}

/// Cases of the tools that take an empty input, of the prompts, and of a resource that is listed and one that is not.
fn cases_of(slug: &str, all: &[&Capability]) -> String {
    let [tools, prompts, resources, skills] =
        CapabilityKind::GOVERNED.map(|kind| of_kind(all, kind));
    let mut text = String::new();
    let nothing = Document::of(&json!({}));
    for tool in tools.iter().filter(|tool| tool.violations(nothing.root()).is_empty()) {
        let permit = only_reads(tool).then_some("read");
        text += &case(slug, tool.id.as_str(), &json!({}), permit);
    }
    for prompt in prompts {
        let required = prompt.definition.input_schema.get("required").and_then(Value::as_array);
        let names = required.into_iter().flatten().filter_map(Value::as_str);
        let input: Map<_, _> = names.map(|name| (name.to_owned(), json!("example"))).collect();
        text += &case(slug, prompt.id.as_str(), &json!(input), Some("prompts"));
    }
    if let Some(it) = resources.iter().find(|it| it.id.kind() == CapabilityKind::Resource) {
        let uri = json!({ "uri": it.id.name() });
        text += &case(slug, it.id.as_str(), &uri, Some("resources"));
    }
    for skill in skills {
        let uri = json!({ "uri": skill.id.name() });
        text += &case(slug, skill.id.as_str(), &uri, Some("skills"));
    }
    if !resources.is_empty() {
        let uri = json!({ "uri": "portcullis:unlisted" });
        text += &case(slug, &format!("resource:{slug}:*"), &uri, None);
    }
    text
}

/// A case of what members may do by the policy that ends so, or may not yet.
fn case(slug: &str, id: &str, input: &Value, permit: Option<&str>) -> String {
    let (said, decision, policy) = match permit {
        Some(name) => ("may", "allow", format!("{slug}-{name}")),
        None => ("may not yet", "deny", DEFAULT_DENY.to_owned()),
    };
    // A name may hold what YAML reads as something else; it takes strings of JSON.
    let (case, id) = (json!(format!("members {said} use {id}")), json!(id));
    format!(
        "  - id: {case}\n    tool: {id}\n    input: {input}\n    \
         expect: {{decision: {decision}, policy: {policy}}}\n"
    )
}
