//! The stages of a governed call that need nothing but a processor, one at a time, for counting the
//! instructions they take: `cargo xtask counts`.
//!
//! `stages` names them, `stages NAME` runs one a hundred times after it was warmed up. The counter
//! looks at the function `stages::counted` alone.

use std::{cell::Cell, hint::black_box, io::Write as _, net::IpAddr, process::ExitCode, sync::Arc};

use portcullis_core::{
    audit::{
        Actor, Capture, Detached, DlpResult, Event, EventType, Governance, Outcome,
        RecordedDecision, Request, Target, leaf_bytes, leaf_hash,
    },
    call::{Answer, Asker, CallResult, PinState, Scanned, Use},
    capability::{Capability, Definition, ProviderSlug},
    clock::Timestamp,
    dlp::{Engine, FingerprintKey, Settings, Subject},
    id::PrincipalKind,
    json::{Bounds, Document},
    limits::{Window, window_offset},
    mcp::{
        Era, Message, Mirror, MirroredHeaders,
        listed::ListedTool,
        search::{Index, rank},
    },
    policy::{Catalogue, Identity, PolicyFile, PolicySet, Principal},
    random::Random,
    refusal::Executed,
    token::{Token, TokenKind},
    trust::{DpopProof, ProofTarget, TargetUri},
};
use serde_json::{Value, json};

#[path = "../../bench/src/payload.rs"]
mod payload;
#[path = "../../bench/src/proof.rs"]
mod proof;

/// Runs that are counted.
const RUNS: usize = 100;
/// A moment in 2026.
const NOW: Timestamp = Timestamp::from_micros(1_795_000_000_000_000);
/// Policies besides the one that permits.
const POLICIES: usize = 99;
/// Address of a request that comes with a proof.
const ADDRESS: &str = "https://gateway.example/v1/mcps";
/// Tools of a large catalogue.
const TOOLS: usize = 1_000;

type Stage = fn(&Bench);

/// By name, in the order of a call.
const STAGES: [(&str, Stage); 12] = [
    ("auth", auth),
    ("dpop", dpop),
    ("limits", limits),
    ("parse", parsing),
    ("schema", schema),
    ("dlp_input", dlp_input),
    ("policy", policy),
    ("dlp_output", dlp_output),
    ("record", record),
    ("mcp_read", mcp_read),
    ("mcp_list", mcp_list),
    ("mcp_find", mcp_find),
];

fn main() -> ExitCode {
    let asked = std::env::args().nth(1);
    let found = STAGES.iter().find(|(name, _)| Some(*name) == asked.as_deref());
    let Some((_, stage)) = found else {
        // Also what `cargo test --benches` sees.
        for (name, _) in STAGES {
            let _ = writeln!(std::io::stdout().lock(), "{name}");
        }
        return ExitCode::SUCCESS;
    };
    let Some(bench) = Bench::new() else { return ExitCode::FAILURE };
    // What is made when it is first needed is made now.
    let run = |run: fn(Stage, &Bench)| {
        // What a stage takes from the one before it is made beforehand.
        bench
            .scanned
            .set(bench.call().and_then(|call| call.scan(&bench.engine, &bench.subject).ok()));
        run(*stage, &bench);
    };
    (0..3).for_each(|_| run(|stage, bench| stage(bench)));
    (0..RUNS).for_each(|_| run(counted));
    ExitCode::SUCCESS
}

#[inline(never)]
fn counted(stage: Stage, bench: &Bench) {
    stage(black_box(bench));
}

/// Always the same bytes, so that nothing depends on chance.
#[derive(Debug)]
struct Sevens;

impl Random for Sevens {
    fn fill(&self, bytes: &mut [u8]) {
        bytes.fill(7);
    }
}

/// State of a node when a call arrives.
struct Bench {
    bearer: String,
    /// Possession of the key that `bearer` would be bound to.
    proof: String,
    address: Option<TargetUri>,
    body: String,
    input: Document,
    tool: Arc<Capability>,
    set: PolicySet,
    engine: Engine,
    subject: Subject,
    principal: Principal,
    /// The call of the next run.
    scanned: Cell<Option<Scanned<Use>>>,
    /// The same call as `body`, as an MCP client sends it.
    message: String,
    /// A catalogue as it is prepared for lists and searches.
    listed: Vec<(String, ListedTool)>,
    index: Index,
}

