//! The answer on its way out: mapping, DLP, response policies, redaction.

use std::{borrow::Cow, marker::PhantomData};

use serde_json::{Map, Value, json};

use super::{
    Cleared, Decider, Payload, Permitted, ScanAttempt, Scanned, Simulated, Use,
    blobs::{self, Sealed},
    denial::{Denial, Grounds},
    facts,
    inputs::{inputs, pointers},
    ruling::{Asker, Ruling, action, all_masked, block_reason, masked},
};
use crate::{
    audit::Capture,
    capability::{Capability, CapabilityKind},
    dlp::{Action, Category, Direction, Engine, Finding, Findings, Pace, Subject},
    json::{Document, JsonValue, Node, ObjectWriter},
    policy::{Obligation, Phase, Question},
};

/// Facts of a call on which the judgement of its answer depends.
#[derive(Debug, Clone, Copy)]
pub struct Premise<'a> {
    pub tool: &'a Capability,
    pub input: Node<'a>,
    /// Findings of DLP in the arguments.
    pub findings: &'a Findings,
    /// Obligations that the call was permitted with.
    pub obligations: &'a [Obligation],
    /// Size of the request body.
    pub bytes: u64,
    /// Payload capture that the policies on the call ask for.
    pub capture: Option<Capture>,
}

impl<'a, Mode> From<&'a Cleared<Use, Mode>> for Premise<'a> {
    fn from(call: &'a Cleared<Use, Mode>) -> Self {
        Self {
            tool: call.tool(),
            input: call.input(),
            findings: &call.findings,
            obligations: &call.obligations,
            bytes: call.bytes(),
            capture: call.ruling.capture,
        }
    }
}

/// The result of a tool, of a prompt or of a read, taken apart.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CallResult {
    /// The content blocks: an array of objects. Absent stands for none.
    pub content: Option<Document>,
    /// `structuredContent`.
    pub structured: Option<Document>,
    /// The tool says that it failed.
    pub is_error: bool,
    /// Parts of its texts were no characters and have become U+FFFD.
    pub is_mended: bool,
    /// The other members, such as `_meta`; all members of a prompt and of a read.
    pub more: Vec<(String, Document)>,
    /// Kind of what gave it.
    pub kind: CapabilityKind,
}

/// A tool's answer in the shape the caller will see.
#[derive(Debug)]
pub struct Answer {
    result: Document,
    form: Form,
    is_error: bool,
    /// The answer before its texts in base64 were opened.
    sealed: Option<Sealed>,
    /// Pages of an app, for a host that shows them.
    is_page: bool,
}

/// Shape of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// Structured content that stands for itself.
    Structured,
    Mcp,
    /// Questions, by name.
    Questions,
}

impl Answer {
    /// Maps an MCP `CallToolResult`: structured content of a success stands for itself, everything else
    /// keeps the MCP form, without the other members of the result.
    #[must_use]
    pub fn structured(content: CallResult) -> Self {
        match &content.structured {
            Some(result) if result.root().is_object() && !content.is_error => {
                let result = result.clone();
                Self {
                    result,
                    form: Form::Structured,
                    is_error: false,
                    sealed: None,
                    is_page: false,
                }
            }
            Some(_) | None if content.kind != CapabilityKind::Tool => Self::mcp(content),
            Some(_) | None => Self::mcp(CallResult { more: Vec::new(), ..content }),
        }
    }

    /// The MCP form, with whatever else the server put into its result.
    #[must_use]
    pub fn mcp(content: CallResult) -> Self {
        let CallResult { content, structured, is_error, more, kind, is_mended: _ } = content;
        let mut result = ObjectWriter::default();
        match (&content, kind) {
            (Some(content), _) => result.member("content", content.root()),
            (None, CapabilityKind::Tool) => result.member("content", &Value::Array(Vec::new())),
            (
                None,
                CapabilityKind::Prompt
                | CapabilityKind::Resource
                | CapabilityKind::Template
                | CapabilityKind::Skill,
            ) => {}
        }
        if is_error {
            result.member("isError", &Value::Bool(true));
        }
        if let Some(structured) = &structured {
            result.member("structuredContent", structured.root());
        }
        for (name, member) in &more {
            result.member(name, member.root());
        }
        let (result, sealed) = blobs::open(result.finish());
        Self { result, form: Form::Mcp, is_error, sealed, is_page: false }
    }

