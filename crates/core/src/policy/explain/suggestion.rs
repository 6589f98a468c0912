//! A permit for one call, to be pasted into a file of policies.

use std::sync::Arc;

use serde_json::Value;

use crate::{
    capability::Capability,
    clock::Timestamp,
    policy::{
        call::{identity::Identity, question::Question},
        decide::decision::Verdict,
        engine::Plain,
        explain::known_context::KnownContext,
        files::PolicyFile,
        language::{
            context_paths::join,
            entity_types::{entity_types, uid},
        },
        set::PolicySet,
        tool::{
            catalogue::Catalogue,
            schema::Shapes,
            shape::{Members, Shape},
            values,
        },
    },
};

/// The most conditions of a suggested permit.
const MAX_CONDITIONS: usize = 100;
/// The most members that a suggested permit names as open.
const MAX_OPEN: usize = 10;
/// Longest value that a suggested permit spells out, in bytes.
const MAX_LITERAL: usize = 1_000;

/// Words of the language, which cannot stand behind a dot.
const RESERVED: [&str; 10] =
    ["true", "false", "if", "then", "else", "in", "is", "like", "has", "__cedar"];

/// A permit that allows the call of `tool` in `question` and, as far as `known` tells of its input,
/// no other, as a file of policies holds it. `about` names the call. `None` if the language cannot
/// express it.
#[must_use]
pub fn suggested_permit(
    tool: &Arc<Capability>,
    question: &Question<'_>,
    known: &KnownContext,
    about: &str,
) -> Option<String> {
    let identity = question.principal.identity();
    let mut conditions = CallConditions { known, lines: vec![agent(identity)], open: Vec::new() };
    let input = Shapes::of(tool, Vec::new()).input;
    let root = Place {
        names: vec!["input".to_owned()],
        text: "context.input".to_owned(),
        guards: String::new(),
    };
    conditions.add(&input, &question.input.to_value(), &root);
    let text = format!(
        "// A suggestion made from {about}: narrow or widen it before it is used.\n{}@id(\"suggested-{}\")\n\
         permit (\n  principal == {},\n  action == {},\n  resource\n)\nwhen {{\n  {}\n}};\n",
        conditions.comment(),
        about.to_lowercase(),
        question.principal.party.uid(),
        uid(&entity_types().action, tool.id.action()),
        conditions.lines.join(" &&\n  "),
    );
    allows(tool, question, &text).then_some(text)
}

/// Returns true if a set of this policy alone loads and allows the call.
fn allows(tool: &Arc<Capability>, question: &Question<'_>, text: &str) -> bool {
    let Ok(provider) = tool.id.provider().parse() else { return false };
    let catalogue = Catalogue::new([(provider, Some(vec![Arc::clone(tool)]))]);
    let file = PolicyFile { path: "suggested.cedar".to_owned(), text: text.to_owned() };
    let set = PolicySet::load(vec![file], &catalogue, &[], Timestamp::default());
    set.is_ok_and(|set| matches!(set.decide(question).verdict, Verdict::Allow { .. }))
}

/// The condition on who acts for the principal.
fn agent(identity: &Identity) -> String {
    match &identity.agent {
        Some(agent) => format!("context has agent && context.agent.id == {}", quoted(&agent.id)),
        None => "!(context has agent)".to_owned(),
    }
}

/// A record in the context, as policies reach it.
struct Place {
    names: Vec<String>,
    text: String,
    /// Conditions that have to stand before its members are read.
    guards: String,
}

impl Place {
    fn member(&self, name: &str, required: bool) -> Self {
        let is_plain = !RESERVED.contains(&name) && join("", name) == format!(".{name}");
        let (step, key) = if is_plain {
            (format!(".{name}"), name.to_owned())
        } else {
            (format!("[{}]", quoted(name)), quoted(name))
        };
        let guard = if required { String::new() } else { format!("{} has {key} && ", self.text) };
        Self {
            names: [self.names.as_slice(), &[name.to_owned()]].concat(),
            text: format!("{}{step}", self.text),
            guards: format!("{}{guard}", self.guards),
        }
    }

    /// The condition that a member is not there, of which the guards are `present`.
    fn without(&self, present: &Self) -> String {
        let guard = present.guards.strip_prefix(&self.guards).unwrap_or_default();
        format!("{}!({})", self.guards, guard.trim_end_matches(" && "))
    }
}

/// Conditions that a call has to meet to be the one that was made.
struct CallConditions<'a> {
    known: &'a KnownContext,
    lines: Vec<String>,
    /// Members that may have any value.
    open: Vec<String>,
}

impl CallConditions<'_> {
    fn add(&mut self, members: &Members, value: &Value, place: &Place) {
        for (name, member) in members {
            let here = place.member(name, member.required);
            let given = value.get(name).filter(|given| !given.is_null());
            match (given, &member.shape) {
                (Some(given), Shape::Record(members)) => self.add(members, given, &here),
                (Some(given), shape) if self.known.includes(&here.names) => {
                    let condition = equality(shape, given, &here.text);
                    self.require(condition.map(|text| format!("{}{text}", here.guards)), here);
                }
                (None, _) if self.known.includes(&here.names) => {
                    let is_optional = !member.required;
                    self.require(is_optional.then(|| place.without(&here)), here);
                }
                (Some(_) | None, _) => self.open.push(here.text),
            }
        }
        let undeclared = value.as_object().into_iter().flatten().map(|(name, _)| name);
        let undeclared = undeclared.filter(|name| !members.contains_key(*name));
        self.open.extend(undeclared.map(|name| place.member(name, true).text));
    }

    fn require(&mut self, condition: Option<String>, place: Place) {
        match condition {
            Some(condition) if self.lines.len() < MAX_CONDITIONS => self.lines.push(condition),
            Some(_) | None => self.open.push(place.text),
        }
    }

    /// A comment that tells what of the input may be anything.
    fn comment(&self) -> String {
        if self.open.is_empty() {
            return "// It allows this caller exactly this input.\n".to_owned();
        }
        let shown: Vec<&str> = self.open.iter().take(MAX_OPEN).map(String::as_str).collect();
        let more = if self.open.len() > MAX_OPEN { " and others" } else { "" };
        format!(
            "// Any value is allowed of what was not kept, was masked or cannot be compared:\n// {}{more}.\n",
            shown.join(", ")
        )
    }
}

/// The condition that the member at `place` has this value; `None` if policies cannot tell.
fn equality(shape: &Shape, value: &Value, place: &str) -> Option<String> {
    let plain = values::kept(shape, value)?;
    if plain == Plain::Set(Vec::new()) {
        return Some(format!("{place}.isEmpty()"));
    }
    let text = literal(&plain).filter(|text| text.len() <= MAX_LITERAL)?;
    Some(format!("{place} == {text}"))
}

/// A value as policies write it.
fn literal(value: &Plain<'_>) -> Option<String> {
    match value {
        Plain::Text(text) => Some(quoted(text)),
        Plain::Long(number) => Some(number.to_string()),
        Plain::Bool(flag) => Some(flag.to_string()),
        Plain::Decimal(_) => Some(format!("decimal(\"{}\")", value.to_json())),
        Plain::Set(items) => {
            let items: Vec<String> = items.iter().map(literal).collect::<Option<_>>()?;
            (!items.is_empty()).then(|| format!("[{}]", items.join(", ")))
        }
        Plain::Time(_) | Plain::Ip(_) | Plain::Record(_) => None,
    }
}

/// A text as policies write it.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.escape_debug())
}
