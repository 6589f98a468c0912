//! Facts: small typed projections of a tool's input that the operator declares, because the policy
//! language has no quantifiers, no regular expressions and no lower case.
//!
//! `policies/facts.toml` declares them for tools, and labels for tools beside them:
//!
//! ```toml
//! [labels]
//! pci = ["stripe:*"]
//!
//! [facts."mail:send"]
//! recipient_domains = { type = "Set<String>", from = "$.to[*] | email_domain | lower" }
//! ```
//!
//! A fact that cannot be computed is left out: a forbid that needs it cannot be evaluated and
//! denies, a permit that needs it does not permit.

mod item;
mod kind;
mod path;
mod pipeline;
mod steps;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use serde::Deserialize;
use toml::Spanned;

use self::{kind::FactKind, pipeline::Pipeline};
use crate::capability::{CapabilityId, CapabilityKind, ProviderSlug};
use crate::json::Node;
use crate::policy::{
    engine::Plain,
    files::{PolicyError, SourceFile},
    tool::shape::Shape,
};

/// The file of facts, within the policies folder.
pub const FACTS_FILE: &str = "facts.toml";

/// One fact of one tool, or of all tools of a provider.
#[derive(Debug)]
pub(in crate::policy) struct Fact {
    pub(in crate::policy) name: String,
    kind: FactKind,
    shape: Shape,
    /// As it was declared.
    from: String,
    pipeline: Pipeline,
}

impl PartialEq for Fact {
    fn eq(&self, other: &Self) -> bool {
        (&self.name, self.kind, &self.from) == (&other.name, other.kind, &other.from)
    }
}

impl Fact {
    /// Its type as policies see it.
    pub(in crate::policy) const fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Its value for this input; `None` when it cannot be computed.
    pub(in crate::policy) fn of<'a>(&self, input: Node<'a>) -> Option<Plain<'a>> {
        self.pipeline.run(input, self.kind).ok()
    }
}

/// Everything the file declares.
#[derive(Debug, Default, PartialEq)]
pub(in crate::policy) struct Declared {
    /// By tool id or `<provider>:*`.
    facts: BTreeMap<String, Vec<Arc<Fact>>>,
    /// Tool ids and `<provider>:*` by label.
    labels: BTreeMap<String, BTreeSet<String>>,
}

impl Declared {
    /// The facts of a tool; what is declared for it goes before what is for its provider.
    pub(in crate::policy) fn facts_of(&self, tool: &CapabilityId) -> Vec<Arc<Fact>> {
        let own = self.facts.get(tool.action()).into_iter().flatten();
        let shared = self.facts.get(&group(tool)).into_iter().flatten();
        let mut found: Vec<Arc<Fact>> = Vec::new();
        for fact in own.chain(shared) {
            if !found.iter().any(|known| known.name == fact.name) {
                found.push(Arc::clone(fact));
            }
        }
        found
    }

    /// The labels of a tool, in order.
    pub(in crate::policy) fn labels_of(&self, tool: &CapabilityId) -> Vec<&str> {
        let group = group(tool);
        let has =
            |tools: &BTreeSet<String>| tools.contains(tool.action()) || tools.contains(&group);
        self.labels
            .iter()
            .filter(|(_, tools)| has(tools))
            .map(|(label, _)| label.as_str())
            .collect()
    }

    pub(in crate::policy) fn knows_label(&self, label: &str) -> bool {
        self.labels.contains_key(label)
    }

    /// Each declaration in one line, for the digest of the set.
    pub(in crate::policy) fn lines(&self) -> Vec<String> {
        let fact = |tool: &String, fact: &Fact| {
            format!("fact {tool} {} {} {}\n", fact.name, fact.kind.as_str(), fact.from)
        };
        let facts = self.facts.iter();
        let facts = facts.flat_map(|(tool, facts)| facts.iter().map(move |one| fact(tool, one)));
        let labels = self.labels.iter();
        let labels = labels.map(|(label, tools)| format!("label {label} {tools:?}\n"));
        facts.chain(labels).collect()
    }

