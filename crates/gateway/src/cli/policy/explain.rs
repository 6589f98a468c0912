//! `portcullis policy explain`: a recorded call, of the gateway that is named or of the installation, by the policies of
//! a folder here.

use std::sync::Arc;

use clap::Args;
use portcullis_app::{EventExplanation, Overrides, Workbench};
use portcullis_core::{
    clock::Timestamp,
    id::EventId,
    policy::{Clause, Considered, NearMiss, Outcome, PolicySet},
};
use portcullis_store::EventRecord;
use serde_json::{Value, json};

use super::{Desk, Failure, compare::last_in_force, load};
use crate::{
    boot,
    cli::{
        api::{Api, Orgs, text as member},
        output::visible,
        remote::unreadable,
    },
    config::Config,
};

/// Explains the decision about a recorded call: the policies that were looked at and what each of
/// their clauses says, and a permit that would allow just this call.
#[derive(Args)]
pub(in crate::cli) struct Explain {
    /// The id of the call's event: `evt_…`
    event: EventId,
    /// Id or name of the org; not needed where there is only one
    #[arg(long)]
    org: Option<String>,
    #[command(flatten)]
    desk: Desk,
}

impl Explain {
    /// Asks the policies of the folder, or those that were last in force if it does not load; without those
    /// that are switched off.
    pub(super) async fn run(self) -> Result<(), Failure> {
        let Self { event: id, org, desk } = self;
        let config = desk.own_config()?;
        let path = format!("/v1/audit/events/{id}");
        let find = async |api: &Api<'_>| api.get(&path).await;
        let event = desk.installation.ask(Orgs::One(org.as_deref()), find).await?;
        let bench = desk.bench(&config).await?;
        let written = in_force(&desk, &config, &bench)?;
        let overrides = Overrides::new(config.overrides_file());
        let set = overrides.applied_to(written, boot::now()).map_err(|errors| {
            errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
        })?;
        let recorded = recorded(id, &event).ok_or_else(|| unreadable("occurred_at"))?;
        let explanation = bench.explain(&set, &recorded).ok_or_else(|| {
            let kind = visible(&recorded.kind);
            format!("`{id}` is of the type `{kind}`: calls are explained (`mcp.invocation`)")
        })?;
        desk.output().record(&json!(explanation), &text(&explanation))
    }
}

/// An event of the API as it was recorded.
fn recorded(id: EventId, event: &Value) -> Option<EventRecord> {
    Some(EventRecord {
        id,
        kind: member(event, "type").to_owned(),
        occurred_at: Timestamp::parse_rfc3339(member(event, "occurred_at"))?,
        core: event.to_string(),
        detached: event.get("detached").map(Value::to_string),
        salts: None,
        seal: None,
    })
}

/// The policies of the folder. If that of the installation does not load, those that were last in force, with a
/// warning.
fn in_force(desk: &Desk, config: &Config, bench: &Workbench) -> Result<Arc<PolicySet>, Failure> {
    let broken = match load(bench, &desk.folder(config)) {
        Ok(set) => return Ok(set),
        Err(broken) => broken,
    };
    if desk.policies.is_some() {
        return Err(broken);
    }
    let Ok(kept) = last_in_force(config, bench) else { return Err(broken) };
    let told = "these policies were last in force; the folder as it is would not be loaded:";
    desk.output().warn(&format!("{told}\n{broken}"));
    Ok(kept)
}

fn text(explanation: &EventExplanation) -> String {
    let mut lines = explanation.summary.clone();
    if !explanation.policies.is_empty() {
        lines.push(format!("\npolicies whose head matches: {}", explanation.considered));
        lines.extend(explanation.policies.iter().flat_map(considered));
    }
    if !explanation.near_misses.is_empty() {
        lines.push("\npermits that nearly apply:".to_owned());
        lines.extend(explanation.near_misses.iter().map(near_miss));
    }
    if let Some(permit) = &explanation.suggested_permit {
        lines.push(format!("\n{}", permit.trim_end()));
    }
    let lines = lines.iter().flat_map(|text| text.split('\n')).map(visible);
    lines.collect::<Vec<_>>().join("\n")
}

/// A policy, and a line for each of its clauses.
fn considered(policy: &Considered) -> Vec<String> {
    let (status, effect) = (policy.status.as_str(), policy.effect.as_str());
    let head = format!("  {} ({status} {effect}): {}", policy.policy, outcome_word(policy.outcome));
    std::iter::once(head).chain(policy.clauses.iter().map(clause)).collect()
}

/// `    false    context.input.limit <= 100    [context.input.limit = 500]`.
fn clause(clause: &Clause) -> String {
    let value = |path: &str, value: &Value| format!("{path} = {value}");
    let values = clause.values.iter();
    let values = values.filter_map(|read| Some(value(&read.path, read.value.as_ref()?)));
    let values: Vec<String> = values.collect();
    let shown =
        if values.is_empty() { String::new() } else { format!("    [{}]", values.join(", ")) };
    let text = clause.clause.split_whitespace().collect::<Vec<_>>().join(" ");
    format!("    {:<8} {text}{shown}", outcome_word(clause.outcome))
}

const fn outcome_word(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::True => "true",
        Outcome::False => "false",
        Outcome::Error(_) => "error",
        Outcome::Unknown => "unknown",
    }
}

/// The head of permits and their names.
fn near_miss(near: &NearMiss) -> String {
    let names: Vec<&str> = near.permits.iter().map(|permit| &*permit.policy).collect();
    let more = if near.more > 0 { format!(" and {} more", near.more) } else { String::new() };
    let NearMiss { principal, action, resource, .. } = near;
    format!("  {}{more}: permit ({principal}, {action}, {resource})", names.join(", "))
}
