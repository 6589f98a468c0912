//! `completion/complete`: values of an argument of a prompt or of a variable of a template are a use of these.

use std::collections::BTreeMap;

use portcullis_core::{
    call::{Aim, Use},
    capability::CapabilityKind,
    json::{Document, JsonValue as _, Node},
    mcp::{ProtocolError, uris::Template},
};
use serde_json::json;

use super::{AskedUse, Name, WantedCall, inner_of};
use crate::mcp::Face;

/// As many as a prompt may have.
const MOST_ARGUMENTS: usize = 100;

/// Returns the kind of what has the argument that values are asked for.
pub(in crate::mcp) fn completed(params: Node<'_>) -> Option<CapabilityKind> {
    match params.get("ref")?.get("type")?.text()? {
        "ref/prompt" => Some(CapabilityKind::Prompt),
        "ref/resource" => Some(CapabilityKind::Template),
        _ => None,
    }
}

impl AskedUse {
    /// Reads `completion/complete`.
    pub(super) fn of_completion(
        of: CapabilityKind,
        params: Node<'_>,
    ) -> Result<Self, ProtocolError> {
        let text = |part: &str, member: &str| {
            let told = params.get(part).and_then(|it| it.get(member)?.text());
            let told = told.map(str::to_owned);
            told.ok_or_else(|| {
                ProtocolError::bad_params(format!("`{part}.{member}` has to be a text."))
            })
        };
        let name = text("ref", if of == CapabilityKind::Prompt { "name" } else { "uri" })?;
        let (argument, value) = (text("argument", "name")?, text("argument", "value")?);
        let mut values = BTreeMap::new();
        let wrong =
            || ProtocolError::bad_params("`context.arguments` has to be an object of texts.");
        if let Some(context) = params.get("context") {
            let others = match context.get("arguments") {
                None if context.is_object() => None,
                given => Some(given.and_then(Node::members).ok_or_else(wrong)?),
            };
            for (name, value) in others.into_iter().flatten() {
                values.insert(name.to_owned(), value.text().ok_or_else(wrong)?.to_owned());
            }
        }
        values.insert(argument.clone(), value);
        if values.len() > MOST_ARGUMENTS {
            let problem = format!("A completion has at most {MOST_ARGUMENTS} arguments.");
            return Err(ProtocolError::bad_params(problem));
        }
        let input = Document::of(&json!(values));
        Ok(Self { of, name, input, completion: Some((argument, values)) })
    }
}

/// The template with the argument that values are suggested for. What is no template names none.
pub(super) fn wanted_values(
    face: &Face,
    text: String,
    argument: &str,
    values: &BTreeMap<String, String>,
) -> Result<WantedCall, ProtocolError> {
    let inner = inner_of(face, &text);
    let read = inner.and_then(|(slug, uri)| Some((slug, Template::parse(&uri).ok()?)));
    let mut known = values.clone();
    if let Some((_, template)) = &read {
        if !template.variables().any(|it| it == argument) {
            return Err(no_argument());
        }
        known.retain(|name, _| template.variables().any(|it| it == name));
    }
    let filled = read.and_then(|(slug, template)| {
        let input = Use::values_of(&template, &known, argument)?;
        Some((format!("{slug}:{}", template.text()), Name::Id, input))
    });
    let unlisted = || (text, Name::Unlisted, Document::of(&json!(known)));
    let (tool, kind, input) = filled.unwrap_or_else(unlisted);
    let aim = Aim::Complete(argument.to_owned());
    Ok(WantedCall { tool, of: CapabilityKind::Template, kind, input, aim })
}

pub(super) fn no_argument() -> ProtocolError {
    let told = "`argument.name` names none of the arguments that are listed.";
    ProtocolError { http_status: 200, ..ProtocolError::bad_params(told) }
}
