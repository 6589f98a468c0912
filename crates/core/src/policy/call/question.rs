//! Questions to the policies, and the context they see.

use std::{borrow::Cow, net::IpAddr};

use serde_json::Value;

use crate::policy::{
    call::identity::Principal,
    engine::Plain,
    language::context_paths::Paths,
    terms::Phase,
    tool::{
        facts::Fact,
        schema::Shapes,
        values::{self, Unreadable},
    },
};
use crate::{
    capability::{Capability, CapabilityKind},
    clock::Timestamp,
    json::{JsonValue as _, Node},
    mcp::uris::ResourceUri,
};

/// Findings of DLP, in numbers and names.
#[derive(Debug, Clone, Copy)]
pub struct DlpFacts<'a> {
    /// The distinct names of the detectors that found something.
    pub detectors: &'a [&'a str],
    pub count: i64,
    /// The highest severity among them; 0 when there are none.
    pub max_severity: i64,
    /// Number of images, recordings and other media that were not scanned.
    pub media: i64,
}

/// One call, or one result of it, put before the policies.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    pub principal: &'a Principal,
    pub tool: &'a Capability,
    /// The arguments; valid against the tool's input schema.
    pub input: Node<'a>,
    /// Facts that were kept of the call, as an object; computed from the input when there are none.
    pub facts: Option<&'a Value>,
    pub phase: Phase,
    /// Findings of DLP in the input.
    pub dlp: DlpFacts<'a>,
    /// The structured result, after the call.
    pub output: Option<Node<'a>>,
    /// Findings of DLP in the result, after the call.
    pub dlp_output: Option<DlpFacts<'a>>,
    pub time: Timestamp,
    pub source_ip: Option<IpAddr>,
    /// Size of the request body.
    pub bytes: u64,
    pub mfa: bool,
}

type Fields<'a> = Vec<(Cow<'a, str>, Plain<'a>)>;

/// The part of the context that `wanted` reads. Fails when something in it has a value that
/// policies cannot be shown.
pub(in crate::policy) fn context<'a>(
    question: &'a Question<'_>,
    shapes: &'a Shapes,
    wanted: &'a Paths,
) -> Result<Plain<'a>, Unreadable> {
    let mut fields = Fields::new();
    if let Some(wanted) = wanted.member("facts") {
        fields.push(("facts".into(), Plain::Record(facts(question, shapes, wanted))));
    }
    if let Some(wanted) = wanted.member("input") {
        let input = values::record(&shapes.input, question.input, wanted, "context.input")?;
        fields.push(("input".into(), input));
    }
    if let (Some(wanted), Some(shape), Some(output)) =
        (wanted.member("output"), &shapes.output, question.output)
    {
        let output = values::record(shape, output, wanted, "context.output")?;
        fields.push(("output".into(), output));
    }
    // Of a recorded read the URI may have been withheld; it is not known then.
    let kind = question.tool.id.kind().governed();
    let uri = question.input.get("uri");
    if let (Some(_), Some(uri), CapabilityKind::Resource) = (wanted.member("resource"), uri, kind) {
        fields.push(("resource".into(), resource(question, uri)?));
    }
    if let (Some(_), Some(uri), CapabilityKind::Skill) = (wanted.member("skill"), uri, kind) {
        fields.push(("skill".into(), skill(question, uri)));
    }
    if wanted.member("dlp").is_some() {
        fields.push(("dlp".into(), dlp(&question.dlp)));
    }
    if let (Some(_), Some(facts)) = (wanted.member("dlp_output"), &question.dlp_output) {
        fields.push(("dlp_output".into(), dlp(facts)));
    }
    if let Some(wanted) = wanted.member("request") {
        fields.push(("request".into(), request(question, wanted)));
    }
    if let (Some(_), Some(agent)) = (wanted.member("agent"), &question.principal.identity().agent) {
        let text = |text: &'a String| Plain::Text(text.into());
        let members = vec![("id".into(), text(&agent.id)), ("kind".into(), text(&agent.kind))];
        fields.push(("agent".into(), Plain::Record(members)));
    }
    Ok(Plain::Record(fields))
}

