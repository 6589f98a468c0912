//! The call on its way in: schema, DLP, policy, redaction.

use std::{borrow::Cow, collections::BTreeMap, marker::PhantomData, sync::Arc};

use serde_json::{Map, Value, json};

use super::{
    Actual, Cleared, Decider, Limiter, Payload, Permitted, ScanAttempt, Scanned, Simulated,
    approval,
    denial::{Denial, Grounds},
    facts,
    inputs::{inputs, pointers},
    limits::Taken,
    ruling::{Asker, Ruling, action, block_reason, masked},
};
use crate::{
    capability::{Capability, CapabilityKind},
    dlp::{Action, Direction, Engine, Finding, Findings, FingerprintKey, Mask, Pace, Subject},
    json::{Document, JsonValue, Node, ObjectWriter},
    mcp::{Method, interaction::ClientCapabilities, uris::Template},
    policy::{Obligation, Phase, Question, Rate},
    refusal::Violation,
};

/// State of a tool's definition among the accepted ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PinState {
    Accepted,
    /// The definition changed and waits for review.
    Quarantined,
}

/// A call of a tool with input that fits the tool's schema.
#[derive(Debug, Clone)]
pub struct Use {
    tool: Arc<Capability>,
    /// The input, or an object of it and of answers to questions of the tool.
    pub(super) payload: Document,
    /// The payload holds answers.
    answers: bool,
    round: Round,
    aim: Aim,
    bytes: u64,
}

/// Request about a capability: its use, or another.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Aim {
    #[default]
    Use,
    /// Values of this argument of a prompt or template, of which others may be missing. The input of a prompt is its
    /// arguments; that of a template is made by [`Use::values_of`].
    Complete(String),
    /// The entry of a skill, and no file of it.
    Describe,
}

impl Aim {
    /// The method by which this is asked of something of a kind.
    #[must_use]
    pub const fn method(&self, kind: CapabilityKind) -> Method {
        match (self, kind) {
            (Self::Complete(_), _) => Method::Complete,
            (Self::Use, CapabilityKind::Skill) => Method::ReadResource,
            (Self::Use | Self::Describe, _) => Method::use_of(kind),
        }
    }
}

/// An argument of a prompt or template that values are suggested for.
#[derive(Debug, Clone, Copy)]
pub struct Completion<'a> {
    pub argument: &'a str,
    /// The arguments as far as they are written, that one among them.
    pub values: Node<'a>,
}

/// Position of a call in a conversation with its tool.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Round {
    pub capabilities: ClientCapabilities,
    /// State that the upstream gave with its questions.
    pub state: Option<String>,
}

const INPUT: &str = "input";
const RESPONSES: &str = "responses";
/// Member that holds the values of a template whose completion is asked for, beside the URI that they give.
const VALUES: &str = "values";

impl Use {
    /// Denies a tool in quarantine, and input that breaks the tool's schema. `bytes` is the size of
    /// the request body.
    pub fn new(
        engine: &Engine,
        tool: Arc<Capability>,
        pin: PinState,
        input: Document,
        bytes: u64,
    ) -> Result<Self, Denial> {
        Self::aimed(engine, tool, pin, input, Aim::Use, bytes)
    }

    /// The input of the completion of a template: the values as far as they are written, and the URI that they give. `None`
    /// if they give none that could be read.
    #[must_use]
    pub fn values_of(
        template: &Template,
        values: &BTreeMap<String, String>,
        argument: &str,
    ) -> Option<Document> {
        let value = values.get(argument).map(String::as_str).unwrap_or_default();
        let uri = template.begin(values, argument, value, true)?;
        Some(Document::of(&json!({ "uri": uri, (VALUES): values })))
    }