    /// The same answer of nothing but pages of an app.
    #[must_use]
    pub const fn of_pages(mut self) -> Self {
        self.is_page = true;
        self
    }

    /// Questions of the tool instead of a result. They leave by the same rules; policies on answers
    /// see the findings in them, and no output.
    #[must_use]
    pub fn questions(requests: Map<String, Value>) -> Self {
        let result = Document::of(&Value::Object(requests));
        Self { result, form: Form::Questions, is_error: false, sealed: None, is_page: false }
    }

    fn object(&self) -> Option<Node<'_>> {
        match self.form {
            Form::Structured => Some(self.result.root()),
            Form::Mcp => self.result.root().get("structuredContent"),
            Form::Questions => None,
        }
    }

    /// The schema of the whole answer, given that of its structured content.
    fn schema_of_all<'a>(&self, structured: &'a Value) -> Cow<'a, Value> {
        if self.form == Form::Structured {
            return Cow::Borrowed(structured);
        }
        let mut all = json!({ "properties": { "structuredContent": structured } });
        // Its references are those of its own root.
        for definitions in ["$defs", "definitions"] {
            if let (Some(own), Some(all)) = (structured.get(definitions), all.as_object_mut()) {
                all.insert(definitions.to_owned(), own.clone());
            }
        }
        Cow::Owned(all)
    }

    /// Scans the answer. Denies what cannot be scanned within its budget.
    pub fn scan(self, engine: &Engine, subject: &Subject) -> Result<Scanned<Self>, Denial> {
        Scanned::scan(self, Direction::Output, engine, subject)
    }

    /// The same at a pace.
    #[must_use]
    pub fn scan_at(self, engine: &Engine, subject: &Subject, pace: Pace) -> ScanAttempt<Self> {
        Scanned::scan_at(self, Direction::Output, engine, subject, pace)
    }

    /// Takes the findings as given, for an answer that is only asked about.
    #[must_use]
    pub const fn supposing(self, findings: Findings) -> Scanned<Self, Simulated> {
        Scanned { inner: self, findings, mode: PhantomData }
    }
}

impl Payload for Answer {
    fn payload(&self) -> Node<'_> {
        self.result.root()
    }
}

impl<Mode> Scanned<Answer, Mode> {
    /// Paths of the findings, from the structured part that policies see.
    fn pointers(&self) -> Vec<&str> {
        let all = pointers(&self.findings).into_iter();
        match self.inner.form {
            Form::Structured => all.collect(),
            Form::Mcp => {
                all.filter_map(|pointer| pointer.strip_prefix("/structuredContent")).collect()
            }
            Form::Questions => Vec::new(),
        }
    }

    fn judge_payload(
        self,
        call: Premise<'_>,
        decider: &dyn Decider,
        engine: &Engine,
        asker: Asker<'_>,
    ) -> Result<Permitted<Answer, Mode>, Denial> {
        let detectors = self.findings.detectors();
        let input_detectors = call.findings.detectors();
        let question = Question {
            principal: asker.principal,
            tool: call.tool,
            input: call.input,
            facts: None,
            phase: Phase::Response,
            dlp: facts(call.findings, &input_detectors),
            output: self.inner.object(),
            dlp_output: Some(facts(&self.findings, &detectors)),
            time: asker.time,
            source_ip: asker.source_ip,
            bytes: call.bytes,
            mfa: asker.principal.identity().mfa,
        };
        let decision = decider.decide(&question);
        let inputs = inputs(decider.set(), engine, &question, &self.pointers());
        let blocked = decision.verdict.reads_dlp() && !self.findings.is_empty();
        let mut ruling = Ruling::of(decision, inputs).map_err(|denial| {
            let block = |_: &_| Action::Block;
            let noted = |ruling: Ruling| ruling.noting(&self.findings, Direction::Output, block);
            let denial = denial.map_ruling(noted);
            if blocked { denial.because_of_dlp(Direction::Output) } else { denial }
        })?;
        let Self { inner, findings, mode } = self;
        let mut obligations = ruling.obligations.clone();
        obligations.extend(call.obligations.iter().cloned());
        // Of what was said of the call and of the answer the less counts.
        ruling.capture = [ruling.capture, call.capture].into_iter().flatten().min();
        if ruling.capture.unwrap_or(asker.capture) == Capture::Redacted {
            let kept = all_masked(engine, &inner.result, &findings);
            let kept = match &inner.sealed {
                Some(sealed) => sealed.seal(&Document::of(&kept)).root().to_value(),
                None => kept,
            };
            ruling.captured = Some(Box::new(kept));
        }
        Ok(Permitted { inner, findings, obligations, ruling, mode })
    }
}

