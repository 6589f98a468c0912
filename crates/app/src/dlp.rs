//! Data-loss prevention in force: the engine, and a detector outside where one is configured.
//! Swapped whole when its settings change; a call keeps the one it began with.

use std::sync::{Arc, PoisonError};

use portcullis_core::{
    call::{Answer, Denial, Scanned, ToolCall},
    dlp::{
        Action, Direction, Engine, Findings, FingerprintKey, Mask, Reported, Subject, Text,
        Unscannable,
    },
    policy::PolicyError,
};
use portcullis_upstream::{DetectorError, ExternalDetector};
use serde_json::Value;

use crate::{App, calls::admission::Admission, calls::invoke::Judged, telemetry::counters};

/// What looks through calls and answers.
#[derive(Debug)]
pub struct Dlp {
    engine: Engine,
    external: Option<External>,
}

/// A detector outside, and what becomes of a call when it says nothing.
#[derive(Debug)]
pub struct External {
    /// The detector.
    pub detector: ExternalDetector,
    /// Whether arguments are shown to it.
    pub input: bool,
    /// Whether answers are.
    pub output: bool,
    /// What to do when it does not answer.
    pub when_unavailable: WhenUnavailable,
}

/// What becomes of a call that an external detector did not look through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhenUnavailable {
    /// It is refused.
    Refuse,
    /// It passes with what the engine itself found.
    Pass,
}

impl Dlp {
    /// The engine alone, or with a detector outside.
    #[must_use]
    pub const fn new(engine: Engine, external: Option<External>) -> Self {
        Self { engine, external }
    }

    /// The engine.
    #[must_use]
    pub const fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Looks through a call, whose admission is given back while a detector outside is asked.
    pub(crate) async fn scan_call(
        &self,
        call: ToolCall,
        subject: &Subject,
        admission: &mut Admission,
    ) -> Result<Scanned<ToolCall>, Judged> {
        let mut scanned = call.scan(&self.engine, subject)?;
        if let Some(question) = self.question(&scanned, Direction::Input)? {
            let reported = admission.outside(question.ask()).await.map_err(Judged::Stopped)?;
            scanned = question.answered(scanned, reported, subject)?;
        }
        counters::found(Direction::Input, scanned.findings());
        Ok(scanned)
    }

    /// Looks through an answer.
    pub(crate) async fn scan_answer(
        &self,
        answer: Answer,
        subject: &Subject,
    ) -> Result<Scanned<Answer>, Denial> {
        let mut scanned = answer.scan(&self.engine, subject)?;
        if let Some(question) = self.question(&scanned, Direction::Output)? {
            let reported = question.ask().await;
            scanned = question.answered(scanned, reported, subject)?;
        }
        counters::found(Direction::Output, scanned.findings());
        Ok(scanned)
    }

    /// Question to the detector outside, if there is one for this direction and anything to ask.
    fn question<T>(
        &self,
        scanned: &Scanned<T>,
        direction: Direction,
    ) -> Result<Option<Question<'_>>, Denial>
    where
        Scanned<T>: AsRef<Value>,
    {
        let wanted = |external: &&External| match direction {
            Direction::Input => external.input,
            Direction::Output => external.output,
        };
        let Some(external) = self.external.as_ref().filter(wanted) else { return Ok(None) };
        let texts = self.engine.texts(scanned.as_ref());
        let texts = texts.map_err(|error| Denial::unscannable(direction, &error))?;
        let question = Question { engine: &self.engine, external, direction, texts };
        Ok((!question.texts.is_empty()).then_some(question))
    }
}

/// A question to the detector outside.
struct Question<'a> {
    engine: &'a Engine,
    external: &'a External,
    direction: Direction,
    texts: Vec<Text>,
}

impl Question<'_> {
    async fn ask(&self) -> Result<Vec<Reported>, DetectorError> {
        self.external.detector.ask(self.direction, &self.texts).await
    }

    /// Adds what the detector reports to what was found.
    fn answered<T>(
        &self,
        scanned: Scanned<T>,
        asked: Result<Vec<Reported>, DetectorError>,
        subject: &Subject,
    ) -> Result<Scanned<T>, Denial>
    where
        Scanned<T>: AsRef<Value>,
    {
        let (scanned, error) = match asked {
            Ok(reported) => match scanned.and(self.engine, &reported, subject) {
                Ok(scanned) => return Ok(scanned),
                Err(scanned) => {
                    (scanned, "it reports a kind or a place that there is not".to_owned())
                }
            },
            Err(error) => (scanned, error.to_string()),
        };
        counters::external_detector_failed();
        tracing::warn!(%error, "the external detector was of no use");
        match self.external.when_unavailable {
            WhenUnavailable::Refuse => {
                Err(Denial::unscannable(self.direction, &Unscannable::NoExternalDetector))
            }
            WhenUnavailable::Pass => Ok(scanned),
        }
    }
}

impl App {
    /// What looks through calls now.
    #[must_use]
    pub fn dlp(&self) -> Arc<Dlp> {
        self.dlp.load_full()
    }

    /// Whether DLP finds nothing in a text of a caller that is no part of a call.
    pub(crate) fn is_clean(&self, text: &str) -> bool {
        self.scan_text(text).is_ok_and(|(_, findings)| findings.is_empty())
    }

    /// A text of a caller as it may be recorded beside a call: what would not leave in an answer
    /// is masked.
    pub(crate) fn recordable(&self, text: &str) -> String {
        let dlp = self.dlp();
        let Ok((value, findings)) = self.scan_text(text) else { return String::new() };
        let masked = dlp.engine.redact(value, &findings, None, |finding| {
            let action = dlp.engine.default_action(finding, Direction::Output);
            (action != Action::Flag).then_some(Mask::Placeholder)
        });
        masked.as_str().map_or_else(String::new, str::to_owned)
    }

    fn scan_text(&self, text: &str) -> Result<(Value, Findings), Unscannable> {
        let value = Value::from(text);
        // Nobody sees these fingerprints.
        let findings = self.dlp().engine.scan(&value, &FingerprintKey::new([0; 32]))?;
        Ok((value, findings))
    }

    /// Puts other settings of DLP in force. Says no when the policies name a detector that there
    /// would no longer be; then everything stays as it is.
    pub fn replace_dlp(&self, dlp: Dlp) -> Result<(), Vec<PolicyError>> {
        let _one_at_a_time = self.policies.changing.lock().unwrap_or_else(PoisonError::into_inner);
        self.policies_fit(&dlp)?;
        self.dlp.store(Arc::new(dlp));
        tracing::info!("other DLP settings are in force");
        Ok(())
    }
}
