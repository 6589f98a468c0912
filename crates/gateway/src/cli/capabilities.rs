//! `portcullis capability`, also `portcullis tool`. On a node, `list` shows what the providers of all orgs have.

mod waiting;

use std::collections::BTreeMap;

use clap::{Args, Subcommand, ValueEnum};
use portcullis_core::capability::{CapabilityId, CapabilityKind, Definition, Difference};
use serde_json::{Value, json};

use super::{
    api::{Api, Orgs, Shape, text, word},
    installation::Installation,
    output::{Failure, visible},
};

#[derive(Subcommand)]
pub(super) enum Capabilities {
    /// List the tools, prompts and resources that providers ever listed, and whether they wait to be accepted
    List {
        /// Only of this provider
        #[arg(long, value_name = "SLUG")]
        provider: Option<String>,
        /// Only of these kinds, comma-separated
        #[arg(long, value_enum, value_delimiter = ',')]
        kind: Vec<Kind>,
        /// Only those that wait
        #[arg(long)]
        waiting: bool,
        #[command(flatten)]
        installation: Installation,
    },
    /// Show what the upstream changed since it was accepted
    Diff {
        #[command(flatten)]
        which: Which,
        #[command(flatten)]
        installation: Installation,
    },
    /// Accept what the upstream changed; running nodes follow within seconds
    Accept(Accept),
}

/// A kind in its word of the API.
#[derive(Clone, Copy, ValueEnum)]
pub(super) enum Kind {
    Tool,
    Prompt,
    Resource,
    #[value(name = "resource_template", alias = "template")]
    Template,
    Skill,
}

#[derive(Args)]
pub(super) struct Which {
    /// Id, `<provider>:<tool_name>`, `prompt:<provider>:<name>`, `resource:<provider>:<uri>` or `skill:<provider>:<uri>`
    #[arg(value_name = "ID")]
    id: String,
    /// Id or name of the org, when several have a provider of this slug
    #[arg(long)]
    org: Option<String>,
}

#[derive(Args)]
pub(super) struct Accept {
    /// Ids, each as `capability list` shows it
    #[arg(value_name = "ID", required_unless_present = "provider")]
    ids: Vec<String>,
    /// Everything of this provider that waits
    #[arg(long, value_name = "SLUG", conflicts_with_all = ["ids", "version"])]
    provider: Option<String>,
    /// Only if this is the version that waits, as `capability diff` shows it
    #[arg(long, value_name = "SHA256")]
    version: Option<String>,
    /// Id or name of the org, when several have a provider of this slug
    #[arg(long)]
    org: Option<String>,
    #[command(flatten)]
    installation: Installation,
}

impl Capabilities {
    pub(super) async fn run(self) -> Result<(), Failure> {
        match self {
            Self::List { provider, kind, waiting, installation } => {
                let list = async |api: &Api<'_>| list(api, provider.as_deref(), &kind).await;
                let mut records = installation.ask(Orgs::Installation, list).await?;
                records.retain(|it| !waiting || !it["waits_since"].is_null());
                installation.output().table(&records, &columns(&records))
            }
            Self::Diff { which, installation } => {
                let orgs = Orgs::Any(which.org.as_deref());
                let find = async |api: &Api<'_>| waiting::find(api, &which.id).await;
                let (record, differences) = installation.ask(orgs, find).await?;
                diff(record, &differences, &installation)
            }
            Self::Accept(accept) => accept.run().await,
        }
    }
}

impl Accept {
    async fn run(self) -> Result<(), Failure> {
        let orgs = Orgs::Any(self.org.as_deref());
        let accept = async |api: &Api<'_>| waiting::accept(api, &self).await;
        let records = self.installation.ask(orgs, accept).await?;
        let output = self.installation.output();
        let text = |it: &Value| format!("accepted {} ({})", text(it, "id"), text(it, "version"));
        match records.as_slice() {
            [one] if !self.ids.is_empty() => output.record(one, &text(one)),
            [] => output.record(&json!([]), "nothing waits"),
            all => {
                let lines: Vec<String> = all.iter().map(text).collect();
                output.record(&json!(all), &lines.join("\n"))
            }
        }
    }
}

/// Columns of a list, which names the kinds where there are others than tools.
fn columns(records: &[Value]) -> Vec<&'static str> {
    let mut columns = PINNED.columns.to_vec();
    let is_other = |it: &Value| !matches!(text(it, "kind"), "" | "tool");
    if records.iter().any(is_other) {
        columns.insert(1, "kind");
    }
    columns
}

/// A tool, prompt or resource as it is pinned.
const PINNED: Shape = Shape {
    members: &[
        "id",
        "kind",
        "org",
        "status",
        "version=/accepted/version",
        "pinned_at=/accepted/at",
        "waiting_version=/waiting/version",
        "waits_since=/waiting/at",
    ],
    columns: &["id", "org", "status", "version", "pinned_at", "waits_since"],
    add: |members| {
        let is_there = |side| members.get(side).is_some_and(Value::is_object);
        let status = match (is_there("accepted"), is_there("waiting")) {
            (true, false) => "accepted",
            (true, true) => "quarantined",
            (false, _) => "waits",
        };
        members.insert("status".to_owned(), json!(status));
    },
};