/// Those that are read and can be computed.
fn facts<'a>(question: &'a Question<'_>, shapes: &'a Shapes, wanted: &Paths) -> Fields<'a> {
    let wanted = shapes.facts.iter().filter(|fact| wanted.member(&fact.name).is_some());
    let value = |fact: &'a Fact| match question.facts {
        Some(kept) => values::kept(fact.shape(), kept.get(&fact.name)?),
        None => fact.of(question.input),
    };
    wanted.filter_map(|fact| Some((fact.name.as_str().into(), value(fact)?))).collect()
}

/// The facts that are read, as they are kept.
pub(in crate::policy) fn facts_json(
    question: &Question<'_>,
    shapes: &Shapes,
    reads: &Paths,
) -> Value {
    let facts = reads.member("facts").map(|wanted| facts(question, shapes, wanted));
    let members = facts.unwrap_or_default().into_iter();
    Value::Object(members.map(|(name, value)| (name.into_owned(), value.to_json())).collect())
}

/// The resource that is read. A URI that is none cannot be decided about.
fn resource<'a>(question: &'a Question<'_>, uri: Node<'_>) -> Result<Plain<'a>, Unreadable> {
    let uri = uri.text().and_then(|uri| ResourceUri::parse(uri).ok());
    let uri = uri.ok_or_else(|| Unreadable::unbuildable("context.resource"))?;
    let text = |text: &str| Plain::Text(text.to_owned().into());
    let members = [
        ("uri", Some(text(uri.as_str()))),
        ("scheme", Some(text(uri.scheme()))),
        ("host", Some(text(uri.host()))),
        ("path", Some(text(uri.path()))),
        ("mime", question.tool.definition.mime_type().map(text)),
        ("listed", Some(Plain::Bool(!question.tool.id.is_unlisted()))),
    ];
    let told = members.into_iter().filter_map(|(name, value)| Some((name.into(), value?)));
    Ok(Plain::Record(told.collect()))
}

/// The file of a skill that is read, with its digest if its manifest has one.
fn skill<'a>(question: &'a Question<'_>, uri: Node<'_>) -> Plain<'a> {
    let uri = uri.text().unwrap_or_default().to_owned();
    let entry = question.tool.file(&uri).flatten();
    let digest = entry.map(|it| ("digest".into(), Plain::Text(it.digest.into())));
    Plain::Record([("uri".into(), Plain::Text(uri.into()))].into_iter().chain(digest).collect())
}

fn dlp<'a>(facts: &DlpFacts<'a>) -> Plain<'a> {
    let names = facts.detectors.iter().map(|name| Plain::Text((*name).into()));
    Plain::Record(vec![
        ("findings".into(), Plain::Set(names.collect())),
        ("count".into(), Plain::Long(facts.count)),
        ("max_severity".into(), Plain::Long(facts.max_severity)),
        ("media".into(), Plain::Long(facts.media)),
    ])
}

const SECONDS_PER_DAY: i64 = 86_400;

fn request<'a>(question: &Question<'_>, wanted: &Paths) -> Plain<'a> {
    let seconds = question.time.as_seconds();
    let mut members = Fields::new();
    let mut add = |name: &'static str, value: &dyn Fn() -> Plain<'a>| {
        if wanted.member(name).is_some() {
            members.push((name.into(), value()));
        }
    };
    add("time", &|| Plain::Time(question.time.to_string()));
    add("hour_utc", &|| Plain::Long(seconds.rem_euclid(SECONDS_PER_DAY) / 3_600));
    // 1970-01-01 was a Thursday; Monday is 1, as in ISO 8601.
    add("weekday", &|| Plain::Long((seconds.div_euclid(SECONDS_PER_DAY) + 3).rem_euclid(7) + 1));
    if let Some(ip) = question.source_ip {
        add("ip", &|| Plain::Ip(ip.to_canonical()));
    }
    add("mfa", &|| Plain::Bool(question.mfa));
    add("bytes", &|| Plain::Long(i64::try_from(question.bytes).unwrap_or(i64::MAX)));
    Plain::Record(members)
}