    /// The same where this is asked.
    pub fn aimed(
        engine: &Engine,
        tool: Arc<Capability>,
        pin: PinState,
        payload: Document,
        aim: Aim,
        bytes: u64,
    ) -> Result<Self, Denial> {
        if pin == PinState::Quarantined {
            return Err(Denial::quarantined());
        }
        let completes = matches!(aim, Aim::Complete(_));
        let is_of_template = tool.id.kind().governed() == CapabilityKind::Resource;
        let mut violations =
            if completes && is_of_template { Vec::new() } else { tool.violations(payload.root()) };
        if completes {
            violations.retain(|it| it.keyword.as_deref() != Some("required"));
        }
        if violations.is_empty() {
            let round = Round::default();
            return Ok(Self { tool, payload, answers: false, round, aim, bytes });
        }
        mask_violations(engine, &mut violations);
        Err(Denial::unfit(tool.id.clone(), violations))
    }

    /// Makes it the leg of a conversation that gives these answers. They are scanned and masked with
    /// the input: findings of such a call lie below `/input` and `/responses`. Policies see the
    /// findings in both, and the input only, for answers have no schema.
    #[must_use]
    pub fn at_round(mut self, round: Round, responses: Map<String, Value>) -> Self {
        self.round = round;
        if !responses.is_empty() {
            let mut both = ObjectWriter::default();
            both.member(INPUT, self.payload.root());
            both.member(RESPONSES, &Value::Object(responses));
            self.payload = both.finish();
            self.answers = true;
        }
        self
    }

    fn input(&self) -> Node<'_> {
        let payload = self.payload.root();
        let input = if self.answers { payload.get(INPUT) } else { Some(payload) };
        // It always holds one.
        input.unwrap_or(payload)
    }

    /// A ruling that keeps the input of what is captured: answers are not kept.
    fn captured(&self, mut ruling: Ruling) -> Ruling {
        if self.answers
            && let Some(Value::Object(kept)) = ruling.captured.as_deref_mut()
        {
            ruling.captured = kept.remove(INPUT).map(Box::new);
        }
        ruling
    }

    /// Schema of the payload.
    fn schema(&self) -> Cow<'_, Value> {
        let declared = &self.tool.listed_definition().input_schema;
        if !self.answers {
            return Cow::Borrowed(declared);
        }
        let mut all = json!({ "properties": { (INPUT): declared } });
        // Its references are those of its own root.
        for definitions in ["$defs", "definitions"] {
            if let (Some(own), Some(all)) = (declared.get(definitions), all.as_object_mut()) {
                all.insert(definitions.to_owned(), own.clone());
            }
        }
        Cow::Owned(all)
    }

    /// Scans the input. Denies what cannot be scanned within its budget.
    pub fn scan(self, engine: &Engine, subject: &Subject) -> Result<Scanned<Self>, Denial> {
        Scanned::scan(self, Direction::Input, engine, subject)
    }

    /// The same at a pace.
    #[must_use]
    pub fn scan_at(self, engine: &Engine, subject: &Subject, pace: Pace) -> ScanAttempt<Self> {
        Scanned::scan_at(self, Direction::Input, engine, subject, pace)
    }

    /// Takes the findings as given, for a call that is only asked about.
    #[must_use]
    pub const fn supposing(self, findings: Findings) -> Scanned<Self, Simulated> {
        Scanned { inner: self, findings, mode: PhantomData }
    }

    /// The tool that is called.
    #[must_use]
    pub const fn tool(&self) -> &Arc<Capability> {
        &self.tool
    }
}

impl Payload for Use {
    fn payload(&self) -> Node<'_> {
        self.payload.root()
    }
}

impl<Mode> Scanned<Use, Mode> {
    /// Paths of the findings in the input.
    fn pointers(&self) -> Vec<&str> {
        let all = pointers(&self.findings);
        if !self.inner.answers {
            return all;
        }
        all.into_iter().filter_map(|pointer| pointer.strip_prefix("/input")).collect()
    }

