//! The governed call as a chain of types: `Use → Scanned → Permitted → Cleared`.
//!
//! Each step consumes the one before, only this module builds the next, and the upstream crate
//! accepts nothing but `Cleared<Use>`. Invocation and simulation take the same steps and are
//! given the same [`Ruling`] or [`Denial`]. They differ in three arguments: the findings (scanned or
//! supposed), the [`Decider`] (with or without an explanation) and the rates (counted or only shown).
//!
//! Forgetting DLP or policy does not compile:
//!
//! ```compile_fail
//! use portcullis_core::call::{Cleared, Use};
//! fn send(_: Cleared<Use>) {}
//! fn shortcut(call: Use) { send(call) }
//! ```
//!
//! nor does sending a call that was only simulated:
//!
//! ```compile_fail
//! use portcullis_core::call::{Cleared, Simulated, Use};
//! fn send(_: Cleared<Use>) {}
//! fn simulated(call: Cleared<Use, Simulated>) { send(call) }
//! ```
//!
//! while a call that went through its steps is sent:
//!
//! ```
//! use portcullis_core::call::{Cleared, Use};
//! fn send(_: Cleared<Use>) {}
//! fn governed(call: Cleared<Use>) { send(call) }
//! ```

mod answer;
mod approval;
mod blobs;
mod decision_inputs;
mod denial;
mod input;
mod inputs;
mod limits;
mod ruling;
mod specimen;
mod state;
mod task;
mod view;

pub use self::{
    answer::{Answer, CallResult, Premise},
    approval::RequiredApproval,
    decision_inputs::DecisionInputs,
    denial::{Denial, Grounds},
    input::{Aim, Completion, PinState, Round, Use},
    limits::Limiter,
    ruling::{Asker, Ruling},
    specimen::Specimen,
    state::{CallState, STATES, StateKey, StateOwner},
    task::{KeptTask, LONGEST_TASK_ID, ProviderTask, TaskCall, TaskOwner},
    view::ShownCall,
};

use std::marker::PhantomData;

use crate::{
    dlp::{Direction, Engine, Findings, Pace, Reported, Subject},
    json::Node,
    policy::{Decision, DlpFacts, Obligation, PolicySet, Question},
};

/// A call that a caller makes, or its answer.
#[derive(Debug, Clone, Copy)]
pub enum Actual {}

/// A call that is only simulated, or its answer. It is judged by the same rules, but takes from no
/// rate and is never [sent](Cleared).
#[derive(Debug, Clone, Copy)]
pub enum Simulated {}

/// Scanned by DLP. Nothing is decided yet.
#[derive(Debug)]
pub struct Scanned<T, Mode = Actual> {
    inner: T,
    findings: Findings,
    mode: PhantomData<Mode>,
}

/// Permitted by policy, with obligations that are still to be fulfilled.
#[derive(Debug)]
pub struct Permitted<T, Mode = Actual> {
    inner: T,
    findings: Findings,
    obligations: Vec<Obligation>,
    ruling: Ruling,
    mode: PhantomData<Mode>,
}

/// Permitted, and every obligation fulfilled: may leave.
#[derive(Debug)]
pub struct Cleared<T, Mode = Actual> {
    inner: T,
    findings: Findings,
    obligations: Vec<Obligation>,
    ruling: Ruling,
    mode: PhantomData<Mode>,
}

/// Result of a scan at a pace.
#[derive(Debug)]
pub enum ScanAttempt<T> {
    /// The payload was scanned, or cannot be.
    Done(Result<Scanned<T>, Denial>),
    /// The pace ended the scan before anything was known.
    Unfinished(T),
}

/// A call or an answer, by what travels.
pub trait Payload {
    /// The value that travels.
    fn payload(&self) -> Node<'_>;
}

/// Decides a question by a policy set. Invocation takes the decision alone; simulation also keeps
/// its explanation.
pub trait Decider {
    /// The policies that decide.
    fn set(&self) -> &PolicySet;

    /// Their decision.
    fn decide(&self, question: &Question<'_>) -> Decision;
}

impl Decider for PolicySet {
    fn set(&self) -> &PolicySet {
        self
    }

    fn decide(&self, question: &Question<'_>) -> Decision {
        Self::decide(self, question)
    }
}

impl<T, Mode> Scanned<T, Mode> {
    /// Findings of DLP.
    pub const fn findings(&self) -> &Findings {
        &self.findings
    }

    /// Findings of DLP, without the value they are in.
    #[must_use]
    pub fn into_findings(self) -> Findings {
        self.findings
    }
}

impl<T> Scanned<T> {
    /// Scans what travels in this direction. Denies what cannot be scanned within its budget.
    fn scan(
        inner: T,
        direction: Direction,
        engine: &Engine,
        subject: &Subject,
    ) -> Result<Self, Denial>
    where
        T: Payload,
    {
        match engine.scan_for(inner.payload(), subject) {
            Ok(findings) => Ok(Self { inner, findings, mode: PhantomData }),
            Err(unscannable) => Err(Denial::unscannable(direction, &unscannable)),
        }
    }

    /// The same at a pace.
    fn scan_at(
        inner: T,
        direction: Direction,
        engine: &Engine,
        subject: &Subject,
        pace: Pace,
    ) -> ScanAttempt<T>
    where
        T: Payload,
    {
        match engine.scan_at(inner.payload(), subject, pace) {
            Ok(Some(findings)) => {
                ScanAttempt::Done(Ok(Self { inner, findings, mode: PhantomData }))
            }
            Ok(None) => ScanAttempt::Unfinished(inner),
            Err(unscannable) => {
                ScanAttempt::Done(Err(Denial::unscannable(direction, &unscannable)))
            }
        }
    }
}

impl<T: Payload> Payload for Scanned<T> {
    fn payload(&self) -> Node<'_> {
        self.inner.payload()
    }
}

impl<T: Payload> Scanned<T> {
    /// Adds the report of an external detector. Gives itself back when the report makes no sense.
    pub fn and(
        mut self,
        engine: &Engine,
        reported: &[Reported],
        subject: &Subject,
    ) -> Result<Self, Self> {
        match engine.add_reported(self.payload(), &self.findings, reported, subject) {
            Some(findings) => {
                self.findings = findings;
                Ok(self)
            }
            None => Err(self),
        }
    }
}

impl<T, Mode> Cleared<T, Mode> {
    /// Ruling that clears it.
    pub const fn ruling(&self) -> &Ruling {
        &self.ruling
    }
}

/// Findings as policies see them; `detectors` are their names.
fn facts<'a>(findings: &Findings, detectors: &'a [&'a str]) -> DlpFacts<'a> {
    DlpFacts {
        detectors,
        // Policies count in 64 bits with a sign.
        count: i64::try_from(findings.count()).unwrap_or(i64::MAX),
        max_severity: findings.max_severity(),
        media: findings.media().into(),
    }
}
