//! Tools that wait, at a gateway elsewhere.

use portcullis_core::tool::{Difference, ToolDefinition};
use serde_json::{Value, json};

use super::{Accept, differences, name};
use crate::cli::{
    output::{Failure, visible},
    remote::{RemoteGateway, segment},
};

/// The tools that wait in the org of the token: each as a record, and as the gateway tells of it.
pub(super) async fn waiting(
    gateway: &RemoteGateway,
    provider: Option<&str>,
) -> Result<Vec<(Value, Value)>, Failure> {
    let org = gateway.org_id().await?;
    let of_provider = |answer: &Value| {
        let slug = name(answer, "id").split(':').next();
        provider.is_none_or(|wanted| slug == Some(wanted))
    };
    let all = gateway.list("/v1/tools/waiting", &[]).await?;
    let record = |answer: Value| {
        let at = |name: &str| answer.get(name).cloned().unwrap_or_default();
        let shared = answer.get("shared") == Some(&json!(true));
        let status = if at("accepted_version").is_null() { "waits" } else { "quarantined" };
        let record = json!({
            "id": at("id"),
            "org": (!shared).then_some(org),
            "status": status,
            "version": at("accepted_version"),
            "pinned_at": at("accepted_at"),
            "waiting_version": at("version"),
            "waits_since": at("waits_since"),
        });
        (record, answer)
    };
    Ok(all.into_iter().filter(of_provider).map(record).collect())
}

/// The record of a tool that waits, and what differs.
pub(super) async fn find(
    gateway: &RemoteGateway,
    tool: &str,
) -> Result<(Value, Option<Vec<Difference>>), Failure> {
    let all = waiting(gateway, tool.split(':').next()).await?;
    let found = all.into_iter().find(|(record, _)| name(record, "id") == tool);
    let nothing = || format!("nothing of `{}` waits to be accepted", visible(tool));
    let (record, answer) = found.ok_or_else(nothing)?;
    let new = definition(&answer, "new").ok_or("the answer of the gateway has no definition")?;
    Ok((record, Some(differences(definition(&answer, "old").as_ref(), &new))))
}

/// Accepts the tools that are asked for, of those that wait.
pub(super) async fn accept(gateway: &RemoteGateway, asked: &Accept) -> Result<Vec<Value>, Failure> {
    let all = waiting(gateway, asked.provider.as_deref()).await?;
    let chosen = |tool: &str| asked.provider.is_some() || asked.tools.iter().any(|it| it == tool);
    for tool in &asked.tools {
        if !all.iter().any(|(record, _)| name(record, "id") == tool) {
            return Err(format!("nothing of `{}` waits to be accepted", visible(tool)).into());
        }
    }
    let mut accepted = Vec::new();
    for (record, _) in all.iter().filter(|(record, _)| chosen(name(record, "id"))) {
        let id = name(record, "id");
        let version = asked.version.as_deref().unwrap_or(name(record, "waiting_version"));
        let path = format!("/v1/tools/{}/accept", segment(id));
        gateway.post(&path, &json!({ "version": version })).await?;
        accepted.push(json!({ "id": id, "org": record.get("org"), "version": version }));
    }
    Ok(accepted)
}

/// A definition as the API shows it, under the name of its tool.
fn definition(answer: &Value, side: &str) -> Option<ToolDefinition> {
    let shown = answer.get(side).filter(|shown| shown.is_object())?;
    let at = |name: &str| shown.get(name).cloned().unwrap_or_default();
    let text = |name: &str| shown.get(name).and_then(Value::as_str).map(str::to_owned);
    let (_, tool) = name(answer, "id").split_once(':')?;
    Some(ToolDefinition {
        name: tool.parse().ok()?,
        title: text("title"),
        description: text("description"),
        input_schema: at("input_schema"),
        output_schema: Some(at("output_schema")).filter(|schema| !schema.is_null()),
        annotations: at("annotations"),
    })
}
