//! Projection of a call that is kept so that it can be judged again: the values at the paths that
//! any policy about its tool reads.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::{
    capability::CapabilityKind,
    json::{JsonValue, Node},
    mcp::uris::ResourceUri,
    policy::{
        call::question::{self, Question},
        language::context_paths::Paths,
        set::PolicySet,
    },
};

/// The part of a call that its tool's policies read, in either phase and whatever their status.
#[derive(Debug, Clone, PartialEq)]
pub struct Projection {
    /// Paths that are read, as [`Known::only`](crate::policy::Known::only) takes it. A path that is
    /// listed and has no value was absent.
    pub paths: Arc<[String]>,
    /// The members of the input that are read.
    pub input: Value,
    /// The paths of the principal's tags that are read.
    pub tags: Vec<String>,
    /// The facts that are read and could be computed.
    pub facts: Value,
    /// The members of the structured result that are read, when there was one.
    pub output: Option<Value>,
}

impl PolicySet {
    /// Returns the part of `question` to keep. Holds values of the call as they are: masking what
    /// must not be kept is left to the caller.
    #[must_use]
    pub fn project(&self, question: &Question<'_>) -> Projection {
        let slot = self.slot(question.tool);
        let of = |name: &str, value: Node<'_>| {
            let wanted = slot.reads.member(name);
            wanted.map_or_else(|| Value::Object(Map::new()), |wanted| pruned(value, wanted))
        };
        Projection {
            paths: Arc::clone(&slot.listing),
            // What policies see of a resource follows from its URI.
            input: match (question.tool.id.kind().governed(), slot.reads.member("resource")) {
                (CapabilityKind::Skill, _) if slot.reads.member("skill").is_some() => {
                    question.input.to_value()
                }
                (CapabilityKind::Resource, Some(wanted)) => match slot.reads.member("input") {
                    None => read_of_resource(question.input, wanted),
                    Some(_) => question.input.to_value(),
                },
                _ => of("input", question.input),
            },
            tags: slot.reads.tag_paths(),
            facts: question::facts_json(question, &slot.shapes, &slot.reads),
            output: question.output.map(|output| of("output", output)),
        }
    }
}

/// The part of the URI from which what policies read of a resource follows.
fn read_of_resource(input: Node<'_>, wanted: &Paths) -> Value {
    let reads = |name| wanted.is_whole() || wanted.member(name).is_some();
    let uri = input.get("uri").and_then(Node::text).unwrap_or_default();
    let told = match ResourceUri::parse(uri) {
        Ok(uri) if !reads("uri") => uri.up_to(reads("path"), reads("host")),
        Ok(_) | Err(_) => uri.to_owned(),
    };
    json!({ "uri": told })
}

fn pruned(value: Node<'_>, wanted: &Paths) -> Value {
    if wanted.is_whole() || !value.is_object() {
        return value.to_value();
    }
    let kept = wanted
        .members()
        .filter_map(|(name, wanted)| Some((name.clone(), pruned(value.get(name)?, wanted))));
    Value::Object(kept.collect())
}