    /// Asks policy, with the findings of DLP.
    pub fn decide(
        self,
        decider: &dyn Decider,
        engine: &Engine,
        asker: Asker<'_>,
    ) -> Result<Permitted<Use, Mode>, Denial> {
        let places = self.pointers();
        let Self { inner, findings, .. } = &self;
        let detectors = findings.detectors();
        let question = Question {
            principal: asker.principal,
            tool: &inner.tool,
            input: inner.input(),
            facts: None,
            phase: Phase::Request,
            dlp: facts(findings, &detectors),
            output: None,
            dlp_output: None,
            time: asker.time,
            source_ip: asker.source_ip,
            bytes: inner.bytes,
            mfa: asker.principal.identity().mfa,
        };
        let decision = decider.decide(&question);
        let inputs = inputs(decider.set(), engine, &question, &places);
        let blocked = decision.verdict.reads_dlp() && !findings.is_empty();
        let captured = |ruling: Ruling| {
            inner.captured(ruling.capturing(asker.capture, engine, &inner.payload, findings))
        };
        let ruling = Ruling::of(decision, inputs).map_err(|denial| {
            let default = |finding: &_| engine.default_action(finding, Direction::Input);
            let shown = |finding: &_| if blocked { Action::Block } else { default(finding) };
            let noted = |ruling| captured(ruling).noting(findings, Direction::Input, shown);
            let denial = denial.map_ruling(noted);
            if blocked { denial.because_of_dlp(Direction::Input) } else { denial }
        })?;
        let ruling = captured(ruling);
        let obligations = ruling.obligations.clone();
        let Self { inner, findings, mode } = self;
        Ok(Permitted { inner, findings, obligations, ruling, mode })
    }
}

fn rates(obligations: &[Obligation]) -> impl Iterator<Item = (&str, Rate)> {
    obligations.iter().filter_map(|obligation| match obligation {
        Obligation::RateLimit { key, rate, .. } => Some((key.as_str(), *rate)),
        Obligation::Redact { .. } | Obligation::RequireApproval { .. } => None,
    })
}

impl<Mode> Permitted<Use, Mode> {
    /// The rates that one is to be taken from, each with the key under which it is counted.
    pub fn rates(&self) -> impl Iterator<Item = (&str, Rate)> {
        rates(&self.obligations)
    }

    /// Blocks, or masks the input and checks that it still fits the tool's schema.
    fn masked(self, engine: &Engine) -> Result<Cleared<Use, Mode>, Denial> {
        let Self { inner, findings, obligations, mut ruling, mode } = self;
        let mut call = inner;
        let chosen = |finding: &_| action(engine, finding, Direction::Input, &obligations);
        ruling.note(&findings, Direction::Input, chosen);
        if findings.iter().any(|finding| chosen(finding) == Action::Block) {
            let reason = block_reason(&findings, Direction::Input, chosen);
            ruling.decided_by_default();
            let denial = Denial::ruled(Grounds::Dlp, ruling, reason);
            return Err(denial.because_of_dlp(Direction::Input));
        }
        if let Some(denial) = approval::unseen(&ruling, &obligations, &findings, chosen) {
            return Err(denial);
        }
        let is_masked = findings.iter().any(|finding| chosen(finding) == Action::Redact);
        if is_masked {
            let mask = |finding: &_| masked(engine, finding, Direction::Input, &obligations);
            call.payload = engine.redact(&call.payload, &findings, Some(&call.schema()), mask);
        }
        let unmaskable = |path: String| {
            vec![Violation { path, keyword: None, message: "it cannot be masked".to_owned() }]
        };
        let violations = match (is_masked, call.tool.id.kind().governed(), &call.aim) {
            (false, _, _) => Vec::new(),
            // A masked URI is that of another resource.
            (true, CapabilityKind::Resource | CapabilityKind::Skill, _) => {
                unmaskable("/uri".to_owned())
            }
            (true, _, Aim::Complete(argument)) => match call.input().get(argument) {
                Some(_) => Vec::new(),
                None => unmaskable(format!("/{argument}")),
            },
            (
                true,
                CapabilityKind::Tool | CapabilityKind::Prompt | CapabilityKind::Template,
                Aim::Use | Aim::Describe,
            ) => call.tool.violations(call.input()),
        };
        if violations.is_empty() {
            Ok(Cleared { inner: call, findings, obligations, ruling, mode })
        } else {
            let owed = obligations.iter().find(|obligation| {
                let masks = |f: &Finding| obligation.redacts(Direction::Input, f);
                findings.iter().any(masks)
            });
            Err(no_longer_fits(ruling, owed, &violations))
        }
    }
}