impl Scanned<Answer> {
    /// Asks the response policies, on the same snapshot that permitted the call.
    pub fn decide(
        self,
        call: &Cleared<Use>,
        decider: &dyn Decider,
        engine: &Engine,
        asker: Asker<'_>,
    ) -> Result<Permitted<Answer>, Denial> {
        self.judge_payload(call.into(), decider, engine, asker)
    }
}

impl Scanned<Answer, Simulated> {
    /// Asks the response policies about the answer to a call that need not have been permitted.
    pub fn decide(
        self,
        call: Premise<'_>,
        decider: &dyn Decider,
        engine: &Engine,
        asker: Asker<'_>,
    ) -> Result<Permitted<Answer, Simulated>, Denial> {
        self.judge_payload(call, decider, engine, asker)
    }
}

impl<Mode> Permitted<Answer, Mode> {
    /// Fulfils what policy and the DLP defaults ask for: withholds the answer of this tool, or masks
    /// it. Masked structured content fits the schema that the tool declares for it, where it can. What would have to be
    /// masked of a skill is withheld. Characters that cannot be seen are part of the program that the page of an app is, and
    /// no model reads it: they stay, unless a policy masks them.
    pub fn fulfil(
        self,
        engine: &Engine,
        tool: &Capability,
    ) -> Result<Cleared<Answer, Mode>, Denial> {
        let Self { inner: mut answer, findings, obligations, mut ruling, mode } = self;
        let is_verbatim = tool.id.kind() == CapabilityKind::Skill;
        let is_page = answer.is_page;
        let is_program = |finding: &Finding| {
            let mut asked = obligations.iter();
            let is_hidden = is_page && finding.category() == Category::Hidden;
            is_hidden && !asked.any(|it| it.redacts(Direction::Output, finding))
        };
        let act = |finding: &Finding| action(engine, finding, Direction::Output, &obligations);
        let chosen = |finding: &Finding| match act(finding) {
            Action::Redact if is_program(finding) => Action::Flag,
            Action::Redact if is_verbatim => Action::Block,
            action @ (Action::Flag | Action::Redact | Action::Block) => action,
        };
        ruling.note(&findings, Direction::Output, chosen);
        if findings.iter().any(|finding| chosen(finding) == Action::Block) {
            let reason = block_reason(&findings, Direction::Output, chosen);
            ruling.decided_by_default();
            let denial = Denial::ruled(Grounds::Dlp, ruling, reason);
            return Err(denial.because_of_dlp(Direction::Output));
        }
        if findings.iter().any(|finding| chosen(finding) == Action::Redact) {
            let mask = |finding: &Finding| {
                let mask = masked(engine, finding, Direction::Output, &obligations);
                mask.filter(|_| !is_program(finding))
            };
            let declared = tool.listed_definition().output_schema.as_ref();
            let declared = declared.filter(|_| answer.form != Form::Questions);
            let schema = declared.map(|schema| answer.schema_of_all(schema));
            let masked = engine.redact(&answer.result, &findings, schema.as_deref(), mask);
            answer.result = match answer.sealed.take() {
                Some(sealed) => sealed.seal(&masked),
                None => masked,
            };
        } else if let Some(sealed) = answer.sealed.take() {
            answer.result = sealed.untouched();
        }
        Ok(Cleared { inner: answer, findings, obligations, ruling, mode })
    }
}

impl<Mode> Cleared<Answer, Mode> {
    /// The result that may leave.
    #[must_use]
    pub const fn result(&self) -> &Document {
        &self.inner.result
    }

    /// Returns true if the tool reported an error of its own.
    #[must_use]
    pub const fn is_error(&self) -> bool {
        self.inner.is_error
    }
}

impl Cleared<Answer> {
    /// The result and its ruling, taken apart to be answered.
    #[must_use]
    pub fn into_parts(self) -> (Document, bool, Ruling) {
        (self.inner.result, self.inner.is_error, self.ruling)
    }
}
