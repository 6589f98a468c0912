//! One hypothetical call, and its principal.

use std::{collections::BTreeMap, net::IpAddr};

use portcullis_core::{
    audit::RecordedDecision,
    clock::Timestamp,
    id::{PrincipalId, PrincipalKind},
    policy::Phase,
};
use serde_json::Value;

use super::super::members::{Members, Read, violation};

pub(super) const DECISIONS: [(&str, RecordedDecision); 2] =
    [("allow", RecordedDecision::Allow), ("deny", RecordedDecision::Deny)];
const PHASES: [(&str, Phase); 2] = [("request", Phase::Request), ("response", Phase::Response)];
const KINDS: [(&str, PrincipalKind); 2] =
    [("user", PrincipalKind::User), ("service", PrincipalKind::Service)];

/// One hypothetical call.
#[derive(Debug, Clone)]
pub struct Ask {
    /// The asker's own name for it.
    pub id: Option<String>,
    /// The principal; the caller itself if absent.
    pub who: Option<SimulatedPrincipal>,
    /// The tool's id.
    pub tool: String,
    pub input: Value,
    pub phase: Phase,
    /// Answer of the tool, for the response phase.
    pub output: Option<Value>,
    /// When; now if not said.
    pub time: Option<Timestamp>,
    pub ip: Option<IpAddr>,
    /// With a second factor; when not said, as the caller itself proved one, and no other principal.
    pub mfa: Option<bool>,
    /// Findings of DLP in the arguments; scanned if absent.
    pub dlp: Option<Vec<String>>,
    pub dlp_output: Option<Vec<String>>,
    pub expect: Option<Expectation>,
}

/// A principal from the log, from the org, or from imagination.
#[derive(Debug, Clone)]
pub struct SimulatedPrincipal {
    pub kind: PrincipalKind,
    pub id: Option<String>,
    /// Its roles; those of the org's principal of this id when not said.
    pub roles: Option<Vec<String>>,
    /// Its scopes; likewise.
    pub scopes: Option<Vec<String>>,
    /// Its groups; those of its last login and of the operator when not said.
    pub groups: Option<Vec<String>>,
    /// Other claims; likewise.
    pub claims: Option<BTreeMap<String, Vec<String>>>,
    /// Agent that acts on its behalf: id and kind.
    pub agent: Option<(String, String)>,
}

/// Expected result of a call.
#[derive(Debug, Clone)]
pub struct Expectation {
    pub decision: Option<RecordedDecision>,
    pub policy: Option<String>,
    /// For this kind of reason.
    pub cause: Option<String>,
}

impl Ask {
    /// Reads one call that stands at `path`.
    pub(super) fn read(value: &Value, path: &str) -> Read<Self> {
        let mut members = Members::of(value, path)?;
        let id = members.text("id")?.map(str::to_owned);
        let ask = Self { id, ..Self::members(&mut members)? };
        members.end()?;
        Ok(ask)
    }

    pub(super) fn members(members: &mut Members<'_>) -> Read<Self> {
        let mut who = members.object("principal")?.map(SimulatedPrincipal::read).transpose()?;
        let agent = members.object("agent")?.map(agent).transpose()?;
        if let (Some(agent), Some(who)) = (&agent, &mut who) {
            who.agent = Some(agent.clone());
        } else if agent.is_some() {
            let message = "acts for somebody: say for whom with `principal`";
            return Err(violation(&members.at("agent"), message));
        }
        let phase = members.choice("phase", &PHASES)?.unwrap_or(Phase::Request);
        let output = members.any("output").cloned();
        if phase == Phase::Request && output.is_some() {
            let message = "is looked at in the phase `response` only";
            return Err(violation(&members.at("output"), message));
        }
        let input = match members.any("input") {
            None => Value::Object(serde_json::Map::new()),
            Some(input @ Value::Object(_)) => input.clone(),
            Some(_) => return Err(violation(&members.at("input"), "has to be an object")),
        };
        let ask = Self {
            id: None,
            who,
            tool: members.required("tool")?.to_owned(),
            input,
            phase,
            output,
            time: None,
            ip: None,
            mfa: None,
            dlp: findings(members, "dlp")?,
            dlp_output: findings(members, "dlp_output")?,
            expect: members.object("expect")?.map(Expectation::read).transpose()?,
        };
        match members.object("context")? {
            None => Ok(ask),
            Some(context) => ask.in_context(context),
        }
    }

    fn in_context(mut self, mut context: Members<'_>) -> Read<Self> {
        self.time = context.time("time")?;
        let at = context.at("ip");
        let ip = context.text("ip")?.map(str::parse).transpose();
        self.ip = ip.map_err(|_| violation(&at, "has to be an IP address"))?;
        self.mfa = context.flag("mfa")?;
        context.end()?;
        Ok(self)
    }
}

fn findings(members: &mut Members<'_>, name: &'static str) -> Read<Option<Vec<String>>> {
    let Some(mut dlp) = members.object(name)? else { return Ok(None) };
    let findings = dlp.texts("findings", 100)?.unwrap_or_default();
    dlp.end()?;
    Ok(Some(findings))
}

fn agent(mut members: Members<'_>) -> Read<(String, String)> {
    let id = members.required("id")?.to_owned();
    let kind = members.text("kind")?.unwrap_or("service").to_owned();
    members.end()?;
    Ok((id, kind))
}

impl SimulatedPrincipal {
    pub(super) fn read(mut members: Members<'_>) -> Read<Self> {
        let id = members.text("id")?.map(str::to_owned);
        let kind = match members.choice("type", &KINDS)? {
            Some(kind) => kind,
            None => id
                .as_deref()
                .and_then(|id| id.parse::<PrincipalId>().ok())
                .map_or(PrincipalKind::User, PrincipalId::kind),
        };
        let role = members.text("role")?.map(|role| vec![role.to_owned()]);
        let who = Self {
            kind,
            id,
            roles: members.texts("roles", 100)?.or(role),
            scopes: members.texts("scopes", 100)?,
            groups: members.texts("groups", 500)?,
            claims: members.text_lists("claims")?,
            agent: None,
        };
        members.end()?;
        Ok(who)
    }

    /// A user of whom nothing is known.
    pub(in crate::simulation) const fn nobody() -> Self {
        Self {
            kind: PrincipalKind::User,
            id: None,
            roles: None,
            scopes: None,
            groups: None,
            claims: None,
            agent: None,
        }
    }

    /// Returns true if this is the principal of this id, unchanged.
    pub(in crate::simulation) fn is_just(&self, id: &str) -> bool {
        self.id.as_deref() == Some(id)
            && self.roles.is_none()
            && self.scopes.is_none()
            && self.groups.is_none()
            && self.claims.is_none()
            && self.agent.is_none()
    }
}

impl Expectation {
    pub(super) fn read(mut members: Members<'_>) -> Read<Self> {
        let expected = Self {
            decision: members.choice("decision", &DECISIONS)?,
            policy: members.text("policy")?.map(str::to_owned),
            cause: members.text("cause")?.map(str::to_owned),
        };
        members.end()?;
        Ok(expected)
    }
}
