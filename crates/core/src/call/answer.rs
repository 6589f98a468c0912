//! The answer on its way out: mapping, DLP, response policies, redaction.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

use super::{
    Cleared, Permitted, Scanned, ToolCall, count_of,
    inputs::{inputs, pointers},
    ruling::{Asker, Denial, Ruling, action, all_masked, block_reason, masked},
};
use crate::{
    audit::Capture,
    dlp::{Action, Direction, Engine, Subject},
    policy::{DlpFacts, Phase, PolicySet, Question, Verdict},
};

/// A tool's answer in the shape the caller will see.
#[derive(Debug)]
pub struct Answer {
    result: Value,
    structured: bool,
    is_error: bool,
}

impl Answer {
    /// Maps an MCP `CallToolResult` (contract §5.3): structured content of a success stands for
    /// itself, everything else keeps the MCP form.
    #[must_use]
    pub fn structured(content: Value, structured: Option<Value>, is_error: bool) -> Self {
        match structured {
            Some(result @ Value::Object(_)) if !is_error => {
                Self { result, structured: true, is_error }
            }
            other => Self::mcp(content, other, is_error, Map::new()),
        }
    }

    /// The MCP form, with whatever else the server put into its result.
    #[must_use]
    pub fn mcp(
        content: Value,
        structured: Option<Value>,
        is_error: bool,
        more: Map<String, Value>,
    ) -> Self {
        let mut result = more;
        result.insert("content".to_owned(), content);
        if let Some(structured) = structured {
            result.insert("structuredContent".to_owned(), structured);
        }
        if is_error {
            result.insert("isError".to_owned(), Value::Bool(true));
        }
        Self { result: Value::Object(result), structured: false, is_error }
    }

    fn object(&self) -> Option<&Value> {
        if self.structured { Some(&self.result) } else { self.result.get("structuredContent") }
    }

    /// The schema of the whole answer, given that of its structured content.
    fn schema_of_all<'a>(&self, structured: &'a Value) -> Cow<'a, Value> {
        if self.structured {
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

    /// Looks through the answer. Says no to what cannot be looked through within its budget.
    pub fn scan(self, engine: &Engine, subject: &Subject) -> Result<Scanned<Self>, Denial> {
        match engine.scan_for(&self.result, subject) {
            Ok(findings) => Ok(Scanned { inner: self, findings }),
            Err(unscannable) => Err(Denial::unscannable(Direction::Output, &unscannable)),
        }
    }
}

impl AsRef<Value> for Scanned<Answer> {
    fn as_ref(&self) -> &Value {
        &self.inner.result
    }
}

impl Scanned<Answer> {
    /// Where something was found, from the structured part that policies see.
    fn pointers(&self) -> Vec<&str> {
        let all = pointers(&self.findings).into_iter();
        if self.inner.structured {
            return all.collect();
        }
        all.filter_map(|pointer| pointer.strip_prefix("/structuredContent")).collect()
    }

    /// Asks the response policies, on the same snapshot that permitted the call.
    pub fn decide(
        self,
        call: &Cleared<ToolCall>,
        set: &PolicySet,
        engine: &Engine,
        asker: Asker<'_>,
    ) -> Result<Permitted<Answer>, Denial> {
        let detectors = self.findings.detectors();
        let input_detectors = call.findings.detectors();
        let question = Question {
            principal: asker.principal,
            tool: call.tool(),
            input: call.input(),
            facts: None,
            phase: Phase::Response,
            dlp: DlpFacts {
                detectors: &input_detectors,
                count: count_of(&call.findings),
                max_severity: call.findings.max_severity(),
                media: call.findings.media().into(),
            },
            output: self.inner.object(),
            dlp_output: Some(DlpFacts {
                detectors: &detectors,
                count: count_of(&self.findings),
                max_severity: self.findings.max_severity(),
                media: self.findings.media().into(),
            }),
            time: asker.time,
            source_ip: asker.source_ip,
            bytes: call.bytes(),
            mfa: asker.principal.identity().mfa,
        };
        let decision = set.decide(&question);
        let inputs = inputs(set, engine, &question, &self.pointers());
        match &decision.verdict {
            Verdict::Deny { policy, reason, reads_dlp, .. } => {
                let blocked = *reads_dlp && !self.findings.is_empty();
                let mut ruling = Ruling::new(policy, &decision, inputs);
                ruling.note(&self.findings, Direction::Output, |_| Action::Block);
                let denial = Denial::new(ruling, reason.clone());
                Err(if blocked { denial.because_of_dlp(Direction::Output) } else { denial })
            }
            Verdict::Allow { policy, obligations } => {
                let mut owed = obligations.clone();
                owed.extend(call.obligations.iter().cloned());
                let mut ruling = Ruling::new(policy, &decision, inputs);
                // Of what was said of the call and of the answer the less counts.
                let said = [ruling.capture, call.ruling.capture];
                ruling.capture = said.into_iter().flatten().min();
                if ruling.capture.unwrap_or(asker.capture) == Capture::Redacted {
                    let whole = self.inner.result.clone();
                    let kept = all_masked(engine, whole, &self.findings);
                    ruling.captured = Some(Box::new(kept));
                }
                Ok(Permitted {
                    ruling,
                    obligations: owed,
                    inner: self.inner,
                    findings: self.findings,
                })
            }
        }
    }
}

impl Permitted<Answer> {
    /// Fulfils what policy and the DLP defaults ask for: withholds the answer, or masks it.
    /// Masked structured content fits the schema that the tool declares for it, where it can.
    pub fn fulfil(
        self,
        engine: &Engine,
        call: &Cleared<ToolCall>,
    ) -> Result<Cleared<Answer>, Denial> {
        let Self { inner: mut answer, findings, obligations, mut ruling } = self;
        let chosen = |finding: &_| action(engine, finding, Direction::Output, &obligations);
        ruling.note(&findings, Direction::Output, chosen);
        if findings.iter().any(|finding| chosen(finding) == Action::Block) {
            let reason = block_reason(&findings, Direction::Output, chosen);
            ruling.decided_by_default();
            return Err(Denial::new(ruling, reason).because_of_dlp(Direction::Output));
        }
        if findings.iter().any(|finding| chosen(finding) == Action::Redact) {
            let mask = |finding: &_| masked(engine, finding, Direction::Output, &obligations);
            let declared = call.tool().definition.output_schema.as_ref();
            let schema = declared.map(|schema| answer.schema_of_all(schema));
            answer.result = engine.redact(answer.result, &findings, schema.as_deref(), mask);
        }
        Ok(Cleared { inner: answer, findings, obligations, ruling })
    }
}

impl Cleared<Answer> {
    /// The result that may leave.
    #[must_use]
    pub const fn result(&self) -> &Value {
        &self.inner.result
    }

    /// Whether the tool reported an error of its own.
    #[must_use]
    pub const fn is_error(&self) -> bool {
        self.inner.is_error
    }

    /// The result and its ruling, taken apart to be answered.
    #[must_use]
    pub fn into_parts(self) -> (Value, bool, Ruling) {
        (self.inner.result, self.inner.is_error, self.ruling)
    }
}
