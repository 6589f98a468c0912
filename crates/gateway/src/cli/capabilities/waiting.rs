//! Tools, prompts and resources that wait to be accepted, as the API tells of them.

use std::collections::{BTreeMap, BTreeSet};

use portcullis_core::{
    capability::{CapabilityId, CapabilityName, Definition, Difference},
    id::OrgId,
};
use serde_json::{Value, json};

use super::{Accept, differences};
use crate::cli::{
    api::{Api, text},
    output::{Failure, visible},
    remote::segment,
};

/// The definitions that wait in the orgs of a command: each as a record, and as the API tells of it. One that all orgs
/// share is there once.
async fn list(api: &Api<'_>, provider: Option<&str>) -> Result<Vec<(Value, Value)>, Failure> {
    let mut all = BTreeMap::new();
    for (org, answer) in api.list_of_each("/v1/tools/waiting").await? {
        let id = text(&answer, "id").to_owned();
        let slug = provider_of(&id);
        let org = (answer.get("shared") != Some(&json!(true))).then_some(org);
        if provider.is_none_or(|wanted| slug.as_deref() == Some(wanted)) {
            all.entry((id, org)).or_insert((record(&answer, org), answer));
        }
    }
    Ok(all.into_values().collect())
}

fn provider_of(id: &str) -> Option<String> {
    id.parse::<CapabilityId>().ok().map(|id| id.provider().to_owned())
}

fn record(answer: &Value, org: Option<OrgId>) -> Value {
    let at = |name: &str| answer.get(name).cloned().unwrap_or_default();
    let status = if at("accepted_version").is_null() { "waits" } else { "quarantined" };
    json!({
        "id": at("id"),
        "kind": at("kind"),
        "org": org,
        "status": status,
        "version": at("accepted_version"),
        "pinned_at": at("accepted_at"),
        "waiting_version": at("version"),
        "waits_since": at("waits_since"),
    })
}

/// The one of these that has this id.
fn only<'a>(all: &'a [(Value, Value)], id: &str) -> Result<&'a (Value, Value), Failure> {
    let mut found = all.iter().filter(|(record, _)| text(record, "id") == id);
    match (found.next(), found.next()) {
        (Some(only), None) => Ok(only),
        (Some(_), Some(_)) => Err(format!(
            "several orgs have `{}` of their own; say which one with `--org`",
            visible(id)
        )
        .into()),
        (None, _) => Err(format!(
            "nothing of `{}` waits to be accepted; `portcullis capability list` shows what there is",
            visible(id)
        )
        .into()),
    }
}

/// The record of the definition that waits under this id, and what differs.
pub(super) async fn find(api: &Api<'_>, id: &str) -> Result<(Value, Vec<Difference>), Failure> {
    let all = list(api, provider_of(id).as_deref()).await?;
    let (record, answer) = only(&all, id)?;
    let new = definition(answer, "new").ok_or("the answer of the gateway has no definition")?;
    Ok((record.clone(), differences(definition(answer, "old").as_ref(), &new)))
}

/// Accepts the definitions that are asked for, of those that wait.
pub(super) async fn accept(api: &Api<'_>, asked: &Accept) -> Result<Vec<Value>, Failure> {
    let mut all = list(api, asked.provider.as_deref()).await?;
    // What all orgs share is accepted for all of them.
    if asked.org.is_some() {
        let shared = all.extract_if(.., |(record, _)| record.get("org") == Some(&Value::Null));
        let shared: Vec<_> = shared.collect();
        let is_asked = |(record, _): &&_| asked.ids.iter().any(|it| it == text(record, "id"));
        if let Some((record, _)) = shared.iter().find(is_asked) {
            let id = text(record, "id");
            return Err(format!("all orgs share `{id}`; leave out `--org` to accept it").into());
        }
    }
    let named: BTreeSet<&String> = asked.ids.iter().collect();
    let named: Result<Vec<_>, _> = named.into_iter().map(|id| only(&all, id)).collect();
    let chosen = if asked.provider.is_some() { all.iter().collect() } else { named? };
    let mut accepted = Vec::new();
    for (record, _) in chosen {
        let id = text(record, "id");
        let version = asked.version.as_deref().unwrap_or(text(record, "waiting_version"));
        if let Ok(org) = text(record, "org").parse() {
            api.begin_with(org);
        }
        let path = format!("/v1/tools/{}/accept", segment(id));
        api.post(&path, json!({ "version": version })).await?;
        accepted.push(json!({ "id": id, "org": record.get("org"), "version": version }));
    }
    Ok(accepted)
}

/// A definition as the API shows it, under the name in its id.
fn definition(answer: &Value, side: &str) -> Option<Definition> {
    let shown = answer.get(side).filter(|shown| shown.is_object())?;
    let at = |name: &str| shown.get(name).cloned().unwrap_or_default();
    let text_of = |name: &str| shown.get(name).and_then(Value::as_str).map(str::to_owned);
    let id: CapabilityId = text(answer, "id").parse().ok()?;
    let name = CapabilityName::of_kind(id.kind(), id.name()).ok()?;
    Some(Definition {
        kind: id.kind(),
        more: at("more"),
        title: text_of("title"),
        description: text_of("description"),
        output_schema: Some(at("output_schema")).filter(|schema| !schema.is_null()),
        annotations: at("annotations"),
        ..Definition::new(name, at("input_schema"))
    })
}