    /// Reads the file. Gives every error in it at once.
    pub(in crate::policy) fn parse(file: &SourceFile) -> Result<Self, Vec<PolicyError>> {
        let written: FactsFile = toml::from_str(file.text()).map_err(|error| {
            let offset = error.span().map_or(0, |span| span.start);
            vec![file.error(offset, "syntax", None, error.message().to_owned())]
        })?;
        let mut reading = Reading { file, declared: Self::default(), errors: Vec::new() };
        reading.labels(written.labels);
        reading.facts(written.facts);
        if reading.errors.is_empty() { Ok(reading.declared) } else { Err(reading.errors) }
    }
}

/// The pattern that names all tools of a provider; prompts and skills are named one by one, and resources by their provider.
fn group(tool: &CapabilityId) -> String {
    match tool.kind() {
        CapabilityKind::Tool => format!("{}:*", tool.provider()),
        CapabilityKind::Prompt
        | CapabilityKind::Resource
        | CapabilityKind::Template
        | CapabilityKind::Skill => tool.action().to_owned(),
    }
}

/// The file as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FactsFile {
    #[serde(default)]
    labels: BTreeMap<String, Spanned<Vec<String>>>,
    #[serde(default)]
    facts: BTreeMap<String, BTreeMap<String, Spanned<WrittenFact>>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenFact {
    r#type: String,
    from: String,
}

struct Reading<'a> {
    file: &'a SourceFile,
    declared: Declared,
    errors: Vec<PolicyError>,
}

impl Reading<'_> {
    fn error(&mut self, offset: usize, code: &'static str, message: String) {
        self.errors.push(self.file.error(offset, code, None, message));
    }

    fn labels(&mut self, labels: BTreeMap<String, Spanned<Vec<String>>>) {
        for (label, tools) in labels {
            let at = tools.span().start;
            for tool in tools.get_ref() {
                if !is_pattern(tool) {
                    let message = format!("`{tool}` is neither a tool nor `<provider>:*`");
                    self.error(at, "invalid_label", message);
                }
            }
            self.declared.labels.insert(label, tools.into_inner().into_iter().collect());
        }
    }

    fn facts(&mut self, facts: BTreeMap<String, BTreeMap<String, Spanned<WrittenFact>>>) {
        for (tool, facts) in facts {
            let known = is_pattern(&tool);
            for (name, written) in facts {
                let at = written.span().start;
                if !known {
                    let message = format!("`{tool}` is neither a tool nor `<provider>:*`");
                    self.error(at, "invalid_fact", message);
                }
                match fact(name, written.into_inner()) {
                    Ok(fact) => {
                        let facts = self.declared.facts.entry(tool.clone()).or_default();
                        facts.push(Arc::new(fact));
                    }
                    Err(message) => self.error(at, "invalid_fact", message),
                }
            }
        }
    }
}

fn fact(name: String, written: WrittenFact) -> Result<Fact, String> {
    let WrittenFact { r#type: kind, from } = written;
    let kind = FactKind::parse(&kind).ok_or_else(|| {
        format!("`{kind}` is none of `String`, `Long`, `Bool`, `decimal` and `Set<…>` of them")
    })?;
    let pipeline = Pipeline::parse(&from)?;
    pipeline.check(kind)?;
    Ok(Fact { name, shape: kind.shape(), kind, from, pipeline })
}

fn is_pattern(text: &str) -> bool {
    if let Some(slug) = text.strip_prefix(CapabilityKind::Resource.prefix()) {
        return slug.parse::<ProviderSlug>().is_ok();
    }
    if let Some(skill) = text.strip_prefix(CapabilityKind::Skill.prefix()) {
        return skill.split_once(':').is_some_and(|(slug, _)| slug.parse::<ProviderSlug>().is_ok());
    }
    match text.strip_suffix(":*") {
        Some(provider) => provider.parse::<ProviderSlug>().is_ok(),
        None => text.parse::<CapabilityId>().is_ok(),
    }
}