impl Bench {
    fn new() -> Option<Self> {
        let slug: ProviderSlug = "bench".parse().ok()?;
        let input = payload::of_size(900);
        let definition = Definition {
            annotations: json!({ "readOnlyHint": true }),
            ..Definition::new("echo".parse().ok()?, payload::schema())
        };
        let tool = Arc::new(Capability::new(&slug, definition, NOW).ok()?);
        let file = PolicyFile { path: "bench.cedar".to_owned(), text: policies() };
        let identity = Identity {
            roles: vec!["member".to_owned()],
            scopes: vec!["mcps:invoke".to_owned()],
            groups: vec!["team-1".to_owned(), "team-2".to_owned()],
            ..Identity::new(PrincipalKind::User, "usr-1".to_owned(), "org-1".to_owned())
        };
        let catalogued = tools(&slug)?;
        let catalogue = Catalogue::new([(slug, Some(vec![Arc::clone(&tool)]))]);
        let bearer = Token::generate(TokenKind::Service, &Sevens).secret().expose().to_owned();
        Some(Self {
            proof: proof::prove(ADDRESS, &bearer, NOW.as_seconds())?,
            address: TargetUri::parse(ADDRESS),
            message: message(&input),
            listed: catalogued
                .iter()
                .map(|tool| (tool.id.name().to_owned(), ListedTool::new(tool, None)))
                .collect(),
            index: Index::build(&catalogued),
            bearer,
            body: json!({ "input": input }).to_string(),
            input: Document::parse(input.to_string().as_bytes(), Bounds::REQUEST).ok()?,
            tool,
            set: PolicySet::load(vec![file], &catalogue, &[], NOW).ok()?,
            engine: Engine::new(&Settings::default()).ok()?,
            subject: Subject::of(FingerprintKey::new([7; 32])).calling("bench:echo"),
            principal: Principal::new(identity),
            scanned: Cell::new(None),
        })
    }

    fn asker(&self) -> Asker<'_> {
        Asker {
            capture: Capture::Commit,
            principal: &self.principal,
            time: NOW,
            source_ip: Some(IpAddr::from([127, 0, 0, 1])),
        }
    }

    fn call(&self) -> Option<Use> {
        let tool = Arc::clone(&self.tool);
        let input = self.input.clone();
        Use::new(&self.engine, tool, PinState::Accepted, input, 1_024).ok()
    }
}

fn message(input: &Value) -> String {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "bench", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let params = json!({ "name": "echo", "arguments": input, "_meta": meta });
    json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }).to_string()
}

/// Tools that differ in their words, with three parameters each.
fn tools(slug: &ProviderSlug) -> Option<Vec<Capability>> {
    const VERBS: [&str; 10] = [
        "list", "get", "create", "update", "delete", "search", "archive", "restore", "share",
        "export",
    ];
    const THINGS: [&str; 10] = [
        "issue", "invoice", "document", "channel", "customer", "event", "release", "page", "order",
        "repository",
    ];
    let of = |number: usize| {
        let verb = VERBS.get(number % 10)?;
        let thing = THINGS.get(number / 10 % 10)?;
        let description = format!(
            "{verb} one {thing} of area {}. Returns what was affected with identifiers, states and \
             times of change.",
            number / 100
        );
        let schema = json!({
            "type": "object",
            "properties": {
                (format!("{thing}_id")): { "type": "string", "description": "Identifier" },
                "query": { "type": "string", "description": "Words that it has to hold" },
                "limit": { "type": "integer", "minimum": 1, "maximum": 100 },
            },
            "required": [format!("{thing}_id")],
        });
        let definition = Definition {
            description: Some(description),
            annotations: json!({}),
            ..Definition::new(format!("{verb}_{thing}_{}", number / 100).parse().ok()?, schema)
        };
        Capability::new(slug, definition, NOW).ok()
    };
    (0..TOOLS).map(of).collect()
}

/// One that permits; of the others one in ten is about the tool.
fn policies() -> String {
    let forbid = |number: usize| {
        let action = if number.is_multiple_of(10) {
            "action == Mcp::Action::\"bench:echo\"".to_owned()
        } else {
            format!("action == Mcp::Action::\"bench:echo\", resource in Mcp::Label::\"l{number}\"")
        };
        let scope = match action.split_once(", resource") {
            Some((action, resource)) => format!("principal, {action}, resource{resource}"),
            None => format!("principal, {action}, resource"),
        };
        format!(
            "@id(\"p{number}\") @reason(\"Rule {number}\") forbid ({scope})\n\
             when {{ context.request.bytes > {} }};\n",
            1_000_000 + number
        )
    };
    let permit = "@id(\"permit\") permit (principal, action, resource);\n".to_owned();
    (1..=POLICIES).map(forbid).fold(permit, |text, policy| text + &policy)
}

fn auth(bench: &Bench) {
    let token = Token::parse(&bench.bearer).map(|token| token.hash());
    let _ = black_box(token.is_ok());
}

