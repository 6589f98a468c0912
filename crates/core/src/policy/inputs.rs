//! What a decision looked at, as events keep it: enough to decide the same call again under other
//! policies, without keeping the call.

use serde_json::{Map, Value, json};

use super::{
    Phase, PolicySet,
    question::{DlpFacts, Question},
    reads::{Paths, join},
};

/// A member whose value is larger than this many bytes of JSON is left out.
const MAX_MEMBER: usize = 4096;

impl PolicySet {
    /// What the decision about `question` looks at besides what every event tells: of the
    /// arguments and the result only what a policy for this tool reads.
    ///
    /// `found` are JSON Pointers to what DLP found in the value of this phase. A member in which
    /// something was found is named as withheld and never kept; so is one that is too large.
    #[must_use]
    pub fn inputs(&self, question: &Question<'_>, found: &[&str]) -> Map<String, Value> {
        let mut kept = Map::new();
        match question.phase {
            Phase::Request => {
                kept.insert("principal".to_owned(), principal(question));
                let request = json!({ "bytes": question.bytes, "mfa": question.mfa });
                kept.insert("request".to_owned(), request);
                keep_dlp(&mut kept, "dlp", &question.dlp);
                let reads = self.reads_of(question, "input");
                Part { name: "input", reads: &reads }.keep(question.input, found, &mut kept);
            }
            Phase::Response => {
                if let Some(facts) = &question.dlp_output {
                    keep_dlp(&mut kept, "dlp_output", facts);
                }
                if let Some(output) = question.output {
                    let reads = self.reads_of(question, "output");
                    Part { name: "output", reads: &reads }.keep(output, found, &mut kept);
                }
            }
        }
        kept
    }

    /// What any policy for the tool reads below `context.<member>`, before the call or after it.
    fn reads_of(&self, question: &Question<'_>, member: &str) -> Paths {
        let slot = self.slot(question.tool);
        let mut reads = Paths::default();
        for phase in [Phase::Request, Phase::Response] {
            let stage = slot.stage(phase);
            for read in [&stage.reads, &stage.shadow_reads] {
                if let Some(below) = read.member(member) {
                    reads.merge(below);
                }
            }
        }
        reads
    }
}

fn principal(question: &Question<'_>) -> Value {
    let identity = question.principal.identity();
    let mut kept = Map::new();
    let mut add = |name: &str, values: &[String]| {
        if !values.is_empty() {
            kept.insert(name.to_owned(), json!(values));
        }
    };
    add("roles", &identity.roles);
    add("scopes", &identity.scopes);
    add("groups", &identity.groups);
    if !identity.claims.is_empty() {
        kept.insert("claims".to_owned(), json!(identity.claims));
    }
    Value::Object(kept)
}

fn keep_dlp(kept: &mut Map<String, Value>, name: &str, facts: &DlpFacts<'_>) {
    if facts.count > 0 {
        let facts = json!({
            "findings": facts.detectors, "count": facts.count, "max_severity": facts.max_severity,
        });
        kept.insert(name.to_owned(), facts);
    }
}

/// The arguments or the result, and what is read of them.
struct Part<'a> {
    name: &'static str,
    reads: &'a Paths,
}

impl Part<'_> {
    fn keep(&self, value: &Value, found: &[&str], kept: &mut Map<String, Value>) {
        let prefix = format!("context.{}", self.name);
        let mut paths = Vec::new();
        list(self.reads, &prefix, &mut paths);
        if paths.is_empty() {
            return;
        }
        let Value::Object(mut shown) = project(self.reads, value) else { return };
        let touched: Vec<String> = found.iter().filter_map(|pointer| first(pointer)).collect();
        let whole = found.contains(&"");
        let mut withheld = Vec::new();
        shown.retain(|name, value| {
            let keep = !whole && !touched.contains(name) && is_small(value);
            if !keep {
                withheld.push(join(&prefix, name));
            }
            keep
        });
        kept.insert(self.name.to_owned(), Value::Object(shown));
        let mut add = |what: &str, texts: Vec<String>| {
            if !texts.is_empty() {
                kept.insert(format!("{}_{what}", self.name), json!(texts));
            }
        };
        add("paths", paths);
        add("withheld", withheld);
    }
}

/// The member of the value that a JSON Pointer leads into.
fn first(pointer: &str) -> Option<String> {
    let token = pointer.strip_prefix('/')?.split('/').next()?;
    Some(token.replace("~1", "/").replace("~0", "~"))
}

fn is_small(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => true,
        Value::String(text) => text.len() <= MAX_MEMBER,
        Value::Array(_) | Value::Object(_) => value.to_string().len() <= MAX_MEMBER,
    }
}

fn list(reads: &Paths, prefix: &str, found: &mut Vec<String>) {
    if reads.is_whole() {
        found.push(prefix.to_owned());
        return;
    }
    for (name, below) in reads.members() {
        let path = join(prefix, name);
        match below.members().next() {
            Some(_) if !below.is_whole() => list(below, &path, found),
            Some(_) | None => found.push(path),
        }
    }
}

/// The part of `value` that is read.
fn project(reads: &Paths, value: &Value) -> Value {
    match value {
        Value::Object(members) if !reads.is_whole() => {
            let read = members.iter().filter_map(|(name, member)| {
                let below = reads.member(name)?;
                let is_leaf = below.members().next().is_none();
                let shown = if is_leaf { member.clone() } else { project(below, member) };
                Some((name.clone(), shown))
            });
            Value::Object(read.collect())
        }
        Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::String(_)
        | Value::Array(_)
        | Value::Object(_) => value.clone(),
    }
}