/// The number of those of a provider that there is no room for.
const SURPLUS: Shape = Shape {
    members: &["id", "org", "status", "waits_since=/noted_at", "provider", "surplus=/tools"],
    columns: PINNED.columns,
    add: |members| {
        let [provider, tools] = ["provider", "tools"].map(|name| members.get(name).cloned());
        let provider = provider.as_ref().and_then(Value::as_str).unwrap_or_default();
        let id = format!("{provider}: {} more", tools.unwrap_or_default());
        members.insert("id".to_owned(), json!(id));
        members.insert("status".to_owned(), json!("no room (`max_pins`)"));
    },
};

/// The pins of the orgs of a command, of these kinds or of all, and what there was no room for of whatever kind. Those
/// that all orgs share are there once.
async fn list(
    api: &Api<'_>,
    provider: Option<&str>,
    kinds: &[Kind],
) -> Result<Vec<Value>, Failure> {
    let kinds = kinds.iter().map(word).collect::<Vec<_>>().join(",");
    let filter = Some(("kind", kinds.as_str())).filter(|_| !kinds.is_empty());
    let (mut pinned, mut surplus) = (BTreeMap::new(), BTreeMap::new());
    let org_of = |it: &Value| text(it, "org").to_owned();
    let is_wanted = |slug: &str| provider.is_none_or(|wanted| wanted == slug);
    for org in api.orgs().await? {
        api.begin_with(org);
        for pin in api.list("/v1/tools", filter.as_slice()).await? {
            let id = text(&pin, "id").parse::<CapabilityId>()?;
            if is_wanted(id.provider()) {
                pinned.insert((id.to_string(), org_of(&pin)), pin);
            }
        }
        let page = api.get("/v1/tools?limit=1").await?;
        for it in page.get("surplus").and_then(Value::as_array).into_iter().flatten() {
            if is_wanted(text(it, "provider")) {
                surplus.insert((text(it, "provider").to_owned(), org_of(it)), it.clone());
            }
        }
    }
    let mut records = api.records(pinned.into_values().collect(), &PINNED).await?;
    records.extend(api.records(surplus.into_values().collect(), &SURPLUS).await?);
    Ok(records)
}

fn diff(
    mut record: Value,
    differences: &[Difference],
    installation: &Installation,
) -> Result<(), Failure> {
    let all = differences.iter();
    let all = all.map(|it| json!({ "path": it.path, "old": it.old, "new": it.new })).collect();
    if let Value::Object(members) = &mut record {
        members.insert("differences".to_owned(), Value::Array(all));
    }
    let [id, version] = ["id", "waiting_version"].map(|member| text(&record, member));
    let kind = id.parse().map_or(CapabilityKind::Tool, |id: CapabilityId| id.kind().governed());
    let accepted = record.get("version").and_then(Value::as_str).unwrap_or("-");
    let mut lines = vec![
        format!("{:<10}{id}", kind.as_str()),
        format!("accepted  {accepted}"),
        format!("waiting   {version}"),
    ];
    for it in differences {
        lines.push(String::new());
        lines.push(visible(&it.path));
        lines.extend(sides(it.old.as_ref(), it.new.as_ref()));
    }
    lines.push(String::new());
    lines.push(format!("accept with: portcullis capability accept {id} --version {version}"));
    installation.output().record(&record, &lines.join("\n"))
}

/// Everything is new where nothing was accepted.
fn differences(accepted: Option<&Definition>, found: &Definition) -> Vec<Difference> {
    if let Some(accepted) = accepted {
        return accepted.differences(found);
    }
    let Value::Object(members) = found.to_json() else { return Vec::new() };
    let members = members.into_iter().filter(|(_, value)| !value.is_null());
    let new = members.map(|(name, value)| Difference {
        path: format!("/{name}"),
        old: None,
        new: Some(value),
    });
    new.collect()
}

/// The lines of both sides that are not the same, `-` before what was and `+` before what is.
fn sides(old: Option<&Value>, new: Option<&Value>) -> Vec<String> {
    let lines = |value: Option<&Value>| -> Vec<String> {
        let text = match value {
            None => return Vec::new(),
            Some(Value::String(text)) => text.clone(),
            Some(value) => serde_json::to_string_pretty(value).unwrap_or_default(),
        };
        text.split('\n').map(visible).collect()
    };
    let old = lines(old);
    let new = lines(new);
    let same = |(one, other): &(&String, &String)| one == other;
    let before = old.iter().zip(&new).take_while(same).count();
    let rest = old.len().min(new.len()) - before;
    let after = old.iter().rev().zip(new.iter().rev()).take(rest).take_while(same).count();
    let part = |lines: &[String], sign: char| -> Vec<String> {
        let changed = lines.get(before..lines.len() - after).unwrap_or_default();
        changed.iter().map(|line| format!("  {sign} {line}")).collect()
    };
    let mut told = part(&old, '-');
    told.extend(part(&new, '+'));
    told
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_lines_that_differ_are_told_and_nothing_in_them_is_hidden() {
        let old = json!("Lists items.\nAt most 10.\nNever asks.");
        let new =
            json!("Lists items.\nAt most\u{1b}[2K 100\u{200b}.\n\tNot\u{202e}ever.\nNever asks.");

        assert_eq!(
            sides(Some(&old), Some(&new)),
            [
                "  - At most 10.",
                "  + At most[U+001B][2K 100[U+200B].",
                "  + [U+0009]Not[U+202E]ever."
            ]
        );
        assert_eq!(sides(None, Some(&json!(true))), ["  + true"]);
        assert_eq!(sides(Some(&json!({"a": 1})), None).len(), 3);
        assert!(sides(Some(&old), Some(&old)).is_empty());
    }
}