fn dpop(bench: &Bench) {
    let target = ProofTarget {
        method: "GET",
        addresses: bench.address.as_slice(),
        token: Some(&bench.bearer),
    };
    let _ = black_box(DpopProof::check(&bench.proof, target, NOW).is_ok());
}

fn limits(_: &Bench) {
    if let Ok(org) = "org_01M754BKTKX1YB8Q05NMW9TP4G".parse() {
        let window = Window::at(black_box(NOW), window_offset(org));
        black_box(window.seconds_left(NOW));
    }
}

fn parsing(bench: &Bench) {
    let _ = black_box(Document::parse(bench.body.as_bytes(), Bounds::REQUEST).is_ok());
}

fn schema(bench: &Bench) {
    black_box(bench.tool.violations(bench.input.root()).is_empty());
}

fn dlp_input(bench: &Bench) {
    let _ = black_box(bench.engine.scan_for(bench.input.root(), &bench.subject).is_ok());
}

/// From the scanned input to what may be sent.
fn policy(bench: &Bench) {
    let ruled = bench
        .scanned
        .take()
        .and_then(|it| it.decide(&bench.set, &bench.engine, bench.asker()).ok());
    black_box(ruled.is_some());
}

fn dlp_output(bench: &Bench) {
    let structured = Some(bench.input.clone());
    let answer = Answer::structured(CallResult { structured, ..CallResult::default() });
    let _ = black_box(answer.scan(&bench.engine, &bench.subject).is_ok());
}

/// Intent and outcome as they are recorded, and the leaf of the log.
fn record(bench: &Bench) {
    let mut detached = Detached::default()
        .keep_text("source_ip", Some("127.0.0.1"), &Sevens)
        .keep_text("actor_name", Some("bench"), &Sevens);
    detached.commit("input", bench.input.root(), &Sevens);
    let Some(mut event) = event(detached) else { return };
    black_box(written(&event));
    event.detached.commit("output", bench.input.root(), &Sevens);
    let (row, core) = written(&event);
    let leaf = leaf_bytes(row.get(..core).unwrap_or_default(), 48_212, NOW);
    let _ = black_box(leaf.map(|leaf| leaf_hash(leaf.as_bytes())).is_ok());
}

/// The texts of a row, and where the record ends among them.
fn written(event: &Event) -> (String, usize) {
    let mut row = event.core_json();
    let core = row.len();
    event.detached.write_values(&mut row);
    event.detached.write_seed(&mut row);
    (row, core)
}

/// A message as it is parsed and held against its headers.
fn mcp_read(bench: &Bench) {
    let headers = MirroredHeaders {
        version: Mirror::Once("2026-07-28"),
        method: Mirror::Once("tools/call"),
        name: Mirror::Once("echo"),
    };
    let body = Document::parse(bench.message.as_bytes(), Bounds::REQUEST);
    let _ = black_box(body.map(|body| Message::read(&body, &headers).is_ok()).is_ok());
}

/// The list of all tools of a large catalogue.
fn mcp_list(bench: &Bench) {
    // Room for all: whether a text can grow where it lies differs from machine to machine.
    let mut text = String::with_capacity(1 << 20);
    for (name, tool) in &bench.listed {
        tool.write(name, true, Era::Modern, false, &mut text);
    }
    black_box(text.len());
}

/// A search in it.
fn mcp_find(bench: &Bench) {
    black_box(rank(&[&bench.index], "create an invoice for a customer", 10, |_, _| true).len());
}

fn event(detached: Detached) -> Option<Event> {
    Some(Event {
        id: "evt_01M7W9Y2TKP17G0AVDQZTD2P3X".parse().ok()?,
        org_id: "org_01M754BKTKX1YB8Q05NMW9TP4G".parse().ok()?,
        kind: EventType::McpInvocation,
        occurred_at: NOW,
        count: None,
        actor: Actor::system(),
        request: Some(Request {
            id: "req_01M7W9Y2TKRFVVVX9QRHKJ8E9C".parse().ok()?,
            idempotent: false,
            trace_id: None,
        }),
        target: Some(Target {
            capability: None,
            credential: None,
            id: Some("bench:echo".to_owned()),
            provider_id: None,
            kind: "mcp",
            version: None,
        }),
        governance: Some(Governance {
            approvals: Vec::new(),
            decision: Some(RecordedDecision::Allow),
            determining_policies: vec!["permit".to_owned()],
            dlp_findings: Vec::new(),
            dlp_result: DlpResult::Passed,
            policy: Some("permit".to_owned()),
            policy_set: None,
            policy_version: None,
            reason: None,
            shadow: Vec::new(),
        }),
        outcome: Outcome::success(Executed::Yes),
        detached,
    })
}
