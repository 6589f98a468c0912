//! Data-loss prevention in force: the engine, and a detector outside where one is configured.
//! Swapped whole when its settings change; a call keeps the one it began with.

use std::sync::{Arc, PoisonError};

use portcullis_core::{
    call::{Answer, Denial, Scanned, ToolCall},
    dlp::{Action, Direction, Engine, Findings, FingerprintKey, Mask, Subject, Unscannable},
    policy::PolicyError,
};
use portcullis_upstream::ExternalDetector;
use serde_json::Value;

use crate::{App, counting};

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

    /// Looks through a call.
    pub(crate) async fn scan_call(
        &self,
        call: ToolCall,
        subject: &Subject,
    ) -> Result<Scanned<ToolCall>, Denial> {
        let scanned = call.scan(&self.engine, subject)?;
        let scanned = self.ask(scanned, Direction::Input, subject).await?;
        counting::found(Direction::Input, scanned.findings());
        Ok(scanned)
    }

    /// Looks through an answer.
    pub(crate) async fn scan_answer(
        &self,
        answer: Answer,
        subject: &Subject,
    ) -> Result<Scanned<Answer>, Denial> {
        let scanned = answer.scan(&self.engine, subject)?;
        let scanned = self.ask(scanned, Direction::Output, subject).await?;
        counting::found(Direction::Output, scanned.findings());
        Ok(scanned)
    }

    /// Adds what the detector outside finds, if there is one for this direction.
    async fn ask<T>(
        &self,
        scanned: Scanned<T>,
        direction: Direction,
        subject: &Subject,
    ) -> Result<Scanned<T>, Denial>
    where
        Scanned<T>: AsRef<Value>,
    {
        let wanted = |external: &&External| match direction {
            Direction::Input => external.input,
            Direction::Output => external.output,
        };
        let Some(external) = self.external.as_ref().filter(wanted) else { return Ok(scanned) };
        let refused = |unscannable: &Unscannable| Denial::unscannable(direction, unscannable);
        let texts = self.engine.texts(scanned.as_ref()).map_err(|error| refused(&error))?;
        if texts.is_empty() {
            return Ok(scanned);
        }
        let asked = external.detector.ask(direction, &texts).await;
        let error = match asked {
            Ok(reported) => match scanned.and(&self.engine, &reported, subject) {
                Ok(scanned) => return Ok(scanned),
                Err(scanned) => {
                    (scanned, "it reports a kind or a place that there is not".to_owned())
                }
            },
            Err(error) => (scanned, error.to_string()),
        };
        let (scanned, error) = error;
        counting::external_detector_failed();
        tracing::warn!(%error, "the external detector was of no use");
        match external.when_unavailable {
            WhenUnavailable::Refuse => Err(refused(&Unscannable::NoExternalDetector)),
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
