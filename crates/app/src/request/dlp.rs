//! Data-loss prevention in force: the engine, and a detector outside where one is configured.
//! Swapped whole when its settings change; a call keeps the one it began with.

use portcullis_core::{
    call::{Answer, Denial, Payload, ScanAttempt, Scanned, Use},
    dlp::{Direction, Engine, Reported, Subject, Text, Unscannable},
};
use portcullis_lanes::{goes_on, offload};
use portcullis_upstream::{DetectorError, ExternalDetector};

use crate::{
    base::admission::{Admission, HaltedCall},
    telemetry::counters,
};

/// The scanners of calls and answers.
#[derive(Debug)]
pub struct Dlp {
    engine: Engine,
    external: Option<External>,
}

/// A detector outside, and what becomes of a call when it says nothing.
#[derive(Debug)]
pub struct External {
    pub detector: ExternalDetector,
    /// True if arguments are shown to it.
    pub input: bool,
    /// True if answers are shown to it.
    pub output: bool,
    pub when_unavailable: WhenUnavailable,
}

/// Treatment of a call that an external detector did not scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhenUnavailable {
    Refuse,
    /// The call goes on with the findings of the engine itself.
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

    /// Scans a call, whose admission is given back while the external detector is asked.
    pub(crate) async fn scan_call(
        &self,
        call: Use,
        subject: &Subject,
        admission: &mut Admission,
    ) -> Result<Scanned<Use>, HaltedCall> {
        let scan = |call: Use| call.scan_at(&self.engine, subject, goes_on);
        let mut scanned = scan_or_offload(call, scan).await?;
        if let Some(question) = self.question(&scanned, Direction::Input)? {
            let reported =
                Box::pin(admission.outside(question.ask())).await.map_err(HaltedCall::Stopped)?;
            scanned = question.add_reported(scanned, reported, subject)?;
        }
        counters::found(Direction::Input, scanned.findings());
        Ok(scanned)
    }

    pub(crate) async fn scan_answer(
        &self,
        answer: Answer,
        subject: &Subject,
    ) -> Result<Scanned<Answer>, Denial> {
        let scan = |answer: Answer| answer.scan_at(&self.engine, subject, goes_on);
        let scanned = scan_or_offload(answer, scan).await?;
        let scanned = self.completed(scanned, Direction::Output, subject).await?;
        counters::found(Direction::Output, scanned.findings());
        Ok(scanned)
    }

    /// Adds the report of the external detector, where one is to be asked.
    pub(crate) async fn completed<T>(
        &self,
        scanned: Scanned<T>,
        direction: Direction,
        subject: &Subject,
    ) -> Result<Scanned<T>, Denial>
    where
        T: Payload,
    {
        match self.question(&scanned, direction)? {
            Some(question) => question.add_reported(scanned, question.ask().await, subject),
            None => Ok(scanned),
        }
    }

    /// Question to the detector outside, if there is one for this direction and anything to ask.
    fn question<T>(
        &self,
        scanned: &Scanned<T>,
        direction: Direction,
    ) -> Result<Option<Question<'_>>, Denial>
    where
        T: Payload,
    {
        let wanted = |external: &&External| match direction {
            Direction::Input => external.input,
            Direction::Output => external.output,
        };
        let Some(external) = self.external.as_ref().filter(wanted) else { return Ok(None) };
        let texts = self.engine.texts(scanned.payload());
        let texts = texts.map_err(|error| Denial::unscannable(direction, &error))?;
        let question = Question { engine: &self.engine, external, direction, texts };
        Ok((!question.texts.is_empty()).then_some(question))
    }
}

/// Scans on this thread what takes little, and anything else with a worker.
async fn scan_or_offload<T>(
    mut payload: T,
    scan: impl Fn(T) -> ScanAttempt<T>,
) -> Result<Scanned<T>, Denial> {
    loop {
        match scan(payload) {
            ScanAttempt::Done(scanned) => return scanned,
            ScanAttempt::Unfinished(again) => payload = again,
        }
        offload().await;
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
    fn add_reported<T>(
        &self,
        scanned: Scanned<T>,
        asked: Result<Vec<Reported>, DetectorError>,
        subject: &Subject,
    ) -> Result<Scanned<T>, Denial>
    where
        T: Payload,
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
        tracing::warn!(%error, "the external detector failed");
        match self.external.when_unavailable {
            WhenUnavailable::Refuse => {
                Err(Denial::unscannable(self.direction, &Unscannable::NoExternalDetector))
            }
            WhenUnavailable::Pass => Ok(scanned),
        }
    }
}
