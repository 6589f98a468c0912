//! A recorded call, read back as far as a decision needs it.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
};

use portcullis_core::{
    audit::RecordedDecision,
    authorization::ClientRef,
    capability::Capability,
    id::PrincipalKind,
    json::{self, Bounds, Document},
    policy::{Agent, Identity, KnownContext},
};
use serde::{Deserialize, Deserializer, de::Error as _};
use serde_json::{Value, value::RawValue};

/// The core of an event.
#[derive(Deserialize)]
pub(super) struct Core<'a> {
    #[serde(borrow)]
    pub(super) org_id: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) actor: Actor<'a>,
    #[serde(borrow)]
    pub(super) governance: Option<Governance<'a>>,
    #[serde(borrow)]
    pub(super) target: Option<Target<'a>>,
    #[serde(borrow)]
    pub(super) outcome: RecordedOutcome<'a>,
    /// The call that it is about, if it is none itself.
    #[serde(borrow, default)]
    pub(super) call: Option<Cow<'a, str>>,
}

impl Core<'_> {
    /// The decision, if it is one of those there are.
    pub(super) fn decision(&self) -> Option<RecordedDecision> {
        match self.governance.as_ref()?.decision.as_deref()? {
            "allow" => Some(RecordedDecision::Allow),
            "deny" => Some(RecordedDecision::Deny),
            _ => None,
        }
    }

    /// The id of the tool that was called; empty where there was none.
    pub(super) fn tool(&self) -> &str {
        self.target.as_ref().and_then(|target| target.id.as_deref()).unwrap_or_default()
    }
}

/// Recorded actor.
#[derive(Deserialize)]
pub(super) struct Actor<'a> {
    #[serde(borrow)]
    pub(super) id: Option<Cow<'a, str>>,
    #[serde(borrow, rename = "type")]
    pub(super) kind: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) via: Option<Cow<'a, str>>,
}

/// Recorded decision.
#[derive(Deserialize)]
pub(super) struct Governance<'a> {
    #[serde(borrow)]
    pub(super) decision: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(super) policy: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(super) policy_set: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(super) reason: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub(super) dlp_findings: Vec<RecordedFinding<'a>>,
}

/// Recorded findings of one detector at one place.
#[derive(Deserialize)]
pub(super) struct RecordedFinding<'a> {
    count: i64,
    #[serde(borrow)]
    path: Cow<'a, str>,
    #[serde(borrow)]
    stage: Cow<'a, str>,
}

/// Recorded target of the call.
#[derive(Deserialize)]
pub(super) struct Target<'a> {
    #[serde(borrow)]
    pub(super) id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(super) version: Option<Cow<'a, str>>,
}

/// Recorded outcome.
#[derive(Deserialize)]
pub(super) struct RecordedOutcome<'a> {
    #[serde(borrow)]
    pub(super) executed: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) status: Cow<'a, str>,
}

/// The detached part.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct Detached<'a> {
    pub(super) source_ip: Option<IpAddr>,
    #[serde(borrow)]
    pub(super) input: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) decision_inputs: Option<Inputs<'a>>,
}

/// A value that was kept.
fn document<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Document>, D::Error> {
    let kept = Option::<&'de RawValue>::deserialize(from)?;
    let read = |raw: &RawValue| Document::parse(raw.get().as_bytes(), Bounds::RECORDED);
    kept.map(read).transpose().map_err(D::Error::custom)
}

/// Inputs of the decision.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct Inputs<'a> {
    #[serde(borrow)]
    pub(super) principal: Option<&'a RawValue>,
    pub(super) request: Request,
    pub(super) dlp: Facts,
    pub(super) dlp_output: Option<Facts>,
    claims_paths: Option<Vec<String>>,
    #[serde(deserialize_with = "document")]
    pub(super) input: Option<Document>,
    input_paths: Vec<String>,
    pub(super) facts: Option<Value>,
    facts_paths: Vec<String>,
    #[serde(deserialize_with = "document")]
    pub(super) output: Option<Document>,
    output_paths: Vec<String>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct Request {
    pub(super) bytes: u64,
    pub(super) mfa: bool,
}

/// Findings of DLP, as names and numbers.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct Facts {
    pub(super) findings: Vec<String>,
    pub(super) count: i64,
    pub(super) max_severity: i64,
    pub(super) media: i64,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Memberships {
    roles: Vec<String>,
    scopes: Vec<String>,
    groups: Vec<String>,
    claims: BTreeMap<String, Vec<String>>,
    client: Option<ClientRef>,
}

impl Inputs<'_> {
    /// Parts of the call that the event holds.
    pub(super) fn context(&self) -> KnownContext {
        let paths = self.input_paths.iter().chain(&self.facts_paths).chain(&self.output_paths);
        let paths = paths.map(String::as_str);
        match &self.claims_paths {
            Some(tags) => KnownContext::only(paths.chain(tags.iter().map(String::as_str))),
            // Of whom nothing was claimed, it is known that nothing was.
            None => KnownContext::only(paths.chain(["principal.tags"])),
        }
    }

    /// Adds the members of the captured input in which DLP found nothing: the others are masked. None
    /// are added if more was found than was recorded.
    pub(super) fn add_captured(
        &mut self,
        captured: &RawValue,
        findings: &[RecordedFinding<'_>],
        tool: &Capability,
    ) {
        let captured = json::parse(captured.get().as_bytes(), Bounds::RECORDED);
        let Ok(Value::Object(mut members)) = captured else { return };
        let found: Vec<_> = findings.iter().filter(|finding| finding.stage == "input").collect();
        let names: Option<BTreeSet<String>> =
            found.iter().map(|finding| json::pointer_head(&finding.path)).collect();
        let Some(masked) = names.filter(|names| names.iter().all(|it| members.contains_key(it)))
        else {
            return;
        };
        if found.iter().map(|finding| finding.count).sum::<i64>() != self.dlp.count {
            return;
        }
        if masked.is_empty() {
            self.input_paths.push("context.input".to_owned());
        } else {
            members.retain(|name, _| !masked.contains(name));
            let declared =
                tool.listed_definition().input_schema.get("properties").and_then(Value::as_object);
            let names = declared.into_iter().flatten().map(|(name, _)| name).chain(members.keys());
            let known = names.filter(|name| !masked.contains(*name));
            let paths = known.map(|name| format!("context.input[{}]", Value::from(name.as_str())));
            self.input_paths.extend(paths);
        }
        self.input = Some(Document::of(&Value::Object(members)));
    }

    /// Identity of the caller.
    pub(super) fn identity(&self, actor: &Actor<'_>, org: &str) -> Identity {
        let read = self.principal.and_then(|raw| serde_json::from_str(raw.get()).ok());
        let Memberships { roles, scopes, groups, claims, client } = read.unwrap_or_default();
        let kind = match &*actor.kind {
            "service" => PrincipalKind::Service,
            _ => PrincipalKind::User,
        };
        let agent = actor.via.as_ref().map(|via| Agent {
            id: via.to_string(),
            kind: if via.starts_with("sa_") { "service" } else { "user" }.to_owned(),
        });
        let id = actor.id.as_deref().unwrap_or_default().to_owned();
        let claims = claims.into_iter().map(|(name, values)| (name, values.into_iter().collect()));
        Identity {
            roles,
            scopes,
            groups,
            claims: claims.collect(),
            agent,
            client,
            ..Identity::new(kind, id, org.to_owned())
        }
    }
}
