//! Cost of deciding, from the parsed input to the decision with its name, by the number of
//! policies; cost of listing the access to tools; cost of a reload.
//!
//! `cargo bench -p portcullis-core --bench policies`
//!
//! Two kinds of sets: `handful`, in which policies come with tools, teams and people, so that few
//! concern one call however many there are; and `crowded`, in which hundreds are about the same
//! role, so that more policies are more candidates. How many candidates a call has is printed.

use std::{
    cell::Cell, fmt::Write as _, hint::black_box, io::Write as _, sync::Arc, time::Duration,
};

use criterion::{BenchmarkId, Criterion};
use portcullis_core::{
    capability::{Capability, Definition, ProviderSlug},
    clock::Timestamp,
    id::PrincipalKind,
    json::Document,
    policy::{
        Catalogue, DlpFacts, Explain, Identity, KnownContext, Phase, PolicyFile, PolicySet,
        Principal, Question,
    },
};
use serde_json::{Map, Value, json};

const TOOLS: usize = 200;
const PROVIDERS: usize = 10;
/// Policies in one file.
const A_FILE: usize = 500;
const SIZES: [usize; 4] = [10, 100, 1_000, 10_000];

fn main() {
    let criterion = Criterion::default()
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_millis(1_500))
        .sample_size(50);
    let mut criterion = criterion.configure_from_args();
    let (tools, catalogue) = tools();
    for mix in [Mix::Handful, Mix::Crowded] {
        deciding(&mut criterion, mix, &tools, &catalogue);
    }
    listing(&mut criterion, &catalogue);
    reloading(&mut criterion, &catalogue);
    criterion.final_summary();
}

fn say(text: &str) {
    let _ = writeln!(std::io::stdout().lock(), "{text}");
}

/// Distribution of the policies of a set.
#[derive(Debug, Clone, Copy)]
enum Mix {
    Handful,
    Crowded,
}

impl Mix {
    const fn name(self) -> &'static str {
        match self {
            Self::Handful => "handful",
            Self::Crowded => "crowded",
        }
    }
}

fn deciding(criterion: &mut Criterion, mix: Mix, tools: &[Arc<Capability>], catalogue: &Catalogue) {
    let mut group = criterion.benchmark_group(mix.name());
    let input = Document::of(&input());
    for count in SIZES {
        let set = load(files(mix, count), catalogue);
        let candidates = candidates(&set, tools);
        say(&format!("{}: {count} policies, {candidates} candidates (median)", mix.name()));
        let turn = Cell::new(0);
        let next = || {
            turn.set((turn.get() + 1) % tools.len());
            tools.get(turn.get()).map(|tool| &**tool)
        };
        let principal = Principal::new(identity());
        group.bench_function(BenchmarkId::new("decide", count), |bencher| {
            bencher.iter(|| next().map(|tool| set.decide(&question(&principal, tool, &input))));
        });
        group.bench_function(BenchmarkId::new("decide, new principal", count), |bencher| {
            bencher.iter(|| {
                let principal = Principal::new(identity());
                next().map(|tool| set.decide(&question(&principal, tool, &input)))
            });
        });
    }
    group.finish();
}

/// Tools with an input of 2 KB, ten providers of twenty each.
fn tools() -> (Vec<Arc<Capability>>, Catalogue) {
    let mut providers: Vec<(ProviderSlug, Option<Vec<Arc<Capability>>>)> = Vec::new();
    let mut all = Vec::new();
    for provider in 0..PROVIDERS {
        let Ok(slug) = format!("p{provider}").parse::<ProviderSlug>() else { continue };
        let tools = (0..TOOLS / PROVIDERS).filter_map(|number| tool(&slug, number));
        let tools: Vec<Arc<Capability>> = tools.collect();
        all.extend(tools.iter().cloned());
        providers.push((slug, Some(tools)));
    }
    (all, Catalogue::new(providers))
}

