//! Members of prompts and resources as they are listed.

use std::collections::HashSet;

use portcullis_core::capability::{CapabilityKind, CapabilityName, Definition};
use serde_json::{Map, Value, json};

use super::{MAX_ARGUMENTS, MAX_DESCRIPTION_CHARS, MAX_TITLE_CHARS, SkipReason};
use crate::text;

/// Arguments have visible names, each its own; of their other members the three that MCP gives a meaning stay.
pub(super) fn prompt(
    name: &CapabilityName,
    members: &mut Map<String, Value>,
) -> Result<Definition, SkipReason> {
    let given = match members.remove("arguments") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(given)) if given.len() <= MAX_ARGUMENTS => given,
        Some(_) => return Err(SkipReason::Malformed),
    };
    let mut names = HashSet::new();
    let mut arguments = Vec::new();
    for argument in given {
        let name = argument.get("name").and_then(Value::as_str).ok_or(SkipReason::Malformed)?;
        if text::one_line(name, MAX_TITLE_CHARS) != name {
            return Err(SkipReason::HiddenCharacters);
        }
        if !names.insert(name.to_owned()) {
            return Err(SkipReason::Malformed);
        }
        let text = |member, chars| Some((member, Value::from(short(argument.get(member), chars)?)));
        let required = argument.get("required").and_then(Value::as_bool);
        let kept = [
            Some(("name", Value::from(name))),
            text("title", MAX_TITLE_CHARS),
            text("description", MAX_DESCRIPTION_CHARS),
            required.map(|told| ("required", Value::from(told))),
        ];
        let kept = kept.into_iter().flatten().map(|(name, value)| (name.to_owned(), value));
        arguments.push(Value::Object(kept.collect()));
    }
    Ok(Definition::prompt(name.clone(), Value::Array(arguments)))
}

/// Of the members of a resource or template those stay that MCP gives a meaning, without icons.
pub(super) fn resource(
    kind: CapabilityKind,
    name: &CapabilityName,
    members: &Map<String, Value>,
) -> Definition {
    let text = |member| Some((member, Value::from(short(members.get(member), MAX_TITLE_CHARS)?)));
    // Clients refuse a whole list in which an entry has none.
    let unnamed = || ("name", Value::from(text::clamp(name.as_str(), MAX_TITLE_CHARS)));
    let size = members.get("size").filter(|size| size.is_u64()).cloned();
    let size = size.filter(|_| kind == CapabilityKind::Resource).map(|size| ("size", size));
    let named = text("name").or_else(|| Some(unnamed()));
    let kept = [named, text("mimeType"), size].into_iter().flatten();
    let more = kept.map(|(name, value)| (name.to_owned(), value)).collect();
    let annotations = members.get("annotations").and_then(annotations).unwrap_or(Value::Null);
    let resource = Definition::resource(kind, name.clone(), Value::Object(more));
    Definition { annotations, ..resource }
}

/// The annotations of a resource that MCP has, of the types that it gives them; `None` if there are none.
fn annotations(given: &Value) -> Option<Value> {
    let roles = |it: &Value| it == "user" || it == "assistant";
    let audience = given.get("audience").and_then(Value::as_array);
    let audience = audience.filter(|all| all.iter().all(roles)).map(|all| json!(all));
    let priority = given
        .get("priority")
        .filter(|it| it.as_f64().is_some_and(|priority| (0.0..=1.0).contains(&priority)));
    let modified = short(given.get("lastModified"), MAX_TITLE_CHARS).map(Value::from);
    let kept =
        [("audience", audience), ("priority", priority.cloned()), ("lastModified", modified)];
    let kept = kept.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    let kept: Map<String, Value> = kept.collect();
    (!kept.is_empty()).then_some(Value::Object(kept))
}

pub(super) fn short(text: Option<&Value>, max_chars: usize) -> Option<String> {
    let text = text.and_then(Value::as_str)?;
    Some(text::clamp(text, max_chars))
}
