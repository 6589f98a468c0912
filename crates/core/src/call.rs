//! The governed call as a chain of types: `ToolCall → Scanned → Permitted → Cleared`.
//!
//! Each step consumes the one before, only this module builds the next, and the upstream crate
//! accepts nothing but `Cleared<ToolCall>`. Forgetting DLP or policy does not compile:
//!
//! ```compile_fail
//! use portcullis_core::call::{Cleared, ToolCall};
//! fn send(_: Cleared<ToolCall>) {}
//! fn shortcut(call: ToolCall) { send(call) }
//! ```
//!
//! while a call that went through its steps is sent:
//!
//! ```
//! use portcullis_core::call::{Cleared, ToolCall};
//! fn send(_: Cleared<ToolCall>) {}
//! fn governed(call: Cleared<ToolCall>) { send(call) }
//! ```

mod answer;
mod input;
mod inputs;
mod limits;
mod ruling;

pub use self::{
    answer::Answer,
    input::ToolCall,
    limits::Limiter,
    ruling::{Asker, Denial, Ruling},
};

use serde_json::Value;

use crate::{
    dlp::{Engine, Findings, Reported, Subject},
    policy::Obligation,
};

/// Looked through by DLP. Nothing is decided yet.
#[derive(Debug)]
pub struct Scanned<T> {
    inner: T,
    findings: Findings,
}

/// Permitted by policy, with obligations that are still to be fulfilled.
#[derive(Debug)]
pub struct Permitted<T> {
    inner: T,
    findings: Findings,
    obligations: Vec<Obligation>,
    ruling: Ruling,
}

/// Permitted, and every obligation fulfilled: may leave.
#[derive(Debug)]
pub struct Cleared<T> {
    inner: T,
    findings: Findings,
    obligations: Vec<Obligation>,
    ruling: Ruling,
}

impl<T> Scanned<T> {
    /// What was found.
    pub const fn findings(&self) -> &Findings {
        &self.findings
    }
}

impl<T> Scanned<T>
where
    Self: AsRef<Value>,
{
    /// Adds what a detector outside reports. Gives itself back when the report makes no sense.
    pub fn and(
        mut self,
        engine: &Engine,
        reported: &[Reported],
        subject: &Subject,
    ) -> Result<Self, Self> {
        match engine.add_reported(self.as_ref(), &self.findings, reported, subject) {
            Some(findings) => {
                self.findings = findings;
                Ok(self)
            }
            None => Err(self),
        }
    }
}

impl<T> Cleared<T> {
    /// How it was ruled.
    pub const fn ruling(&self) -> &Ruling {
        &self.ruling
    }
}

/// Policies count in 64 bits with a sign.
fn count_of(findings: &Findings) -> i64 {
    i64::try_from(findings.count()).unwrap_or(i64::MAX)
}
