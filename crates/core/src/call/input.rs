//! The call on its way in: schema, DLP, policy, redaction.

use std::sync::Arc;

use serde_json::Value;

use super::{
    Cleared, Limiter, Permitted, Scanned, count_of,
    inputs::{inputs, pointers},
    limits::Taken,
    ruling::{Asker, Denial, Ruling, action, block_reason, masked},
};
use crate::{
    dlp::{Action, Direction, Engine, Finding, FingerprintKey, Mask, Subject},
    policy::{DlpFacts, Obligation, Phase, PolicySet, Question, Rate, Verdict},
    refusal::{Refusal, Violation},
    tool::Tool,
};

/// A call of a tool with input that fits the tool's schema.
#[derive(Debug)]
pub struct ToolCall {
    tool: Arc<Tool>,
    input: Value,
    bytes: u64,
}

impl ToolCall {
    /// Says no to input that breaks the tool's schema. `bytes` is the size of the request body.
    pub fn new(tool: Arc<Tool>, input: Value, bytes: u64) -> Result<Self, Refusal> {
        let violations = tool.violations(&input);
        if violations.is_empty() {
            Ok(Self { tool, input, bytes })
        } else {
            Err(Refusal::InvalidInput { tool: tool.id.clone(), violations })
        }
    }

    /// Looks through the input. Says no to what cannot be looked through within its budget.
    pub fn scan(self, engine: &Engine, subject: &Subject) -> Result<Scanned<Self>, Denial> {
        match engine.scan_for(&self.input, subject) {
            Ok(findings) => Ok(Scanned { inner: self, findings }),
            Err(unscannable) => Err(Denial::unscannable(Direction::Input, &unscannable)),
        }
    }

    /// The tool that is called.
    #[must_use]
    pub const fn tool(&self) -> &Arc<Tool> {
        &self.tool
    }
}

impl AsRef<Value> for Scanned<ToolCall> {
    fn as_ref(&self) -> &Value {
        &self.inner.input
    }
}

impl Scanned<ToolCall> {
    /// Asks policy, with what DLP found.
    pub fn decide(
        self,
        set: &PolicySet,
        engine: &Engine,
        asker: Asker<'_>,
    ) -> Result<Permitted<ToolCall>, Denial> {
        let detectors = self.findings.detectors();
        let question = Question {
            principal: asker.principal,
            tool: &self.inner.tool,
            input: &self.inner.input,
            facts: None,
            phase: Phase::Request,
            dlp: DlpFacts {
                detectors: &detectors,
                count: count_of(&self.findings),
                max_severity: self.findings.max_severity(),
                media: self.findings.media().into(),
            },
            output: None,
            dlp_output: None,
            time: asker.time,
            source_ip: asker.source_ip,
            bytes: self.inner.bytes,
            mfa: asker.principal.identity().mfa,
        };
        let decision = set.decide(&question);
        let inputs = inputs(set, engine, &question, &pointers(&self.findings));
        let ruled = |policy| {
            let ruling = Ruling::new(policy, &decision, inputs);
            ruling.capturing(asker.capture, engine, &self.inner.input, &self.findings)
        };
        let default = |finding: &_| engine.default_action(finding, Direction::Input);
        match &decision.verdict {
            Verdict::Deny { policy, reason, reads_dlp, .. } => {
                let mut ruling = ruled(policy);
                let blocked = *reads_dlp && !self.findings.is_empty();
                let shown = |finding: &_| if blocked { Action::Block } else { default(finding) };
                ruling.note(&self.findings, Direction::Input, shown);
                let denial = Denial::new(ruling, reason.clone());
                Err(if blocked { denial.because_of_dlp(Direction::Input) } else { denial })
            }
            Verdict::Allow { policy, obligations } => Ok(Permitted {
                ruling: ruled(policy),
                obligations: obligations.clone(),
                inner: self.inner,
                findings: self.findings,
            }),
        }
    }
}

impl Permitted<ToolCall> {
    /// The rates that one is to be taken from, each with the key under which it is counted.
    pub fn rates(&self) -> impl Iterator<Item = (&str, Rate)> {
        self.obligations.iter().filter_map(|obligation| match obligation {
            Obligation::RateLimit { key, rate, .. } => Some((key.as_str(), *rate)),
            Obligation::Redact { .. } => None,
        })
    }

