//! What deciding costs, from the parsed input to the decision with its name, by the number of
//! policies; what listing the access to tools costs; and what a reload costs.
//!
//! `cargo bench -p portcullis-core --bench policies`

use std::{
    fmt::Write as _,
    hint::black_box,
    io::Write as _,
    sync::Arc,
    time::{Duration, Instant},
};

use portcullis_core::{
    clock::Timestamp,
    id::PrincipalKind,
    policy::{
        Catalogue, DlpFacts, Identity, Phase, PolicyFile, PolicySet, Principal, Question,
        engine::PUBLIC,
    },
    tool::{ProviderSlug, Tool, ToolDefinition},
};
use serde_json::{Map, Value, json};

const TOOLS: usize = 200;
const PROVIDERS: usize = 10;
/// Policies in one file.
const A_FILE: usize = 500;

fn main() {
    let (tools, catalogue) = tools();
    say("policies | core, µs p50 | the same, fresh principal | public, µs p50 | candidates");
    for count in [10, 100, 1_000, 10_000] {
        let set = load(files(count), &catalogue);
        let core = decisions(&set, &tools, Cached::Yes);
        let fresh = decisions(&set, &tools, Cached::No);
        let set = set.evaluated_by(&PUBLIC);
        let public = decisions(&set, &tools, Cached::Yes);
        let candidates = candidates(&set, &tools);
        say(&format!("{count:>8} | {core:>6.1} | {fresh:>6.1} | {public:>6.1} | {candidates}"));
    }
    listing(&load(files(10_000), &catalogue));
    reloading(&catalogue);
}

fn say(text: &str) {
    let _ = writeln!(std::io::stdout().lock(), "{text}");
}

#[expect(clippy::disallowed_methods, reason = "a benchmark measures time")]
fn now() -> Instant {
    Instant::now()
}

#[derive(Clone, Copy)]
enum Cached {
    Yes,
    No,
}

/// Tools with an input of 2 KB, ten providers of twenty each.
fn tools() -> (Vec<Arc<Tool>>, Catalogue) {
    let mut providers: Vec<(ProviderSlug, Option<Vec<Arc<Tool>>>)> = Vec::new();
    let mut all = Vec::new();
    for provider in 0..PROVIDERS {
        let Ok(slug) = format!("p{provider}").parse::<ProviderSlug>() else { continue };
        let tools = (0..TOOLS / PROVIDERS).filter_map(|number| tool(&slug, number));
        let tools: Vec<Arc<Tool>> = tools.collect();
        all.extend(tools.iter().cloned());
        providers.push((slug, Some(tools)));
    }
    (all, Catalogue::new(providers))
}

fn tool(provider: &ProviderSlug, number: usize) -> Option<Arc<Tool>> {
    let text = json!({ "type": "string" });
    let mut properties = Map::from_iter([
        ("amount".to_owned(), json!({ "type": "integer" })),
        ("country".to_owned(), text.clone()),
        ("urgent".to_owned(), json!({ "type": "boolean" })),
        ("to".to_owned(), json!({ "type": "array", "items": text })),
    ]);
    properties.extend((0..30).map(|field| (format!("field_{field}"), text.clone())));
    let definition = ToolDefinition {
        name: format!("tool_{number}").parse().ok()?,
        title: None,
        description: None,
        input_schema: json!({ "type": "object", "properties": properties }),
        output_schema: None,
        annotations: json!({ "readOnlyHint": number.is_multiple_of(2) }),
    };
    Tool::new(provider, definition, Timestamp::default()).ok().map(Arc::new)
}

fn input() -> Value {
    let mut input = Map::from_iter([
        ("amount".to_owned(), json!(120)),
        ("country".to_owned(), json!("de")),
        ("urgent".to_owned(), json!(false)),
        ("to".to_owned(), json!(["ana@acme.com", "bo@acme.com"])),
    ]);
    input.extend((0..30).map(|field| (format!("field_{field}"), "x".repeat(50).into())));
    Value::Object(input)
}

/// One policy in a thousand is about every tool, one in thirty about a provider; the others name one
/// tool, most of them a role, a group or a person as well.
fn policy(number: usize) -> String {
    let tool = format!("p{}:tool_{}", number % PROVIDERS, (number / PROVIDERS) % 20);
    let one = format!("action == Mcp::Action::\"{tool}\"");
    let provider = format!("action in Mcp::Action::\"p{}:*\"", number % PROVIDERS);
    // The policies about one tool are of every kind.
    let kind = (number + number / TOOLS) % 100;
    let (effect, principal, action, condition) = match kind {
        _ if number.is_multiple_of(1_000) => (
            "forbid",
            "principal".to_owned(),
            "action in Mcp::Action::\"hint:open_world\"".to_owned(),
            "context.dlp.findings.containsAny([\"private_key\", \"aws_access_key\"])",
        ),
        0..=4 => (
            "permit",
            format!("principal in Mcp::Group::\"team-{number}\""),
            provider,
            "context.request.hour_utc >= 6",
        ),
        5..=30 => (
            "permit",
            "principal in Mcp::Role::\"member\"".to_owned(),
            one,
            "context.input has amount && context.input.amount <= 500",
        ),
        31..=60 => (
            "forbid",
            "principal is Mcp::Service".to_owned(),
            one,
            "context.input has urgent && context.input.urgent",
        ),
        61..=80 => (
            "permit",
            format!("principal == Mcp::User::\"usr-{number}\""),
            one,
            "context.input has country && context.input.country == \"de\"",
        ),
        _ => (
            "forbid",
            format!("principal in Mcp::Group::\"team-{}\"", number % 500),
            one,
            "context.input has country && context.input.country like \"x*\"",
        ),
    };
    format!(
        "@id(\"p{number:05}\") @reason(\"Rule {number}\")\n{effect} ({principal}, {action}, \
         resource)\nwhen {{ {condition} }};\n\n"
    )
}