fn tool(provider: &ProviderSlug, number: usize) -> Option<Arc<Capability>> {
    let text = json!({ "type": "string" });
    let mut properties = Map::from_iter([
        ("amount".to_owned(), json!({ "type": "integer" })),
        ("country".to_owned(), text.clone()),
        ("urgent".to_owned(), json!({ "type": "boolean" })),
        ("to".to_owned(), json!({ "type": "array", "items": text })),
    ]);
    properties.extend((0..30).map(|field| (format!("field_{field}"), text.clone())));
    let definition = Definition {
        annotations: json!({
            "readOnlyHint": number.is_multiple_of(2),
            "openWorldHint": number.is_multiple_of(3),
        }),
        ..Definition::new(
            format!("tool_{number}").parse().ok()?,
            json!({ "type": "object", "properties": properties }),
        )
    };
    Capability::new(provider, definition, Timestamp::default()).ok().map(Arc::new)
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

fn policy(mix: Mix, number: usize) -> String {
    let (effect, principal, action, condition) = match mix {
        Mix::Handful if number < 4 => guardrail(number),
        Mix::Handful => of_teams(number),
        Mix::Crowded => of_roles(number),
    };
    format!(
        "@id(\"p{number:05}\") @reason(\"Rule {number}\")\n{effect} ({principal}, {action}, \
         resource)\nwhen {{ {condition} }};\n\n"
    )
}

type Parts = (&'static str, String, String, String);

/// A policy of the company for everybody, also when it has ten policies.
fn guardrail(number: usize) -> Parts {
    let (effect, principal, action, condition) = match number {
        0 => (
            "forbid",
            "principal",
            "action in Mcp::Action::\"*:*\"",
            "context.dlp.findings.containsAny([\"private_key\", \"aws_access_key\"])",
        ),
        1 => (
            "permit",
            "principal in Mcp::Role::\"member\"",
            "action in Mcp::Action::\"hint:read_only\"",
            "context.request.bytes < 1000000",
        ),
        2 => (
            "forbid",
            "principal is Mcp::User",
            "action in Mcp::Action::\"hint:open_world\"",
            "context.request.hour_utc < 4",
        ),
        _ => (
            "forbid",
            "principal is Mcp::Service",
            "action in Mcp::Action::\"*:*\"",
            "context.request.weekday > 6",
        ),
    };
    (effect, principal.to_owned(), action.to_owned(), condition.to_owned())
}

/// Tool that a policy is about.
fn one_tool(number: usize) -> String {
    let tool = format!("p{}:tool_{}", number % PROVIDERS, (number / PROVIDERS) % 20);
    format!("action == Mcp::Action::\"{tool}\"")
}

/// Policies that grow with a company: tools, teams and people. A twentieth is about a whole
/// provider; each tool has two for a role, the others name a team or a person.
fn of_teams(number: usize) -> Parts {
    match (number / TOOLS) % 50 {
        0 => up_to_an_amount(number),
        1 => above_an_amount(number),
        2 | 3 => (
            "permit",
            format!("principal in Mcp::Group::\"team-{}\"", number % 500),
            format!("action in Mcp::Action::\"p{}:*\"", number % PROVIDERS),
            format!("context.request.hour_utc >= {}", number % 12),
        ),
        4..=25 => of_a_person(number),
        _ => of_a_team(number),
    }
}

/// One policy in a thousand is about every tool, one in thirty about a provider; the others name one
/// tool, many of them the role that everybody has.
fn of_roles(number: usize) -> Parts {
    // The policies about one tool are of every kind.
    match (number + number / TOOLS) % 100 {
        _ if number.is_multiple_of(1_000) => (
            "forbid",
            "principal".to_owned(),
            "action in Mcp::Action::\"hint:open_world\"".to_owned(),
            "context.dlp.findings.containsAny([\"private_key\", \"aws_access_key\"])".to_owned(),
        ),
        0..=4 => (
            "permit",
            format!("principal in Mcp::Group::\"team-{number}\""),
            format!("action in Mcp::Action::\"p{}:*\"", number % PROVIDERS),
            "context.request.hour_utc >= 6".to_owned(),
        ),
        5..=30 => up_to_an_amount(number),
        31..=60 => above_an_amount(number),
        61..=80 => of_a_person(number),
        _ => of_a_team(number),
    }
}

fn up_to_an_amount(number: usize) -> Parts {
    let condition = format!("context.input has amount && context.input.amount <= {}", 500 + number);
    let members = "principal in Mcp::Role::\"member\"".to_owned();
    ("permit", members, one_tool(number), condition)
}

fn above_an_amount(number: usize) -> Parts {
    let condition = format!("context.input has amount && context.input.amount > {number}");
    ("forbid", "principal is Mcp::Service".to_owned(), one_tool(number), condition)
}

fn of_a_person(number: usize) -> Parts {
    let condition = format!("context.input has country && context.input.country == \"de{number}\"");
    let person = format!("principal == Mcp::User::\"usr-{number}\"");
    ("permit", person, one_tool(number), condition)
}

fn of_a_team(number: usize) -> Parts {
    let condition =
        format!("context.input has country && context.input.country like \"x{number}*\"");
    let team = format!("principal in Mcp::Group::\"team-{}\"", number % 500);
    ("forbid", team, one_tool(number), condition)
}

fn files(mix: Mix, count: usize) -> Vec<PolicyFile> {
    let numbers: Vec<usize> = (0..count).collect();
    let file = |(at, numbers): (usize, &[usize])| {
        let mut text = String::new();
        for number in numbers {
            let _ = write!(text, "{}", policy(mix, *number));
        }
        PolicyFile { path: format!("{at}.cedar"), text }
    };
    numbers.chunks(A_FILE).enumerate().map(file).collect()
}

fn load(files: Vec<PolicyFile>, catalogue: &Catalogue) -> PolicySet {
    match PolicySet::load(files, catalogue, &[], Timestamp::default()) {
        Ok(set) => set,
        Err(errors) => {
            errors.iter().take(3).for_each(|error| say(&error.to_string()));
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

fn question<'a>(
    principal: &'a Principal,
    tool: &'a Capability,
    input: &'a Document,
) -> Question<'a> {
    Question {
        principal,
        tool,
        input: input.root(),
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

/// Number of policies that the median call is judged by.
fn candidates(set: &PolicySet, tools: &[Arc<Capability>]) -> usize {
    let principal = Principal::new(identity());
    let input = Document::of(&input());
    let count = |tool: &Arc<Capability>| {
        let question = question(&principal, tool, &input);
        let known = KnownContext::everything();
        set.explain(&question, &known, Explain::Candidates, None).considered.unwrap_or(0)
    };
    let mut counts: Vec<usize> = tools.iter().map(count).collect();
    counts.sort_unstable();
    counts.get(counts.len() / 2).copied().unwrap_or(0)
}

fn listing(criterion: &mut Criterion, catalogue: &Catalogue) {
    let set = load(files(Mix::Crowded, 10_000), catalogue);
    let principal = Principal::new(identity());
    criterion.bench_function("access to 200 tools, 10000 policies", |bencher| {
        bencher.iter(|| {
            let accesses = set.accesses(&principal);
            accesses.iter().filter(|(_, access)| access.as_str() == "allow").count()
        });
    });
}

fn reloading(criterion: &mut Criterion, catalogue: &Catalogue) {
    let mut group = criterion.benchmark_group("loading 10000 policies");
    group.sample_size(10).warm_up_time(Duration::from_millis(100));
    let written = files(Mix::Handful, 10_000);
    group.bench_function("from nothing", |bencher| {
        bencher.iter(|| load(written.clone(), catalogue));
    });
    let set = load(written.clone(), catalogue);
    let turn = Cell::new(0);
    group.bench_function("one line changed", |bencher| {
        bencher.iter(|| {
            turn.set(turn.get() + 1);
            let mut changed = written.clone();
            if let Some(file) = changed.first_mut() {
                file.text = file.text.replacen("<= 504", &format!("<= {}", turn.get()), 1);
            }
            black_box(set.reload(changed, catalogue, &[], Timestamp::default()).is_ok())
        });
    });
    group.finish();
}
