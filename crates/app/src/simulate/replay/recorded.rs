//! A recorded call, read back as far as a decision needs it.

use std::{borrow::Cow, collections::BTreeMap, net::IpAddr};

use portcullis_core::{
    id::PrincipalKind,
    policy::{Agent, Identity},
};
use serde::Deserialize;
use serde_json::{Value, value::RawValue};

/// The core of an event.
#[derive(Deserialize)]
pub(super) struct Core<'a> {
    #[serde(borrow)]
    pub(super) actor: Actor<'a>,
    #[serde(borrow)]
    pub(super) governance: Option<Governance<'a>>,
    #[serde(borrow)]
    pub(super) target: Option<Target<'a>>,
    #[serde(borrow)]
    pub(super) outcome: Outcome<'a>,
}

/// Who did it.
#[derive(Deserialize)]
pub(super) struct Actor<'a> {
    #[serde(borrow)]
    pub(super) id: Option<Cow<'a, str>>,
    #[serde(borrow, rename = "type")]
    pub(super) kind: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) via: Option<Cow<'a, str>>,
}

/// How it was decided.
#[derive(Deserialize)]
pub(super) struct Governance<'a> {
    #[serde(borrow)]
    pub(super) decision: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(super) policy: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(super) policy_set: Option<Cow<'a, str>>,
}

/// What was called.
#[derive(Deserialize)]
pub(super) struct Target<'a> {
    #[serde(borrow)]
    pub(super) id: Option<Cow<'a, str>>,
}

/// How it ended.
#[derive(Deserialize)]
pub(super) struct Outcome<'a> {
    #[serde(borrow)]
    pub(super) executed: Cow<'a, str>,
}

/// The detached part.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct Detached<'a> {
    pub(super) source_ip: Option<IpAddr>,
    #[serde(borrow)]
    pub(super) decision_inputs: Option<Inputs<'a>>,
}

/// What the decision looked at.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct Inputs<'a> {
    #[serde(borrow)]
    pub(super) principal: Option<&'a RawValue>,
    pub(super) request: Request,
    pub(super) dlp: Facts,
    pub(super) dlp_output: Option<Facts>,
    pub(super) input: Option<Value>,
    input_paths: Vec<String>,
    input_withheld: Vec<String>,
    pub(super) output: Option<Value>,
    output_paths: Vec<String>,
    output_withheld: Vec<String>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct Request {
    pub(super) bytes: u64,
    pub(super) mfa: bool,
}

/// What DLP found, in names and numbers.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct Facts {
    pub(super) findings: Vec<String>,
    pub(super) count: i64,
    pub(super) max_severity: i64,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Memberships {
    roles: Vec<String>,
    scopes: Vec<String>,
    groups: Vec<String>,
    claims: BTreeMap<String, Vec<String>>,
}

impl Inputs<'_> {
    /// Whether the event tells what stands at `path`, such as `context.input.amount`.
    pub(super) fn tells(&self, path: &str) -> bool {
        let (kept, withheld) = match path.split(['.', '[']).nth(1) {
            Some("input") => (&self.input_paths, &self.input_withheld),
            Some("output") => (&self.output_paths, &self.output_withheld),
            // Everything else is kept whole.
            Some(_) | None => return true,
        };
        let within = |inner: &str, outer: &str| {
            inner.strip_prefix(outer).is_some_and(|rest| {
                rest.is_empty() || rest.starts_with('.') || rest.starts_with('[')
            })
        };
        let touched = |other: &String| within(path, other) || within(other, path);
        kept.iter().any(|kept| within(path, kept)) && !withheld.iter().any(touched)
    }

    /// Who called.
    pub(super) fn identity(&self, actor: &Actor<'_>, org: &str) -> Identity {
        let read = self.principal.and_then(|raw| serde_json::from_str(raw.get()).ok());
        let Memberships { roles, scopes, groups, claims } = read.unwrap_or_default();
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
            ..Identity::new(kind, id, org.to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_tells_what_it_kept_and_did_not_withhold() {
        let inputs: Inputs<'_> = serde_json::from_str(
            r#"{"input_paths": ["context.input.a", "context.input.to.name"],
                "input_withheld": ["context.input.to"]}"#,
        )
        .unwrap();

        for (path, told) in [
            ("context.input.a", true),
            ("context.input.a.b", true),
            ("context.input.ab", false),
            ("context.input", false),
            ("context.input.to.name", false),
            ("context.output.a", false),
            ("context.request.time", true),
            ("context.dlp.findings", true),
        ] {
            assert_eq!(inputs.tells(path), told, "{path}");
        }
    }
}