    /// Fulfils what policy and the DLP defaults ask for: takes from rates, then blocks, or masks
    /// the input and checks that it still fits the tool's schema. What was taken for a call that
    /// is refused is given back.
    pub fn fulfil(
        self,
        engine: &Engine,
        limiter: &dyn Limiter,
    ) -> Result<Cleared<ToolCall>, Denial> {
        let taken = Taken::all(&self.obligations, limiter, &self.ruling)?;
        let cleared = self.masked(engine)?;
        taken.keep();
        Ok(cleared)
    }

    fn masked(self, engine: &Engine) -> Result<Cleared<ToolCall>, Denial> {
        let Self { inner: ToolCall { tool, input, bytes }, findings, obligations, mut ruling } =
            self;
        let chosen = |finding: &_| action(engine, finding, Direction::Input, &obligations);
        let schema = Some(&tool.definition.input_schema);
        ruling.note(&findings, Direction::Input, chosen);
        if findings.iter().any(|finding| chosen(finding) == Action::Block) {
            let reason = block_reason(&findings, Direction::Input, chosen);
            ruling.decided_by_default();
            return Err(Denial::new(ruling, reason).because_of_dlp(Direction::Input));
        }
        let is_masked = findings.iter().any(|finding| chosen(finding) == Action::Redact);
        let input = if is_masked {
            let mask = |finding: &_| masked(engine, finding, Direction::Input, &obligations);
            engine.redact(input, &findings, schema, mask)
        } else {
            input
        };
        let call = ToolCall { tool, input, bytes };
        let violations = if is_masked { call.tool.violations(&call.input) } else { Vec::new() };
        if violations.is_empty() {
            Ok(Cleared { inner: call, findings, obligations, ruling })
        } else {
            let owed = obligations.iter().find(|obligation| {
                let masks = |f: &Finding| obligation.redacts(Direction::Input, f);
                findings.iter().any(masks)
            });
            Err(no_longer_fits(ruling, owed, &violations))
        }
    }
}

/// A text longer than this is not shown in a violation.
const LONGEST_SHOWN: usize = 2_000;

impl Engine {
    /// Masks what it finds in violations: they name members, and so hold what somebody put into a
    /// name. Input that breaks the schema is not looked through otherwise.
    pub fn clear_violations(&self, violations: &mut [Violation]) {
        for Violation { path, message, .. } in violations {
            *path = shown(std::mem::take(path), self).unwrap_or_default();
            let spare = || "the value does not fit the schema".to_owned();
            *message = shown(std::mem::take(message), self).unwrap_or_else(spare);
        }
    }
}

impl Refusal {
    /// The refusal with its violations [cleared](Engine::clear_violations).
    #[must_use]
    pub fn without_findings(mut self, engine: &Engine) -> Self {
        if let Self::InvalidInput { violations, .. } = &mut self {
            engine.clear_violations(violations);
        }
        self
    }
}

/// The text with its findings masked; `None` if it cannot be shown.
fn shown(text: String, engine: &Engine) -> Option<String> {
    if text.len() > LONGEST_SHOWN {
        return None;
    }
    let value = Value::String(text);
    // Nobody sees these fingerprints.
    let findings = engine.scan(&value, &FingerprintKey::new([0; 32])).ok()?;
    match engine.redact(value, &findings, None, |_| Some(Mask::Placeholder)) {
        Value::String(text) => Some(text),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            None
        }
    }
}

/// The denial when the masked input breaks the schema: by the policy that asked for the masking,
/// or by `dlp-default` when none did.
fn no_longer_fits(
    mut ruling: Ruling,
    owed: Option<&Obligation>,
    violations: &[Violation],
) -> Denial {
    match owed {
        Some(obligation) => ruling.decided_by_obligation(obligation),
        None => ruling.decided_by_default(),
    }
    let places: Vec<&str> = violations.iter().map(|violation| violation.path.as_str()).collect();
    let reason = format!(
        "once redacted, the input no longer fits the tool's schema at {}",
        places.join(", ")
    );
    Denial::new(ruling, reason).because_of_dlp(Direction::Input)
}

impl Cleared<ToolCall> {
    /// The tool to call.
    #[must_use]
    pub const fn tool(&self) -> &Arc<Tool> {
        &self.inner.tool
    }

    /// The arguments that may leave: the very value that was checked.
    #[must_use]
    pub const fn input(&self) -> &Value {
        &self.inner.input
    }

    /// Size of the request body in bytes.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.inner.bytes
    }
}