impl Permitted<Use, Actual> {
    /// Fulfils the obligations of policy and the DLP defaults: takes from rates, then blocks, or
    /// masks the input. What was taken for a call that is refused is given back.
    pub fn fulfil(self, engine: &Engine, limiter: &dyn Limiter) -> Result<Cleared<Use>, Denial> {
        let taken = Taken::all(&self.obligations, limiter, &self.ruling)?;
        let cleared = self.masked(engine)?;
        taken.keep();
        Ok(cleared)
    }
}

impl Permitted<Use, Simulated> {
    /// Fulfils the obligations as for an actual call, except that rates are shown and not taken
    /// from.
    pub fn fulfil(self, engine: &Engine) -> Result<Cleared<Use, Simulated>, Denial> {
        self.masked(engine)
    }
}

/// A text longer than this is not shown in a violation.
const LONGEST_SHOWN: usize = 2_000;

/// Masks what DLP finds in violations: they name members, and so hold what the caller put into a
/// name. Input that breaks the schema is not scanned otherwise.
fn mask_violations(engine: &Engine, violations: &mut [Violation]) {
    for Violation { path, message, .. } in violations {
        *path = mask_text(std::mem::take(path), engine).unwrap_or_default();
        let spare = || "the value does not fit the schema".to_owned();
        *message = mask_text(std::mem::take(message), engine).unwrap_or_else(spare);
    }
}

/// The text with its findings masked; `None` if it cannot be shown.
fn mask_text(text: String, engine: &Engine) -> Option<String> {
    if text.len() > LONGEST_SHOWN {
        return None;
    }
    let value = Value::String(text);
    // These fingerprints are never shown.
    let findings = engine.scan(&value, &FingerprintKey::new([0; 32])).ok()?;
    match engine.redact_value(&value, &findings, |_| Some(Mask::Placeholder)) {
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
    Denial::ruled(Grounds::Masking, ruling, reason).because_of_dlp(Direction::Input)
}

impl<Mode> Cleared<Use, Mode> {
    /// The tool to call.
    #[must_use]
    pub const fn tool(&self) -> &Arc<Capability> {
        &self.inner.tool
    }

    /// The arguments that may leave: the very value that was checked.
    #[must_use]
    pub fn input(&self) -> Node<'_> {
        self.inner.input()
    }

    /// The answers that may leave, by the names of their questions.
    #[must_use]
    pub fn responses(&self) -> Option<Node<'_>> {
        if self.inner.answers { self.inner.payload.root().get(RESPONSES) } else { None }
    }

    /// The rates that one was taken from, each with the key under which it is counted.
    pub fn rates(&self) -> impl Iterator<Item = (&str, Rate)> {
        rates(&self.obligations)
    }

    /// The request that it makes.
    #[must_use]
    pub const fn aim(&self) -> &Aim {
        &self.inner.aim
    }

    /// The argument that values are suggested for, if that is what is asked.
    #[must_use]
    pub fn completion(&self) -> Option<Completion<'_>> {
        let Aim::Complete(argument) = self.aim() else { return None };
        let input = self.input();
        let values = match self.inner.tool.id.kind() {
            CapabilityKind::Tool | CapabilityKind::Prompt => input,
            CapabilityKind::Resource | CapabilityKind::Template | CapabilityKind::Skill => {
                input.get(VALUES).unwrap_or(input)
            }
        };
        Some(Completion { argument, values })
    }

    /// Position of the call in a conversation with the tool.
    #[must_use]
    pub const fn round(&self) -> &Round {
        &self.inner.round
    }

    /// Size of the request body in bytes.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.inner.bytes
    }
}
