//! What is asked of the policies, and the context they see.

use std::net::IpAddr;

use cedar_policy::{Context, RestrictedExpression};
use serde_json::Value;

use super::{
    Phase,
    reads::Paths,
    schema::Shapes,
    values::{self, Unreadable},
};
use crate::{clock::Timestamp, principal::Caller, tool::Tool};

/// What DLP found, in numbers and names.
#[derive(Debug, Clone, Copy)]
pub struct DlpFacts<'a> {
    /// The distinct names of the detectors that found something.
    pub detectors: &'a [&'a str],
    /// How many findings there are.
    pub count: i64,
    /// The highest severity among them; 0 when there are none.
    pub max_severity: i64,
    /// How many images, recordings and other media nothing looked into.
    pub media: i64,
}

/// One call, or one result of it, put before the policies.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    /// Who asks.
    pub caller: &'a Caller,
    /// The groups the caller is in.
    pub groups: &'a [String],
    /// What is to be called.
    pub tool: &'a Tool,
    /// The arguments; valid against the tool's input schema.
    pub input: &'a Value,
    /// Before the call or after it.
    pub phase: Phase,
    /// What DLP found in the input.
    pub dlp: DlpFacts<'a>,
    /// The structured result, after the call.
    pub output: Option<&'a Value>,
    /// What DLP found in the result, after the call.
    pub dlp_output: Option<DlpFacts<'a>>,
    /// When the call came.
    pub time: Timestamp,
    /// Where it came from.
    pub source_ip: Option<IpAddr>,
    /// Size of the request body.
    pub bytes: u64,
    /// Whether the caller proved a second factor.
    pub mfa: bool,
}

type Fields = Vec<(String, RestrictedExpression)>;

fn field(name: &str, value: RestrictedExpression) -> (String, RestrictedExpression) {
    (name.to_owned(), value)
}

/// The part of the context that `wanted` reads. Says no when something in it has a value that
/// policies cannot be shown.
pub(super) fn context(
    question: &Question<'_>,
    shapes: &Shapes,
    wanted: &Paths,
) -> Result<Context, Unreadable> {
    let mut fields = Fields::new();
    if let Some(wanted) = wanted.member("input") {
        let input = values::record(&shapes.input, question.input, wanted, "context.input")?;
        fields.push(field("input", input));
    }
    if let (Some(wanted), Some(shape), Some(output)) =
        (wanted.member("output"), &shapes.output, question.output)
    {
        fields.push(field("output", values::record(shape, output, wanted, "context.output")?));
    }
    if wanted.member("dlp").is_some() {
        fields.push(field("dlp", dlp(&question.dlp, "context.dlp")?));
    }
    if let (Some(_), Some(facts)) = (wanted.member("dlp_output"), &question.dlp_output) {
        fields.push(field("dlp_output", dlp(facts, "context.dlp_output")?));
    }
    if let Some(wanted) = wanted.member("request") {
        fields.push(field("request", request(question, wanted)?));
    }
    if let (Some(_), Some(agent)) = (wanted.member("agent"), question.caller.via) {
        let text = |text: String| RestrictedExpression::new_string(text);
        let kind = text(agent.kind().as_str().to_owned());
        let members = vec![field("id", text(agent.to_string())), field("kind", kind)];
        fields.push(field("agent", record(members, "context.agent")?));
    }
    Context::from_pairs(fields).map_err(|_| Unreadable::unbuildable("context"))
}

fn record(members: Fields, path: &str) -> Result<RestrictedExpression, Unreadable> {
    RestrictedExpression::new_record(members).map_err(|_| Unreadable::unbuildable(path))
}

fn dlp(facts: &DlpFacts<'_>, path: &str) -> Result<RestrictedExpression, Unreadable> {
    let name = |name: &&str| RestrictedExpression::new_string((*name).to_owned());
    let members = vec![
        field("findings", RestrictedExpression::new_set(facts.detectors.iter().map(name))),
        field("count", RestrictedExpression::new_long(facts.count)),
        field("max_severity", RestrictedExpression::new_long(facts.max_severity)),
        field("media", RestrictedExpression::new_long(facts.media)),
    ];
    record(members, path)
}

const SECONDS_PER_DAY: i64 = 86_400;

fn request(question: &Question<'_>, wanted: &Paths) -> Result<RestrictedExpression, Unreadable> {
    let seconds = question.time.as_seconds();
    let mut members = Fields::new();
    let mut add = |name: &str, value: &dyn Fn() -> RestrictedExpression| {
        if wanted.member(name).is_some() {
            members.push(field(name, value()));
        }
    };
    add("time", &|| RestrictedExpression::new_datetime(question.time.to_string()));
    add("hour_utc", &|| {
        RestrictedExpression::new_long(seconds.rem_euclid(SECONDS_PER_DAY) / 3_600)
    });
    // 1970-01-01 was a Thursday; Monday is 1, as in ISO 8601.
    add("weekday", &|| {
        RestrictedExpression::new_long((seconds.div_euclid(SECONDS_PER_DAY) + 3).rem_euclid(7) + 1)
    });
    if let Some(ip) = question.source_ip {
        add("ip", &|| RestrictedExpression::new_ip(ip.to_canonical().to_string()));
    }
    add("mfa", &|| RestrictedExpression::new_bool(question.mfa));
    let bytes = i64::try_from(question.bytes).unwrap_or(i64::MAX);
    add("bytes", &|| RestrictedExpression::new_long(bytes));
    record(members, "context.request")
}
