//! Guarantees of the policy layer, as tables. What a set decides about a call stands in files beside the law, see
//! `cases`.

mod binding;
mod cases;
mod deciding;
mod drafting;
mod engines;
mod equivalence;
mod explaining;
mod facts;
mod hostile;
mod kinds;
mod loading;
mod records;
mod reference;
mod schema;
mod starter;
mod tenancy;

use std::{collections::BTreeMap, sync::Arc};

use serde_json::{Value, json};

use super::*;
use crate::{
    capability::{
        Capability, CapabilityId, CapabilityKind, CapabilityName, Definition, ProviderSlug,
    },
    clock::Timestamp,
    id::{OrgId, PrincipalId, TokenId},
    principal::{AuthMethod, Caller, Plan, Role, Scope, ScopeSet},
    testing::node,
};

const ULID: &str = "01M754BKTKX1YB8Q05NMW9TP4G";
const DETECTORS: [&str; 6] =
    ["aws_access_key", "credit_card", "email", "github_token", "iban", "private_key"];

/// A tool of `id` with these properties, all hints unsaid.
fn tool(id: &str, properties: &Value) -> Arc<Capability> {
    tool_with(id, properties, &json!({}), None)
}

fn tool_with(
    id: &str,
    properties: &Value,
    hints: &Value,
    output: Option<Value>,
) -> Arc<Capability> {
    let id: CapabilityId = id.parse().unwrap();
    let provider: ProviderSlug = id.provider().parse().unwrap();
    let schema = json!({"type": "object", "properties": properties});
    let definition = Definition {
        output_schema: output,
        annotations: hints.clone(),
        ..Definition::new(id.name().parse().unwrap(), schema)
    };
    Arc::new(Capability::new(&provider, definition, Timestamp::default()).unwrap())
}

/// A catalogue of these tools; their providers are the configured ones.
fn catalogue(tools: &[Arc<Capability>]) -> Catalogue {
    let mut providers: BTreeMap<ProviderSlug, Vec<Arc<Capability>>> = BTreeMap::new();
    for tool in tools {
        let provider = tool.id.provider().parse().unwrap();
        providers.entry(provider).or_default().push(Arc::clone(tool));
    }
    Catalogue::new(providers.into_iter().map(|(slug, tools)| (slug, Some(tools))))
}

fn file(text: &str) -> PolicyFile {
    PolicyFile { path: "test.cedar".to_owned(), text: text.to_owned() }
}

fn facts_file(text: &str) -> PolicyFile {
    PolicyFile { path: FACTS_FILE.to_owned(), text: text.to_owned() }
}

fn load(text: &str, tools: &[Arc<Capability>]) -> Result<PolicySet, Vec<PolicyError>> {
    load_files(vec![file(text)], tools)
}

fn load_files(
    files: Vec<PolicyFile>,
    tools: &[Arc<Capability>],
) -> Result<PolicySet, Vec<PolicyError>> {
    PolicySet::load(files, &catalogue(tools), &DETECTORS, Timestamp::default())
}

fn loaded(text: &str, tools: &[Arc<Capability>]) -> PolicySet {
    load(text, tools).unwrap_or_else(|errors| panic!("{errors:#?}"))
}

fn caller(role: Role) -> Principal {
    Principal::of(&caller_as(role))
}

fn caller_as(role: Role) -> Caller {
    let kind = if role.name() == "service" { "sa" } else { "usr" };
    Caller {
        org_id: format!("org_{ULID}").parse::<OrgId>().unwrap(),
        plan: Plan::Free,
        principal_id: format!("{kind}_{ULID}").parse::<PrincipalId>().unwrap(),
        principal_name: "somebody".to_owned(),
        role,
        via: None,
        token_id: format!("tok_{ULID}").parse::<TokenId>().ok(),
        label: None,
        scopes: ScopeSet::EMPTY.with(Scope::McpsInvoke),
        method: AuthMethod::Operator,
        allowed_from: None,
        lineage: Arc::default(),
        client: None,
        is_operator: false,
    }
}

const NOTHING: DlpFacts<'static> = DlpFacts { detectors: &[], count: 0, max_severity: 0, media: 0 };

/// A question about `tool`, in the request phase, with nothing special about it.
fn question<'a>(principal: &'a Principal, tool: &'a Capability, input: &'a Value) -> Question<'a> {
    Question {
        principal,
        tool,
        input: node(input),
        facts: None,
        phase: Phase::Request,
        dlp: NOTHING,
        output: None,
        dlp_output: None,
        // A Friday.
        time: Timestamp::parse_rfc3339("2026-11-20T11:02:15.123Z").unwrap(),
        source_ip: None,
        bytes: 10,
        mfa: false,
    }
}

fn ask(set: &PolicySet, tool: &Capability, input: &Value) -> Decision {
    ask_as(&caller(Role::Member), set, tool, input)
}

fn ask_as(who: &Principal, set: &PolicySet, tool: &Capability, input: &Value) -> Decision {
    set.decide(&question(who, tool, input))
}

/// `allow <policy>` or `deny <policy>`.
fn said(decision: &Decision) -> String {
    match &decision.verdict {
        Verdict::Allow { policy, .. } => format!("allow {}", policy.id),
        Verdict::Deny { policy, .. } => format!("deny {}", policy.id),
    }
}

fn reason(decision: &Decision) -> String {
    match &decision.verdict {
        Verdict::Allow { .. } => String::new(),
        Verdict::Deny { reason, .. } => reason.clone(),
    }
}