fn files(count: usize) -> Vec<PolicyFile> {
    let numbers: Vec<usize> = (0..count).collect();
    let file = |(at, numbers): (usize, &[usize])| {
        let mut text = String::new();
        for number in numbers {
            let _ = write!(text, "{}", policy(*number));
        }
        PolicyFile { path: format!("{at}.cedar"), text }
    };
    numbers.chunks(A_FILE).enumerate().map(file).collect()
}

fn load(files: Vec<PolicyFile>, catalogue: &Catalogue) -> PolicySet {
    match PolicySet::load(files, catalogue, &[], Timestamp::default()) {
        Ok(set) => set,
        Err(errors) => {
            say(&format!("{errors:#?}"));
            std::process::exit(2);
        }
    }
}

fn identity() -> Identity {
    let id = "usr-161".to_owned();
    Identity {
        roles: vec!["member".to_owned()],
        scopes: ["mcps:read", "mcps:invoke", "policies:read"].map(str::to_owned).into(),
        groups: (0..6).map(|number| format!("team-{}", number * 81 + 1)).collect(),
        ..Identity::new(PrincipalKind::User, id, "org_01M754BKTKX1YB8Q05NMW9TP4G".to_owned())
    }
}

fn question<'a>(principal: &'a Principal, tool: &'a Tool, input: &'a Value) -> Question<'a> {
    Question {
        principal,
        tool,
        input,
        facts: None,
        phase: Phase::Request,
        dlp: DlpFacts { detectors: &["email"], count: 2, max_severity: 1, media: 0 },
        output: None,
        dlp_output: None,
        time: Timestamp::from_micros(1_795_000_000_000_000),
        source_ip: None,
        bytes: 2_048,
        mfa: false,
    }
}

/// Median of single decisions over all tools, in microseconds.
fn decisions(set: &PolicySet, tools: &[Arc<Tool>], cached: Cached) -> f64 {
    let (principal, input) = (Principal::new(identity()), input());
    let mut times: Vec<Duration> = Vec::new();
    for round in 0..25 {
        for tool in tools {
            let begun = now();
            match cached {
                Cached::Yes => {
                    black_box(set.decide(&question(&principal, tool, &input)));
                }
                Cached::No => {
                    let principal = Principal::new(identity());
                    black_box(set.decide(&question(&principal, tool, &input)));
                }
            }
            if round > 0 {
                times.push(begun.elapsed());
            }
        }
    }
    median(&mut times).as_secs_f64() * 1e6
}

fn candidates(set: &PolicySet, tools: &[Arc<Tool>]) -> usize {
    use portcullis_core::policy::{Explain, Known};

    let (principal, input) = (Principal::new(identity()), input());
    let count = |tool: &Arc<Tool>| {
        let question = question(&principal, tool, &input);
        set.examine(&question, &Known::everything(), Explain::Candidates).considered
    };
    let mut counts: Vec<usize> = tools.iter().map(count).collect();
    counts.sort_unstable();
    counts.get(counts.len() / 2).copied().unwrap_or(0)
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

fn listing(set: &PolicySet) {
    let principal = Principal::new(identity());
    let mut times: Vec<Duration> = Vec::new();
    for _ in 0..2_000 {
        let begun = now();
        let accesses = set.accesses(&principal);
        black_box(accesses.iter().filter(|(_, access)| access.as_str() == "allow").count());
        times.push(begun.elapsed());
    }
    let micros = median(&mut times).as_secs_f64() * 1e6;
    say(&format!("access of {TOOLS} tools, 10,000 policies: {micros:.2} µs"));
}

fn reloading(catalogue: &Catalogue) {
    let begun = now();
    let set = load(files(10_000), catalogue);
    say(&format!("10,000 policies from nothing: {:.2} s", begun.elapsed().as_secs_f64()));
    let mut changed = files(10_000);
    if let Some(file) = changed.first_mut() {
        file.text = file.text.replacen("<= 500", "<= 400", 1);
    }
    let begun = now();
    let reloaded = set.reload(changed, catalogue, &[], Timestamp::default());
    let took = begun.elapsed().as_secs_f64();
    let same = reloaded.is_ok_and(|reloaded| reloaded.version() == set.version());
    say(&format!(
        "one line among 10,000 changed: {took:.2} s{}",
        if same { " (no change)" } else { "" }
    ));
}
